//! Throughput programs: loop bodies of instances that wait only for the core's own resources.
//!
//! Reciprocal throughput is the best rate that the core sustains. Each form therefore gets several
//! programs. They differ in the number of rotating registers, body length, NOPs between instances,
//! addresses, and the breaking of unavoidable dependencies.

use super::balance::{balance_instance, keeps_registers};
use super::links;
use super::register_allocator::RegisterAllocator;
use crate::forms::form_anatomy::{FormAnatomy, OperandPlace, RegisterAssignment, RegisterBank, RegisterSlot};
use crate::forms::gather;
use crate::forms::instruction_setting;
use cyclescope_code::asm::CodeMode;
use iced_x86::{Code, EncodingKind, Instruction, Register};

/// How the registers and flags that every instance reads and writes get a new value before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DependencyBreaking {
    /// Not at all: dependencies stay.
    None,
    /// XOR of a register with itself, which also sets the flags. FXCH for the top of the x87 stack.
    Zero,
    /// MOV from a register that keeps its value. FLD for the top of the x87 stack, CMP for flags.
    Copy,
    /// Like `Copy`, but only before the first instance of a period.
    Once,
    /// Like `Copy`, and rotating registers that instances read also get a new value after this number
    /// of uses: for forms with few registers to rotate through.
    Renew(usize),
}

/// The addresses of the memory operands in a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressPattern {
    /// One address for all.
    One,
    /// This many adjacent addresses.
    Adjacent(usize),
    /// In this many cache lines.
    Lines(usize),
    /// This many cache lines, written whole: each part once, in order.
    Walk(usize),
}

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

impl AddressPattern {
    /// Number of addresses for operands of `bytes` bytes.
    pub(crate) fn count(self, bytes: usize) -> usize {
        match self {
            AddressPattern::One => 1,
            AddressPattern::Walk(lines) => lines * (LINE_BYTES / bytes.clamp(1, LINE_BYTES)),
            AddressPattern::Adjacent(count) | AddressPattern::Lines(count) => count,
        }
    }

    /// The displacement of an instance whose operand has `bytes` bytes.
    pub(crate) fn displacement(self, copy: usize, bytes: usize) -> i32 {
        let at = copy % self.count(bytes);
        match self {
            AddressPattern::One => 0,
            AddressPattern::Adjacent(_) => (at * bytes.next_power_of_two().clamp(8, 64)) as i32,
            AddressPattern::Lines(_) => (at * LINE_BYTES) as i32,
            AddressPattern::Walk(_) => (at * bytes) as i32,
        }
    }

    fn describe(self) -> String {
        match self {
            AddressPattern::One => "one address".to_string(),
            AddressPattern::Adjacent(count) => format!("{count} adjacent addresses"),
            AddressPattern::Lines(count) => format!("{count} cache lines"),
            AddressPattern::Walk(lines) => {
                format!("{lines} cache lines written whole, {LINE_BYTES} bytes each")
            }
        }
    }
}

/// Vector instructions that run beside the instances. A core chooses the port of an instruction
/// when it dispatches it. Few instructions of another kind change the choices for their neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VectorCompanions {
    /// Number of instances between them.
    pub after: usize,
    /// Number of companions in one place.
    pub count: usize,
}

/// A recipe for a throughput program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThroughputRecipe {
    /// Upper limit of registers that results rotate through.
    pub destinations: usize,
    /// Approximate number of instances in the body.
    pub copies: usize,
    /// Number of instances between two NOPs.
    pub nop_after: Option<usize>,
    /// Other instructions between the instances.
    pub companions: Option<VectorCompanions>,
    /// Instructions in front of the loop: see [`ProgramRecipe::lead`].
    ///
    /// [`ProgramRecipe::lead`]: cyclescope_code::program::ProgramRecipe::lead
    pub lead: usize,
    /// Addresses of the memory operands.
    pub addresses: AddressPattern,
    /// How unavoidable dependencies are broken.
    pub breaking: DependencyBreaking,
}

impl ThroughputRecipe {
    /// Whether other instructions change how instances are dispatched.
    pub(crate) fn is_steered(&self) -> bool {
        self.nop_after.is_some() || self.needs_search()
    }

    /// Whether the program only serves to find another scheduling mode.
    pub(crate) fn needs_search(&self) -> bool {
        self.companions.is_some() || self.lead > 0
    }
}

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

/// Numbers of registers that are enough to hide the latency of any instruction with a high rate.
const DESTINATIONS_ENOUGH: usize = 9;
/// Uses of a register for each instruction that renews it, which takes a slot of the core's width: few for
/// instructions with a long latency, and many for those with a high rate.
pub(crate) const RENEWAL_USES: [usize; 2] = [4, 16];

/// Lower limit of instances per period if more than registers rotates.
const PERIOD_LEAST: usize = 30;
/// Lower limit of cache lines that instances rotate through if they read and write memory.
const READ_WRITE_LINES: usize = 24;

const fn new_recipe(
    destinations: usize,
    copies: usize,
    nop_after: Option<usize>,
    addresses: AddressPattern,
) -> ThroughputRecipe {
    ThroughputRecipe {
        destinations,
        copies,
        nop_after,
        companions: None,
        lead: 0,
        addresses,
        breaking: DependencyBreaking::Copy,
    }
}

const fn add_lead(lead: usize) -> ThroughputRecipe {
    ThroughputRecipe { lead, ..new_recipe(6, 240, None, AddressPattern::One) }
}

