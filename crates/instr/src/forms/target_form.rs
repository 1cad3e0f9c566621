//! A form, or a sequence of instructions, that a survey measures.

use super::encoded_constant::EncodedConstant;
use super::form_anatomy::FormAnatomy;
use super::instruction_sequence::InstructionSequence;
use cyclescope_code::asm::forms::InstructionForm;
use iced_x86::Code;

/// A form, and what to find out about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetForm {
    /// The form; of a sequence that of its first instruction.
    pub form: InstructionForm,
    /// Whether its latencies are wanted.
    pub latency: bool,
    /// Whether its reciprocal throughput is wanted. It is measured in any case, for a latency is judged by it.
    pub throughput: bool,
    /// Machine code that runs before each program's own.
    pub init: Vec<u8>,
    /// The constant that it is measured with, and no other; none for the general one and others beside it.
    pub constant: Option<EncodedConstant>,
    /// The sequence, where it is not the form alone that is measured.
    pub sequence: Option<InstructionSequence>,
}

impl TargetForm {
    /// The form, taken apart, with the constant that is wanted; `None` where it has no such instance.
    pub fn anatomy(&self) -> Option<FormAnatomy> {
        let mut anatomy = FormAnatomy::from_form(self.form)?;
        if self.sequence.is_some() {
            // Its instructions have the constants that they were written with.
            anatomy.constants.clear();
            return Some(anatomy);
        }
        match self.constant {
            Some(constant) => anatomy.with_constant(constant),
            None => Some(anatomy),
        }
    }

    /// The same with this immediate; `None` where it has none that can be chosen, or its code can't hold this one.
    pub fn with_immediate(&self, value: i64) -> Option<TargetForm> {
        let anatomy = FormAnatomy::from_form(self.form)?;
        let constant = EncodedConstant::Immediate(value);
        let chosen = matches!(anatomy.constants.first(), Some(EncodedConstant::Immediate(_)));
        (chosen && constant.fits_code(&anatomy.sample)).then(|| TargetForm { constant: Some(constant), ..self.clone() })
    }

    /// A sequence; `None` where it has no instruction.
    pub fn from_sequence(sequence: InstructionSequence) -> Option<TargetForm> {
        let first = *sequence.forms().first()?;
        Some(TargetForm { sequence: Some(sequence), ..first.into() })
    }

    /// All instructions by their names in the instruction database.
    pub fn codes(&self) -> Vec<Code> {
        match &self.sequence {
            Some(sequence) => sequence.forms().iter().map(|form| form.code).collect(),
            None => vec![self.form.code],
        }
    }

    /// The name in the instruction database; of a sequence its assembly.
    pub fn code(&self) -> String {
        self.sequence.as_ref().map_or_else(|| format!("{:?}", self.form.code), InstructionSequence::to_assembly)
    }

    /// The mnemonic in lower case; of a sequence its assembly.
    pub fn mnemonic(&self) -> String {
        self.sequence.as_ref().map_or_else(|| self.form.mnemonic(), InstructionSequence::to_assembly)
    }

    /// That of the form, or `sequence`.
    pub fn encoding(&self) -> &'static str {
        if self.sequence.is_some() { "sequence" } else { self.form.encoding() }
    }

    /// The operands as its row has them: none of a sequence, those of the form, and where it is measured with one immediate and no other,
    /// that in the place of `imm8` and the like.
    pub fn operands(&self) -> String {
        if self.sequence.is_some() {
            return String::new();
        }
        let operands = self.form.describe_operands();
        let Some(immediate) = self.constant.and_then(EncodedConstant::format_immediate) else {
            return operands;
        };
        let written = |operand| if is_immediate_name(operand) { immediate.as_str() } else { operand };
        operands.split(", ").map(written).collect::<Vec<_>>().join(", ")
    }
}

/// Whether the name of an operand is that of immediates.
fn is_immediate_name(operand: &str) -> bool {
    operand.strip_prefix("imm").is_some_and(|bits| bits.bytes().all(|byte| byte.is_ascii_digit()))
}

impl From<InstructionForm> for TargetForm {
    fn from(form: InstructionForm) -> TargetForm {
        TargetForm { form, latency: true, throughput: true, init: Vec::new(), constant: None, sequence: None }
    }
}
