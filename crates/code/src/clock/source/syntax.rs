//! Instructions as text for assemblers.

use crate::asm::CodeMode;
use crate::clock::step::ClockStep;
use iced_x86::{Encoder, Instruction, OpKind, Register};

/// Assembly syntax of instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SourceSyntax {
    /// `mov eax, 0`; bytes with `.byte`.
    Intel,
    /// Like `Intel`; bytes with `db`.
    Nasm,
    /// `mov $0, %eax`; bytes with `.byte`.
    Att,
}

/// Line of assembly with a remark.
pub(super) struct SourceLine {
    pub(super) text: String,
    pub(super) remark: &'static str,
}

/// Lines of a step that are the same in every program of a mode.
pub(super) fn step_lines(step: ClockStep, syntax: SourceSyntax, mode: CodeMode) -> Vec<SourceLine> {
    let texts = step.instructions().into_iter().map(|instruction| {
        let instruction = mode.convert_own(&instruction);
        // Assemblers in use may be older than these instructions, so they are written as bytes.
        if step.required_feature().is_some_and(is_late_feature) {
            byte_directive(&instruction, syntax, mode)
        } else {
            instruction_text(&instruction, syntax)
        }
    });
    // The last instruction gets the remark; those before prepare it.
    let mut lines: Vec<SourceLine> = texts.map(|text| SourceLine { text, remark: "" }).collect();
    if let Some(last) = lines.last_mut() {
        last.remark = step.describe_effect();
    }
    lines
}

fn is_late_feature(feature: iced_x86::CpuidFeature) -> bool {
    matches!(feature, iced_x86::CpuidFeature::SERIALIZE | iced_x86::CpuidFeature::RDPRU)
}

fn instruction_text(instruction: &Instruction, syntax: SourceSyntax) -> String {
    let mut operands: Vec<String> =
        (0..instruction.op_count()).map(|number| operand_text(instruction, number, syntax)).collect();
    if syntax == SourceSyntax::Att {
        operands.reverse();
    }
    let mnemonic = format!("{:?}", instruction.mnemonic()).to_lowercase();
    format!("{mnemonic} {}", operands.join(", ")).trim_end().to_string()
}

fn operand_text(instruction: &Instruction, number: u32, syntax: SourceSyntax) -> String {
    let (sign, text) = match instruction.op_kind(number) {
        OpKind::Register => ("%", register_name(instruction.op_register(number))),
        _ => ("$", instruction.immediate(number).to_string()),
    };
    if syntax == SourceSyntax::Att { format!("{sign}{text}") } else { text }
}

/// Name of a register.
pub(super) fn register_name(register: Register) -> String {
    format!("{register:?}").to_lowercase()
}

fn byte_directive(instruction: &Instruction, syntax: SourceSyntax, mode: CodeMode) -> String {
    let mut encoder = Encoder::new(mode.bits());
    encoder.encode(instruction, 0).expect("the library's own instructions can be encoded");
    let bytes: Vec<String> = encoder.take_buffer().iter().map(|byte| format!("{byte:#04x}")).collect();
    let directive = if syntax == SourceSyntax::Nasm { "db" } else { ".byte" };
    format!("{directive} {}", bytes.join(", "))
}
