//! Texts that hold no code that can be measured, each with what helps.

use super::instruction_text::looks_like_instruction;
use super::other_machine::{NARROW_CODE, NARROW_PUSH, is_graphics_line, is_narrow_push};
use super::text_words::{first_word, line_start, names_in, strip_comment};
use crate::asm::{CodeMode, is_att_mnemonic, is_mnemonic};
use cyclescope_core::error::BadSnippet;
use std::collections::BTreeSet;

/// What is wrong with Go's names of instructions.
pub(super) const GO_TEXT: &str = "this is Go's own assembly, whose names and operands differ from the processor's";
/// Remedy for it.
pub(super) const GO_REMEDY: &str =
    "build the program and paste `go tool objdump -s 'main.Name' PROGRAM`, which has the bytes";
/// What is wrong with IDA's names of variables and places.
pub(super) const IDA_NAMES: &str = "this is a listing of IDA, which names places instead of their addresses";
/// Remedy for it.
pub(super) const IDA_REMEDY: &str = "paste the output of `objdump -d` for the same function";

/// A kind of text without measurable code: whether a line shows it, what it is, and what helps.
struct ForeignText {
    shows: fn(&str) -> bool,
    what: &'static str,
    remedy: &'static str,
}

const FOREIGN_TEXTS: &[ForeignText] = &[
    ForeignText {
        shows: is_intermediate_line,
        what: "this is LLVM's intermediate code, which has no registers yet",
        remedy: "compile it with `llc FILE.ll`, and paste the file that llc writes",
    },
    ForeignText {
        shows: |line| line.split_once("Code: ").is_some_and(|(_, bytes)| is_oops(bytes)),
        what: "these are the bytes of a kernel's fault, which begin inside of an instruction",
        remedy: "paste what the kernel's scripts/decodecode prints for this line",
    },
    ForeignText {
        shows: |line| ["LOAD_FAST", "LOAD_CONST", "RETURN_VALUE", "BINARY_OP"].iter().any(|name| line.contains(name)),
        what: "this is Python's byte code, not the processor's",
        remedy: "measure code that a compiler made, such as the output of numba's inspect_asm()",
    },
    ForeignText {
        shows: |line| line.starts_with("# Overhead ") || line.starts_with("# Samples:") || is_sample(line),
        what: "this is a list of samples, which holds no code",
        remedy: "paste the output of `perf annotate --stdio -s FUNCTION`",
    },
    ForeignText {
        shows: |line| line.starts_with("# callgrind format") || line.starts_with("Ir "),
        what: "this is a profile of callgrind, which holds no code",
        remedy: "paste the output of `objdump -d` for the same function",
    },
    ForeignText {
        shows: |line| {
            let line = line.trim_start();
            ["{\"", "[{", "[\""].iter().any(|start| line.starts_with(start)) && line.contains('"')
        },
        what: "this is JSON without a field that is known to hold an instruction",
        remedy: "paste the instructions alone, one a line",
    },
    ForeignText {
        shows: |line| line == "SYMBOL TABLE:" || is_symbol(line),
        what: "this is a table of symbols, which holds no code",
        remedy: "paste the output of `objdump -d --disassemble=NAME FILE`",
    },
    ForeignText {
        shows: |line| line.starts_with("ICLASS:"),
        what: "this is XED's description of an instruction",
        remedy: "paste what stands behind SHORT:",
    },
    ForeignText {
        shows: |line| line.contains("IMark(") || line.contains(" = GET:I"),
        what: "this is valgrind's intermediate code",
        remedy: "paste the output of `objdump -d` for the same function",
    },
    ForeignText {
        shows: |line| line.contains("\"CodeRegions\"") || line.contains("\"TargetInfo\""),
        what: "this is llvm-mca's output in JSON",
        remedy: "paste its output without -json",
    },
    ForeignText {
        shows: |line| {
            let code = strip_comment(line);
            ["renamable $", "implicit-def", "killed $", "$noreg"].iter().any(|word| code.contains(word))
        },
        what: "this is LLVM's machine code before it is written, MIR",
        remedy: "write it as assembly with `llc -start-after=… FILE.mir`, or compile the source with -S",
    },
    ForeignText {
        shows: |line| {
            let word = line.trim_start();
            ["(func", "(module", "local.", "i32.", "i64.", "f32.", "f64."].iter().any(|start| word.starts_with(start))
        },
        what: "this is WebAssembly, not the processor's code",
        remedy: "compile it to machine code, as `wasmtime compile` does, and paste its disassembly",
    },
    ForeignText {
        shows: is_graphics_line,
        what: "this is code of a graphics processor (PTX or SASS)",
        remedy: "paste x86-64 code",
    },
    ForeignText {
        shows: |line| {
            ["iload_", "aload_", "lload_", "dload_", "invokevirtual", "invokestatic", "ireturn", "lreturn"]
                .iter()
                .any(|name| line.split_whitespace().any(|word| word.starts_with(name)))
        },
        what: "this is Java's bytecode, not the processor's code",
        remedy: "paste what java -XX:+PrintAssembly or JMH's perfasm prints",
    },
    ForeignText {
        shows: |line| ["./", "sudo ", "objdump "].iter().any(|start| line.trim_start().starts_with(start)),
        what: "this is a command of a shell, not code",
        remedy: "paste the instructions alone, such as what stands in its quotes",
    },
    ForeignText {
        shows: |line| {
            ["r/m8", "r/m16", "r/m32", "r/m64", "xmm2/m128", "ymm3/m256"].iter().any(|kind| line.contains(kind))
        },
        what: "this is a form of an instruction from a manual, without registers",
        remedy: "write it with registers, as in `imul rax, rbx`, or measure it with cyclescope instr 'imul r64, r64'",
    },
    ForeignText {
        shows: is_unquoted_row,
        what: "this is CSV without quotes, in which the commas of operands look like its own",
        remedy: "write quotes around the instructions, or paste them alone",
    },
    ForeignText {
        shows: |line| {
            let digits = line.strip_prefix(':').unwrap_or_default();
            digits.len() >= 10 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        },
        what: "this is a file in Intel HEX, which has addresses and sums beside the bytes",
        remedy: "paste the output of `objcopy -I ihex -O binary FILE /dev/stdout | xxd -p`",
    },
    ForeignText {
        shows: is_binary_dump,
        what: "this is a dump of bits, as `xxd -b` prints it",
        remedy: "paste the output of `xxd -p FILE`",
    },
    ForeignText {
        shows: is_base64,
        what: "this may be base64, in which code can't be told from data",
        remedy: "decode it: paste the output of `base64 -d FILE | xxd -p`",
    },
    ForeignText {
        shows: |line| line.trim_start().starts_with("asm") && line.contains('(') && line.contains('"'),
        what: "this is inline assembly, whose operands the compiler fills in",
        remedy: "paste the instructions alone, with registers in place of %0, or measure the function with --c FILE --call NAME",
    },
    ForeignText {
        shows: |line| {
            let first = first_word(line);
            matches!(first.as_str(), "function" | "procedure") || matches!(first.as_str(), "__asm" | "_asm")
        },
        what: "this is source code around assembly",
        remedy: "paste the instructions alone",
    },
    ForeignText {
        shows: |line| line.contains(" STEXT ") || is_go_line(line) || is_go_instruction(line),
        what: GO_TEXT,
        remedy: GO_REMEDY,
    },
    ForeignText {
        shows: is_source_line,
        what: "this is source code, not assembly",
        remedy: "save it in a file, and measure a function of it with --c FILE --call NAME",
    },
    ForeignText {
        shows: is_dump_line,
        what: "this is a dump with addresses and characters beside the bytes",
        remedy: "paste the bytes alone, as `xxd -p` prints them",
    },
    ForeignText { shows: is_ida_line, what: IDA_NAMES, remedy: IDA_REMEDY },
    ForeignText {
        shows: |line| line.starts_with("assembled_snippet:") || line == "instructions:" || line.starts_with("key:"),
        what: "this is a result of llvm-exegesis, not a snippet",
        remedy: "measure the instruction itself, as in cyclescope instr 'add r64, r64'",
    },
];

