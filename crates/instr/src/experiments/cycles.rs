//! Closed cycles of links, from whose times the links' costs follow.

use crate::bodies::links::{self, LOADS, Link, LinkAddress, STORES, computed_copy};
use crate::bodies::route::STEADY;
use crate::forms::operands::{Bank, encode};
use iced_x86::{Code, Instruction, MemoryOperand, Register};

/// NOPs in a turn of the cycle that tells the width.
const NOPS: usize = 8;
/// Registers that a cycle of one link goes through: in one alone, a link might wait for what it overwrites too.
const THREE: usize = 3;

/// A general register by number, an address in R14.
const ADDRESS: u8 = 14;
/// Two addresses that change places with each turn of a cycle through memory, the first of which is also in R14.
const ONE_ADDRESS: u8 = 11;
const OTHER_ADDRESS: u8 = 10;
/// Bytes between them.
const APART: i32 = 64;
const AT: LinkAddress = LinkAddress { base: ADDRESS, displacement: 0 };
const NEXT_AT: LinkAddress = LinkAddress { base: ADDRESS, displacement: APART };
const ONE_AT: LinkAddress = LinkAddress { base: ONE_ADDRESS, displacement: 0 };
const CONSTANT: u8 = 12;
const ZERO: u8 = 13;

/// A closed cycle of links: each reads what the one before wrote.
pub(super) struct Cycle {
    pub(super) links: Vec<Link>,
    pub(super) body: Vec<Instruction>,
}

impl Cycle {
    /// NOPs, which tell the width of the core. One byte each would be so dense that buffers of decoded instructions can't
    /// keep up.
    pub(super) fn nops() -> Cycle {
        let nop = Instruction::with1(Code::Nop_rm64, Register::RAX).expect("a register");
        Cycle { links: Vec::new(), body: vec![nop; NOPS] }
    }

    /// Moves within general registers, of which each takes one core cycle wherever nothing disturbs them.
    pub(super) fn control() -> Cycle {
        Cycle::of(&[links::FROM_32; THREE])
    }

    /// The value goes from register 0 on through others, and in the end back to 0: an XOR of a register with itself
    /// would depend on nothing.
    fn of(links: &[Link]) -> Cycle {
        let mut source = 0;
        let mut body = Vec::new();
        for (index, link) in links.iter().enumerate() {
            let (destination, constant) = match *link {
                links::CLEAR => (source, ZERO),
                _ if index + 1 == links.len() => (0, CONSTANT),
                _ => (index as u8 + 1, CONSTANT),
            };
            body.push(link.instruction(destination, source, constant, AT));
            source = destination;
        }
        Cycle { links: links.to_vec(), body }
    }

    /// Through memory at one place; or stored at two and loaded from one and the other in turn, so that no core takes the
    /// store's register for the load.
    fn through_memory(store: Link, load: Link, alternating: bool) -> Option<Cycle> {
        let within = links::within(load.to, load.name.starts_with('v'))?;
        let mut links = vec![store, load];
        let mut body = vec![store.instruction(0, 1, CONSTANT, AT)];
        if alternating {
            let [one, other] = [ONE_ADDRESS, OTHER_ADDRESS].map(|number| Register::RAX + u32::from(number));
            body.insert(0, Instruction::with2(Code::Xchg_rm64_r64, one, other).ok()?);
            body.push(store.instruction(0, 1, CONSTANT, NEXT_AT));
        }
        body.push(load.instruction(1, 0, CONSTANT, if alternating { ONE_AT } else { AT }));
        for turn in 0..STEADY as u8 {
            // From register 1 to 2 and back, an even number of times.
            body.push(within.instruction(2 - turn % 2, 1 + turn % 2, CONSTANT, AT));
            links.push(within);
        }
        Some(Cycle { links, body })
    }

    /// From a loaded value back to its address.
    fn address(load: Link) -> Option<Cycle> {
        let back: &[Link] = match (load.to, load.name.starts_with('v')) {
            (Bank::General, _) => &[],
            (Bank::Vector, true) => &[links::FROM_VECTOR_VEX],
            (Bank::Vector, false) => &[links::FROM_VECTOR],
            (Bank::Mask, _) => &[links::FROM_MASK],
            (Bank::Mmx, _) => &[links::FROM_MMX],
            _ => return None,
        };
        let links = [&[load], back, &[links::XOR, links::XOR]].concat();
        let mut body = vec![load.instruction(if load.to == Bank::General { 0 } else { 1 }, 0, CONSTANT, AT)];
        body.extend(back.iter().map(|link| link.instruction(0, 1, CONSTANT, AT)));
        body.extend([links::XOR; 2].map(|link| link.instruction(ADDRESS, 0, CONSTANT, AT)));
        Some(Cycle { links, body })
    }
}

