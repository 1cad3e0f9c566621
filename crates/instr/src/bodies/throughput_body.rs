//! Throughput programs: loop bodies of instances that wait only for the core's own resources.
//!
//! Reciprocal throughput is the best rate that the core sustains. Each form therefore gets several
//! programs. They differ in the number of rotating registers, body length, NOPs between instances,
//! addresses, and the breaking of unavoidable dependencies.

use super::balance::balance_instance;
use super::dependency_hazards::{DependencyHazards, push_breakers};
use super::register_allocator::RegisterAllocator;
use super::throughput_recipe::{AddressPattern, DependencyBreaking, ThroughputRecipe, VectorCompanions};
use crate::forms::form_anatomy::{FormAnatomy, OperandPlace, RegisterAssignment, RegisterBank, RegisterSlot};
use crate::forms::gather;
use crate::forms::instruction_setting;
use iced_x86::{Code, EncodingKind, Instruction, Register};

/// Numbers of registers that are enough to hide the latency of any instruction with a high rate.
const DESTINATIONS_ENOUGH: usize = 9;
/// Lower limit of instances per period if more than registers rotates.
const PERIOD_LEAST: usize = 30;
/// Lower limit of cache lines that instances rotate through if they read and write memory.
const READ_WRITE_LINES: usize = 24;

/// The body of a throughput program.
#[derive(Debug, Clone)]
pub(crate) struct ThroughputBody {
    /// The recipe, with the registers and addresses actually used.
    pub recipe: ThroughputRecipe,
    /// One period.
    pub period: Vec<Instruction>,
    /// Instances in a period.
    pub copies: usize,
    /// Index in the period after each instance and what it needs. Empty for a sequence.
    pub(crate) ends: Vec<usize>,
    /// Code that runs once before the body.
    pub init: Vec<Instruction>,
    /// Whether each instance gets a new mask.
    pub masks: bool,
    /// Whether there are dependencies to break.
    pub hazards: bool,
}

impl ThroughputBody {
    /// The program as text, with `instances` instances in its loop.
    pub(crate) fn describe(&self, instances: usize, on_memory: bool) -> String {
        let recipe = &self.recipe;
        let destinations = match recipe.destinations {
            0 => String::new(),
            1 => ", 1 destination".to_string(),
            count => format!(", {count} destinations"),
        };
        let nops = match recipe.nop_after {
            None => String::new(),
            Some(1) => ", a nop after each".to_string(),
            Some(n) => format!(", a nop after every {n}"),
        };
        let companions = match recipe.companions {
            None => String::new(),
            Some(VectorCompanions { after, count: 1 }) => format!(", a vpand after every {after}"),
            Some(VectorCompanions { after, count }) => format!(", {count} vpand after every {after}"),
        };
        let lead = match recipe.lead {
            0 => String::new(),
            lead => format!(", {lead} lea before the loop"),
        };
        let addresses = if on_memory { format!(", {}", recipe.addresses.describe()) } else { String::new() };
        let masks = if self.masks { ", each given its mask" } else { "" };
        let breaking = match recipe.breaking {
            DependencyBreaking::Renew(_) if !self.hazards => ", registers renewed at times",
            _ if !self.hazards => "",
            DependencyBreaking::None => ", dependencies left",
            DependencyBreaking::Zero => ", dependencies broken by zeroing",
            DependencyBreaking::Copy => ", dependencies broken by copies",
            DependencyBreaking::Once => ", addresses put back at times",
            DependencyBreaking::Renew(_) => ", dependencies broken by copies",
        };
        format!("{instances} copies in a loop{destinations}{nops}{companions}{addresses}{masks}{breaking}{lead}")
    }
}

impl ThroughputBody {
    /// The body of a form by a recipe. `None` if it does not exist.
    pub(crate) fn new(anatomy: &FormAnatomy, recipe: ThroughputRecipe) -> Option<ThroughputBody> {
        ThroughputBody::with_allocator(anatomy, recipe, RegisterAllocator::new(anatomy))
    }