/// Fails if the text is of a known kind without measurable code.
pub(super) fn refuse_foreign_text(lines: &[&str], mode: CodeMode) -> Result<(), BadSnippet> {
    for (number, line) in (1..).zip(lines) {
        if mode == CodeMode::Bits64 && is_narrow_push(line.trim_end()) {
            return Err(line_start(number).error_expecting(NARROW_PUSH, NARROW_CODE));
        }
        if let Some(foreign) = FOREIGN_TEXTS.iter().find(|foreign| (foreign.shows)(line.trim_end())) {
            return Err(line_start(number).error_expecting(foreign.what, foreign.remedy));
        }
    }
    refuse_stack_variables(lines)?;
    let mut filled = (1..).zip(lines).filter(|(_, line)| !line.trim().is_empty());
    let Some((number, line)) = filled.next().filter(|_| lines.len() < 64) else { return Ok(()) };
    let Some(named) = NamedForm::parse(line.trim()) else { return Ok(()) };
    let what = format!("`{}` is {}, not an instruction with its operands", line.trim(), named.list);
    Err(line_start(number).error_expecting(what, format!("measure it with cyclescope instr '{}'", named.filter)))
}

/// `0x0005 00005 (x.go:3)  XORL  CX, CX`, or a function of a `.s` file of Go.
fn is_go_line(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let (first, second, third) = (words.next(), words.next(), words.next());
    let is_listing = first.is_some_and(|word| word.starts_with("0x"))
        && second.is_some_and(|word| word.len() == 5 && word.bytes().all(|byte| byte.is_ascii_digit()))
        && third.is_some_and(|word| word.starts_with('('));
    is_listing || first == Some("TEXT") && second.is_some_and(|word| word.contains("(SB)"))
}