/// Those cycles that the CPU has all links of.
fn closed<'a>(cycles: impl IntoIterator<Item = &'a [Link]>, has: &dyn Fn(&[Link]) -> bool) -> Vec<Cycle> {
    cycles.into_iter().filter(|links| has(links)).map(Cycle::of).collect()
}

/// Cycles within one class of registers.
pub(super) fn within(has: &dyn Fn(&[Link]) -> bool) -> Vec<Cycle> {
    let mut known: Vec<Vec<Link>> = vec![
        vec![links::FROM_32; THREE],
        vec![links::FROM_16; THREE],
        vec![links::FROM_8; THREE],
        vec![links::XOR, links::FROM_32],
        vec![links::FROM_32, links::CLEAR, links::RESTORE],
        vec![links::SHUFFLE; THREE],
        vec![links::SHUFFLE_VEX; THREE],
        vec![links::ZERO_INDICES; THREE],
        vec![links::WITHIN_MASKS; THREE],
        vec![links::WITHIN_MMX; THREE],
    ];
    let squares = links::SQUARES.iter().map(|(.., link)| link);
    known.extend(squares.map(|link| vec![*link; if link.squares_in_place() { 1 } else { THREE }]));
    let selects = links::SELECT.iter().chain([&links::BORROW]);
    known.extend(selects.map(|select| vec![links::COMPARE, *select]));
    closed(known.iter().map(Vec::as_slice), has)
}

/// Cycles of two links between two classes, and of one from the high byte of a register.
pub(super) fn there_and_back(has: &dyn Fn(&[Link]) -> bool) -> Vec<Cycle> {
    let pairs = [
        [links::TO_VECTOR, links::FROM_VECTOR],
        [links::TO_VECTOR_VEX, links::FROM_VECTOR_VEX],
        [links::TO_MASK, links::FROM_MASK],
        [links::TO_MMX, links::FROM_MMX],
        [links::FROM_HIGH, links::FROM_32],
    ];
    closed(pairs.iter().map(|pair| &pair[..]), has)
}

/// Cycles whose middle link is between two classes without a pair of their own.
pub(super) fn over_a_third(has: &dyn Fn(&[Link]) -> bool) -> Vec<Cycle> {
    let threes = [
        [links::TO_VECTOR_VEX, links::VECTOR_TO_MASK, links::FROM_MASK],
        [links::TO_MASK, links::MASK_TO_VECTOR, links::FROM_VECTOR_VEX],
    ];
    closed(threes.iter().map(|three| &three[..]), has)
}

/// Cycles from a loaded value back to its address.
pub(super) fn loads(has: &dyn Fn(&[Link]) -> bool) -> Vec<Cycle> {
    LOADS.iter().filter(|load| has(&[**load])).filter_map(|load| Cycle::address(*load)).collect()
}

/// Cycles of a store and a load: through one place, and through two in turn.
pub(super) fn trips(has: &dyn Fn(&[Link]) -> bool) -> Vec<[Cycle; 2]> {
    let trips = STORES.iter().zip(&LOADS).filter(|(store, _)| has(&[**store]));
    let ways = |(store, load): (&Link, &Link)| {
        let one = |alternating| Cycle::through_memory(*store, *load, alternating);
        Some([one(false)?, one(true)?])
    };
    trips.filter_map(ways).collect()
}

/// What runs before a cycle.
pub(super) fn init() -> Vec<u8> {
    let address = Register::RAX + u32::from(ADDRESS);
    let mut init = vec![
        Instruction::with2(Code::Xor_r32_rm32, Register::R13D, Register::R13D).expect("two registers"),
        Instruction::with2(Code::Mov_rm64_r64, MemoryOperand::with_base(address), address).expect("a store"),
    ];
    init.push(Instruction::with2(Code::Mov_r64_rm64, Register::RAX, address).expect("two registers"));
    init.extend(computed_copy(Register::RAX + u32::from(ONE_ADDRESS), address));
    let next = MemoryOperand::with_base_displ(address, APART.into());
    init.push(
        Instruction::with2(Code::Lea_r64_m, Register::RAX + u32::from(OTHER_ADDRESS), next)
            .expect("an address"),
    );
    encode(&init).expect("plain instructions")
}
