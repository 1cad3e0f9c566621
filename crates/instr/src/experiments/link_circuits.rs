//! Circuits: closed chains of links, in which the last link feeds the first. Their times determine
//! the costs of the links.

use crate::bodies::links::{self, LOADS, Link, LinkAddress, STORES, build_computed_copy};
use crate::bodies::route::STEADY_LINKS;
use crate::forms::form_anatomy::{RegisterBank, encode_instructions};
use cyclescope_code::asm::CodeMode;
use cyclescope_core::machine::features::CpuFeatures;
use iced_x86::{Code, Instruction, MemoryOperand, Register};

/// NOPs per turn of the circuit that measures the core's width.
const NOPS_A_TURN: usize = 8;
/// Registers that a circuit of one kind of link rotates through. With one register, a link could also
/// wait for the register that it overwrites.
const ROTATED_REGISTERS: usize = 3;

/// Bytes between the two addresses of a circuit through memory.
const ADDRESS_DISTANCE: i32 = 64;

/// The registers of circuits besides those of values: 0, 1 and 2.
struct CircuitRegisters {
    /// An address.
    address: u8,
    /// Two addresses that are exchanged in each turn of a circuit through memory. The first equals
    /// `address`.
    exchanged: [u8; 2],
    /// It keeps its value, also as a vector register.
    constant: u8,
    /// Zero in circuits that need it.
    zero: u8,
}

impl CircuitRegisters {
    /// The registers of a mode. Those of 32-bit code have two roles, but one in each circuit.
    fn for_mode(mode: CodeMode) -> CircuitRegisters {
        match mode {
            CodeMode::Bits64 => CircuitRegisters { address: 14, exchanged: [11, 10], constant: 12, zero: 13 },
            CodeMode::Bits32 => CircuitRegisters { address: 3, exchanged: [7, 6], constant: 3, zero: 2 },
        }
    }

    fn main_address(&self) -> LinkAddress {
        LinkAddress { base: self.address, displacement: 0 }
    }

    fn next_address(&self) -> LinkAddress {
        LinkAddress { base: self.address, displacement: ADDRESS_DISTANCE }
    }

    fn first_address(&self) -> LinkAddress {
        LinkAddress { base: self.exchanged[0], displacement: 0 }
    }
}

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
    pub(super) fn control_circuit(mode: CodeMode) -> LinkCircuit {
        LinkCircuit::from_links(mode, &[links::FROM_32; ROTATED_REGISTERS])
    }

    /// A value goes from register 0 through others and back to 0. An XOR of a register with itself
    /// would break the dependency.
    fn from_links(mode: CodeMode, links: &[Link]) -> LinkCircuit {
        let registers = CircuitRegisters::for_mode(mode);
        let mut source = 0;
        let mut body = Vec::new();
        for (index, link) in links.iter().enumerate() {
            let (destination, constant) = match *link {
                links::CLEAR => (source, registers.zero),
                _ if index + 1 == links.len() => (0, registers.constant),
                _ => (index as u8 + 1, registers.constant),
            };
            body.push(link.build_instruction(mode, destination, source, constant, registers.main_address()));
            source = destination;
        }
        LinkCircuit { links: links.to_vec(), body }
    }

    /// A circuit through one memory location. With `alternating`, each value is stored at two
    /// locations and loaded from them in turn. This prevents memory renaming.
    fn through_memory(mode: CodeMode, store: Link, load: Link, alternating: bool) -> Option<LinkCircuit> {
        let registers = CircuitRegisters::for_mode(mode);
        let within = links::find_link_within(load.to, load.is_vex())?;
        let mut links = vec![store, load];
        let mut body = vec![store.build_instruction(mode, 0, 1, registers.constant, registers.main_address())];
        if alternating {
            let [one, other] = registers.exchanged.map(|number| Register::RAX + u32::from(number));
            body.insert(0, Instruction::with2(Code::Xchg_rm64_r64, one, other).ok()?);
            body.push(store.build_instruction(mode, 0, 1, registers.constant, registers.next_address()));
        }
        let loaded = if alternating { registers.first_address() } else { registers.main_address() };
        body.push(load.build_instruction(mode, 1, 0, registers.constant, loaded));
        for turn in 0..STEADY_LINKS as u8 {
            // An even number of moves between registers 1 and 2.
            let (destination, source) = (2 - turn % 2, 1 + turn % 2);
            let address = registers.main_address();
            body.push(within.build_instruction(mode, destination, source, registers.constant, address));
            links.push(within);
        }
        Some(LinkCircuit { links, body })
    }

    /// A circuit from a loaded value back to its address.
    fn through_address(mode: CodeMode, load: Link) -> Option<LinkCircuit> {
        let registers = CircuitRegisters::for_mode(mode);
        let (constant, address) = (registers.constant, registers.main_address());
        let back: &[Link] = match (load.to, load.is_vex()) {
            (RegisterBank::General, _) => &[],
            (RegisterBank::Vector, true) => &[links::FROM_VECTOR_VEX],
            (RegisterBank::Vector, false) => &[links::FROM_VECTOR],
            (RegisterBank::Mask, _) => &[links::FROM_MASK],
            (RegisterBank::Mmx, _) => &[links::FROM_MMX],
            _ => return None,
        };
        let links = [&[load], back, &[links::XOR, links::XOR]].concat();
        let loaded = if load.to == RegisterBank::General { 0 } else { 1 };
        let mut body = vec![load.build_instruction(mode, loaded, 0, constant, address)];
        body.extend(back.iter().map(|link| link.build_instruction(mode, 0, 1, constant, address)));
        body.extend([links::XOR; 2].map(|link| link.build_instruction(mode, registers.address, 0, constant, address)));
        Some(LinkCircuit { links, body })
    }
}