/// `define i64 @f(i64 %a) {`, or `%m = mul i64 %a, %b`.
fn is_intermediate_line(line: &str) -> bool {
    let line = line.trim_start();
    let defines = line.starts_with("define ") && line.contains('@');
    defines || line.starts_with('%') && line.contains(" = ")
}

/// `48 89 c2 <48> 8b 07` behind `Code:`.
fn is_oops(bytes: &str) -> bool {
    let words: Vec<&str> = bytes.split_whitespace().map(|word| word.trim_matches(['<', '>', '(', ')'])).collect();
    let is_byte = |word: &&str| word.len() == 2 && word.bytes().all(|digit| digit.is_ascii_hexdigit());
    words.len() > 1 && words.iter().all(is_byte)
}

/// `prog 32035 48439.926137:     250000 cpu-clock:` of `perf script`.
fn is_sample(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_time =
        |word: &&str| word.strip_suffix(':').is_some_and(|time| time.contains('.') && time.parse::<f64>().is_ok());
    words.len() > 4 && words[1..4].iter().any(is_time)
}

/// `0x1136,12,imul rax, rdi,120`: a number, and an instruction behind a comma.
fn is_unquoted_row(line: &str) -> bool {
    let number = line.split(',').next().unwrap_or_default().trim().trim_start_matches("0x");
    let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_number && line.split(',').skip(1).any(|cell| looks_like_instruction(cell) && cell.trim().contains(' '))
}

/// `0000000000001139 T main` of `nm`.
fn is_symbol(line: &str) -> bool {
    let Some((address, rest)) = line.split_once(' ') else { return false };
    let is_address = address.len() == 16 && address.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_address && rest.split_once(' ').is_some_and(|(kind, name)| kind.len() == 1 && !name.trim().contains(' '))
}

/// `00000000: 01001000 10001001`.
fn is_binary_dump(line: &str) -> bool {
    let is_bits = |word: &str| word.len() == 8 && word.bytes().all(|bit| matches!(bit, b'0' | b'1'));
    let (address, bits) = line.split_once(':').unwrap_or_default();
    let is_address = !address.is_empty() && address.trim().bytes().all(|digit| digit.is_ascii_hexdigit());
    is_address && bits.split_whitespace().next().is_some_and(is_bits)
}

