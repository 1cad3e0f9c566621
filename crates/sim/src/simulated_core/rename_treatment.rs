//! How the simulated core treats an instruction before any work is done, and its kind of work.

use super::form_key::FormKey;
use super::model::CoreModel;
use super::operands::{SimulatedOperands, SimulatedSlot};
use cyclescope_core::random::{Random, mix_seeds};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// How an instruction is treated at rename.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RenameTreatment {
    Ordinary,
    /// A shift or rotation by CL, which may keep the flags.
    VariableShift,
    /// Has no effect.
    Nop,
    /// A move that renaming performs.
    Eliminated,
    /// Neither depends on its operands nor needs a port.
    ZeroIdiom,
    /// Needs a port, but does not depend on its register operands.
    Independent,
    /// Waits for everything before it, and everything after it waits for it.
    Serializing,
}

/// Each machine knows some of these.
const ZERO_IDIOMS: [Mnemonic; 30] = [
    Mnemonic::Xor,
    Mnemonic::Sub,
    Mnemonic::Pxor,
    Mnemonic::Xorps,
    Mnemonic::Xorpd,
    Mnemonic::Psubb,
    Mnemonic::Psubw,
    Mnemonic::Psubd,
    Mnemonic::Psubq,
    Mnemonic::Pandn,
    Mnemonic::Andnps,
    Mnemonic::Andnpd,
    Mnemonic::Pcmpgtb,
    Mnemonic::Pcmpgtw,
    Mnemonic::Pcmpgtd,
    Mnemonic::Vpxor,
    Mnemonic::Vpxord,
    Mnemonic::Vpxorq,
    Mnemonic::Vxorps,
    Mnemonic::Vxorpd,
    Mnemonic::Vpsubb,
    Mnemonic::Vpsubw,
    Mnemonic::Vpsubd,
    Mnemonic::Vpsubq,
    Mnemonic::Vpandn,
    Mnemonic::Vandnps,
    Mnemonic::Vandnpd,
    Mnemonic::Kxorq,
    Mnemonic::Kxorw,
    Mnemonic::Kxnorw,
];

const INDEPENDENT_IDIOMS: [Mnemonic; 8] = [
    Mnemonic::Sbb,
    Mnemonic::Cmp,
    Mnemonic::Pcmpeqb,
    Mnemonic::Pcmpeqw,
    Mnemonic::Pcmpeqd,
    Mnemonic::Vpcmpeqb,
    Mnemonic::Vpcmpeqw,
    Mnemonic::Vpcmpeqd,
];

const SERIALIZING: [Mnemonic; 4] = [Mnemonic::Lfence, Mnemonic::Serialize, Mnemonic::Cpuid, Mnemonic::Rdtscp];

const NOPS: [Mnemonic; 5] = [Mnemonic::Nop, Mnemonic::Fnop, Mnemonic::Endbr64, Mnemonic::Endbr32, Mnemonic::Vzeroupper];

const VARIABLE_SHIFTS: [Mnemonic; 9] = [
    Mnemonic::Shl,
    Mnemonic::Sal,
    Mnemonic::Shr,
    Mnemonic::Sar,
    Mnemonic::Rol,
    Mnemonic::Ror,
    Mnemonic::Rcl,
    Mnemonic::Rcr,
    Mnemonic::Shld,
];

