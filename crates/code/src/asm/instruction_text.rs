//! Formats instructions as Intel-syntax text that the parser reads back, as does GNU as if it knows
//! the instruction.
//!
//! The database's formatter writes in the style of Intel's XED. This module puts masks, rounding
//! and the encoding where assemblers expect them.

use super::CodeMode;
use super::mnemonic;
use super::operand::size_bytes;
use iced_x86::{
    Code, EncodingKind, FormatMnemonicOptions, Formatter, Instruction, IntelFormatter, MemorySize, MemorySizeOptions,
    Mnemonic, OpKind, Register, RoundingControl,
};

/// One instruction as text, with numbers in C's hexadecimal.
pub fn format_instruction(instruction: &Instruction) -> String {
    if instruction.is_invalid() {
        return String::from("(bad)");
    }
    let mut formatter = new_formatter();
    let mut plain = *instruction;
    plain.set_op_mask(Register::None);
    plain.set_zeroing_masking(false);
    plain.set_rounding_control(RoundingControl::None);
    plain.set_suppress_all_exceptions(false);
    let mut text = String::from(encoding_hint(instruction));
    text.push_str(&mnemonic_with_prefixes(&mut formatter, &plain));
    let mut operands = Vec::new();
    for shown in 0..formatter.operand_count(&plain) {
        let own = formatter.get_instruction_operand(&plain, shown);
        let mut operand = String::new();
        if formatter.format_operand(&plain, &mut operand, shown).is_err() {
            continue;
        }
        // XED lists masks as operands, which are decorators here. It also lists the x87 top, which
        // assemblers omit.
        let implied = matches!(own, Ok(None)) && (operand.starts_with('k') || operand == "st");
        if implied || (operand == "st" && compares_with_top(instruction)) {
            continue;
        }
        operands.push(drop_odd_size(operand, instruction));
    }
    append_decorators(&mut operands, instruction);
    if !operands.is_empty() {
        text.push(' ');
        text.push_str(&operands.join(", "));
    }
    text
}

fn new_formatter() -> IntelFormatter {
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_rip_relative_addresses(true);
    options.set_memory_size_options(MemorySizeOptions::Always);
    options.set_show_branch_size(false);
    options.set_use_pseudo_ops(false);
    formatter
}

fn mnemonic_with_prefixes(formatter: &mut IntelFormatter, instruction: &Instruction) -> String {
    let mut text = String::new();
    if let Some((_, name)) = mnemonic::OWN_NAMES.iter().find(|(code, _)| *code == instruction.code()) {
        formatter.format_mnemonic_options(instruction, &mut text, FormatMnemonicOptions::NO_MNEMONIC);
        let kept: Vec<&str> =
            text.split_whitespace().filter(|p| !p.starts_with("data") && !p.starts_with("addr")).collect();
        return kept.into_iter().chain([*name]).collect::<Vec<_>>().join(" ");
    }
    let short_environment = matches!(
        instruction.code(),
        Code::Fldenv_m14byte | Code::Fnstenv_m14byte | Code::Frstor_m94byte | Code::Fnsave_m94byte
    );
    if short_environment {
        // The formatter marks it with a size that no assembler accepts.
        text.push_str("data16 ");
    }
    formatter.format_mnemonic(instruction, &mut text);
    text
}

fn compares_with_top(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Fcom | Mnemonic::Fcomp | Mnemonic::Fucom | Mnemonic::Fucomp | Mnemonic::Fxch
    )
}

/// Drops sizes that assemblers do not know (`fpuenv28 ptr`) or reject: those of tables, of 64-bit
/// far pointers, and of 64-byte blocks that are not vectors.
fn drop_odd_size(operand: String, instruction: &Instruction) -> String {
    let far = matches!(instruction.mnemonic(), Mnemonic::Jmp | Mnemonic::Call);
    let unwanted = match instruction.memory_size() {
        MemorySize::Fword10 => true,
        MemorySize::SegPtr64 => !far,
        _ => instruction.op_code().encoding() != EncodingKind::EVEX && instruction.memory_size().size() == 64,
    };
    match operand.split_once(" ptr ") {
        Some((size, rest)) if unwanted || size_bytes(size).is_none() => rest.to_string(),
        _ => operand,
    }
}

fn append_decorators(operands: &mut Vec<String>, instruction: &Instruction) {
    if let Some(first) = operands.first_mut() {
        if instruction.op_mask() != Register::None {
            first.push_str(&format!("{{{:?}}}", instruction.op_mask()).to_lowercase());
        }
        if instruction.zeroing_masking() {
            first.push_str("{z}");
        }
    }
    let rounding = match instruction.rounding_control() {
        RoundingControl::RoundToNearest => "{rn-sae}",
        RoundingControl::RoundDown => "{rd-sae}",
        RoundingControl::RoundUp => "{ru-sae}",
        RoundingControl::RoundTowardZero => "{rz-sae}",
        _ if instruction.suppress_all_exceptions() => "{sae}",
        _ => return,
    };
    // After the registers and before an immediate, as GNU as expects.
    let last = instruction.op_count().saturating_sub(1);
    let immediate = instruction.op_kind(last) == OpKind::Immediate8;
    let place = operands.len() - usize::from(immediate);
    operands.insert(place, rounding.to_string());
}

/// Hint that makes an assembler choose this encoding.
fn encoding_hint(instruction: &Instruction) -> &'static str {
    let info = instruction.op_code();
    let others = |wanted: EncodingKind| {
        let name = format!("{:?}", instruction.mnemonic()).to_lowercase();
        mnemonic::find_patterns(&name, CodeMode::from_instruction(instruction))
            .iter()
            .any(|p| p.code.op_code().encoding() == wanted)
    };
    match info.encoding() {
        EncodingKind::VEX
            if super::instruction_choice::is_late_vex(instruction.code()) && others(EncodingKind::EVEX) =>
        {
            "{vex} "
        }
        EncodingKind::EVEX if !needs_evex(instruction) && others(EncodingKind::VEX) => {
            let name = format!("{:?}", instruction.mnemonic()).to_lowercase();
            let late = |p: &super::mnemonic_pattern::MnemonicPattern| super::instruction_choice::is_late_vex(p.code);
            let patterns = mnemonic::find_patterns(&name, CodeMode::from_instruction(instruction));
            if patterns.iter().any(late) { "" } else { "{evex} " }
        }
        _ => "",
    }
}

/// Whether the operands alone rule out VEX.
fn needs_evex(instruction: &Instruction) -> bool {
    let high = |r: Register| r.is_zmm() || (r.is_vector_register() && r.number() > 15);
    let registers = (0..instruction.op_count()).filter(|n| instruction.op_kind(*n) == OpKind::Register);
    registers.map(|n| instruction.op_register(n)).any(high)
        || high(instruction.memory_index())
        || instruction.op_mask() != Register::None
        || instruction.is_broadcast()
        || instruction.rounding_control() != RoundingControl::None
        || instruction.suppress_all_exceptions()
}
