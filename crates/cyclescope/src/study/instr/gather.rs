//! Gathers and scatters: indices that point somewhere, and masks that each instance uses up.
//!
//! An instance clears its mask as it goes, so each is given a new one: by VPCMPEQD of a register with itself where the
//! mask is a vector, by KXNORW where it is a mask register. That takes room of its own; recipes say so.

use super::operands::{Anatomy, Assignment, Place, Slot};
use crate::asm::registers::numbered;
use iced_x86::{Code, Instruction, Register};

/// Whether the form has a vector of indices.
pub fn is_gather(anatomy: &Anatomy) -> bool {
    anatomy.sample.is_vsib()
}

/// The slot of the mask of a form that has a vector of indices.
fn mask(anatomy: &Anatomy) -> Option<Slot> {
    let vector = |slot: &Slot| matches!(slot, Slot::Operand(operand) if *operand > 0);
    let slots = anatomy.slots();
    let written = |slot: &&Slot| anatomy.writes(Place::Slot(**slot));
    slots
        .iter()
        .find(|slot| **slot == Slot::Mask)
        .or_else(|| slots.iter().filter(|slot| vector(slot)).find(written))
        .copied()
}

/// Whether a port is the mask.
pub fn is_mask(anatomy: &Anatomy, place: Place) -> bool {
    is_gather(anatomy) && mask(anatomy).is_some_and(|slot| place == Place::Slot(slot))
}

/// What gives an instance its mask.
pub fn restore(anatomy: &Anatomy, assignment: &Assignment) -> Option<Instruction> {
    let slot = mask(anatomy).filter(|_| is_gather(anatomy))?;
    let register = numbered(anatomy.register(slot), u32::from(assignment.get(slot)?))?;
    let code = match register {
        r if r.is_k() => Code::VEX_Kxnorw_kr_kr_kr,
        r if r.is_ymm() => Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256,
        _ => Code::VEX_Vpcmpeqd_xmm_xmm_xmmm128,
    };
    Instruction::with3(code, register, register, register).ok()
}

/// Sets all indices to zero.
pub fn init(anatomy: &Anatomy, assignment: &Assignment) -> Option<Instruction> {
    let number = u32::from(assignment.get(Slot::Index).filter(|_| is_gather(anatomy))?);
    let (register, code) = match number {
        0..16 => (Register::XMM0 + number, Code::VEX_Vpxor_xmm_xmm_xmmm128),
        _ => (Register::ZMM0 + number, Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32),
    };
    Instruction::with3(code, register, register, register).ok()
}