impl RenameTreatment {
    pub(super) fn from_instruction(
        model: &CoreModel,
        key: &FormKey,
        instruction: &Instruction,
        operands: &SimulatedOperands,
    ) -> RenameTreatment {
        let mnemonic = instruction.mnemonic();
        let knows = |share: f64| Random::new(mix_seeds(model.seed, 0x1d10 + mnemonic as u64)).happens(share);
        let registers = operands.loads + operands.stores == 0 && !instruction.has_op_mask();
        let size = instruction.op_register(0).size();
        let whole = size >= 4;
        let last = instruction.op_count().saturating_sub(1);
        let by_count = instruction.op_register(last) == Register::CL;
        if NOPS.contains(&mnemonic) {
            RenameTreatment::Nop
        } else if SERIALIZING.contains(&mnemonic) {
            RenameTreatment::Serializing
        } else if VARIABLE_SHIFTS.contains(&mnemonic) && by_count {
            RenameTreatment::VariableShift
        } else if registers && whole && is_move(mnemonic) {
            let plain = (0..2).all(|operand| instruction.op_kind(operand) == OpKind::Register);
            let eliminated =
                plain && !key.has_equal_registers() && model.eliminates_move_to(instruction.op_register(0));
            if eliminated { RenameTreatment::Eliminated } else { RenameTreatment::Ordinary }
        } else if !model.knows_zero_idioms && ZERO_IDIOMS.contains(&mnemonic) {
            RenameTreatment::Ordinary
        } else if key.has_equal_registers() && registers && whole && ZERO_IDIOMS.contains(&mnemonic) {
            // Chain generators break a dependency with it: every core knows it.
            let idiom = mnemonic == Mnemonic::Xor || knows(0.8);
            if idiom { RenameTreatment::ZeroIdiom } else { RenameTreatment::Ordinary }
        } else if key.has_equal_registers() && registers && INDEPENDENT_IDIOMS.contains(&mnemonic) && knows(0.5) {
            RenameTreatment::Independent
        } else {
            RenameTreatment::Ordinary
        }
    }

    pub(super) fn break_dependencies(self, operands: &mut SimulatedOperands) {
        if matches!(self, RenameTreatment::ZeroIdiom | RenameTreatment::Independent) {
            operands.inputs.retain(|slot| !matches!(slot, SimulatedSlot::Operand(_)));
        }
        if self == RenameTreatment::Nop {
            operands.inputs.clear();
            operands.outputs.clear();
            (operands.loads, operands.stores) = (0, 0);
        }
    }

    pub(super) fn merges_flags(self) -> bool {
        self == RenameTreatment::VariableShift
    }
}

/// Moves of whole registers. Loads and stores use them too, and more.
fn is_move(mnemonic: Mnemonic) -> bool {
    use Mnemonic::{
        Mov, Movapd, Movaps, Movdqa, Movdqu, Movupd, Movups, Vmovapd, Vmovaps, Vmovdqa, Vmovdqa32, Vmovdqa64, Vmovdqu,
        Vmovdqu8, Vmovdqu16, Vmovdqu32, Vmovdqu64, Vmovupd, Vmovups,
    };
    matches!(
        mnemonic,
        Mov | Movapd
            | Movaps
            | Movdqa
            | Movdqu
            | Movupd
            | Movups
            | Vmovapd
            | Vmovaps
            | Vmovdqa
            | Vmovdqa32
            | Vmovdqa64
            | Vmovdqu
            | Vmovdqu8
            | Vmovdqu16
            | Vmovdqu32
            | Vmovdqu64
            | Vmovupd
            | Vmovups
    )
}

/// Kinds of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SimulatedWorkClass {
    /// No work.
    Free,
    /// Loads or stores alone.
    Transfer,
    /// One cycle on any port of its kind.
    Simple,
    /// The ruler's multiplication.
    Multiply,
    Branch,
    Divide,
    General,
}

