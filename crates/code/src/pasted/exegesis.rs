//! Comments of llvm-exegesis: registers become init code, and memory at fixed addresses is refused.

use super::text_words::line_start;
use crate::asm::registers::find_register;
use cyclescope_core::error::BadSnippet;
use iced_x86::Register;

/// Beginning of the comments.
pub(super) const PREFIX: &str = "LLVM-EXEGESIS-";
/// Most hexadecimal digits of a register's value: 64 bytes.
const DIGITS_MOST: usize = 128;

/// A register with its value, from its lowest word.
struct InitialRegister {
    register: Register,
    name: String,
    words: Vec<u64>,
}

/// The init code that the comments ask for, in Intel syntax; `None` if there are no such comments.
pub(super) fn read_exegesis(lines: &[&str]) -> Result<Option<String>, BadSnippet> {
    let mut registers = Vec::new();
    let mut is_found = false;
    for (number, line) in (1..).zip(lines) {
        let Some(at) = line.find(PREFIX).filter(|at| line[..*at].contains(['#', ';', '/'])) else { continue };
        is_found = true;
        let words: Vec<&str> = line[at + PREFIX.len()..].split_whitespace().collect();
        match words[..] {
            // Every register holds a value, and those that addresses use point to memory.
            ["LIVEIN", name] if find_register(&name.to_ascii_lowercase()).is_some() => {}
            ["DEFREG", name, value] => registers.push(parse_register(number, name, value)?),
            ["MEM-DEF" | "MEM-MAP" | "SNIPPET-ADDRESS" | "LOOP-REGISTER", ..] => {
                let what = format!("{PREFIX}{} needs memory or code at a fixed address", words[0]);
                let remedy = "delete the line, and address memory through R14, RDI, RSI, RSP or RBP, set by --init";
                return Err(line_start(number).error_expecting(what, remedy));
            }
            _ => {
                let what = format!("`{PREFIX}{}` is not known", words.join(" "));
                let remedy = "known are LLVM-EXEGESIS-DEFREG REGISTER HEX and LLVM-EXEGESIS-LIVEIN REGISTER";
                return Err(line_start(number).error_expecting(what, remedy));
            }
        }
    }
    // General registers come last, because the others pass their values through RAX.
    registers.sort_by_key(|initial: &InitialRegister| initial.register.is_gpr());
    Ok(is_found.then(|| registers.iter().map(InitialRegister::write_code).collect::<Vec<_>>().join("\n")))
}

fn parse_register(line: u32, name: &str, value: &str) -> Result<InitialRegister, BadSnippet> {
    let at = line_start(line);
    let refuse = |what: &str| {
        let remedy = "set it with --init, and delete the line";
        Err(at.error_expecting(format!("{PREFIX}DEFREG {name} {value}: {what}"), remedy))
    };
    let digits = value.trim_start_matches("0x").trim_start_matches("0X");
    if digits.is_empty() || digits.len() > DIGITS_MOST || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return refuse("the value is not a hexadecimal number");
    }
    let name = name.to_ascii_lowercase();
    let register = match name.as_str() {
        "eflags" | "mxcsr" => Register::None,
        _ => match find_register(&name) {
            Some(register) if register.is_gpr() || register.is_vector_register() || register.is_k() => register,
            _ => return refuse("this register can't be set"),
        },
    };
    if matches!(register.full_register(), Register::RSP) {
        return refuse("the stack pointer can't be set");
    }
    let words: Vec<u64> = digits
        .as_bytes()
        .rchunks(16)
        .map(|chunk| u64::from_str_radix(std::str::from_utf8(chunk).expect("digits"), 16).expect("16 digits"))
        .collect();
    let size = if register == Register::None { 4 } else { register.size() };
    let used = words.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
    let fits = used <= size.div_ceil(8) && (size >= 8 || words[0] >> (8 * size) == 0);
    if !fits {
        return refuse("the value is wider than the register");
    }
    Ok(InitialRegister { register, name, words })
}

impl InitialRegister {
    fn write_code(&self) -> String {
        let (name, low) = (&self.name, self.words[0]);
        let word = |index: usize| self.words.get(index).copied().unwrap_or(0);
        if self.register.is_gpr() {
            return format!("mov {name}, {low:#x}");
        }
        let push = |count: usize| {
            let pushes: Vec<String> =
                (0..count).rev().map(|index| format!("mov rax, {:#x}\npush rax", word(index))).collect();
            pushes.join("\n")
        };
        match (name.as_str(), self.register.size()) {
            ("eflags", _) => format!("{}\npopfq", push(1)),
            ("mxcsr", _) => format!("{}\nldmxcsr [rsp]\npop rax", push(1)),
            (_, 16) => format!("{}\nmovdqu {name}, [rsp]\nadd rsp, 16", push(2)),
            (_, 32) => format!("{}\nvmovdqu {name}, [rsp]\nadd rsp, 32", push(4)),
            (_, 64) => format!("{}\nvmovdqu64 {name}, [rsp]\nadd rsp, 64", push(8)),
            _ => format!("{}\nkmovq {name}, [rsp]\npop rax", push(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asm::parse_assembly;

    #[test]
    fn registers_become_init_code() {
        let read = |text: &str| read_exegesis(&text.lines().collect::<Vec<_>>());
        let code = read("# LLVM-EXEGESIS-DEFREG RAX 2a\n# LLVM-EXEGESIS-DEFREG XMM1 42\n# LLVM-EXEGESIS-LIVEIN RDI");
        let code = code.expect("it is known").expect("there are comments");
        assert!(code.ends_with("movdqu xmm1, [rsp]\nadd rsp, 16\nmov rax, 0x2a"), "{code}");
        for register in ["EAX", "YMM3", "ZMM31", "K1", "EFLAGS", "MXCSR", "R15"] {
            let code = read(&format!("# LLVM-EXEGESIS-DEFREG {register} 1f80")).expect(register).expect("comments");
            assert!(parse_assembly(&code).is_ok_and(|listing| !listing.bytes().is_empty()), "{code}");
        }
        for text in
            ["MEM-MAP mem 65536", "MEM-DEF mem 4096 0", "DEFREG RSP 0", "DEFREG AL 1234", "DEFREG RAX x", "WHAT"]
        {
            assert!(read(&format!("# LLVM-EXEGESIS-{text}")).is_err(), "{text}");
        }
        assert_eq!(read("nop # LLVM"), Ok(None));
    }
}
