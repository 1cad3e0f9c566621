//! Chains: loop bodies in which each instance of a form waits for the previous one. The dependency
//! runs through one input and one output.

use super::balance::balance_instance;
use super::links::{self, Link, LinkAddress, build_computed_copy};
use super::register_allocator::RegisterAllocator;
use super::route::{is_address, is_computed, needs_restoring};
use crate::forms::form_anatomy::{
    FormAnatomy, OperandPlace, OperandPort, RegisterAssignment, RegisterBank, RegisterSlot,
};
use crate::forms::gather;
use crate::forms::instruction_setting;
use cyclescope_code::asm::access::{is_atomic, is_non_temporal_store};
use cyclescope_code::asm::registers::HIGH_BYTES;
use iced_x86::{Code, EncodingKind, Instruction, MemoryOperand, Register};

/// Upper limit of registers through which a value travels, and through which another result
/// rotates.
const VALUE_ROTATION: usize = 6;
const RESULT_ROTATION: usize = 4;
/// Number of addresses that instances rotate through if memory is not part of the chain, and the
/// bytes between them. A load reads the data stored this many instances earlier. In a quick chain,
/// store forwarding takes longer than several instances.
const ROTATED_ADDRESSES: usize = 16;
const ADDRESS_STRIDE: i32 = 64;
/// Offset of a chain's stores from the base register. Other programs find their memory unchanged.
const STORE_OFFSET: i32 = 8192 + 640;

/// The code of a chain.
#[derive(Debug, Clone)]
pub(crate) struct LatencyChain {
    /// Links that carry the value from each instance to the next.
    pub links: Vec<Link>,
    /// One period of the body.
    pub period: Vec<Instruction>,
    /// Instances in a period.
    pub copies: usize,
    /// Code that runs once before the body, after the setting's own code.
    pub init: Vec<Instruction>,
    /// Number of instructions in the first turn: an instance, the code before it that breaks other
    /// dependencies, and the links.
    pub turn: usize,
}

/// The ports of a form that a chain connects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChainEnds<'a> {
    /// The input that makes an instance wait.
    pub from: &'a OperandPort,
    /// The output that the next instance waits for.
    pub to: &'a OperandPort,
}

/// How a chain chooses its registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChainRegisters {
    /// All registers are distinct.
    #[default]
    Distinct,
    /// Each value is stored at two places, and alternate iterations load it from alternate places.
    /// Some cores replace a load by the register of a recent store. They find that store by its
    /// base register, or by the number of stores between. Here both change from one iteration to
    /// the next. Bodies hold an odd number of periods.
    Alternating,
    /// Distinct, and flags that an instance may keep are not reset before it. Resetting them takes
    /// resources that the chain may need.
    FlagsKept,
    /// Distinct, and the vector and MMX registers that an instance reads and writes outside the
    /// chain are zeroed before it. It then waits for one operand only.
    Cleared,
    /// All operands of the chain's bank use one register.
    Same,
}

/// Instructions next to each instance that are not part of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChainFillers {
    /// The instruction, as a link.
    pub link: Link,
    /// Number per instance.
    pub count: usize,
}

struct ChainBuilder<'a> {
    anatomy: &'a FormAnatomy,
    from: &'a OperandPort,
    to: &'a OperandPort,
    links: &'a [Link],
    allocator: RegisterAllocator,
    /// Other fixed registers that are read, and the registers that they are copied from before each
    /// instance.
    restored: Vec<(Register, u8)>,
    /// Destination register of each link except the last.
    between: Vec<u8>,
    constant: u8,
    zero: Option<u8>,
    /// A vector register that holds zero.
    zero_vector: Option<u8>,
    /// Two base registers that are exchanged in each period.
    alternating: Option<[u8; 2]>,
    /// Filler instructions, with their destination and source.
    fillers: Option<(ChainFillers, u8, u8)>,
    registers: ChainRegisters,
}

/// The registers of one chain's slots.
struct ChainSlots {
    fixed: RegisterAssignment,
    rotating: Vec<(RegisterSlot, Vec<u8>)>,
    /// Registers through which the value travels from slot to slot.
    own: Vec<u8>,
}

