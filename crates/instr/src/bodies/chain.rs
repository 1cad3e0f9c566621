//! Chains: a loop body in which each instance of a form waits for the one before, through one input and one output.

use super::balance::balance;
use super::links::{self, Link, LinkAddress, computed_copy};
use super::registers::Allocator;
use super::route::{is_address, is_computed, is_kept};
use crate::forms::gather;
use crate::forms::operands::{Anatomy, Assignment, Bank, Place, Port, Slot};
use crate::forms::settings;
use cyclescope_code::asm::access::{is_atomic, is_non_temporal_store};
use cyclescope_code::asm::registers::HIGH_BYTES;
use iced_x86::{Code, Instruction, MemoryOperand, Register};

/// Registers that a value travels through, or that a result other than the chain's rotates through, at most.
const ROTATION: usize = 6;
const OTHERS: usize = 4;
/// Addresses that instances rotate through where memory is no part of the chain, and bytes between them. What is loaded
/// was stored as many instances before, which takes longer than several of them where the chain is quick.
const ADDRESSES: usize = 16;
const STRIDE: i32 = 64;
/// Where chains store to, beside the base register: other programs find the memory as it was.
const ASIDE: i32 = 8192 + 640;

/// A chain.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    /// What carries the value from each instance to the next.
    pub links: Vec<Link>,
    /// One period of the body.
    pub period: Vec<Instruction>,
    /// Instances in a period.
    pub copies: usize,
    /// What runs once before, after the setting's own code.
    pub init: Vec<Instruction>,
    /// Instructions of the first turn: an instance, what breaks other dependencies before it, and the links.
    pub turn: usize,
}

/// The ports of a form that a chain connects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends<'a> {
    /// The input through which an instance waits.
    pub from: &'a Port,
    /// The output for which the next instance waits.
    pub to: &'a Port,
}

/// What is special about a chain's registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Registers {
    /// All are distinct.
    #[default]
    Distinct,
    /// Each value is stored at two places, and what loads it does so from the one in one iteration of the loop and from
    /// the other in the next: a core that takes a store's register for a load, by the base register or by how many
    /// stores lie between, finds neither the same each time. Bodies hold an odd number of periods.
    Alternating,
    /// Distinct, and flags that an instance may keep are not renewed before it: what renews them takes room that the
    /// chain may need.
    FlagsKept,
    /// All operands of the chain's bank are one register.
    Same,
}

/// Instructions of one kind that stand beside each instance and are no part of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fillers {
    /// What they do.
    pub link: Link,
    /// How many for each instance.
    pub count: usize,
}

struct Builder<'a> {
    anatomy: &'a Anatomy,
    from: &'a Port,
    to: &'a Port,
    links: &'a [Link],
    allocator: Allocator,
    /// Fixed registers that are read besides, and what they are copied from before each instance.
    restored: Vec<(Register, u8)>,
    /// The register that each link but the last writes.
    between: Vec<u8>,
    constant: u8,
    zero: Option<u8>,
    /// A vector register that holds zero.
    zero_vector: Option<u8>,
    /// Two bases that change places at each period.
    alternating: Option<[u8; 2]>,
    /// What stands beside, with its destination and its source.
    fillers: Option<(Fillers, u8, u8)>,
    registers: Registers,
}

/// The registers of one chain's slots.
struct Slots {
    fixed: Assignment,
    rotating: Vec<(Slot, Vec<u8>)>,
    /// What the value travels through from slot to slot.
    own: Vec<u8>,
}

impl Chain {
    /// The chain between two ends over these links; `None` where registers do not suffice.
    pub(crate) fn new(anatomy: &Anatomy, ends: Ends, links: &[Link], registers: Registers) -> Option<Chain> {
        Chain::beside(anatomy, ends, links, registers, None)
    }

