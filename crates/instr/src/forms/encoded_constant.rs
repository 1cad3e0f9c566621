//! Constants: the immediates, scales and displacements that a form is measured with.
//!
//! A row's headline figures use the *general* constant: one that permits no special case, judged by
//! the constant's meaning.
//!
//! - A selector picks neither the lowest lane nor the present content. It keeps neither all nor
//!   nothing, and crosses lanes where possible.
//! - A count is not 0, 1 or a number of whole bytes.
//! - A number is not 0 or a power of two.
//!
//! The other constants may let a core do less: identities, zero, one, all ones, powers of two, the
//! lowest lane. A second general one completes the list. How a core treats them is measured, never
//! assumed.
//!
//! The meaning follows from the mnemonic, the operand width, and the number of stored bits.

use super::immediate_meaning::{self, ImmediateMeaning};
use super::instruction_setting;
use cyclescope_code::asm::as_encoded;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpCodeOperandKind as Kind, OpKind};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A constant in an instruction's machine code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EncodedConstant {
    /// The value of every immediate of the instruction.
    Immediate(i64),
    /// The factor that LEA applies to its index.
    Scale(u32),
    /// The displacement that LEA adds.
    Displacement(i32),
}

impl EncodedConstant {
    /// The immediate in assembly syntax. `None` for other constants.
    pub fn format_immediate(self) -> Option<String> {
        match self {
            EncodedConstant::Immediate(value) => Some(format_hex(value)),
            EncodedConstant::Scale(_) | EncodedConstant::Displacement(_) => None,
        }
    }

    /// The instruction with this constant. `None` if it can't be encoded or would be another
    /// instruction.
    pub fn apply_to(self, instruction: &Instruction) -> Option<Instruction> {
        let mut other = *instruction;
        match self {
            EncodedConstant::Immediate(value) => {
                let operands = (0..other.op_count()).filter(|operand| is_immediate(other.op_kind(*operand)));
                for operand in operands.collect::<Vec<_>>() {
                    other.set_immediate_i64(operand, value);
                }
            }
            EncodedConstant::Scale(scale) => other.set_memory_index_scale(scale),
            EncodedConstant::Displacement(displacement) => {
                other.set_memory_displacement64(i64::from(displacement) as u64)
            }
        }
        as_encoded(&other)
    }
}

impl EncodedConstant {
    /// Whether an instruction can encode the whole constant, not only its lowest bits.
    pub(crate) fn fits_code(self, instruction: &Instruction) -> bool {
        let EncodedConstant::Immediate(value) = self else { return self.apply_to(instruction).is_some() };
        let holds = |kind: OpKind| match kind {
            OpKind::Immediate8 | OpKind::Immediate8_2nd => (-0x80..0x100).contains(&value),
            OpKind::Immediate16 => (-0x8000..0x1_0000).contains(&value),
            OpKind::Immediate32 => (-0x8000_0000..0x1_0000_0000).contains(&value),
            // The code stores the lowest byte and extends its sign.
            OpKind::Immediate8to16 | OpKind::Immediate8to32 | OpKind::Immediate8to64 => i8::try_from(value).is_ok(),
            OpKind::Immediate32to64 => i32::try_from(value).is_ok(),
            _ => true,
        };
        (0..instruction.op_count()).all(|operand| holds(instruction.op_kind(operand)))
            && self.apply_to(instruction).is_some()
    }
}

impl fmt::Display for EncodedConstant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncodedConstant::Immediate(value) => write!(f, "immediate {}", format_hex(*value)),
            EncodedConstant::Scale(scale) => write!(f, "scale {scale}"),
            EncodedConstant::Displacement(displacement) => {
                write!(f, "displacement {}", format_hex(i64::from(*displacement)))
            }
        }
    }
}

