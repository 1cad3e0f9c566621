//! The instructions that a mnemonic may mean, and how their operands may be written.
//!
//! The table is built once from the instruction database. Each Code gives several patterns: one
//! with all its operands, and one as the Intel formatter prints it. The latter adds implied
//! registers, such as the `xmm0` of `blendvps`. Further patterns omit operands that assemblers
//! treat as optional. Aliases and pseudo-operations are derived from those.

use super::CodeMode;
use super::mnemonic_pattern::{MnemonicPattern, OperandTarget};
use super::operand_slot::{ImmediateEncoding, OperandSlot, RegisterClass, list_slots};
use super::registers::find_register;
use iced_x86::{Code, Formatter, Instruction, IntelFormatter, Mnemonic, OpKind, Register};
use std::collections::HashMap;
use std::sync::LazyLock;

/// Own names, used if the formatter's name means a different instruction to assemblers or needs a
/// prefix.
pub(super) const OWN_NAMES: [(Code, &str); 11] = [
    (Code::Iretw, "iretw"),
    (Code::Pushfw, "pushfw"),
    (Code::Popfw, "popfw"),
    (Code::Pushaw, "pushaw"),
    (Code::Popaw, "popaw"),
    (Code::Retfw, "retfw"),
    (Code::Retfd, "retf"),
    (Code::Retfq, "retfq"),
    (Code::Retfw_imm16, "retfw"),
    (Code::Retfd_imm16, "retf"),
    (Code::Retfq_imm16, "retfq"),
];

type PatternTable = HashMap<String, Vec<MnemonicPattern>>;

static PATTERN_TABLE: LazyLock<PatternTable> = LazyLock::new(|| build_table(CodeMode::Bits64));
static PATTERN_TABLE_32: LazyLock<PatternTable> = LazyLock::new(|| build_table(CodeMode::Bits32));

fn pattern_table(mode: CodeMode) -> &'static PatternTable {
    match mode {
        CodeMode::Bits64 => &PATTERN_TABLE,
        CodeMode::Bits32 => &PATTERN_TABLE_32,
    }
}

/// All patterns of a mnemonic (in lower case) in a mode; empty if it is unknown.
pub(super) fn find_patterns(mnemonic: &str, mode: CodeMode) -> &'static [MnemonicPattern] {
    pattern_table(mode).get(mnemonic).map_or(&[], Vec::as_slice)
}

/// All mnemonics of a mode.
pub(super) fn all_mnemonics(mode: CodeMode) -> impl Iterator<Item = &'static str> {
    pattern_table(mode).keys().map(String::as_str)
}

/// Whether an assembler for a mode should know it: it exists there, and a decoder with default
/// options decodes it again.
pub(super) fn is_usable(code: Code, mode: CodeMode) -> bool {
    let info = code.op_code();
    info.is_instruction()
        && mode.has_code(code)
        && info.decoder_option() == 0
        && list_slots(code).all(|slot| slot != OperandSlot::Unusable)
}

// Every command that assembles builds it, so that a start waits for it.
fn build_table(mode: CodeMode) -> PatternTable {
    let mut table = PatternTable::new();
    let mut formatter = IntelFormatter::new();
    // Codes of a mnemonic follow each other.
    let mut named = (Mnemonic::INVALID, String::new());
    for code in Code::values().filter(|code| is_usable(*code, mode)) {
        if named.0 != code.mnemonic() {
            named = (code.mnemonic(), mnemonic_name(code));
        }
        let name = named.1.as_str();
        let (printed, shown) = printed_pattern(&mut formatter, code, mode);
        let all = (0..code.op_code().op_count()).map(OperandTarget::Operand).collect();
        let mut patterns: Vec<MnemonicPattern> = Vec::new();
        for targets in std::iter::once(all).chain(shown).chain(shorter_patterns(code, name)) {
            if !patterns.iter().any(|known| known.targets == targets) {
                patterns.push(MnemonicPattern { code, targets, immediate: None });
            }
        }
        let own = OWN_NAMES.iter().find(|(own, _)| *own == code).map_or(printed.as_str(), |(_, name)| name);
        if printed != name {
            add_patterns(&mut table, &printed, &patterns);
        }
        if own != name && own != printed {
            add_patterns(&mut table, own, &patterns);
        }
        add_patterns(&mut table, name, &patterns);
    }
    super::aliases::add_aliases(&mut table);
    table
}

/// Adds patterns to those of a name.
fn add_patterns(table: &mut PatternTable, name: &str, patterns: &[MnemonicPattern]) {
    match table.get_mut(name) {
        Some(known) => known.extend_from_slice(patterns),
        None => {
            table.insert(name.to_string(), patterns.to_vec());
        }
    }
}

/// The name of a code's mnemonic in the instruction database.
fn mnemonic_name(code: Code) -> String {
    format!("{:?}", code.mnemonic()).to_lowercase()
}

