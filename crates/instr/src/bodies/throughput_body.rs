//! Throughput programs: loop bodies of instances that wait for nothing but the core's own resources.
//!
//! Reciprocal throughput is the best rate that the core sustains, so each form gets several programs that differ in all
//! that may matter: how many registers the results rotate through, the length of the body, NOPs in between, addresses,
//! and how dependencies are broken that a form carries whatever its registers are.

use super::balance::balance_instance;
use super::links;
use super::register_allocator::RegisterAllocator;
use crate::forms::form_anatomy::{FormAnatomy, OperandPlace, RegisterAssignment, RegisterBank, RegisterSlot};
use crate::forms::gather;
use crate::forms::instruction_setting;
use iced_x86::{Code, Instruction, Register};

/// How registers and flags that a form both reads and writes get a new value before each instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum DependencyBreaking {
    /// Not at all.
    None,
    /// By XOR of a register with itself, which also sets the flags; the top of the x87 stack by FXCH.
    Zero,
    /// By MOV from a register that keeps its value, the top of the x87 stack by FLD; flags by CMP.
    Copy,
    /// As by `Copy`, but before the first instance of a period only.
    Once,
}

/// Where the instances of a program find their memory operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum AddressPattern {
    /// All at one address.
    One,
    /// Next to each other: this many addresses.
    Adjacent(usize),
    /// In this many cache lines.
    Lines(usize),
    /// All of this many cache lines, part by part, each part once.
    Walk(usize),
}

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

impl AddressPattern {
    /// How many there are for operands of `bytes` bytes.
    fn count(self, bytes: usize) -> usize {
        match self {
            AddressPattern::One => 1,
            AddressPattern::Walk(lines) => lines * (LINE_BYTES / bytes.clamp(1, LINE_BYTES)),
            AddressPattern::Adjacent(count) | AddressPattern::Lines(count) => count,
        }
    }

    /// The displacement of an instance whose operand has `bytes` bytes.
    fn displacement(self, copy: usize, bytes: usize) -> i32 {
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

/// One of the ways to write a throughput program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ThroughputRecipe {
    /// Registers that results rotate through, at most.
    pub destinations: usize,
    /// Instances in the body, about.
    pub copies: usize,
    /// One NOP after this many instances.
    pub nop_after: Option<usize>,
    /// Where instances find their memory operands.
    pub addresses: AddressPattern,
    /// How unavoidable dependencies are broken.
    pub breaking: DependencyBreaking,
}

/// A throughput program's body.
#[derive(Debug, Clone)]
pub(crate) struct ThroughputBody {
    /// What it was made by, with the registers and addresses that it got.
    pub recipe: ThroughputRecipe,
    /// One period.
    pub period: Vec<Instruction>,
    /// Instances in a period.
    pub copies: usize,
    /// What runs once before.
    pub init: Vec<Instruction>,
    /// Whether each instance is given its mask.
    pub masks: bool,
    /// Whether there are dependencies to break.
    pub hazards: bool,
}

/// Instances in a period at least, where something beside registers rotates.
const PERIOD_LEAST: usize = 30;
/// Cache lines that instances which read and write memory rotate through, at least.
const READ_WRITE_LINES: usize = 24;

const fn new_recipe(
    destinations: usize,
    copies: usize,
    nop_after: Option<usize>,
    addresses: AddressPattern,
) -> ThroughputRecipe {
    ThroughputRecipe { destinations, copies, nop_after, addresses, breaking: DependencyBreaking::Copy }
}

/// The ways that every form is tried in, the most telling first.
///
/// Golden Cove loads twice a cycle from one address or from lines 64 bytes apart, but three times from neighbours.
pub(crate) const RECIPES: [ThroughputRecipe; 8] = [
    new_recipe(24, 96, None, AddressPattern::Adjacent(8)),
    new_recipe(8, 192, None, AddressPattern::One),
    new_recipe(12, 120, Some(2), AddressPattern::Adjacent(24)),
    new_recipe(6, 240, None, AddressPattern::Lines(24)),
    new_recipe(24, 144, Some(1), AddressPattern::Adjacent(16)),
    new_recipe(10, 160, Some(3), AddressPattern::One),
    new_recipe(4, 128, None, AddressPattern::Adjacent(4)),
    new_recipe(16, 200, None, AddressPattern::Lines(8)),
];

impl ThroughputBody {
    /// The program in words, with `instances` instances in its loop.
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
        let addresses = if on_memory { format!(", {}", recipe.addresses.describe()) } else { String::new() };
        let masks = if self.masks { ", each given its mask" } else { "" };
        let breaking = match recipe.breaking {
            _ if !self.hazards => "",
            DependencyBreaking::None => ", dependencies left",
            DependencyBreaking::Zero => ", dependencies broken by zeroing",
            DependencyBreaking::Copy => ", dependencies broken by copies",
            DependencyBreaking::Once => ", addresses put back at times",
        };
        format!("{instances} copies in a loop{destinations}{nops}{addresses}{masks}{breaking}")
    }
}

