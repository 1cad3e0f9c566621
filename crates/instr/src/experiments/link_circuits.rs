//! Circuits: closed chains of links, in which the last link feeds the first. Their times determine
//! the costs of the links.

use crate::bodies::links::{self, LOADS, Link, LinkAddress, STORES, build_computed_copy};
use crate::bodies::route::STEADY_LINKS;
use crate::forms::form_anatomy::{RegisterBank, encode_instructions};
use iced_x86::{Code, Instruction, MemoryOperand, Register};

/// NOPs per turn of the circuit that measures the core's width.
const NOPS_A_TURN: usize = 8;
/// Registers that a circuit of one kind of link rotates through. With one register, a link could also
/// wait for the register that it overwrites.
const ROTATED_REGISTERS: usize = 3;

/// The number of R14, which holds an address.
const ADDRESS_REGISTER: u8 = 14;
/// Two addresses that are exchanged in each turn of a circuit through memory. The first equals R14.
const FIRST_ADDRESS_REGISTER: u8 = 11;
const SECOND_ADDRESS_REGISTER: u8 = 10;
/// Bytes between the two addresses.
const ADDRESS_DISTANCE: i32 = 64;
const MAIN_ADDRESS: LinkAddress = LinkAddress { base: ADDRESS_REGISTER, displacement: 0 };
const NEXT_ADDRESS: LinkAddress = LinkAddress { base: ADDRESS_REGISTER, displacement: ADDRESS_DISTANCE };
const FIRST_ADDRESS: LinkAddress = LinkAddress { base: FIRST_ADDRESS_REGISTER, displacement: 0 };
const CONSTANT_REGISTER: u8 = 12;
const ZERO_REGISTER: u8 = 13;

/// A circuit: each link reads the register that the previous one wrote, and the first one reads
/// that of the last.
pub(super) struct LinkCircuit {
    pub(super) links: Vec<Link>,
    pub(super) body: Vec<Instruction>,
}

impl LinkCircuit {
    /// NOPs, which measure the core's width. One-byte NOPs would be too dense for buffers of
    /// decoded instructions.
    pub(super) fn nop_circuit() -> LinkCircuit {
        let nop = Instruction::with1(Code::Nop_rm64, Register::RAX).expect("a register");
        LinkCircuit { links: Vec::new(), body: vec![nop; NOPS_A_TURN] }
    }

    /// Moves between general registers. Undisturbed, each takes one core cycle.
    pub(super) fn control_circuit() -> LinkCircuit {
        LinkCircuit::from_links(&[links::FROM_32; ROTATED_REGISTERS])
    }

    /// A value goes from register 0 through others and back to 0. An XOR of a register with itself
    /// would break the dependency.
    fn from_links(links: &[Link]) -> LinkCircuit {
        let mut source = 0;
        let mut body = Vec::new();
        for (index, link) in links.iter().enumerate() {
            let (destination, constant) = match *link {
                links::CLEAR => (source, ZERO_REGISTER),
                _ if index + 1 == links.len() => (0, CONSTANT_REGISTER),
                _ => (index as u8 + 1, CONSTANT_REGISTER),
            };
            body.push(link.build_instruction(destination, source, constant, MAIN_ADDRESS));
            source = destination;
        }
        LinkCircuit { links: links.to_vec(), body }
    }

    /// A circuit through one memory location. With `alternating`, each value is stored at two
    /// locations and loaded from them in turn. This prevents memory renaming.
    fn through_memory(store: Link, load: Link, alternating: bool) -> Option<LinkCircuit> {
        let within = links::find_link_within(load.to, load.name.starts_with('v'))?;
        let mut links = vec![store, load];
        let mut body = vec![store.build_instruction(0, 1, CONSTANT_REGISTER, MAIN_ADDRESS)];
        if alternating {
            let [one, other] =
                [FIRST_ADDRESS_REGISTER, SECOND_ADDRESS_REGISTER].map(|number| Register::RAX + u32::from(number));
            body.insert(0, Instruction::with2(Code::Xchg_rm64_r64, one, other).ok()?);
            body.push(store.build_instruction(0, 1, CONSTANT_REGISTER, NEXT_ADDRESS));
        }
        body.push(load.build_instruction(
            1,
            0,
            CONSTANT_REGISTER,
            if alternating { FIRST_ADDRESS } else { MAIN_ADDRESS },
        ));
        for turn in 0..STEADY_LINKS as u8 {
            // An even number of moves between registers 1 and 2.
            body.push(within.build_instruction(2 - turn % 2, 1 + turn % 2, CONSTANT_REGISTER, MAIN_ADDRESS));
            links.push(within);
        }
        Some(LinkCircuit { links, body })
    }

    /// A circuit from a loaded value back to its address.
    fn through_address(load: Link) -> Option<LinkCircuit> {
        let back: &[Link] = match (load.to, load.name.starts_with('v')) {
            (RegisterBank::General, _) => &[],
            (RegisterBank::Vector, true) => &[links::FROM_VECTOR_VEX],
            (RegisterBank::Vector, false) => &[links::FROM_VECTOR],
            (RegisterBank::Mask, _) => &[links::FROM_MASK],
            (RegisterBank::Mmx, _) => &[links::FROM_MMX],
            _ => return None,
        };
        let links = [&[load], back, &[links::XOR, links::XOR]].concat();
        let mut body = vec![load.build_instruction(
            if load.to == RegisterBank::General { 0 } else { 1 },
            0,
            CONSTANT_REGISTER,
            MAIN_ADDRESS,
        )];
        body.extend(back.iter().map(|link| link.build_instruction(0, 1, CONSTANT_REGISTER, MAIN_ADDRESS)));
        body.extend(
            [links::XOR; 2].map(|link| link.build_instruction(ADDRESS_REGISTER, 0, CONSTANT_REGISTER, MAIN_ADDRESS)),
        );
        Some(LinkCircuit { links, body })
    }
}