/// A word of base64: letters of both cases and digits, or `=` at its end.
fn is_base64(line: &str) -> bool {
    /// Shortest word without `=` that is no name.
    const PLAIN_LENGTH: usize = 24;
    let word = line.trim();
    let digits = word.trim_end_matches('=');
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
    let has = |kind: fn(&u8) -> bool| digits.bytes().any(|byte| kind(&byte));
    let is_mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit);
    let is_padded = digits.len() < word.len() && word.len().is_multiple_of(4) && digits.len() + 2 >= word.len();
    digits.len() > 4
        && is_plain
        && (is_padded || is_mixed && word.len() >= PLAIN_LENGTH && word.len().is_multiple_of(4))
}

/// `ADDQ CX, DX`: a name with a size, and registers without `%`.
pub(super) fn is_go_instruction(line: &str) -> bool {
    const REGISTERS: [&str; 8] = ["AX", "BX", "CX", "DX", "SI", "DI", "BP", "SP"];
    let word = line.split_whitespace().next().unwrap_or_default();
    let lower = word.to_ascii_lowercase();
    let is_sized = word.len() > 3 && word.bytes().all(|byte| byte.is_ascii_uppercase()) && is_att_mnemonic(&lower);
    let operands = line.trim_start().get(word.len()..).unwrap_or_default();
    let has_register = names_in(operands).any(|name| REGISTERS.contains(&name));
    is_sized
        && has_register
        && !line.contains('%')
        && (!is_mnemonic(&lower) || lower == "movq" || operands.contains('('))
}

/// `int f(int x) {`, or `x = x * 3;`.
pub(super) fn is_source_line(line: &str) -> bool {
    let opens = line.split_once(')').is_some_and(|(_, after)| after.trim_start().starts_with('{'));
    let assigns = line.ends_with(';') && line.contains(" = ");
    (opens || assigns) && !line.contains(['%', '#', '.']) && !line.trim_start().starts_with(';')
}

/// `00000000: 4801 c048  H..H` of xxd, or `00000000  48 01 c0 48  |H..H|` of hexdump.
fn is_dump_line(line: &str) -> bool {
    let is_hex = |word: &str| !word.is_empty() && word.bytes().all(|digit| digit.is_ascii_hexdigit());
    let mut words = line.split_whitespace();
    let address = words.next().map_or("", |word| word.trim_end_matches(':'));
    let columns: Vec<&str> = words.collect();
    let shows_characters = line.ends_with('|') || line.contains(": ") && columns.len() > 1;
    let is_column = |word: &&str| is_hex(word) && matches!(word.len(), 2 | 4);
    is_hex(address) && address.len() >= 7 && columns.first().is_some_and(is_column) && shows_characters
}

