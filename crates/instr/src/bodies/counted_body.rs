//! The bodies whose events are counted: instances alone, or among instructions that block ports.

use super::register_allocator::RegisterAllocator;
use super::slot_body::{BodyCounts, SlotBody};
use crate::forms::form_anatomy::{FormAnatomy, OperandPlace, RegisterAssignment, RegisterBank, RegisterSlot};
use cyclescope_code::asm::forms::FormPrefix;
use iced_x86::{Code, EncodingKind, FlowControl};

/// Upper limit of registers that the results of instances rotate through.
const DESTINATIONS: usize = 8;
/// The same beside blockers, which need registers too.
const BLOCKED_DESTINATIONS: usize = 4;
/// Registers that the results of blockers rotate through: some cores wait for the old value.
const BLOCKER_DESTINATIONS: usize = 3;
/// Instances need these registers more, if no more are left.
const FEW_REGISTERS: usize = 8;
/// Displacements of the memory operands of blockers: instances use positive ones.
const BLOCKER_DISPLACEMENTS: [i32; 3] = [-64, -72, -80];

/// The body of a form among `fillers` blockers an instance, or alone.
pub(crate) fn build_counted_body(
    anatomy: &FormAnatomy,
    copies: usize,
    blocker: Option<(&FormAnatomy, usize)>,
) -> Option<SlotBody> {
    let mut allocator = RegisterAllocator::new(anatomy);
    let (code, fillers, destinations) = match blocker {
        Some((blocker, count)) => {
            (encode_blockers(blocker, &mut allocator, BLOCKER_DESTINATIONS)?, count, BLOCKED_DESTINATIONS)
        }
        None => (Vec::new(), 0, DESTINATIONS),
    };
    SlotBody::with_fillers(anatomy, allocator, destinations, &code, BodyCounts { fillers, copies })
}

/// Whether an instance loads or stores. Forms with registers only have the size of their code's memory
/// operand.
pub(crate) fn accesses_memory(anatomy: &FormAnatomy) -> bool {
    anatomy.memory_bytes > 0 && anatomy.slots().contains(&RegisterSlot::Base)
}

/// Whether a form may block ports: it is a plain load or store, or an ordinary instruction that writes
/// at most one register.
pub(crate) fn is_blocker(anatomy: &FormAnatomy) -> bool {
    let moves = [Code::Mov_r64_rm64, Code::Mov_rm64_r64].map(|code| anatomy.mode().counterpart(code));
    if moves.contains(&anatomy.code()) && accesses_memory(anatomy) {
        return true;
    }
    let slots = anatomy.slots();
    let encoding = anatomy.sample.op_code().encoding();
    let is_ordinary = |slot: &RegisterSlot| match anatomy.place_bank(OperandPlace::Slot(*slot)) {
        RegisterBank::General => {
            anatomy.slot_register(*slot).size() >= 4 && matches!(encoding, EncodingKind::Legacy | EncodingKind::VEX)
        }
        RegisterBank::Vector => anatomy.slot_register(*slot).is_xmm() && encoding == EncodingKind::VEX,
        _ => false,
    };
    let written = slots.iter().filter(|slot| anatomy.writes_place(OperandPlace::Slot(**slot))).count();
    let reads_flags = anatomy.inputs.iter().any(|port| matches!(port.place, OperandPlace::Flags(_)));
    written <= 1
        && !slots.is_empty()
        && slots.iter().all(is_ordinary)
        && anatomy.sample.flow_control() == FlowControl::Next
        && anatomy.form.prefix == FormPrefix::None
        && !accesses_memory(anatomy)
        && anatomy.fixed_registers().is_empty()
        && !anatomy.keeps_flags()
        && !reads_flags
}

/// The machine code of some blockers alone, and their number. Their results rotate through as many
/// registers as beside an instance, or twice as many.
pub(crate) fn build_blockers(blocker: &FormAnatomy, twice: bool) -> Option<(Vec<u8>, usize)> {
    let destinations = BLOCKER_DESTINATIONS * (1 + usize::from(twice));
    let code = encode_blockers(blocker, &mut RegisterAllocator::new(blocker), destinations)?;
    Some((code.concat(), code.len()))
}