/// What a form reads and writes whatever its registers are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DependencyHazards {
    /// Flags that an instance reads from the one before.
    pub flags: bool,
    /// Registers without choice that it reads from the one before.
    pub registers: Vec<Register>,
}

impl DependencyHazards {
    /// Those of a form.
    pub fn from_anatomy(anatomy: &FormAnatomy) -> DependencyHazards {
        let mut hazards = DependencyHazards { flags: anatomy.keeps_flags(), ..DependencyHazards::default() };
        let written = anatomy.flags_modified();
        // What writes a part of a register leaves the rest, and so waits for it.
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

    /// Whether one of the registers holds an address that memory is accessed at.
    pub(crate) fn has_addresses(&self) -> bool {
        let addresses = [Register::RSP, Register::RSI, Register::RDI];
        self.registers.iter().any(|register| addresses.contains(register))
    }

    /// Whether there is something to break.
    pub fn has_any(&self) -> bool {
        self.flags || !self.registers.is_empty()
    }
}

impl ThroughputBody {
    /// The body of a form by a recipe; `None` where it does not exist.
    pub(crate) fn new(anatomy: &FormAnatomy, recipe: ThroughputRecipe) -> Option<ThroughputBody> {
        let hazards = DependencyHazards::from_anatomy(anatomy);
        let mut allocator = RegisterAllocator::new(anatomy);
        let mut restored: Vec<(Register, u8)> = Vec::new();
        if matches!(recipe.breaking, DependencyBreaking::Copy | DependencyBreaking::Once) {
            for register in hazards.registers.iter().filter(|register| register.is_gpr64()) {
                restored.push((*register, allocator.allocate_constant(RegisterBank::General)?));
            }
        }
        let flags = match hazards.flags {
            true => Some(allocator.allocate_constant(RegisterBank::General)?),
            false => None,
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
        // Each register comes back after as many instances at a period's end as within it.
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
        // What POP reads must be where it was put.
        if hazards.has_any() && !hazards.registers.contains(&Register::RSP) {
            // Tops of the stack, and addresses that go on for a while, rotate too.
            copies = copies.max(PERIOD_LEAST.next_multiple_of(destinations));
        }
        while copies % recipe.nop_after.unwrap_or(1) != 0 {
            copies += destinations;
        }
        // What is read and written again needs time in between.
        let addresses = if on_memory && both { AddressPattern::Lines(copies) } else { addresses };
        let top = hazards.registers.contains(&Register::ST0);
        let mut period = Vec::new();
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
            period.extend(before);
            period.extend(gather::restore_mask(anatomy, &assignment));
            period.push(anatomy.build_instance(&assignment)?);
            period.extend(after);
            if top && recipe.breaking == DependencyBreaking::Zero {
                // Another value becomes the top of the stack; an operand below it keeps the last of the six.
                let other = Register::ST1 + (copy % 4) as u32;
                period.push(Instruction::with2(Code::Fxch_st0_sti, Register::ST0, other).ok()?);
            }
            if recipe.nop_after.is_some_and(|after| copy % after == after - 1) {
                period.push(build_nop());
            }
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
            init,
            masks: gather::is_gather(anatomy),
            hazards: hazards.has_any(),
        })
    }
}

/// `mov to, from`, by the number of a general register.
pub(super) fn copy_register(to: u8, from: Register) -> Instruction {
    Instruction::with2(Code::Mov_r64_rm64, Register::RAX + u32::from(to), from).expect("two general registers")
}

pub(super) fn build_nop() -> Instruction {
    Instruction::with(Code::Nopd)
}

/// Adds what gives registers and flags another value before an instance, the first of a period or not.
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
            _ => into.push(links::COMPARE.build_instruction(0, constant, constant, links::LinkAddress::default())),
        }
    }
    Some(())
}
