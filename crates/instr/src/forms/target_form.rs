//! The target of a measurement: a form or a sequence of instructions.

use super::encoded_constant::EncodedConstant;
use super::form_anatomy::FormAnatomy;
use super::instruction_sequence::InstructionSequence;
use cyclescope_code::asm::forms::InstructionForm;
use iced_x86::Code;

/// A form or sequence to measure, and which figures to determine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetForm {
    /// The form. For a sequence: the form of its first instruction.
    pub form: InstructionForm,
    /// Whether to determine latencies.
    pub latency: bool,
    /// Whether to report the reciprocal throughput. It is always measured, because it serves to
    /// judge latencies.
    pub throughput: bool,
    /// Machine code that runs before each program's own init code.
    pub init: Vec<u8>,
    /// The only constant to measure. `None` measures the general constant and tries others.
    pub constant: Option<EncodedConstant>,
    /// The sequence, if the target is not a single form.
    pub sequence: Option<InstructionSequence>,
}

impl TargetForm {
    /// The anatomy of the form with the chosen constant. `None` if it has no instance with it.
    pub fn anatomy(&self) -> Option<FormAnatomy> {
        let mut anatomy = FormAnatomy::from_form(self.form)?;
        if self.sequence.is_some() {
            // A sequence keeps the constants of its assembly.
            anatomy.constants.clear();
            return Some(anatomy);
        }
        match self.constant {
            Some(constant) => anatomy.with_constant(constant),
            None => Some(anatomy),
        }
    }

    /// The target with this immediate. `None` if its immediate is fixed, or its code can't hold
    /// this value.
    pub fn with_immediate(&self, value: i64) -> Option<TargetForm> {
        let anatomy = FormAnatomy::from_form(self.form)?;
        let constant = EncodedConstant::Immediate(value);
        let chosen = matches!(anatomy.constants.first(), Some(EncodedConstant::Immediate(_)));
        (chosen && constant.fits_code(&anatomy.sample)).then(|| TargetForm { constant: Some(constant), ..self.clone() })
    }

    /// The target of a sequence. `None` if the sequence is empty.
    pub fn from_sequence(sequence: InstructionSequence) -> Option<TargetForm> {
        let first = *sequence.forms().first()?;
        Some(TargetForm { sequence: Some(sequence), ..first.into() })
    }

    /// Whether it contains code of somebody else: a sequence, or init code.
    pub fn has_foreign_code(&self) -> bool {
        self.sequence.is_some() || !self.init.is_empty()
    }

    /// The codes of all its instructions.
    pub fn codes(&self) -> Vec<Code> {
        match &self.sequence {
            Some(sequence) => sequence.forms().iter().map(|form| form.code).collect(),
            None => vec![self.form.code],
        }
    }

    /// The name in the instruction database. For a sequence: its assembly.
    pub fn code(&self) -> String {
        self.sequence.as_ref().map_or_else(|| format!("{:?}", self.form.code), InstructionSequence::to_assembly)
    }

    /// The mnemonic in lower case. For a sequence: its assembly.
    pub fn mnemonic(&self) -> String {
        self.sequence.as_ref().map_or_else(|| self.form.mnemonic(), InstructionSequence::to_assembly)
    }

    /// The form's encoding, or `sequence`.
    pub fn encoding(&self) -> &'static str {
        if self.sequence.is_some() { "sequence" } else { self.form.encoding() }
    }

    /// The operands as shown in its row. A chosen immediate replaces `imm8` and the like. Empty for
    /// a sequence.
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

/// Whether this operand name denotes an immediate.
fn is_immediate_name(operand: &str) -> bool {
    operand.strip_prefix("imm").is_some_and(|bits| bits.bytes().all(|byte| byte.is_ascii_digit()))
}

impl From<InstructionForm> for TargetForm {
    fn from(form: InstructionForm) -> TargetForm {
        TargetForm { form, latency: true, throughput: true, init: Vec::new(), constant: None, sequence: None }
    }
}