impl LatencyChain {
    /// The chain between two ends over these links. `None` if it would need too many registers.
    pub(crate) fn new(
        anatomy: &FormAnatomy,
        ends: ChainEnds,
        links: &[Link],
        registers: ChainRegisters,
    ) -> Option<LatencyChain> {
        LatencyChain::with_fillers(anatomy, ends, links, registers, None)
    }

    /// The same chain with fillers.
    pub(crate) fn with_fillers(
        anatomy: &FormAnatomy,
        ends: ChainEnds,
        links: &[Link],
        registers: ChainRegisters,
        fillers: Option<ChainFillers>,
    ) -> Option<LatencyChain> {
        let with = |constant: bool| LatencyChain::with_constant(anatomy, ends, links, registers, fillers, constant);
        let needs_constant = links.iter().any(Link::reads_constant)
            || anatomy.keeps_flags()
            || anatomy.inputs.iter().any(|port| matches!(port.place, OperandPlace::Flags(_)));
        // If registers are few, other roles need them more.
        with(true).or_else(|| if needs_constant { None } else { with(false) })
    }

    fn with_constant(
        anatomy: &FormAnatomy,
        ends: ChainEnds,
        links: &[Link],
        registers: ChainRegisters,
        fillers: Option<ChainFillers>,
        constant: bool,
    ) -> Option<LatencyChain> {
        let ChainEnds { from, to } = ends;
        let mut allocator = RegisterAllocator::new(anatomy);
        let fillers = match fillers {
            Some(fillers) => {
                let mut one = |bank: RegisterBank| Some(allocator.allocate_rotation(bank, 1)?[0]);
                Some((fillers, one(fillers.link.to)?, one(fillers.link.from)?))
            }
            None => None,
        };
        let constant = if constant { allocator.allocate_constant(RegisterBank::General)? } else { 0 };
        let kept = links.contains(&links::CLEAR);
        let restored = allocate_restored(anatomy, from.place, kept, &mut allocator)?;
        let zero = if kept { Some(allocator.allocate_constant(RegisterBank::General)?) } else { None };
        let zero_vector = match links.contains(&links::ZERO_INDICES) {
            true => Some(allocator.allocate_rotation(RegisterBank::Vector, 1)?[0]),
            false => None,
        };
        let alternating = match registers {
            ChainRegisters::Alternating if can_alternate(anatomy, from.place, to.place) => Some([
                allocator.allocate_constant(RegisterBank::General)?,
                allocator.allocate_constant(RegisterBank::General)?,
            ]),
            ChainRegisters::Alternating => return None,
            _ => None,
        };
        let mut between: Vec<u8> = Vec::new();
        for (index, link) in links.iter().enumerate().take(links.len().saturating_sub(1)) {
            between.push(match link.to {
                RegisterBank::Flags | RegisterBank::Memory => 0,
                _ if link.is_in_place() || link.squares_in_place() => 0,
                // In a run of equal links, nothing reads the register that the last but one wrote.
                _ if index > 1 && links[index - 2..index].iter().all(|before| before == link) => between[index - 2],
                // VEX links reach the lower registers only.
                RegisterBank::Vector => allocator.allocate_rotation(RegisterBank::Vector, 1)?[0],
                bank => allocator.allocate_constant(bank)?,
            });
        }
        let mut builder = ChainBuilder {
            anatomy,
            from,
            to,
            links,
            allocator,
            restored,
            between,
            constant,
            zero,
            zero_vector,
            alternating,
            fillers,
            registers,
        };
        builder.build()
    }
}

/// Chooses a copy for each fixed general register that an instance reads after the previous one
/// wrote it. The chain's own input gets a copy only if its value is kept.
fn allocate_restored(
    anatomy: &FormAnatomy,
    from: OperandPlace,
    kept: bool,
    allocator: &mut RegisterAllocator,
) -> Option<Vec<(Register, u8)>> {
    let mut restored: Vec<(Register, u8)> = Vec::new();
    // A partial write keeps the rest of the register, and so waits for it.
    let parts =
        anatomy.outputs.iter().filter(|port| matches!(port.place, OperandPlace::Fixed(part) if part.size() < 4));
    for port in anatomy.inputs.iter().chain(parts) {
        let OperandPlace::Fixed(register) = port.place else { continue };
        let full = register.full_register();
        let own = matches!(from, OperandPlace::Fixed(other) if other.full_register() == full);
        let known = restored.iter().any(|(other, _)| *other == full);
        if full.is_gpr64() && anatomy.writes_register(full) && (kept || !own) && !known {
            restored.push((full, allocator.allocate_constant(RegisterBank::General)?));
        }
    }
    Some(restored)
}

