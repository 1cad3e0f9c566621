//! Code of other processors, and of another mode than the expected one.

use super::text_words::{first_word, line_start};
use crate::asm::CodeMode;
use crate::asm::registers::find_register;
use cyclescope_core::error::BadSnippet;

/// Remedy for 32-bit and 16-bit code.
pub(super) const NARROW_CODE: &str = "add --bits 32 if it is 32-bit code; 16-bit code isn't measured";

/// Remedy for 64-bit code.
pub(super) const WIDE_CODE: &str = "leave --bits 32 out";

/// What is wrong with a push of 32-bit code.
pub(super) const NARROW_PUSH: &str = "this is 32-bit code: 64-bit code can't push this register";

/// Formats of objects with 64-bit x86 code, as disassemblers name them.
const WIDE_FORMATS: [&str; 7] =
    ["elf64-x86-64", "pei-x86-64", "pe-x86-64", "coff-x86-64", "mach-o-x86-64", "mach-o 64-bit x86-64", "binary"];

/// Formats of objects with 32-bit x86 code.
const NARROW_FORMATS: [&str; 7] =
    ["elf32-i386", "pei-i386", "pe-i386", "coff-i386", "mach-o-i386", "mach-o 32-bit i386", "binary"];

/// Fails if a text is code of another machine than x86 in this mode.
pub(super) fn refuse_other_machine(lines: &[&str], mode: CodeMode) -> Result<(), BadSnippet> {
    for (number, line) in (1..).zip(lines) {
        if is_other_processor(line) {
            return Err(line_start(number).error_expecting("this is code of another processor", "paste x86-64 code"));
        }
        let Some((_, format)) = line.split_once("file format ") else { continue };
        let format = format.trim();
        let own_formats = if mode == CodeMode::Bits64 { WIDE_FORMATS } else { NARROW_FORMATS };
        if own_formats.contains(&format) || !line.contains(':') {
            continue;
        }
        if WIDE_FORMATS.contains(&format) {
            return Err(line_start(number).error_expecting(format!("`{format}` is 64-bit code"), WIDE_CODE));
        }
        let at = line_start(number);
        let is_narrow = format.contains("i386") || format.contains("x86");
        return Err(match is_narrow {
            true => at.error_expecting(format!("`{format}` is not 64-bit code"), NARROW_CODE),
            false => {
                let what = format!("`{format}` is code of another processor");
                at.error_expecting(what, "paste x86-64 code")
            }
        });
    }
    Ok(())
}

/// An instruction of ARM, RISC-V, MIPS or Power, with its registers or by its name.
fn is_other_processor(line: &str) -> bool {
    const OWN_NAMES: [&str; 16] = [
        "mflr", "mtlr", "blr", "stwu", "lwz", "mulld", "mullw", "addis", "addiu", "lui", "auipc", "jalr", "adrp",
        "bdnz", "mtctr", "cbnz",
    ];
    if !line.trim().contains(char::is_whitespace) {
        return line.trim() == "blr";
    }
    // Its address and its bytes as words stand in front.
    let is_digits = |word: &str| {
        let digits = word.strip_prefix("0x").unwrap_or(word);
        let is_number = digits.len() == 2 || digits.bytes().any(|digit| digit.is_ascii_digit());
        word.starts_with("<+") || is_number && digits.bytes().all(|digit| digit.is_ascii_hexdigit() || digit == b':')
    };
    let start = line.split_whitespace().find(|word| !is_digits(word) || word.len() < 2);
    let line = start.and_then(|word| line.get(word.as_ptr() as usize - line.as_ptr() as usize..)).unwrap_or_default();
    if OWN_NAMES.contains(&first_word(line).as_str()) || has_other_registers(line) {
        return true;
    }
    const NAMES: [&str; 14] =
        ["ldr", "str", "ldp", "stp", "adrp", "ldur", "stur", "cbz", "cbnz", "lw", "sw", "ld", "sd", "addi"];
    let word = first_word(line);
    let operand = line.trim_start().get(word.len()..).unwrap_or_default().trim_start();
    let register = operand.split([',', ' ']).next().unwrap_or_default();
    let is_register = register.len() > 1
        && register.starts_with(['x', 'w', 'q', 'r', 'a', 't', 's', 'd'])
        && register[1..].bytes().all(|digit| digit.is_ascii_digit());
    NAMES.contains(&word.as_str()) && is_register && find_register(register).is_none()
}

/// Whether the first operands are registers that x86 doesn't have, as in `mul x0, x0, x1`.
fn has_other_registers(line: &str) -> bool {
    let word = first_word(line);
    let is_name = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
    let operands: Vec<&str> =
        line.trim_start().get(word.len()..).unwrap_or_default().split(',').map(str::trim).collect();
    let is_other = |operand: &&str| {
        let digits = operand.get(1..).unwrap_or_default();
        operand.starts_with(['x', 'w', 'v', 'a', 't', 's', 'd', 'q'])
            && !digits.is_empty()
            && digits.len() <= 2
            && digits.bytes().all(|digit| digit.is_ascii_digit())
            && find_register(operand).is_none()
    };
    is_name && operands.len() >= 2 && operands[..2].iter().all(is_other)
}

/// `mul.lo.s32 %r3, %r1, %r2;` of PTX, or `/*0010*/ IMAD R1, R2` of SASS.
pub(super) fn is_graphics_line(line: &str) -> bool {
    const TYPES: [&str; 8] = [".s32", ".u32", ".b32", ".f32", ".s64", ".u64", ".b64", ".f64"];
    let word = first_word(line);
    TYPES.iter().any(|kind| word.ends_with(kind)) && !word.starts_with('.') && line.contains("%r")
        || line.trim_start().starts_with("/*0") && line.contains("*/")
}

/// `push ebp`, or `pushl %ebp`.
pub(super) fn is_narrow_push(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_push = matches!(words.next(), Some("push" | "pushl" | "pop" | "popl" | "PUSH" | "POP"));
    let register = words.next().unwrap_or_default().trim_start_matches('%').to_ascii_lowercase();
    is_push && matches!(register.as_str(), "eax" | "ebx" | "ecx" | "edx" | "esi" | "edi" | "ebp" | "esp")
}