/// The circuits whose links are all supported by the CPU.
fn close_circuits<'a>(
    circuits: impl IntoIterator<Item = &'a [Link]>,
    has: &dyn Fn(&[Link]) -> bool,
) -> Vec<LinkCircuit> {
    circuits.into_iter().filter(|links| has(links)).map(LinkCircuit::from_links).collect()
}

/// Circuits within one class of registers.
pub(super) fn list_class_circuits(has: &dyn Fn(&[Link]) -> bool) -> Vec<LinkCircuit> {
    let mut known: Vec<Vec<Link>> = vec![
        vec![links::FROM_32; ROTATED_REGISTERS],
        vec![links::FROM_16; ROTATED_REGISTERS],
        vec![links::FROM_8; ROTATED_REGISTERS],
        vec![links::XOR, links::FROM_32],
        vec![links::FROM_32, links::CLEAR, links::RESTORE],
        vec![links::SHUFFLE; ROTATED_REGISTERS],
        vec![links::SHUFFLE_VEX; ROTATED_REGISTERS],
        vec![links::ZERO_INDICES; ROTATED_REGISTERS],
        vec![links::WITHIN_MASKS; ROTATED_REGISTERS],
        vec![links::WITHIN_MMX; ROTATED_REGISTERS],
    ];
    let squares = links::SQUARES.iter().map(|(.., link)| link);
    known.extend(squares.map(|link| vec![*link; if link.squares_in_place() { 1 } else { ROTATED_REGISTERS }]));
    let selects = links::SELECT.iter().chain([&links::BORROW]);
    known.extend(selects.map(|select| vec![links::COMPARE, *select]));
    close_circuits(known.iter().map(Vec::as_slice), has)
}

/// Circuits of two links between two classes, and of one from a high byte.
pub(super) fn list_two_class_circuits(has: &dyn Fn(&[Link]) -> bool) -> Vec<LinkCircuit> {
    let pairs = [
        [links::TO_VECTOR, links::FROM_VECTOR],
        [links::TO_VECTOR_VEX, links::FROM_VECTOR_VEX],
        [links::TO_MASK, links::FROM_MASK],
        [links::TO_MMX, links::FROM_MMX],
        [links::FROM_HIGH, links::FROM_32],
    ];
    close_circuits(pairs.iter().map(|pair| &pair[..]), has)
}

/// Circuits whose middle link connects two classes that have no pair.
pub(super) fn list_three_class_circuits(has: &dyn Fn(&[Link]) -> bool) -> Vec<LinkCircuit> {
    let threes = [
        [links::TO_VECTOR_VEX, links::VECTOR_TO_MASK, links::FROM_MASK],
        [links::TO_MASK, links::MASK_TO_VECTOR, links::FROM_VECTOR_VEX],
    ];
    close_circuits(threes.iter().map(|three| &three[..]), has)
}

/// Circuits from a loaded value back to its address.
pub(super) fn list_load_circuits(has: &dyn Fn(&[Link]) -> bool) -> Vec<LinkCircuit> {
    LOADS.iter().filter(|load| has(&[**load])).filter_map(|load| LinkCircuit::through_address(*load)).collect()
}

/// Circuits of a store and a load: through one location, and through two in turn.
pub(super) fn list_memory_circuits(has: &dyn Fn(&[Link]) -> bool) -> Vec<[LinkCircuit; 2]> {
    let trips = STORES.iter().zip(&LOADS).filter(|(store, _)| has(&[**store]));
    let close_trip = |(store, load): (&Link, &Link)| {
        let circuit = |alternating| LinkCircuit::through_memory(*store, *load, alternating);
        Some([circuit(false)?, circuit(true)?])
    };
    trips.filter_map(close_trip).collect()
}

/// Init code of a circuit.
pub(super) fn encode_init() -> Vec<u8> {
    let address = Register::RAX + u32::from(ADDRESS_REGISTER);
    let mut init = vec![
        Instruction::with2(Code::Xor_r32_rm32, Register::R13D, Register::R13D).expect("two registers"),
        Instruction::with2(Code::Mov_rm64_r64, MemoryOperand::with_base(address), address).expect("a store"),
    ];
    init.push(Instruction::with2(Code::Mov_r64_rm64, Register::RAX, address).expect("two registers"));
    init.extend(build_computed_copy(Register::RAX + u32::from(FIRST_ADDRESS_REGISTER), address));
    let next = MemoryOperand::with_base_displ(address, ADDRESS_DISTANCE.into());
    init.push(
        Instruction::with2(Code::Lea_r64_m, Register::RAX + u32::from(SECOND_ADDRESS_REGISTER), next)
            .expect("an address"),
    );
    encode_instructions(&init).expect("plain instructions")
}