/// Whether each value can be stored at two alternating places. A chain that ends in memory then has
/// two instances per turn, which must not depend on each other. The address needs a base register
/// to choose. A store that the next instance reads directly has no link between them. Atomic
/// instructions and non-temporal stores are not renamed, and two of them would wait for each other.
fn can_alternate(anatomy: &FormAnatomy, from: OperandPlace, to: OperandPlace) -> bool {
    let own = |register: Register| {
        matches!(
            from,
            OperandPlace::Fixed(other) if other.full_register() == register.full_register()
        )
    };
    // Flags and fixed registers are reset before each instance, except the chain's own.
    let passed = |port: &OperandPort| match port.place {
        OperandPlace::Slot(_) => anatomy.reads_place(port.place) && !gather::is_mask(anatomy, port.place),
        OperandPlace::Fixed(register) => own(register),
        OperandPlace::Flags(_) => matches!(from, OperandPlace::Flags(_)),
        OperandPlace::Memory => false,
    };
    let has_base = anatomy.slots().contains(&RegisterSlot::Base);
    let renamable = !is_atomic(&anatomy.sample) && !is_non_temporal_store(&anatomy.sample);
    has_base
        && renamable
        && [from, to] != [OperandPlace::Memory; 2]
        && (to != OperandPlace::Memory || !anatomy.outputs.iter().any(passed))
}

fn general_register(number: u8) -> Register {
    Register::RAX + u32::from(number)
}

fn least_common_multiple(a: usize, b: usize) -> usize {
    (1..=b).map(|times| a * times).find(|multiple| multiple % b == 0).expect("the last is one")
}

/// Number of these banks that share their registers with one.
fn count_banks(banks: &[RegisterBank], bank: RegisterBank) -> usize {
    let pool = |bank: RegisterBank| if bank == RegisterBank::HighByte { RegisterBank::General } else { bank };
    banks.iter().filter(|other| pool(**other) == pool(bank)).count()
}

fn slot_of_place(place: OperandPlace) -> Option<RegisterSlot> {
    match place {
        OperandPlace::Slot(slot) => Some(slot),
        _ => None,
    }
}