fn format_hex(value: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{:#x}", value.unsigned_abs())
}

fn is_immediate(kind: OpKind) -> bool {
    use OpKind::{
        Immediate8, Immediate8_2nd, Immediate8to16, Immediate8to32, Immediate8to64, Immediate16, Immediate32,
        Immediate32to64, Immediate64,
    };
    matches!(
        kind,
        Immediate8
            | Immediate8_2nd
            | Immediate8to16
            | Immediate8to32
            | Immediate8to64
            | Immediate16
            | Immediate32
            | Immediate32to64
            | Immediate64
    )
}

/// Number of bits that the code stores for the first variable immediate.
fn count_immediate_bits(instruction: &Instruction) -> Option<u32> {
    instruction.op_code().op_kinds().iter().find_map(|kind| match kind {
        Kind::imm4_m2z => Some(4),
        Kind::imm8 | Kind::imm8sex16 | Kind::imm8sex32 | Kind::imm8sex64 => Some(8),
        Kind::imm16 => Some(16),
        Kind::imm32 | Kind::imm32sex64 => Some(32),
        Kind::imm64 => Some(64),
        _ => None,
    })
}

/// The constants of a form, given one of its instructions. The general one comes first. Empty if
/// the form has no constant, or only the sample's constant is allowed.
pub(crate) fn list_constants(sample: &Instruction) -> Vec<EncodedConstant> {
    if sample.mnemonic() == Mnemonic::Lea {
        return list_address_constants(sample);
    }
    let fixed = sample.flow_control() != FlowControl::Next
        || instruction_setting::find_setting(sample.code()).immediate.is_some();
    let Some(bits) = count_immediate_bits(sample).filter(|_| !fixed) else { return Vec::new() };
    let values = match immediate_meaning::find_meaning(sample) {
        ImmediateMeaning::Alone(value) => vec![value],
        ImmediateMeaning::Listed(values) => values.to_vec(),
        ImmediateMeaning::Number => list_numbers(bits).to_vec(),
        ImmediateMeaning::Count { width } => vec![5, 0, 1, 2, 8, i64::from(width) - 1],
        ImmediateMeaning::Shift { width } => {
            let width = i64::from(width);
            vec![5, 0, 1, 8, width - 1, width]
        }
        ImmediateMeaning::Bytes { all } => {
            let all = i64::from(all);
            vec![5, 0, 1, all / 2, all - 1, all, 0xff]
        }
        ImmediateMeaning::Element { count } => {
            let count = i64::from(count);
            vec![count - 1, 0, 1, count / 2]
        }
        ImmediateMeaning::Rotation { count, lane } => {
            let count = i64::from(count);
            vec![1, 0, count / 2, i64::from(lane), count - 1]
        }
        ImmediateMeaning::Choices { count } => {
            let all = (1 << count) - 1;
            vec![if count == 2 { 1 } else { 0x66 & all }, 0, all, 1, (1 << (count / 2)) - 1, 0xaa & all]
        }
        ImmediateMeaning::Halves { count } => {
            let all = (1 << count) - 1;
            [0x55, 0xaa, 0, 0xff, 0x66].map(|value| value & all).to_vec()
        }
    };
    let mut constants: Vec<EncodedConstant> = Vec::new();
    for constant in values.into_iter().map(EncodedConstant::Immediate) {
        if !constants.contains(&constant) {
            constants.push(constant);
        }
    }
    constants
}

/// Values of this width for operations that add, compare or move. The first and the last have no
/// regular pattern.
fn list_numbers(bits: u32) -> &'static [i64] {
    match bits {
        8 => &[0x13, 0, 1, -1, 2, 0x40, 0x5b],
        16 => &[0x1235, 0, 1, -1, 0x13, 0x400, 0x3a5d],
        32 => &[0x1234_5679, 0, 1, -1, 0x13, 0x4_0000, 0x6b8d_35c9],
        _ => &[0x1234_5678_9abc_def1, 0, 1, -1, 0x1234_5679, 0x8765_4321, 1 << 40, 0x2b5c_7f13_694d_8ae7],
    }
}