    /// The body by a recipe with registers that are left. `None` if it does not exist.
    pub(super) fn with_allocator(
        anatomy: &FormAnatomy,
        recipe: ThroughputRecipe,
        mut allocator: RegisterAllocator,
    ) -> Option<ThroughputBody> {
        let hazards = DependencyHazards::from_anatomy(anatomy);
        let mut restored: Vec<(Register, u8)> = Vec::new();
        if !matches!(recipe.breaking, DependencyBreaking::None | DependencyBreaking::Zero) {
            for register in hazards.registers.iter().filter(|register| register.is_gpr64()) {
                restored.push((*register, allocator.allocate_constant(RegisterBank::General)?));
            }
        }
        let flags = match hazards.flags {
            true => Some(allocator.allocate_constant(RegisterBank::General)?),
            false => None,
        };
        let companion = match recipe.companions {
            Some(_) => Some(build_companion(anatomy, &mut allocator)?),
            None => None,
        };
        let mut fixed = RegisterAssignment::default();
        let mut written: Vec<RegisterSlot> = Vec::new();
        for slot in anatomy.slots() {
            let place = OperandPlace::Slot(slot);
            if slot == RegisterSlot::Base {
                fixed = fixed.with_register(slot, allocator.base());
            } else if anatomy.place_bank(place) == RegisterBank::Other {
                continue;
            } else if anatomy.writes_place(place) {
                written.push(slot);
            } else {
                fixed = fixed.with_register(slot, allocator.allocate_constant(anatomy.place_bank(place))?);
            }
        }
        let mut renewals: Vec<RegisterRenewal> = Vec::new();
        if let DependencyBreaking::Renew(uses) = recipe.breaking {
            for slot in &written {
                renewals.extend(RegisterRenewal::new(anatomy, *slot, uses, &fixed, &mut allocator));
            }
            if renewals.is_empty() {
                return None;
            }
        }
        let mut rotations: Vec<(RegisterSlot, Vec<u8>)> = Vec::new();
        for (index, slot) in written.iter().enumerate() {
            let bank = anatomy.place_bank(OperandPlace::Slot(*slot));
            let pool = |bank: RegisterBank| {
                if bank == RegisterBank::HighByte { RegisterBank::General } else { bank }
            };
            let shares = |other: &&RegisterSlot| pool(anatomy.place_bank(OperandPlace::Slot(**other))) == pool(bank);
            let same = written[index..].iter().filter(shares).count();
            let share = (allocator.count_left(bank) / same).min(recipe.destinations);
            rotations.push((*slot, allocator.allocate_rotation(bank, share)?));
        }
        // Keeps the reuse distance of each register constant across the end of a period.
        let least = rotations.iter().map(|(_, pool)| pool.len()).min().unwrap_or(1);
        rotations.iter_mut().for_each(|(_, pool)| pool.truncate(pool.len() / least * least));
        let destinations = rotations.iter().map(|(_, pool)| pool.len()).max().unwrap_or(1);
        let on_memory = anatomy.memory_bytes > 0 && anatomy.slots().contains(&RegisterSlot::Base);
        let both = anatomy.reads_place(OperandPlace::Memory) && anatomy.writes_place(OperandPlace::Memory);
        let addresses = match on_memory && !instruction_setting::find_setting(anatomy.code()).prepared {
            true => recipe.addresses,
            false => AddressPattern::One,
        };
        let bytes = anatomy.memory_bytes;
        let least =
            if on_memory && both { addresses.count(bytes).max(READ_WRITE_LINES) } else { addresses.count(bytes) };
        let mut copies = least.next_multiple_of(destinations);
        // POP must read where PUSH wrote.
        if hazards.has_any() && !hazards.registers.contains(&Register::RSP) {
            // Stack tops and advancing addresses rotate too.
            copies = copies.max(PERIOD_LEAST.next_multiple_of(destinations));
        }
        let renewed = renewals.iter().map(|renewal| destinations * renewal.uses).max().unwrap_or(1);
        let steps =
            [recipe.nop_after.unwrap_or(1), recipe.companions.map_or(1, |companions| companions.after), renewed];
        while steps.iter().any(|step| copies % step != 0) {
            copies += destinations;
        }
        // A location that is read and written needs time until its next use.
        let addresses = if on_memory && both { AddressPattern::Lines(copies) } else { addresses };
        let top = hazards.registers.contains(&Register::ST0);
        let (mut period, mut ends) = (Vec::new(), Vec::new());
        for copy in 0..copies {
            let mut assignment = fixed;
            for (slot, pool) in &rotations {
                assignment = assignment.with_register(*slot, pool[copy % pool.len()]);
            }
            assignment.displacement = addresses.displacement(copy, bytes);
            let (mut before, mut after) = balance_instance(&anatomy.sample);
            if top && recipe.breaking == DependencyBreaking::Copy && before.is_empty() && after.is_empty() {
                before.push(Instruction::with1(Code::Fld_sti, Register::ST1 + (copy % 4) as u32).ok()?);
                after.push(Instruction::with1(Code::Fstp_sti, Register::ST0).ok()?);
            }
            push_breakers(recipe.breaking, copy == 0, &hazards, &restored, flags, &mut period)?;
            for renewal in &renewals {
                period.extend(renewal.build_renewal(copy, &rotations));
            }
            period.extend(before);
            period.extend(gather::restore_mask(anatomy, &assignment));
            period.push(anatomy.build_instance(&assignment)?);
            period.extend(after);
            if top && recipe.breaking == DependencyBreaking::Zero {
                // Exchanges the top of the stack. An operand below it stays the last of the six
                // values.
                let other = Register::ST1 + (copy % 4) as u32;
                period.push(Instruction::with2(Code::Fxch_st0_sti, Register::ST0, other).ok()?);
            }
            if recipe.nop_after.is_some_and(|after| copy % after == after - 1) {
                period.push(build_nop());
            }
            if let (Some(VectorCompanions { after, count }), Some(companion)) = (recipe.companions, companion)
                && copy % after == after - 1
            {
                period.extend(std::iter::repeat_n(companion, count));
            }
            ends.push(period.len());
        }
        let mut init: Vec<Instruction> =
            restored.iter().map(|(register, constant)| copy_register(*constant, *register)).collect();
        init.extend(gather::zero_indices(anatomy, &fixed));
        if let Some(operand) = instruction_setting::find_setting(anatomy.code()).pointer {
            init.push(copy_register(
                fixed.get(RegisterSlot::Operand(operand - 1))?,
                Register::RAX + u32::from(allocator.base()),
            ));
        }
        let written = rotations.iter().map(|(_, pool)| pool.len()).max().unwrap_or(0);
        let recipe = ThroughputRecipe { destinations: written, addresses, ..recipe };
        Some(ThroughputBody {
            recipe,
            period,
            copies,
            ends,
            init,
            masks: gather::is_gather(anatomy),
            hazards: hazards.has_any(),
        })
    }
}