const fn add_companions(recipe: ThroughputRecipe, after: usize, count: usize) -> ThroughputRecipe {
    ThroughputRecipe { companions: Some(VectorCompanions { after, count }), ..recipe }
}

/// The recipes tried for every form, the most informative first.
///
/// Golden Cove loads twice per cycle from one address or from lines 64 bytes apart, but three times
/// from adjacent addresses.
pub(crate) const RECIPES: [ThroughputRecipe; 9] = [
    new_recipe(24, 96, None, AddressPattern::Adjacent(8)),
    new_recipe(8, 192, None, AddressPattern::One),
    new_recipe(12, 120, Some(2), AddressPattern::Adjacent(24)),
    new_recipe(6, 240, None, AddressPattern::Lines(24)),
    new_recipe(24, 144, Some(1), AddressPattern::Adjacent(16)),
    new_recipe(10, 160, Some(3), AddressPattern::One),
    new_recipe(4, 128, None, AddressPattern::Adjacent(4)),
    new_recipe(16, 200, None, AddressPattern::Lines(8)),
    new_recipe(24, 192, None, AddressPattern::Adjacent(8)),
];

/// Recipes that steer the core to other scheduling modes.
///
/// Some rates depend on the choice of ports at dispatch, which the code alone does not determine.
/// On Zen 5, compares of masks with memory take 0.50 or 0.58 cycles, depending on the place of the
/// loop's first instruction among eight. So the leads go through all places of a core that is eight
/// wide, in a loop that returns to few of them: 240 instances and three instructions at its end.
/// Conversions of two µops (`vcvtpd2dq xmm, ymm`) take 0.80 cycles there by themselves, and 0.67
/// with one other vector instruction for eight of them. `btc r64, imm8` takes 0.86, and 0.75 with
/// two of them for seven.
pub(crate) const STEERED_RECIPES: [ThroughputRecipe; 10] = [
    add_lead(1),
    add_lead(2),
    add_lead(3),
    add_lead(4),
    add_lead(5),
    add_lead(6),
    add_lead(7),
    add_companions(new_recipe(24, 96, None, AddressPattern::Adjacent(8)), 8, 1),
    add_companions(new_recipe(8, 192, None, AddressPattern::One), 8, 1),
    add_companions(new_recipe(4, 196, None, AddressPattern::Adjacent(4)), 7, 2),
];

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

/// Unavoidable dependencies of a form, whatever registers it gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DependencyHazards {
    /// Whether an instance reads flags of the previous one.
    pub flags: bool,
    /// Fixed registers that an instance reads from the previous one.
    pub registers: Vec<Register>,
}

impl DependencyHazards {
    /// The hazards of a form.
    pub fn from_anatomy(anatomy: &FormAnatomy) -> DependencyHazards {
        let mut hazards = DependencyHazards { flags: anatomy.keeps_flags(), ..DependencyHazards::default() };
        // The instructions around it put its registers back.
        if keeps_registers(anatomy.code()) {
            return hazards;
        }
        let written = anatomy.flags_modified();
        // A partial write keeps the rest of the register, and so waits for it.
        let parts =
            anatomy.outputs.iter().filter(|port| matches!(port.place, OperandPlace::Fixed(part) if part.size() < 4));
        for port in anatomy.inputs.iter().chain(parts) {
            match port.place {
                OperandPlace::Flags(read) => hazards.flags |= read & written != 0,
                OperandPlace::Fixed(register) => {
                    let full = register.full_register();
                    if anatomy.writes_register(full) && !hazards.registers.contains(&full) {
                        hazards.registers.push(full);
                    }
                }
                OperandPlace::Slot(_) | OperandPlace::Memory => {}
            }
        }
        hazards
    }

    /// Whether one of the registers holds a memory address.
    pub(crate) fn has_addresses(&self) -> bool {
        let addresses = [Register::RSP, Register::RSI, Register::RDI];
        self.registers.iter().any(|register| addresses.contains(register))
    }

    /// Whether there is any dependency to break.
    pub fn has_any(&self) -> bool {
        self.flags || !self.registers.is_empty()
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

/// Appends code that breaks dependencies before an instance. `first` says whether the instance is
/// the first of its period.
pub(super) fn push_breakers(
    breaking: DependencyBreaking,
    first: bool,
    hazards: &DependencyHazards,
    restored: &[(Register, u8)],
    flags: Option<u8>,
    into: &mut Vec<Instruction>,
) -> Option<()> {
    let zero = |register: Register| {
        let low = Register::EAX + register.number() as u32;
        Instruction::with2(Code::Xor_r32_rm32, low, low).ok()
    };
    if breaking == DependencyBreaking::None || (breaking == DependencyBreaking::Once && !first) {
        return Some(());
    }
    if breaking == DependencyBreaking::Zero {
        for register in hazards.registers.iter().filter(|register| register.is_gpr64()) {
            into.push(zero(*register)?);
        }
    }
    for (register, constant) in restored {
        let constant = Register::RAX + u32::from(*constant);
        into.push(Instruction::with2(Code::Mov_r64_rm64, *register, constant).ok()?);
    }
    if let Some(constant) = flags {
        match breaking {
            DependencyBreaking::Zero if !hazards.registers.is_empty() => {}
            DependencyBreaking::Zero => into.push(zero(Register::RAX + u32::from(constant))?),
            _ => into.push(links::COMPARE.build_instruction(
                CodeMode::default(),
                0,
                constant,
                constant,
                links::LinkAddress::default(),
            )),
        }
    }
    Some(())
}