/// The scales of an LEA address, or its displacements if it has no scale.
fn list_address_constants(sample: &Instruction) -> Vec<EncodedConstant> {
    let displacement = sample.memory_displacement64() as i32;
    match (sample.memory_index_scale(), displacement) {
        _ if sample.is_ip_rel_memory_operand() => Vec::new(),
        (1, 0) => Vec::new(),
        (1, 1..0x80) => [0x13, 1, -1, 0x40].map(EncodedConstant::Displacement).to_vec(),
        (1, _) => [0x1235, 0x200, -0x1235, 0x1234_5679].map(EncodedConstant::Displacement).to_vec(),
        _ => [4, 2, 8].map(EncodedConstant::Scale).to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forms::form_anatomy::FormAnatomy;
    use cyclescope_code::asm::forms;
    use std::collections::HashSet;

    fn constants(name: &str) -> Vec<String> {
        let matches = |form: &forms::InstructionForm| format!("{:?} {}", form.code, form.describe_operands()) == name;
        let form = forms::all_forms().find(matches).unwrap_or_else(|| panic!("there is no {name}"));
        FormAnatomy::from_form(form).unwrap().constants.iter().map(EncodedConstant::to_string).collect()
    }

    #[test]
    fn the_first_constant_permits_no_special_case() {
        for (name, general, among) in [
            ("EVEX_Vextractf32x4_xmmm128_k1z_ymm_imm8 xmm, ymm, imm8", "immediate 0x1", "immediate 0x0"),
            ("EVEX_Vextractf32x4_xmmm128_k1z_zmm_imm8 xmm, zmm, imm8", "immediate 0x3", "immediate 0x2"),
            ("EVEX_Vshuff32x4_ymm_k1z_ymm_ymmm256b32_imm8 ymm, ymm, ymm, imm8", "immediate 0x1", "immediate 0x2"),
            ("Pshufd_xmm_xmmm128_imm8 xmm, xmm, imm8", "immediate 0x1b", "immediate 0xe4"),
            ("Rcl_rm64_imm8 r64, imm8", "immediate 0x5", "immediate 0x1"),
            ("Psrld_xmm_imm8 xmm, imm8", "immediate 0x5", "immediate 0x20"),
            ("Imul_r64_rm64_imm8 r64, r64, imm8", "immediate 0x13", "immediate 0x40"),
            ("Mov_r64_imm64 r64, imm64", "immediate 0x123456789abcdef1", "immediate 0x0"),
            ("VEX_Vblendpd_xmm_xmm_xmmm128_imm8 xmm, xmm, xmm, imm8", "immediate 0x1", "immediate 0x3"),
            ("Lea_r64_m r64, [b+i*s+d8]", "scale 4", "scale 8"),
            ("Lea_r64_m r64, [b+d8]", "displacement 0x13", "displacement 0x1"),
        ] {
            let found = constants(name);
            assert_eq!(found.first().map(String::as_str), Some(general), "{name}: {found:?}");
            assert!(found[1..].iter().any(|other| other == among), "{name}: {found:?}");
        }
    }

    #[test]
    fn a_form_with_a_single_valid_constant_gets_no_others() {
        for name in ["Enterq_imm16_imm8 imm16, imm8", "Shl_rm64_1 r64, 1", "Add_r64_rm64 r64, r64", "Int_imm8 imm8"] {
            assert!(constants(name).len() < 2, "{name}");
        }
    }

    #[test]
    fn all_constants_of_a_form_encode_to_distinct_code() {
        let mut several = 0;
        for form in forms::all_forms() {
            let Some(anatomy) = FormAnatomy::from_form(form) else { continue };
            let mut bytes = HashSet::new();
            for constant in &anatomy.constants {
                let other = anatomy.with_constant(*constant).unwrap_or_else(|| panic!("{form:?} has no {constant}"));
                let instance = other.encode(&[other.sample]).unwrap();
                bytes.insert(instance);
            }
            assert_eq!(bytes.len(), anatomy.constants.len(), "{form:?} {:?}", anatomy.constants);
            several += usize::from(anatomy.constants.len() > 1);
        }
        assert!(several > 2500, "{several}");
    }
}