/// Instructions that renew the rotating registers of a slot. Without them, each instance waits for the
/// one that used its register before. Vectors become zero: on Zen 5, merging into a copy takes longer.
struct RegisterRenewal {
    slot: RegisterSlot,
    /// Uses of a register for each renewal.
    uses: usize,
    source: RenewalSource,
    /// An instruction of the same form would count as an instance.
    form: Code,
}

/// The new value of a register.
#[derive(Clone, Copy)]
enum RenewalSource {
    /// A copy of this general register.
    General(u8),
    /// Zero by VEX code.
    ZeroVex,
    /// Zero by legacy code.
    ZeroLegacy,
    /// Zero in an MMX register.
    ZeroMmx,
}

impl RegisterRenewal {
    /// The renewal of a slot that instances read or write in part. `None` for other slots, for those
    /// with many registers to rotate through, and without a register to copy.
    fn new(
        anatomy: &FormAnatomy,
        slot: RegisterSlot,
        uses: usize,
        fixed: &RegisterAssignment,
        allocator: &mut RegisterAllocator,
    ) -> Option<RegisterRenewal> {
        let (place, register) = (OperandPlace::Slot(slot), anatomy.slot_register(slot));
        let bank = anatomy.place_bank(place);
        let is_partial = bank == RegisterBank::General && register.size() < 4;
        if !(anatomy.reads_place(place) || is_partial) || allocator.count_left(bank) >= DESTINATIONS_ENOUGH {
            return None;
        }
        let source = match bank {
            RegisterBank::General => {
                let is_operand = |other: &RegisterSlot| {
                    *other != RegisterSlot::Base && anatomy.place_bank(OperandPlace::Slot(*other)) == bank
                };
                let known = anatomy.slots().into_iter().filter(is_operand).find_map(|other| fixed.get(other));
                RenewalSource::General(known.or_else(|| allocator.allocate_spare())?)
            }
            RegisterBank::Vector if anatomy.sample.op_code().encoding() == EncodingKind::Legacy => {
                RenewalSource::ZeroLegacy
            }
            RegisterBank::Vector => RenewalSource::ZeroVex,
            RegisterBank::Mmx => RenewalSource::ZeroMmx,
            _ => return None,
        };
        Some(RegisterRenewal { slot, uses, source, form: anatomy.code() })
    }

