//! Gathers and scatters: valid indices, and a new mask for each instance.
//!
//! An instance clears its mask, so each one gets a new mask. VPCMPEQD of a register with itself
//! sets a vector mask, KXNORW a mask register. These instructions take resources too; recipes say
//! so. A variant without them bounds what they cost: on Zen 5, one of the five cycles of
//! `vgatherdpd ymm`, and nothing of the three of `vpgatherqq xmm`.

use super::form_anatomy::{FormAnatomy, OperandPlace, RegisterAssignment, RegisterSlot};
use cyclescope_code::asm::registers::nth_register_like;
use cyclescope_core::random::Random;
use iced_x86::{Code, Instruction, MemoryOperand, Register};

/// Names of the index patterns besides all zeros.
pub(crate) const INDEX_PATTERNS: [&str; 3] = ["contiguous indices", "strided indices", "random indices"];

/// The name of the variant whose masks stay as the instances leave them.
pub(crate) const CLEARED_MASKS: &str = "cleared masks";

/// Distance of strided elements, and the range of random ones, in bytes. Both fit any first-level
/// cache.
const INDEX_STRIDE: usize = 64;
const RANDOM_SPREAD: usize = 8192;
/// Offset of the stored indices from the base register. No element lies there.
const INDEX_OFFSET: i64 = 16384;

/// Whether the form has a vector of indices.
pub(crate) fn is_gather(anatomy: &FormAnatomy) -> bool {
    anatomy.sample.is_vsib()
}

/// The slot of the mask of a form with a vector of indices.
fn mask_slot(anatomy: &FormAnatomy) -> Option<RegisterSlot> {
    let vector = |slot: &RegisterSlot| matches!(slot, RegisterSlot::Operand(operand) if *operand > 0);
    let slots = anatomy.slots();
    let written = |slot: &&RegisterSlot| anatomy.writes_place(OperandPlace::Slot(**slot));
    slots
        .iter()
        .find(|slot| **slot == RegisterSlot::Mask)
        .or_else(|| slots.iter().filter(|slot| vector(slot)).find(written))
        .copied()
}

/// Whether a place holds the mask.
pub(crate) fn is_mask(anatomy: &FormAnatomy, place: OperandPlace) -> bool {
    is_gather(anatomy) && mask_slot(anatomy).is_some_and(|slot| place == OperandPlace::Slot(slot))
}

/// The instruction that sets the mask of an instance.
pub(crate) fn restore_mask(anatomy: &FormAnatomy, assignment: &RegisterAssignment) -> Option<Instruction> {
    let slot = mask_slot(anatomy).filter(|_| is_gather(anatomy))?;
    let register = nth_register_like(anatomy.slot_register(slot), u32::from(assignment.get(slot)?))?;
    let code = match register {
        r if r.is_k() => Code::VEX_Kxnorw_kr_kr_kr,
        r if r.is_ymm() => Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256,
        _ => Code::VEX_Vpcmpeqd_xmm_xmm_xmmm128,
    };
    Instruction::with3(code, register, register, register).ok()
}

/// The period of a gather without the instructions that set masks. All but the first instances find
/// a mask that an earlier one cleared, and may do less. `None` for scatters, which would do nothing.
pub(crate) fn leave_masks(anatomy: &FormAnatomy, period: &[Instruction]) -> Option<Vec<Instruction>> {
    if !is_gather(anatomy) || anatomy.writes_place(OperandPlace::Memory) {
        return None;
    }
    Some(period.iter().copied().filter(Instruction::is_vsib).collect())
}

/// The instruction that zeroes all indices.
pub(crate) fn zero_indices(anatomy: &FormAnatomy, assignment: &RegisterAssignment) -> Option<Instruction> {
    let number = u32::from(assignment.get(RegisterSlot::Index).filter(|_| is_gather(anatomy))?);
    let (register, code) = match number {
        0..16 => (Register::XMM0 + number, Code::VEX_Vpxor_xmm_xmm_xmmm128),
        _ => (Register::ZMM0 + number, Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32),
    };
    Instruction::with3(code, register, register, register).ok()
}

/// Code that sets the indices of an instance to one of the [`INDEX_PATTERNS`].
pub(crate) fn write_indices(anatomy: &FormAnatomy, instance: &Instruction, name: &str) -> Option<Vec<Instruction>> {
    let index = instance.memory_index();
    let bytes = if anatomy.form.describe_operands().contains("vm64") { 8 } else { 4 };
    let element = anatomy.sample.memory_size().element_size().max(anatomy.sample.memory_size().size().min(8));
    let mut random = Random::new(1);
    let offset = |at: usize, random: &mut Random| match name {
        "contiguous indices" => at * element,
        "strided indices" => at * INDEX_STRIDE,
        _ => random.below(RANDOM_SPREAD / element) * element,
    };
    let base = instance.memory_base();
    let mut code = Vec::new();
    for at in 0..index.size() / bytes {
        let parts = [offset(at, &mut random) as u32, 0];
        for (part, value) in parts[..bytes / 4].iter().enumerate() {
            let place = MemoryOperand::with_base_displ(base, INDEX_OFFSET + (at * bytes + 4 * part) as i64);
            code.push(Instruction::with2(Code::Mov_rm32_imm32, place, *value).ok()?);
        }
    }
    let load = match (index.is_zmm(), index.is_ymm(), index.number()) {
        (true, ..) => Code::EVEX_Vmovups_zmm_k1z_zmmm512,
        (_, true, 0..16) => Code::VEX_Vmovups_ymm_ymmm256,
        (_, true, _) => Code::EVEX_Vmovups_ymm_k1z_ymmm256,
        (_, _, 0..16) => Code::VEX_Vmovups_xmm_xmmm128,
        _ => Code::EVEX_Vmovups_xmm_k1z_xmmm128,
    };
    code.push(Instruction::with2(load, index, MemoryOperand::with_base_displ(base, INDEX_OFFSET)).ok()?);
    Some(code)
}
