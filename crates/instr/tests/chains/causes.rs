//! Causes of dependencies over fewer instances than there are registers: a closed list.

use crate::ports::Port;
use iced_x86::{CpuidFeature, EncodingKind, Instruction, Mnemonic, Register};

/// Why a form's instances can't be far apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The x87 stack has one top.
    Stack,
    /// Only four registers have a high byte, and instructions that use one can't use registers
    /// above the eighth.
    HighByte,
    /// It writes part of an implied register and keeps the rest.
    ImpliedPart,
    /// It implies vector registers.
    ImpliedVectors,
    /// Legacy squares undo square roots in place.
    SquareInPlace,
    /// A shift by CL may keep the flags. One of two chains for each latency does not reset them.
    KeptFlags,
    /// With a count of zero, it keeps its destination.
    Repeated,
    /// It stores at a fixed address, or more bytes than programs reserve.
    Area,
    /// Padlock: programs don't set up its registers.
    Padlock,
}

/// The cause of a near dependency. `None` if the program is at fault.
pub fn cause(sample: &Instruction, (output, input): (Port, Port)) -> Option<Cause> {
    use CpuidFeature as F;
    let padlock = [F::PADLOCK_ACE, F::PADLOCK_PHE, F::PADLOCK_PMM, F::PADLOCK_RNG, F::PADLOCK_GMI, F::PADLOCK_UNDOC];
    let registers: Vec<Register> = (0..sample.op_count()).map(|operand| sample.op_register(operand)).collect();
    let vectors = |port: Port| matches!(port, Port::Implied(register) if register.is_vector_register());
    let root = matches!(sample.mnemonic(), Mnemonic::Sqrtss | Mnemonic::Sqrtsd);
    let area = [Mnemonic::Movdir64b, Mnemonic::Xsave, Mnemonic::Xsave64, Mnemonic::Xsaveopt, Mnemonic::Xsaveopt64];
    let is_part = |register: &Register| register.is_gpr8() || register.is_gpr16();
    if sample.cpuid_features().iter().any(|feature| padlock.contains(feature)) {
        Some(Cause::Padlock)
    } else if is_x87(sample) {
        Some(Cause::Stack)
    } else if registers.iter().any(|register| (Register::AH..=Register::BH).contains(register)) {
        Some(Cause::HighByte)
    } else if vectors(output) && vectors(input) {
        Some(Cause::ImpliedVectors)
    } else if root && sample.op_code().encoding() == EncodingKind::Legacy {
        Some(Cause::SquareInPlace)
    } else if area.contains(&sample.mnemonic()) && (output, input) == (Port::Data, Port::Data) {
        Some(Cause::Area)
    } else if (sample.has_rep_prefix() || sample.has_repne_prefix()) && output == input {
        Some(Cause::Repeated)
    } else if keeps_flags(sample) && (output, input) == (Port::Flags, Port::Flags) {
        Some(Cause::KeptFlags)
    } else if output == input && implies_part(sample, output, is_part) {
        Some(Cause::ImpliedPart)
    } else {
        None
    }
}

fn keeps_flags(sample: &Instruction) -> bool {
    use Mnemonic::{Rcl, Rcr, Rol, Ror, Sal, Sar, Shl, Shld, Shr, Shrd};
    let counted = sample.op_code().op_kinds().contains(&iced_x86::OpCodeOperandKind::cl);
    counted && matches!(sample.mnemonic(), Rcl | Rcr | Rol | Ror | Sal | Sar | Shl | Shld | Shr | Shrd)
}

fn is_x87(sample: &Instruction) -> bool {
    let features = [CpuidFeature::FPU, CpuidFeature::FPU287, CpuidFeature::FPU387];
    let stack = (0..sample.op_count()).any(|operand| sample.op_register(operand).is_st());
    stack || sample.cpuid_features().iter().any(|feature| features.contains(feature))
}

/// Whether the port is a fixed register of which the instruction writes a byte or a word.
fn implies_part(sample: &Instruction, port: Port, is_part: impl Fn(&Register) -> bool) -> bool {
    let named = match port {
        Port::Operand(number) => {
            return sample.op_register(number - 1).full_register() == Register::RAX && {
                use iced_x86::OpCodeOperandKind::{al, ax};
                matches!(sample.op_code().op_kind(number - 1), al | ax)
            };
        }
        Port::Implied(register) => register,
        _ => return false,
    };
    let mut factory = iced_x86::InstructionInfoFactory::new();
    let used = factory.info(sample).used_registers().to_vec();
    let mut parts = used.iter().filter(|used| used.register().full_register() == named);
    parts.any(|used| is_part(&used.register()) && crate::ports::writes(used.access()))
}