/// The machine code of some blockers, with registers that no instance uses.
fn encode_blockers(
    blocker: &FormAnatomy,
    allocator: &mut RegisterAllocator,
    destinations: usize,
) -> Option<Vec<Vec<u8>>> {
    let mut fixed = RegisterAssignment::default();
    let mut rotation: Option<(RegisterSlot, Vec<u8>)> = None;
    for slot in blocker.slots() {
        let place = OperandPlace::Slot(slot);
        let bank = blocker.place_bank(place);
        if slot == RegisterSlot::Base {
            fixed = fixed.with_register(slot, allocator.claim_base());
            continue;
        }
        let written = blocker.writes_place(place);
        let most = if written && allocator.count_left(bank) > FEW_REGISTERS { destinations } else { 1 };
        let taken = match bank {
            RegisterBank::General if most == 1 => vec![allocator.allocate_spare()?],
            _ => allocator.allocate_rotation(bank, most)?,
        };
        // VEX and legacy vectors have sixteen registers, and legacy code without REX has fewer.
        if taken.iter().any(|number| *number >= 16) {
            return None;
        }
        match written {
            true => rotation = Some((slot, taken)),
            false => fixed = fixed.with_register(slot, taken[0]),
        }
    }
    let mut code = Vec::new();
    for copy in 0..destinations {
        let mut assignment = fixed;
        if let Some((slot, pool)) = &rotation {
            assignment = assignment.with_register(*slot, pool[copy % pool.len()]);
        }
        let displacement = BLOCKER_DISPLACEMENTS[copy % BLOCKER_DISPLACEMENTS.len()];
        assignment.displacement = if accesses_memory(blocker) { displacement } else { 0 };
        code.push(blocker.encode(&[blocker.build_instance(&assignment)?])?);
    }
    Some(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::{FormCriteria, list_forms};
    use cyclescope_code::asm::CodeMode;
    use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory, OpAccess};

    fn anatomy(name: &str) -> FormAnatomy {
        let criteria = FormCriteria { filters: vec![name.to_string()], ..FormCriteria::default() };
        FormAnatomy::from_form(criteria.select(list_forms(CodeMode::default())).unwrap().remove(0).form).unwrap()
    }

    #[test]
    fn blockers_write_a_register_of_their_own() {
        let blocks = |name: &str| is_blocker(&anatomy(name));
        for name in [
            "Popcnt_r64_rm64 r64, r64",
            "Test_rm64_r64 r64, r64",
            "Mov_r64_rm64 r64, m64",
            "VEX_Vpaddd_xmm_xmm_xmmm128 xmm, xmm, xmm",
        ] {
            assert!(blocks(name), "{name}");
        }
        for name in [
            "Xadd_rm64_r64 r64, r64",
            "Adc_rm64_r64 r64, r64",
            "Mul_rm64 r64",
            "Setb_rm8 r8",
            "Paddd_xmm_xmmm128 xmm, xmm",
        ] {
            assert!(!blocks(name), "{name}");
        }
    }

    #[test]
    fn instances_share_no_written_register_with_blockers() {
        let (form, blocker) = (anatomy("Imul_r64_rm64 r64, r64"), anatomy("Popcnt_r64_rm64 r64, r64"));
        let body = build_counted_body(&form, 3, Some((&blocker, 5))).unwrap();
        let mut factory = InstructionInfoFactory::new();
        let mut written = [Vec::new(), Vec::new()];
        for instruction in Decoder::new(64, &body.period, DecoderOptions::NONE) {
            let is_blocker = usize::from(instruction.code() == blocker.code());
            let used = factory.info(&instruction).used_registers().to_vec();
            let writes = used.iter().filter(|one| !matches!(one.access(), OpAccess::Read));
            written[is_blocker].extend(writes.map(|one| one.register().full_register()));
        }
        assert_eq!((written[0].len(), written[1].len()), (3, 15));
        assert!(written[0].iter().all(|register| !written[1].contains(register)));
        let alone = build_counted_body(&form, 4, None).unwrap();
        assert_eq!(
            (Decoder::new(64, &alone.period, DecoderOptions::NONE).into_iter().count(), alone.control),
            (4, None)
        );
    }
}