impl SimulatedWorkClass {
    pub(super) fn from_instruction(
        instruction: &Instruction,
        key: &FormKey,
        operands: &SimulatedOperands,
        kind: RenameTreatment,
    ) -> SimulatedWorkClass {
        let name = format!("{:?}", instruction.mnemonic());
        let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        let branch =
            instruction.is_jmp_short_or_near() || instruction.is_jcc_short_or_near() || instruction.is_call_near();
        if matches!(
            kind,
            RenameTreatment::Nop
                | RenameTreatment::Eliminated
                | RenameTreatment::ZeroIdiom
                | RenameTreatment::Serializing
        ) {
            SimulatedWorkClass::Free
        } else if branch || starts(&["Ret", "Jmp", "Call", "Loop", "Jrcxz", "Jecxz"]) {
            SimulatedWorkClass::Branch
        } else if is_load_or_store(instruction, operands, &name) {
            SimulatedWorkClass::Transfer
        } else if instruction.code() == iced_x86::Code::Imul_r64_rm64 && operands.loads == 0 {
            SimulatedWorkClass::Multiply
        } else if is_single_cycle(instruction, key, &name, operands.vector) {
            SimulatedWorkClass::Simple
        } else if starts(&["Div", "Idiv", "Vdiv", "Sqrt", "Vsqrt", "Fdiv", "Fidiv", "Fsqrt"]) {
            SimulatedWorkClass::Divide
        } else {
            SimulatedWorkClass::General
        }
    }

    /// The usual latency of such work.
    pub(super) fn draw_latency(self, model: &CoreModel, vector: bool, random: &mut Random) -> u8 {
        const INTEGER: [u8; 12] = [1, 1, 1, 1, 1, 1, 2, 2, 3, 3, 4, 5];
        const VECTOR: [u8; 12] = [1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 8];
        match self {
            SimulatedWorkClass::Free | SimulatedWorkClass::Transfer => 0,
            SimulatedWorkClass::Simple | SimulatedWorkClass::Branch => 1,
            SimulatedWorkClass::Multiply => model.imul_latency as u8,
            SimulatedWorkClass::Divide => 8 + random.below(12) as u8,
            SimulatedWorkClass::General if vector => VECTOR[random.below(12)],
            SimulatedWorkClass::General => INTEGER[random.below(12)],
        }
    }
}

fn is_load_or_store(instruction: &Instruction, operands: &SimulatedOperands, name: &str) -> bool {
    let prefixes = ["Mov", "Vmov", "Kmov", "Vbroadcast", "Vpbroadcast", "Lddqu", "Vlddqu", "Lods", "Stos"];
    let named = prefixes.iter().any(|prefix| name.starts_with(prefix)) && name != "Movbe";
    let stack = ["Push", "Pop"].contains(&name);
    let updated =
        |slot: &SimulatedSlot| matches!(slot, SimulatedSlot::Implicit(register) if operands.updates.contains(register));
    let from_memory = operands
        .inputs
        .iter()
        .all(|slot| updated(slot) || matches!(slot, SimulatedSlot::Address | SimulatedSlot::Memory));
    let to_memory = operands.outputs.iter().all(|slot| updated(slot) || *slot == SimulatedSlot::Memory);
    let load = operands.loads > 0 && from_memory;
    let store = operands.stores > 0 && to_memory;
    (named || stack) && !instruction.has_op_mask() && (load || store)
}

fn is_single_cycle(instruction: &Instruction, key: &FormKey, name: &str, vector: bool) -> bool {
    use Mnemonic::{Add, And, Cmp, Dec, Inc, Lea, Mov, Movsx, Movsxd, Movzx, Neg, Not, Or, Sub, Test, Xor};
    if vector {
        let logic = ["Pand", "Por", "Pxor", "Vpand", "Vpor", "Vpxor", "And", "Or", "Xor", "Vand", "Vor", "Vxor"];
        let masked = instruction.has_op_mask();
        return !masked && (logic.iter().any(|prefix| name.starts_with(prefix)) || is_move(instruction.mnemonic()));
    }
    match instruction.mnemonic() {
        Add | And | Cmp | Dec | Inc | Mov | Movsx | Movsxd | Movzx | Neg | Not | Or | Sub | Test | Xor => {
            !key.is_locked()
        }
        // Two of base, index and displacement, and no scale.
        Lea => key.address_parts() & 4 == 0 && key.address_parts().count_ones() <= 2,
        _ => name.starts_with("Cmov") || (name.starts_with("Set") && name != "Setssbsy"),
    }
}