/// Mnemonic and operands as the Intel formatter shows them.
fn printed_pattern(formatter: &mut IntelFormatter, code: Code, mode: CodeMode) -> (String, Option<Vec<OperandTarget>>) {
    let instruction = placeholder_instruction(code, mode);
    let mut name = String::new();
    formatter.format_mnemonic_options(&instruction, &mut name, iced_x86::FormatMnemonicOptions::NO_PREFIXES);
    let name = name.trim_end_matches(" far").to_string();
    let mut targets = Vec::new();
    for shown in 0..formatter.operand_count(&instruction) {
        let mut text = String::new();
        match formatter.get_instruction_operand(&instruction, shown) {
            Ok(Some(operand)) => targets.push(OperandTarget::Operand(operand)),
            _ if formatter.format_operand(&instruction, &mut text, shown).is_ok() => match find_register(&text) {
                Some(register) => targets.push(OperandTarget::Implied(register)),
                None => return (name, None),
            },
            _ => return (name, None),
        }
    }
    (name, Some(targets))
}

/// An instruction complete enough for formatting.
fn placeholder_instruction(code: Code, mode: CodeMode) -> Instruction {
    let mut instruction = Instruction::default();
    instruction.set_code(code);
    instruction.set_code_size(mode.code_size());
    for (operand, slot) in (0..).zip(list_slots(code)) {
        let register = match slot {
            OperandSlot::Reg(class) | OperandSlot::RegMem(class) | OperandSlot::Group(class, _) => {
                class.nth_register(1)
            }
            OperandSlot::Fixed(register) => register,
            OperandSlot::Imm(_) => {
                instruction.set_op_kind(operand, OpKind::Immediate8);
                // Above any predicate, so that no pseudo-operation is printed.
                instruction.set_immediate8(if slot == OperandSlot::Imm(ImmediateEncoding::One) { 1 } else { 0x77 });
                continue;
            }
            OperandSlot::Branch(_) => {
                instruction.set_op_kind(operand, mode.branch_kind());
                continue;
            }
            OperandSlot::Source => {
                instruction.set_op_kind(operand, mode.source_kind());
                continue;
            }
            OperandSlot::Destination => {
                instruction.set_op_kind(operand, mode.destination_kind());
                continue;
            }
            OperandSlot::MaskedStore => {
                instruction.set_op_kind(operand, mode.masked_store_kind());
                continue;
            }
            _ => {
                instruction.set_op_kind(operand, OpKind::Memory);
                instruction.set_memory_base(mode.general_register(3));
                continue;
            }
        };
        instruction.set_op_kind(operand, OpKind::Register);
        instruction.set_op_register(operand, register);
    }
    instruction
}

/// Patterns with omitted operands, or in the other order if the instruction is symmetric.
fn shorter_patterns(code: Code, name: &str) -> Vec<Vec<OperandTarget>> {
    let slots: Vec<OperandSlot> = list_slots(code).collect();
    let keep = |wanted: &dyn Fn(OperandSlot) -> bool| -> Vec<OperandTarget> {
        (0..).zip(&slots).filter(|(_, slot)| wanted(**slot)).map(|(i, _)| OperandTarget::Operand(i)).collect()
    };
    let implied_memory = |s: OperandSlot| {
        matches!(s, OperandSlot::Source | OperandSlot::Destination | OperandSlot::MaskedStore | OperandSlot::Table)
    };
    let fixed = |s: OperandSlot| matches!(s, OperandSlot::Fixed(_));
    let st0 = OperandSlot::Fixed(Register::ST0);
    let mut found = Vec::new();
    if slots.iter().any(|s| implied_memory(*s)) {
        found.push(keep(&|s| !implied_memory(s) && !fixed(s)));
        found.push(keep(&|s| !fixed(s)));
    }
    if slots.contains(&OperandSlot::Imm(ImmediateEncoding::One)) {
        found.push(keep(&|s| s != OperandSlot::Imm(ImmediateEncoding::One)));
    }
    if slots.contains(&st0) && slots.contains(&OperandSlot::Reg(RegisterClass::St)) {
        found.push(keep(&|s| s != st0));
        if name.ends_with('p') || name.starts_with("fcom") || name.starts_with("fucom") || name == "fxch" {
            found.push(Vec::new());
        }
    }
    if name == "imul" && slots.len() == 3 {
        found.push(vec![OperandTarget::Operand(0), OperandTarget::Operand(2)]);
    }
    let symmetric = matches!(
        slots[..],
        [OperandSlot::RegMem(_) | OperandSlot::Reg(_), OperandSlot::Reg(_) | OperandSlot::Fixed(_)]
    );
    if matches!(name, "test" | "xchg") && symmetric {
        found.push(vec![OperandTarget::Operand(1), OperandTarget::Operand(0)]);
    }
    let blends = matches!(name, "blendvps" | "blendvpd" | "pblendvb" | "sha256rnds2");
    if blends && slots.len() == 2 {
        found.push(vec![OperandTarget::Operand(0), OperandTarget::Operand(1), OperandTarget::Implied(Register::XMM0)]);
    }
    if name.ends_with("stsw") && fixed(slots[0]) {
        found.push(Vec::new());
    }
    found
}