    /// The renewal before the instance with this number, if it needs one. Registers are renewed in
    /// turn.
    fn build_renewal(&self, copy: usize, rotations: &[(RegisterSlot, Vec<u8>)]) -> Option<Instruction> {
        let (_, pool) = rotations.iter().find(|(slot, _)| *slot == self.slot)?;
        let (place, use_number) = (copy % pool.len(), copy / pool.len());
        if use_number % self.uses != place * self.uses / pool.len() {
            return None;
        }
        let number = u32::from(pool[place]);
        let (xmm, mm) = (Register::XMM0 + number, Register::MM0 + number % 8);
        let renewal = match self.source {
            RenewalSource::General(source) => Some(copy_register(pool[place], Register::RAX + u32::from(source))),
            RenewalSource::ZeroVex => Instruction::with3(Code::VEX_Vpxor_xmm_xmm_xmmm128, xmm, xmm, xmm).ok(),
            RenewalSource::ZeroLegacy => Instruction::with2(Code::Pxor_xmm_xmmm128, xmm, xmm).ok(),
            RenewalSource::ZeroMmx => Instruction::with2(Code::Pxor_mm_mmm64, mm, mm).ok(),
        };
        renewal.filter(|renewal| renewal.code() != self.form)
    }
}

impl ThroughputBody {
    /// The code of one instance in the period, with what it needs.
    pub(super) fn copy_code(&self, copy: usize) -> &[Instruction] {
        let start = copy.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.period[start..self.ends[copy]]
    }
}

/// `mov to, from`. `to` is the number of a general register.
pub(super) fn copy_register(to: u8, from: Register) -> Instruction {
    Instruction::with2(Code::Mov_r64_rm64, Register::RAX + u32::from(to), from).expect("two general registers")
}

/// An AND of a vector register with itself that no instance uses. Legacy code stays without VEX.
/// `None` if the form itself is this instruction.
fn build_companion(anatomy: &FormAnatomy, allocator: &mut RegisterAllocator) -> Option<Instruction> {
    // The lowest number left: VEX has sixteen.
    let number = *allocator.allocate_rotation(RegisterBank::Vector, 1)?.first().filter(|number| **number < 16)?;
    let register = Register::XMM0 + u32::from(number);
    let companion = match anatomy.sample.op_code().encoding() {
        EncodingKind::Legacy | EncodingKind::D3NOW => {
            Instruction::with2(Code::Pand_xmm_xmmm128, register, register).ok()
        }
        _ => Instruction::with3(Code::VEX_Vpand_xmm_xmm_xmmm128, register, register, register).ok(),
    };
    companion.filter(|companion| companion.code() != anatomy.code())
}

pub(super) fn build_nop() -> Instruction {
    Instruction::with(Code::Nopd)
}