    /// The same with other instructions beside it.
    pub(crate) fn beside(
        anatomy: &Anatomy,
        ends: Ends,
        links: &[Link],
        registers: Registers,
        fillers: Option<Fillers>,
    ) -> Option<Chain> {
        let Ends { from, to } = ends;
        let mut allocator = Allocator::new(anatomy);
        let fillers = match fillers {
            Some(fillers) => {
                let mut one = |bank: Bank| Some(allocator.rotation(bank, 1)?[0]);
                Some((fillers, one(fillers.link.to)?, one(fillers.link.from)?))
            }
            None => None,
        };
        let constant = allocator.constant(Bank::General)?;
        let kept = links.contains(&links::CLEAR);
        let restored = restored(anatomy, from.place, kept, &mut allocator)?;
        let zero = if kept { Some(allocator.constant(Bank::General)?) } else { None };
        let zero_vector = match links.contains(&links::ZERO_INDICES) {
            true => Some(allocator.rotation(Bank::Vector, 1)?[0]),
            false => None,
        };
        let alternating = match registers {
            Registers::Alternating if can_alternate(anatomy, from.place, to.place) => {
                Some([allocator.constant(Bank::General)?, allocator.constant(Bank::General)?])
            }
            Registers::Alternating => return None,
            _ => None,
        };
        let mut between: Vec<u8> = Vec::new();
        for (index, link) in links.iter().enumerate().take(links.len().saturating_sub(1)) {
            between.push(match link.to {
                Bank::Flags | Bank::Memory => 0,
                _ if link.in_place() || link.squares_in_place() => 0,
                // In a row of equal links, nobody reads what the last but one wrote.
                _ if index > 1 && links[index - 2..index].iter().all(|before| before == link) => {
                    between[index - 2]
                }
                // VEX links reach the lower registers only.
                Bank::Vector => allocator.rotation(Bank::Vector, 1)?[0],
                bank => allocator.constant(bank)?,
            });
        }
        let mut builder = Builder {
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

/// Fixed general registers that an instance reads and the one before wrote, but for the chain's own; and that one too
/// where it is kept.
fn restored(
    anatomy: &Anatomy,
    from: Place,
    kept: bool,
    allocator: &mut Allocator,
) -> Option<Vec<(Register, u8)>> {
    let mut restored: Vec<(Register, u8)> = Vec::new();
    // What writes a part of a register leaves the rest, and so waits for it.
    let parts =
        anatomy.outputs.iter().filter(|port| matches!(port.place, Place::Fixed(part) if part.size() < 4));
    for port in anatomy.inputs.iter().chain(parts) {
        let Place::Fixed(register) = port.place else { continue };
        let full = register.full_register();
        let own = matches!(from, Place::Fixed(other) if other.full_register() == full);
        let known = restored.iter().any(|(other, _)| *other == full);
        if full.is_gpr64() && anatomy.writes_register(full) && (kept || !own) && !known {
            restored.push((full, allocator.constant(Bank::General)?));
        }
    }
    Some(restored)
}

/// Whether two instances can store what depends on one value, each by itself, where a chain ends in memory; and whether
/// addresses have a base to choose. What is stored by an instance and read by the next one has no link in between. What
/// atomic instructions and stores past the caches do is not renamed, and two of them would wait for each other.
fn can_alternate(anatomy: &Anatomy, from: Place, to: Place) -> bool {
    let own = |register: Register| matches!(from, Place::Fixed(other) if other.full_register() == register.full_register());
    // What stands before each instance renews flags and registers without choice but for the chain's own.
    let passed = |port: &Port| match port.place {
        Place::Slot(_) => anatomy.reads(port.place) && !gather::is_mask(anatomy, port.place),
        Place::Fixed(register) => own(register),
        Place::Flags(_) => matches!(from, Place::Flags(_)),
        Place::Memory => false,
    };
    let has_base = anatomy.slots().contains(&Slot::Base);
    let renamable = !is_atomic(&anatomy.sample) && !is_non_temporal_store(&anatomy.sample);
    has_base
        && renamable
        && [from, to] != [Place::Memory; 2]
        && (to != Place::Memory || !anatomy.outputs.iter().any(passed))
}

fn general(number: u8) -> Register {
    Register::RAX + u32::from(number)
}

fn least_common_multiple(a: usize, b: usize) -> usize {
    (1..=b).map(|times| a * times).find(|multiple| multiple % b == 0).expect("the last is one")
}

fn slot(place: Place) -> Option<Slot> {
    match place {
        Place::Slot(slot) => Some(slot),
        _ => None,
    }
}

impl Builder<'_> {
    fn build(&mut self) -> Option<Chain> {
        let anatomy = self.anatomy;
        let slots = self.slots()?;
        let stores = anatomy.writes(Place::Memory) || self.links.iter().any(|link| link.to == Bank::Memory);
        let on_memory = anatomy.slots().contains(&Slot::Base) && !is_computed(anatomy);
        // A chain through memory needs one address. Stores past the caches to one line after another would wait for the
        // buffers that each line is sent from.
        let combined = is_non_temporal_store(&anatomy.sample);
        let spread = on_memory && stores && self.from.place != Place::Memory && !combined;
        // The value has to be back where it began when the period ends, and so has all that rotates.
        let mut turns: Vec<usize> = slots.rotating.iter().map(|(_, pool)| pool.len()).collect();
        turns.extend([slots.own.len().max(1), if spread { ADDRESSES } else { 1 }]);
        let copies = turns.into_iter().fold(1, least_common_multiple);
        let (mut period, mut turn) = (Vec::new(), 0);
        for copy in 0..copies {
            let mut assignment = slots.at(copy, slot(self.from.place), slot(self.to.place));
            if on_memory && stores {
                assignment.displacement = ASIDE;
            }
            if spread {
                let places = if self.alternating.is_some() { 2 } else { 1 };
                assignment.displacement += places * STRIDE * (copy % ADDRESSES) as i32;
            }
            if let Some([base, _]) = self.alternating.filter(|_| self.from.place == Place::Memory) {
                assignment = assignment.with(Slot::Base, base);
            }
            self.turn(&assignment, &mut period)?;
            if copy == 0 {
                turn = period.len();
            }
        }
        // The loop's counter changes all flags but the carry: the value goes round its end in a register.
        if self.links.last() == Some(&links::COMPARE) {
            period.rotate_right(1);
        }
        if let Some([one, other]) = self.alternating {
            let change = Instruction::with2(Code::Xchg_rm64_r64, general(one), general(other)).ok()?;
            period.insert(0, change);
            turn += 1;
        }
        let init = self.init(&slots)?;
        Some(Chain { links: self.links.to_vec(), period, copies, init, turn })
    }

    /// Chooses registers for all slots.
    fn slots(&mut self) -> Option<Slots> {
        let anatomy = self.anatomy;
        let (input, output) = (slot(self.from.place), slot(self.to.place));
        let direct = self.links.is_empty();
        let chased = direct && is_address(anatomy, self.from.place);
        let passed = direct && input.is_some() && output.is_some() && input != output;
        let mut slots = Slots { fixed: Assignment::default(), rotating: Vec::new(), own: Vec::new() };
        if self.registers == Registers::Same || self.links.iter().any(Link::squares_in_place) {
            return self.same_register();
        }
        if passed {
            let count = if chased { 1 } else { ROTATION };
            slots.own = self.allocator.rotation(anatomy.bank(self.to.place), count)?;
            if slots.own.len() < 2 && !chased {
                return None;
            }
        }
        for slot in anatomy.slots() {
            let bank = anatomy.bank(Place::Slot(slot));
            let is_base = is_address(anatomy, Place::Slot(slot)) && !chased;
            let travels = passed && (input == Some(slot) || output == Some(slot));
            if is_base {
                slots.fixed = slots.fixed.with(slot, self.allocator.base());
            } else if bank == Bank::Other || travels {
                continue;
            } else if input == Some(slot) && bank == Bank::Vector {
                // VEX links reach the lower registers only.
                slots.fixed = slots.fixed.with(slot, self.allocator.rotation(bank, 1)?[0]);
            } else if input == Some(slot) || !anatomy.writes(Place::Slot(slot)) {
                slots.fixed = slots.fixed.with(slot, self.allocator.constant(bank)?);
            } else {
                slots.rotating.push((slot, self.allocator.rotation(bank, OTHERS)?));
            }
        }
        Some(slots)
    }

    fn same_register(&mut self) -> Option<Slots> {
        let anatomy = self.anatomy;
        let mut slots = Slots { fixed: Assignment::default(), rotating: Vec::new(), own: Vec::new() };
        let bank = anatomy.bank(self.to.place);
        let one = self.allocator.rotation(bank, 1)?[0];
        for slot in anatomy.slots() {
            let own = anatomy.bank(Place::Slot(slot));
            let register = match own {
                _ if is_address(anatomy, Place::Slot(slot)) => self.allocator.base(),
                own if own == bank => one,
                own => self.allocator.constant(own)?,
            };
            slots.fixed = slots.fixed.with(slot, register);
        }
        Some(slots)
    }

    fn init(&self, slots: &Slots) -> Option<Vec<Instruction>> {
        let base = general(self.allocator.base());
        let copy = |to: Register, from: Register| Instruction::with2(Code::Mov_r64_rm64, to, from).ok();
        let mut init = Vec::new();
        for (register, constant) in &self.restored {
            init.push(copy(general(*constant), *register)?);
        }
        if let Some(zero) = self.zero {
            let low = Register::EAX + u32::from(zero);
            init.push(Instruction::with2(Code::Xor_r32_rm32, low, low).ok()?);
        }
        if let Some(zero) = self.zero_vector {
            let register = Register::XMM0 + u32::from(zero);
            init.push(
                Instruction::with3(Code::VEX_Vpxor_xmm_xmm_xmmm128, register, register, register).ok()?,
            );
        }
        init.extend(gather::init(self.anatomy, &slots.fixed));
        if let Some([one, other]) = self.alternating {
            init.extend(computed_copy(general(one), base));
            let next = MemoryOperand::with_base_displ(base, STRIDE.into());
            init.push(Instruction::with2(Code::Lea_r64_m, general(other), next).ok()?);
        }
        if let Some(operand) = settings::of(self.anatomy.code()).pointer {
            init.push(copy(general(slots.fixed.get(Slot::Operand(operand - 1))?), base)?);
        }
        if self.links.is_empty() && is_address(self.anatomy, self.from.place) {
            init.push(Instruction::with2(Code::Mov_rm64_r64, MemoryOperand::with_base(base), base).ok()?);
            init.push(copy(general(*slots.own.first()?), base)?);
        }
        Some(init)
    }

    /// One instance and the links after it; two where both must store.
    fn turn(&self, assignment: &Assignment, into: &mut Vec<Instruction>) -> Option<()> {
        self.instance(assignment, into)?;
        if self.alternating.is_some() && self.to.place == Place::Memory {
            let mut second = *assignment;
            second.displacement += STRIDE;
            self.instance(&second, into)?;
        }
        if let Some((fillers, destination, source)) = self.fillers {
            let filler = fillers.link.instruction(destination, source, self.constant, LinkAddress::default());
            into.extend(std::iter::repeat_n(filler, fillers.count));
        }
        self.links_after(assignment, into)
    }

    /// One instance, and what breaks its other dependencies before it.
    fn instance(&self, assignment: &Assignment, into: &mut Vec<Instruction>) -> Option<()> {
        let anatomy = self.anatomy;
        let own = |register: Register| matches!(self.from.place, Place::Fixed(other) if other.full_register() == register);
        for (register, constant) in self.restored.iter().filter(|(register, _)| !own(*register)) {
            into.push(Instruction::with2(Code::Mov_r64_rm64, *register, general(*constant)).ok()?);
        }
        let reads_flags = anatomy.inputs.iter().any(|port| matches!(port.place, Place::Flags(_)))
            || anatomy.keeps_flags() && self.registers != Registers::FlagsKept;
        let from_flags = matches!(self.from.place, Place::Flags(_));
        let changed = anatomy.flags_modified() != 0 || self.links.iter().any(Link::changes_flags);
        if reads_flags && !from_flags && changed {
            into.push(links::COMPARE.instruction(0, self.constant, self.constant, LinkAddress::default()));
        }
        let (before, after) = balance(&anatomy.sample);
        into.extend(before);
        into.extend(gather::restore(anatomy, assignment));
        into.push(anatomy.instance(assignment)?);
        into.extend(after);
        Some(())
    }

    fn links_after(&self, assignment: &Assignment, into: &mut Vec<Instruction>) -> Option<()> {
        // Where the value is stored for the next instance, or loaded from what this one stored.
        let base = match self.alternating {
            Some([one, _]) if self.from.place != Place::Memory => one,
            Some(_) => self.allocator.base(),
            None => assignment.get(Slot::Base).unwrap_or(self.allocator.base()),
        };
        let address = LinkAddress { base, displacement: assignment.displacement };
        let mut source = number(self.to.place, assignment)?;
        let end = number(self.from.place, assignment)?;
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
                    into.push(link.instruction(destination, source, constant, address));
                    // What an instance changed gets its old value, and the dependency with the next link.
                    if let Some((register, old)) =
                        self.restored.iter().find(|(register, _)| self.is_own(*register))
                    {
                        if register.number() as u8 == source {
                            source = *old;
                        } else {
                            into.push(Instruction::with2(Code::Mov_r64_rm64, *register, general(*old)).ok()?);
                        }
                    }
                    continue;
                }
                links::XOR => {
                    into.push(link.instruction(end, source, constant, address));
                    continue;
                }
                _ => into.push(link.instruction(destination, source, constant, address)),
            }
            if self.alternating.is_some() && link.to == Bank::Memory {
                let second = LinkAddress { displacement: address.displacement + STRIDE, ..address };
                into.push(link.instruction(destination, source, constant, second));
            }
            source = destination;
        }
        Some(())
    }

    fn is_own(&self, register: Register) -> bool {
        is_kept(self.anatomy, self.from.place)
            && matches!(self.from.place, Place::Fixed(other) if other.full_register() == register)
    }
}

impl Slots {
    /// The registers of one instance; `input` and `output` are the slots that the value travels through.
    fn at(&self, copy: usize, input: Option<Slot>, output: Option<Slot>) -> Assignment {
        let mut assignment = self.fixed;
        for (slot, pool) in &self.rotating {
            assignment = assignment.with(*slot, pool[copy % pool.len()]);
        }
        if let (Some(input), Some(output), false) = (input, output, self.own.is_empty()) {
            assignment = assignment.with(input, self.own[copy % self.own.len()]);
            assignment = assignment.with(output, self.own[(copy + 1) % self.own.len()]);
        }
        assignment
    }
}

/// The number of the register that a place is in this instance; 0 for what is none.
fn number(place: Place, assignment: &Assignment) -> Option<u8> {
    match place {
        Place::Slot(slot) => assignment.get(slot),
        Place::Fixed(register) => Some(match HIGH_BYTES.iter().position(|high| *high == register) {
            Some(high) => high as u8,
            None => register.full_register().number() as u8,
        }),
        Place::Flags(_) | Place::Memory => Some(0),
    }
}