/// `.text:0000000000401136                 push    rbp`.
pub(super) fn is_ida_line(line: &str) -> bool {
    let after = line.strip_prefix(['.', '_']).and_then(|line| line.split_once(':'));
    let digits = after.map_or("", |(_, after)| after.split_whitespace().next().unwrap_or_default());
    let is_variable = line.split_once("= ").is_some_and(|(_, kind)| {
        matches!(kind.split_whitespace().next(), Some("byte" | "word" | "dword" | "qword" | "xmmword"))
            && kind.contains(" ptr ")
    });
    is_variable || matches!(digits.len(), 8 | 16) && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// The constant in `x$ = 8`, a stack variable of Microsoft's compiler.
fn stack_variable(line: &str) -> Option<&str> {
    let (name, value) = line.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let is_constant = name.contains('$') && !name.contains(' ') && value.bytes().all(|byte| byte.is_ascii_digit());
    is_constant.then_some(name)
}

/// Fails if code uses a stack variable of Microsoft's compiler.
fn refuse_stack_variables(lines: &[&str]) -> Result<(), BadSnippet> {
    let variables: BTreeSet<&str> = lines.iter().filter_map(|line| stack_variable(line)).collect();
    let is_used = |line: &&str| stack_variable(line).is_none() && names_in(line).any(|name| variables.contains(name));
    let Some(index) = lines.iter().position(|line| !variables.is_empty() && is_used(line)) else { return Ok(()) };
    let what = "this is a listing of Microsoft's compiler, whose names for stack variables are no addresses";
    let remedy = "paste the output of `dumpbin /disasm FILE.obj`, which has the bytes";
    Err(line_start(index as u32 + 1).error_expecting(what, remedy))
}

/// A form as a table names it.
struct NamedForm {
    list: &'static str,
    filter: String,
}

impl NamedForm {
    /// Parses `ADD (R64, R64)` of uops.info, `ADD_GPRv_GPRv_01` of XED and `ADD64rr` of LLVM.
    fn parse(text: &str) -> Option<NamedForm> {
        if !text.starts_with(|c: char| c.is_ascii_uppercase()) || text.len() > 200 || text.contains(':') {
            return None;
        }
        let known = |name: &str| {
            let name = name.to_ascii_lowercase();
            is_mnemonic(&name).then_some(name)
        };
        if let Some((name, operands)) = text.split_once('(') {
            let mnemonic = known(name.trim().split('_').next()?)?;
            let operands = operands.trim().strip_suffix(')')?;
            let is_list = operands.split(',').all(|operand| !operand.contains(['[', '+', '%']));
            let filter = describe_operands(&mnemonic, operands.split(','));
            return is_list.then_some(NamedForm { list: "uops.info's name of a form", filter });
        }
        if text.contains(char::is_whitespace) {
            return None;
        }
        if let Some((name, operands)) = text.split_once('_') {
            let filter = describe_operands(&known(name)?, operands.split('_'));
            return Some(NamedForm { list: "a form's name in XED or uops.info", filter });
        }
        let shape = text.trim_start_matches(|c: char| c.is_ascii_uppercase() || c.is_ascii_digit());
        let name = text[..text.len() - shape.len()].to_string();
        let is_shape = !shape.is_empty() && shape.chars().all(|c| "rmikbz8_CL1632".contains(c));
        let mnemonic = (1..=name.len()).rev().find_map(|end| known(&name[..end])).filter(|_| is_shape)?;
        Some(NamedForm { list: "LLVM's name of a form", filter: mnemonic })
    }
}

/// A filter of `instr` for these operands, or for the mnemonic if they aren't registers and memory.
fn describe_operands<'a>(mnemonic: &str, operands: impl Iterator<Item = &'a str>) -> String {
    let kinds = operands.map(|operand| {
        let kind = operand.trim().to_ascii_lowercase();
        let letter = kind.get(..1).unwrap_or_default();
        let bits = &kind[letter.len()..];
        let is_sized = matches!(letter, "r" | "m") && matches!(bits, "8" | "16" | "32" | "64" | "128" | "256" | "512");
        match kind.as_str() {
            "i8" => Some("imm8".to_string()),
            "i32" => Some("imm32".to_string()),
            "xmm" | "ymm" | "zmm" => Some(kind),
            _ => is_sized.then_some(kind),
        }
    });
    match kinds.collect::<Option<Vec<String>>>() {
        Some(kinds) if !kinds.is_empty() => format!("{mnemonic} {}", kinds.join(", ")),
        _ => mnemonic.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tables_get_the_command_that_measures_them() {
        for (text, filter) in [
            ("ADD (R64, R64)", "add r64, r64"),
            ("VADDPS (YMM, YMM, M256)", "vaddps ymm, ymm, m256"),
            ("ADD_R64_R64", "add r64, r64"),
            ("ADD_GPRv_GPRv_01", "add"),
            ("ADD64rr", "add"),
            ("VADDPSYrm", "vaddps"),
            ("IMUL64rri8", "imul"),
        ] {
            assert_eq!(NamedForm::parse(text).expect(text).filter, filter, "{text}");
        }
        for text in ["ADD RAX, RBX", "NOP", "add64rr", "FADD ST(1)", "MOV (%RAX), %RBX", "LOOP_TOP:"] {
            assert!(NamedForm::parse(text).is_none(), "{text}");
        }
    }
}
