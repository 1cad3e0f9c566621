//! The body of a program that counts dispatch slots: instances among fillers.

use super::balance::balance_instance;
use super::dependency_hazards::DependencyHazards;
use super::register_allocator::RegisterAllocator;
use super::slot_filler::{FillerRegisters, SlotFiller};
use super::throughput_body::ThroughputBody;
use super::throughput_recipe::{AddressPattern, DependencyBreaking, ThroughputRecipe};
use crate::forms::form_anatomy::FormAnatomy;
use iced_x86::{EncodingKind, Instruction};
use serde::{Deserialize, Serialize};

/// Upper limit of registers that results rotate through. The fillers need some too.
const DESTINATIONS: usize = 8;

/// The numbers of instances and fillers in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SlotShape {
    /// The kind of filler.
    pub filler: SlotFiller,
    /// Whether vector fillers are VEX code.
    pub vex: bool,
    /// Fillers after each instance.
    pub fillers: usize,
    /// Instances in the body.
    pub copies: usize,
}

impl SlotShape {
    /// The program as text.
    pub(crate) fn describe(&self) -> String {
        format!("{} copies in a loop, {} {} after each", self.copies, self.fillers, self.filler.describe())
    }
}

/// The numbers of fillers after each instance, and of instances.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyCounts {
    pub(super) fillers: usize,
    pub(super) copies: usize,
}

/// Instances among fillers.
#[derive(Debug, Clone)]
pub(crate) struct SlotBody {
    /// Machine code of one iteration.
    pub period: Vec<u8>,
    /// The same without the instances, if these need other instructions: what breaks dependencies,
    /// for example.
    pub control: Option<Vec<u8>>,
    /// Instructions that the last instance needs.
    pub extra: usize,
    /// Code that runs once before the body.
    pub init: Vec<Instruction>,
}

impl SlotBody {
    /// Whether the vector fillers of a form are VEX code.
    pub(crate) fn uses_vex(anatomy: &FormAnatomy) -> bool {
        !matches!(anatomy.sample.op_code().encoding(), EncodingKind::Legacy | EncodingKind::D3NOW)
    }

    /// The body of a form in this shape. `None` if it does not exist.
    pub(crate) fn new(anatomy: &FormAnatomy, shape: SlotShape) -> Option<SlotBody> {
        let mut allocator = RegisterAllocator::new(anatomy);
        let registers = FillerRegisters::allocate(shape.filler, &mut allocator, shape.vex)?;
        let fillers = shape.filler.encode_fillers(&registers)?;
        let counts = BodyCounts { fillers: shape.fillers, copies: shape.copies };
        SlotBody::with_fillers(anatomy, allocator, DESTINATIONS, &fillers, counts)
    }

    /// The body of a form with this code in turn as fillers. Results rotate through at most
    /// `destinations` registers that are left.
    pub(super) fn with_fillers(
        anatomy: &FormAnatomy,
        allocator: RegisterAllocator,
        destinations: usize,
        fillers: &[Vec<u8>],
        BodyCounts { fillers: filler_count, copies }: BodyCounts,
    ) -> Option<SlotBody> {
        let breaking = match DependencyHazards::from_anatomy(anatomy).has_addresses() {
            true => DependencyBreaking::Once,
            false => DependencyBreaking::Copy,
        };
        let recipe = ThroughputRecipe {
            destinations,
            copies,
            nop_after: None,
            companions: None,
            lead: 0,
            addresses: AddressPattern::Adjacent(destinations),
            breaking,
        };
        let body = ThroughputBody::with_allocator(anatomy, recipe, allocator)?;
        let (before, after) = balance_instance(&anatomy.sample);
        let is_balanced = before.is_empty() && after.is_empty();
        let (mut period, mut control) = (Vec::new(), Vec::new());
        let (mut extra, mut is_bare) = (0, true);
        let mut fillers = fillers.iter().cycle();
        for copy in 0..copies {
            let part = body.copy_code(copy % body.copies);
            let own = part.iter().position(|one| one.code() == anatomy.code())?;
            let (needed, rest) = part.split_at(own);
            let behind: Vec<Instruction> = rest.iter().copied().filter(|one| one.code() != anatomy.code()).collect();
            extra = needed.len() + behind.len();
            is_bare &= extra == 0;
            // Zen 5 fuses a move and the addition behind it. Fillers keep them apart.
            let apart = if needed.is_empty() { 0 } else { filler_count / 2 };
            let first: Vec<u8> = fillers.by_ref().take(apart).flatten().copied().collect();
            let last: Vec<u8> = fillers.by_ref().take(filler_count - apart).flatten().copied().collect();
            let needed = anatomy.encode(needed)?;
            period.extend([&needed, &first, &anatomy.encode(rest)?, &last].into_iter().flatten());
            control.extend([&needed, &first, &anatomy.encode(&behind)?, &last].into_iter().flatten());
        }
        // What balances the x87 stack must not run alone.
        let control = (!is_bare && is_balanced).then_some(control);
        Some(SlotBody { period, control, extra, init: body.init })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::{FormCriteria, list_forms};
    use cyclescope_code::asm::CodeMode;
    use iced_x86::{Code, Decoder, DecoderOptions, InstructionInfoFactory, OpAccess};

    fn anatomy(name: &str) -> FormAnatomy {
        let criteria = FormCriteria { filters: vec![name.to_string()], ..FormCriteria::default() };
        FormAnatomy::from_form(criteria.select(list_forms(CodeMode::default())).unwrap().remove(0).form).unwrap()
    }

    fn decode(code: &[u8]) -> Vec<Instruction> {
        Decoder::new(64, code, DecoderOptions::NONE).into_iter().collect()
    }

    #[test]
    fn instances_stand_among_fillers_that_share_no_register() {
        let anatomy = anatomy("Imul_r64_rm64 r64, r64");
        for filler in SlotFiller::ALL {
            let shape = SlotShape { filler, vex: false, fillers: 7, copies: 3 };
            let body = SlotBody::new(&anatomy, shape).unwrap();
            let code = decode(&body.period);
            assert_eq!(code.len(), 24);
            let is_instance = |at: &usize| code[*at].code() == Code::Imul_r64_rm64;
            assert_eq!((0..24).filter(is_instance).collect::<Vec<_>>(), [0, 8, 16]);
            let mut factory = InstructionInfoFactory::new();
            let mut written = |instances: bool| {
                let places: Vec<usize> = (0..24).filter(|at| is_instance(at) == instances).collect();
                let mut all = Vec::new();
                for at in places {
                    let used = factory.info(&code[at]).used_registers().to_vec();
                    let writes = used.iter().filter(|one| !matches!(one.access(), OpAccess::Read));
                    all.extend(writes.map(|one| one.register().full_register()));
                }
                all
            };
            let (instances, fillers) = (written(true), written(false));
            assert!(instances.iter().all(|register| !fillers.contains(register)), "{filler:?}");
            assert!(body.control.is_none());
        }
    }

    #[test]
    fn what_breaks_dependencies_has_a_control() {
        let shape = SlotShape { filler: SlotFiller::Move, vex: false, fillers: 7, copies: 3 };
        let body = SlotBody::new(&anatomy("Mul_rm64 r64"), shape).unwrap();
        let (period, control) = (decode(&body.period), decode(body.control.as_ref().unwrap()));
        assert_eq!(period.len(), control.len() + 3);
        assert!(control.iter().all(|one| one.code() != Code::Mul_rm64) && body.extra > 0);
        let own = period.iter().position(|one| one.code() == Code::Mul_rm64).unwrap();
        assert_eq!(own, body.extra + 3, "a move must not be fused with the instance");
    }
}