impl ChainBuilder<'_> {
    fn build(&mut self) -> Option<LatencyChain> {
        let anatomy = self.anatomy;
        let slots = self.assign_slots()?;
        let stores =
            anatomy.writes_place(OperandPlace::Memory) || self.links.iter().any(|link| link.to == RegisterBank::Memory);
        let on_memory = anatomy.slots().contains(&RegisterSlot::Base) && !is_computed(anatomy);
        // A chain through memory needs one address. Non-temporal stores to successive lines would
        // wait for the buffers that send each line.
        let combined = is_non_temporal_store(&anatomy.sample);
        let spread = on_memory && stores && self.from.place != OperandPlace::Memory && !combined;
        // At the end of a period, the value and all rotating registers must be back at the start.
        let mut turns: Vec<usize> = slots.rotating.iter().map(|(_, pool)| pool.len()).collect();
        turns.extend([slots.own.len().max(1), if spread { ROTATED_ADDRESSES } else { 1 }]);
        let copies = turns.into_iter().fold(1, least_common_multiple);
        let (mut period, mut turn) = (Vec::new(), 0);
        for copy in 0..copies {
            let mut assignment = slots.assign_copy(copy, slot_of_place(self.from.place), slot_of_place(self.to.place));
            if on_memory && stores {
                assignment.displacement = STORE_OFFSET;
            }
            if spread {
                let places = if self.alternating.is_some() { 2 } else { 1 };
                assignment.displacement += places * ADDRESS_STRIDE * (copy % ROTATED_ADDRESSES) as i32;
            }
            if let Some([base, _]) = self.alternating.filter(|_| self.from.place == OperandPlace::Memory) {
                assignment = assignment.with_register(RegisterSlot::Base, base);
            }
            self.push_turn(&assignment, &mut period)?;
            if copy == 0 {
                turn = period.len();
            }
        }
        // The loop counter changes all flags except the carry. The value therefore passes the
        // loop's end in a register.
        if self.links.last() == Some(&links::COMPARE) {
            period.rotate_right(1);
        }
        if let Some([one, other]) = self.alternating {
            let change =
                Instruction::with2(Code::Xchg_rm64_r64, general_register(one), general_register(other)).ok()?;
            period.insert(0, change);
            turn += 1;
        }
        let init = self.build_init(&slots)?;
        Some(LatencyChain { links: self.links.to_vec(), period, copies, init, turn })
    }

    /// Chooses registers for all slots.
    fn assign_slots(&mut self) -> Option<ChainSlots> {
        let anatomy = self.anatomy;
        let (input, output) = (slot_of_place(self.from.place), slot_of_place(self.to.place));
        let direct = self.links.is_empty();
        let chased = direct && is_address(anatomy, self.from.place);
        let passed = direct && input.is_some() && output.is_some() && input != output;
        let mut slots = ChainSlots { fixed: RegisterAssignment::default(), rotating: Vec::new(), own: Vec::new() };
        if self.registers == ChainRegisters::Same || self.links.iter().any(Link::squares_in_place) {
            return self.assign_same_register();
        }
        // Each further slot needs a register.
        let mut waiting: Vec<RegisterBank> = anatomy
            .slots()
            .into_iter()
            .filter(|slot| !(passed && (input == Some(*slot) || output == Some(*slot))))
            .filter(|slot| !is_address(anatomy, OperandPlace::Slot(*slot)) || chased)
            .map(|slot| anatomy.place_bank(OperandPlace::Slot(slot)))
            .collect();
        if passed {
            let bank = anatomy.place_bank(self.to.place);
            let most = if chased { 1 } else { VALUE_ROTATION };
            let count = most.min(self.allocator.count_left(bank).saturating_sub(count_banks(&waiting, bank)));
            slots.own = self.allocator.allocate_rotation(bank, count)?;
            if slots.own.len() < 2 && !chased {
                return None;
            }
        }
        for slot in anatomy.slots() {
            let bank = anatomy.place_bank(OperandPlace::Slot(slot));
            let is_base = is_address(anatomy, OperandPlace::Slot(slot)) && !chased;
            let travels = passed && (input == Some(slot) || output == Some(slot));
            if is_base {
                slots.fixed = slots.fixed.with_register(slot, self.allocator.base());
            } else if bank == RegisterBank::Other || travels {
                continue;
            } else if input == Some(slot) && bank == RegisterBank::Vector {
                // VEX links reach the lower registers only.
                slots.fixed = slots.fixed.with_register(slot, self.allocator.allocate_rotation(bank, 1)?[0]);
            } else if input == Some(slot) || !anatomy.writes_place(OperandPlace::Slot(slot)) {
                slots.fixed = slots.fixed.with_register(slot, self.allocator.allocate_constant(bank)?);
            } else {
                let further = count_banks(&waiting, bank).saturating_sub(1);
                let count = RESULT_ROTATION.min(self.allocator.count_left(bank).saturating_sub(further));
                slots.rotating.push((slot, self.allocator.allocate_rotation(bank, count)?));
            }
            if let Some(place) = waiting.iter().position(|other| *other == bank) {
                waiting.remove(place);
            }
        }
        Some(slots)
    }

    fn assign_same_register(&mut self) -> Option<ChainSlots> {
        let anatomy = self.anatomy;
        let mut slots = ChainSlots { fixed: RegisterAssignment::default(), rotating: Vec::new(), own: Vec::new() };
        let bank = anatomy.place_bank(self.to.place);
        let one = self.allocator.allocate_rotation(bank, 1)?[0];
        for slot in anatomy.slots() {
            let own = anatomy.place_bank(OperandPlace::Slot(slot));
            let register = match own {
                _ if is_address(anatomy, OperandPlace::Slot(slot)) => self.allocator.base(),
                own if own == bank => one,
                own => self.allocator.allocate_constant(own)?,
            };
            slots.fixed = slots.fixed.with_register(slot, register);
        }
        Some(slots)
    }

    fn build_init(&self, slots: &ChainSlots) -> Option<Vec<Instruction>> {
        let base = general_register(self.allocator.base());
        let copy = |to: Register, from: Register| Instruction::with2(Code::Mov_r64_rm64, to, from).ok();
        let mut init = Vec::new();
        for (register, constant) in &self.restored {
            init.push(copy(general_register(*constant), *register)?);
        }
        if let Some(zero) = self.zero {
            let low = Register::EAX + u32::from(zero);
            init.push(Instruction::with2(Code::Xor_r32_rm32, low, low).ok()?);
        }
        if let Some(zero) = self.zero_vector {
            let register = Register::XMM0 + u32::from(zero);
            init.push(Instruction::with3(Code::VEX_Vpxor_xmm_xmm_xmmm128, register, register, register).ok()?);
        }
        init.extend(gather::zero_indices(self.anatomy, &slots.fixed));
        if let Some([one, other]) = self.alternating {
            init.extend(build_computed_copy(general_register(one), base));
            let next = MemoryOperand::with_base_displ(base, ADDRESS_STRIDE.into());
            init.push(Instruction::with2(Code::Lea_r64_m, general_register(other), next).ok()?);
        }
        if let Some(operand) = instruction_setting::find_setting(self.anatomy.code()).pointer {
            init.push(copy(general_register(slots.fixed.get(RegisterSlot::Operand(operand - 1))?), base)?);
        }
        if self.links.is_empty() && is_address(self.anatomy, self.from.place) {
            init.push(Instruction::with2(Code::Mov_rm64_r64, MemoryOperand::with_base(base), base).ok()?);
            init.push(copy(general_register(*slots.own.first()?), base)?);
        }
        Some(init)
    }

    /// Appends one instance (two if both must store), then the links.
    fn push_turn(&self, assignment: &RegisterAssignment, into: &mut Vec<Instruction>) -> Option<()> {
        self.push_instance(assignment, into)?;
        if self.alternating.is_some() && self.to.place == OperandPlace::Memory {
            let mut second = *assignment;
            second.displacement += ADDRESS_STRIDE;
            self.push_instance(&second, into)?;
        }
        if let Some((fillers, destination, source)) = self.fillers {
            let filler = fillers.link.build_instruction(
                self.anatomy.mode(),
                destination,
                source,
                self.constant,
                LinkAddress::default(),
            );
            into.extend(std::iter::repeat_n(filler, fillers.count));
        }
        self.push_links(assignment, into)
    }

    /// Appends one instance, preceded by the code that breaks its other dependencies.
    fn push_instance(&self, assignment: &RegisterAssignment, into: &mut Vec<Instruction>) -> Option<()> {
        let anatomy = self.anatomy;
        let own = |register: Register| {
            matches!(
                self.from.place,
                OperandPlace::Fixed(other) if other.full_register() == register
            )
        };
        for (register, constant) in self.restored.iter().filter(|(register, _)| !own(*register)) {
            into.push(Instruction::with2(Code::Mov_r64_rm64, *register, general_register(*constant)).ok()?);
        }
        let reads_flags = anatomy.inputs.iter().any(|port| matches!(port.place, OperandPlace::Flags(_)))
            || anatomy.keeps_flags() && self.registers != ChainRegisters::FlagsKept;
        let from_flags = matches!(self.from.place, OperandPlace::Flags(_));
        let changed = anatomy.flags_modified() != 0 || self.links.iter().any(Link::changes_flags);
        if reads_flags && !from_flags && changed {
            into.push(links::COMPARE.build_instruction(
                anatomy.mode(),
                0,
                self.constant,
                self.constant,
                LinkAddress::default(),
            ));
        }
        let (before, after) = balance_instance(&anatomy.sample);
        into.extend(before);
        into.extend(gather::restore_mask(anatomy, assignment));
        if self.registers == ChainRegisters::Cleared {
            into.extend(self.build_clearing(assignment)?);
        }
        into.push(anatomy.build_instance(assignment)?);
        into.extend(after);
        Some(())
    }

    /// Zeroes the registers that an instance reads and writes, except the chain's input. `None` if
    /// there are none.
    fn build_clearing(&self, assignment: &RegisterAssignment) -> Option<Vec<Instruction>> {
        let anatomy = self.anatomy;
        let vex = anatomy.sample.op_code().encoding() != EncodingKind::Legacy;
        let mut clearing = Vec::new();
        for slot in anatomy.slots() {
            let place = OperandPlace::Slot(slot);
            if place == self.from.place || !anatomy.reads_place(place) || !anatomy.writes_place(place) {
                continue;
            }
            let number = u32::from(assignment.get(slot)?);
            let (xmm, mm) = (Register::XMM0 + number, Register::MM0 + number % 8);
            let zeroing = match (anatomy.place_bank(place), vex) {
                (RegisterBank::Vector, true) => Instruction::with3(Code::VEX_Vpxor_xmm_xmm_xmmm128, xmm, xmm, xmm),
                (RegisterBank::Vector, false) => Instruction::with2(Code::Pxor_xmm_xmmm128, xmm, xmm),
                (RegisterBank::Mmx, _) => Instruction::with2(Code::Pxor_mm_mmm64, mm, mm),
                _ => continue,
            };
            // An instance of the same form would count as part of the chain.
            clearing.push(zeroing.ok().filter(|zeroing| zeroing.code() != anatomy.code())?);
        }
        (!clearing.is_empty()).then_some(clearing)
    }

    fn push_links(&self, assignment: &RegisterAssignment, into: &mut Vec<Instruction>) -> Option<()> {
        // Where the value is stored for the next instance, or where this instance stored it.
        let base = match self.alternating {
            Some([one, _]) if self.from.place != OperandPlace::Memory => one,
            Some(_) => self.allocator.base(),
            None => assignment.get(RegisterSlot::Base).unwrap_or(self.allocator.base()),
        };
        let address = LinkAddress { base, displacement: assignment.displacement };
        let mut source = register_number(self.to.place, assignment)?;
        let end = register_number(self.from.place, assignment)?;
        let mode = self.anatomy.mode();
        for (index, link) in self.links.iter().enumerate() {
            let last = index + 1 == self.links.len();
            let mut destination = if last || *link == links::XOR { end } else { self.between[index] };
            let mut constant = self.constant;
            if link.squares_in_place() {
                destination = source;
            }
            if *link == links::ZERO_INDICES {
                constant = self.zero_vector?;
            }
            match *link {
                links::CLEAR => {
                    (destination, constant) = (source, self.zero?);
                    into.push(link.build_instruction(mode, destination, source, constant, address));
                    // A changed register gets its old value back, and its dependency with the next
                    // link.
                    if let Some((register, old)) =
                        self.restored.iter().find(|(register, _)| self.is_restored_input(*register))
                    {
                        if register.number() as u8 == source {
                            source = *old;
                        } else {
                            into.push(Instruction::with2(Code::Mov_r64_rm64, *register, general_register(*old)).ok()?);
                        }
                    }
                    continue;
                }
                links::XOR => {
                    into.push(link.build_instruction(mode, end, source, constant, address));
                    continue;
                }
                _ => into.push(link.build_instruction(mode, destination, source, constant, address)),
            }
            if self.alternating.is_some() && link.to == RegisterBank::Memory {
                let second = LinkAddress { displacement: address.displacement + ADDRESS_STRIDE, ..address };
                into.push(link.build_instruction(mode, destination, source, constant, second));
            }
            source = destination;
        }
        Some(())
    }

    fn is_restored_input(&self, register: Register) -> bool {
        needs_restoring(self.anatomy, self.from.place)
            && matches!(self.from.place, OperandPlace::Fixed(other) if other.full_register() == register)
    }
}

impl ChainSlots {
    /// The registers of one instance. The value travels through the slots `input` and `output`.
    fn assign_copy(
        &self,
        copy: usize,
        input: Option<RegisterSlot>,
        output: Option<RegisterSlot>,
    ) -> RegisterAssignment {
        let mut assignment = self.fixed;
        for (slot, pool) in &self.rotating {
            assignment = assignment.with_register(*slot, pool[copy % pool.len()]);
        }
        if let (Some(input), Some(output), false) = (input, output, self.own.is_empty()) {
            assignment = assignment.with_register(input, self.own[copy % self.own.len()]);
            assignment = assignment.with_register(output, self.own[(copy + 1) % self.own.len()]);
        }
        assignment
    }
}

/// The number of a place's register in this instance, or 0 if the place is not a register.
fn register_number(place: OperandPlace, assignment: &RegisterAssignment) -> Option<u8> {
    match place {
        OperandPlace::Slot(slot) => assignment.get(slot),
        OperandPlace::Fixed(register) => Some(match HIGH_BYTES.iter().position(|high| *high == register) {
            Some(high) => high as u8,
            None => register.full_register().number() as u8,
        }),
        OperandPlace::Flags(_) | OperandPlace::Memory => Some(0),
    }
}