/// The circuits of a mode whose links are all supported by the CPU.
pub(super) struct CircuitList<'a> {
    /// The mode of the code.
    pub(super) mode: CodeMode,
    /// The CPU's features.
    pub(super) features: &'a CpuFeatures,
}

impl CircuitList<'_> {
    fn has(&self, links: &[Link]) -> bool {
        links.iter().all(|link| link.is_available(self.mode, self.features))
    }

    fn close_circuits<'c>(&self, circuits: impl IntoIterator<Item = &'c [Link]>) -> Vec<LinkCircuit> {
        let supported = circuits.into_iter().filter(|links| self.has(links));
        supported.map(|links| LinkCircuit::from_links(self.mode, links)).collect()
    }

    /// Circuits within one class of registers.
    pub(super) fn list_class_circuits(&self) -> Vec<LinkCircuit> {
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
        self.close_circuits(known.iter().map(Vec::as_slice))
    }

    /// Circuits of two links between two classes, and of one from a high byte.
    pub(super) fn list_two_class_circuits(&self) -> Vec<LinkCircuit> {
        let pairs = [
            [links::TO_VECTOR, links::FROM_VECTOR],
            [links::TO_VECTOR_VEX, links::FROM_VECTOR_VEX],
            [links::TO_MASK, links::FROM_MASK],
            [links::TO_MMX, links::FROM_MMX],
            [links::FROM_HIGH, links::FROM_32],
        ];
        self.close_circuits(pairs.iter().map(|pair| &pair[..]))
    }

    /// Circuits whose middle link connects two classes that have no pair.
    pub(super) fn list_three_class_circuits(&self) -> Vec<LinkCircuit> {
        let threes = [
            [links::TO_VECTOR_VEX, links::VECTOR_TO_MASK, links::FROM_MASK],
            [links::TO_MASK, links::MASK_TO_VECTOR, links::FROM_VECTOR_VEX],
        ];
        self.close_circuits(threes.iter().map(|three| &three[..]))
    }

    /// Circuits from a loaded value back to its address.
    pub(super) fn list_load_circuits(&self) -> Vec<LinkCircuit> {
        let supported = LOADS.iter().filter(|load| self.has(&[**load]));
        supported.filter_map(|load| LinkCircuit::through_address(self.mode, *load)).collect()
    }

    /// Circuits of a store and a load: through one location, and through two in turn.
    pub(super) fn list_memory_circuits(&self) -> Vec<[LinkCircuit; 2]> {
        let trips = STORES.iter().zip(&LOADS).filter(|(store, _)| self.has(&[**store]));
        let close_trip = |(store, load): (&Link, &Link)| {
            let circuit = |alternating| LinkCircuit::through_memory(self.mode, *store, *load, alternating);
            Some([circuit(false)?, circuit(true)?])
        };
        trips.filter_map(close_trip).collect()
    }
}

/// Init code of circuits.
pub(super) fn encode_init(mode: CodeMode) -> Vec<u8> {
    let registers = CircuitRegisters::for_mode(mode);
    let general = |number: u8| Register::RAX + u32::from(number);
    let (address, zero) = (general(registers.address), Register::EAX + u32::from(registers.zero));
    let [first, second] = registers.exchanged.map(general);
    let mut init = vec![
        Instruction::with2(Code::Xor_r32_rm32, zero, zero).expect("two registers"),
        Instruction::with2(Code::Mov_rm64_r64, MemoryOperand::with_base(address), address).expect("a store"),
        Instruction::with2(Code::Mov_r64_rm64, Register::RAX, address).expect("two registers"),
    ];
    init.extend(build_computed_copy(first, address));
    let next = MemoryOperand::with_base_displ(address, ADDRESS_DISTANCE.into());
    init.push(Instruction::with2(Code::Lea_r64_m, second, next).expect("an address"));
    encode_instructions(mode, &init).expect("plain instructions")
}
