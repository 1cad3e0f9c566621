//! Follows values through machine code: which output of an instance reaches which input of a later
//! one.

use crate::ports::{Port, Ports, Resource, reads, writes};
use crate::values::Values;
use cyclescope_code::asm::CodeMode;
use iced_x86::RflagsBits;
use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfo, InstructionInfoFactory, Mnemonic, OpAccess, Register,
    UsedMemory,
};
use std::collections::HashMap;
use std::rc::Rc;

/// The instructions that a value passed through, as an index into [`Paths`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Path(usize);

/// All distinct paths of a reading. Hundreds of thousands of programs share few paths.
#[derive(Debug)]
pub struct Paths {
    all: Vec<Vec<Mnemonic>>,
    longer: HashMap<(Path, Mnemonic), Path>,
}

impl Default for Paths {
    /// Starts with the empty path.
    fn default() -> Paths {
        Paths { all: vec![Vec::new()], longer: HashMap::new() }
    }
}

impl Paths {
    fn extend(&mut self, path: Path, by: Mnemonic) -> Path {
        *self.longer.entry((path, by)).or_insert_with(|| {
            let longer = [&self.all[path.0][..], &[by]].concat();
            self.all.push(longer);
            Path(self.all.len() - 1)
        })
    }

    pub fn of(&self, path: Path) -> &[Mnemonic] {
        &self.all[path.0]
    }
}

/// The source of a value, and the instructions that it has passed through since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Origin {
    instance: usize,
    port: Port,
    path: Path,
}

/// Sorted, without duplicates.
type Origins = Rc<[Origin]>;

/// An instance's input that receives an earlier one's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The earlier instance's output.
    pub output: Port,
    /// The later one's input.
    pub input: Port,
    /// Number of instances between them.
    pub distance: usize,
    /// The instructions between them.
    pub path: Path,
    /// The later instance, numbered from 0.
    pub at: usize,
}

/// The result of reading a program.
#[derive(Debug, Default)]
pub struct Reading {
    /// All edges, possibly with duplicates.
    pub edges: Vec<Edge>,
    /// Paths of the edges.
    pub paths: Paths,
    /// Number of instances read.
    pub instances: usize,
    /// Number of instances whose address may point outside any area.
    pub astray: usize,
}

/// Dependencies over more instances than this don't matter.
pub const FAR: usize = 12;
/// No chain has more links over `FAR` instances.
const LONGEST_PATH: usize = 20;
/// Least number of instances to read.
const INSTANCES: usize = 26;
/// Assumed bytes of operands without a size in the database: areas for processor state.
const STATE: i64 = 1024;

struct Stored {
    area: u32,
    offset: i64,
    size: i64,
    /// At unknown places in the area: elements chosen by a vector of indices.
    scattered: bool,
    origins: Origins,
}

/// An instruction with its properties from the database.
struct Step {
    instruction: Instruction,
    info: InstructionInfo,
    ports: Ports,
    /// Whether this is the last part of an instance. `None` if it is not part of one.
    role: Option<bool>,
}

impl Step {
    /// With equal registers, the database describes the idiom. `sample` describes the form.
    fn new(instruction: Instruction, role: Option<bool>, sample: &InstructionInfo) -> Step {
        let info = InstructionInfoFactory::new().info(&instruction).clone();
        let ports = Ports::of(&instruction, &info, if role.is_some() { sample } else { &info });
        Step { instruction, info, ports, role }
    }
}

struct Reader {
    none: Origins,
    values: Values,
    held: HashMap<Resource, Origins>,
    stored: Vec<Stored>,
    top: usize,
    reading: Reading,
}

pub fn decode(code: &[u8], mode: CodeMode) -> Vec<Instruction> {
    let instructions: Vec<Instruction> = Decoder::new(mode.bits(), code, DecoderOptions::NONE).iter().collect();
    assert!(instructions.iter().all(|instruction| !instruction.is_invalid()), "{code:02x?}");
    instructions
}

/// Whether two instructions have the same form, with any registers.
fn alike(one: &Instruction, other: &Instruction) -> bool {
    let is_high = |register: Register| (Register::AH..=Register::BH).contains(&register);
    one.code() == other.code()
        && one.has_op_mask() == other.has_op_mask()
        && one.zeroing_masking() == other.zeroing_masking()
        && one.is_broadcast() == other.is_broadcast()
        && (0..one.op_count()).all(|operand| {
            one.op_kind(operand) == other.op_kind(operand)
                && is_high(one.op_register(operand)) == is_high(other.op_register(operand))
        })
}

/// Whether it neither reads nor writes anything.
fn is_idle(sample: &Instruction) -> bool {
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(sample);
    let ports = Ports::of(sample, info, info);
    ports.inputs.is_empty() && ports.outputs.is_empty() && info.used_memory().is_empty()
}

/// Finds the instances in a period: in each turn, the first `parts` instructions of the form. The
/// last of them ends the instance.
fn instances(
    period: &[Instruction],
    sample: &Instruction,
    copies: usize,
    parts: usize,
) -> Result<Vec<Option<bool>>, String> {
    let of_form: Vec<usize> = (0..period.len()).filter(|at| alike(&period[*at], sample)).collect();
    if of_form.is_empty() || !of_form.len().is_multiple_of(copies) {
        return Err(format!("{} instructions of the form for {copies} instances", of_form.len()));
    }
    let turns: Vec<&[usize]> = of_form.chunks(of_form.len() / copies).map(|turn| &turn[..parts]).collect();
    let role = |at: usize| {
        let turn = turns.iter().find(|turn| turn.contains(&at))?;
        Some(turn.last() == Some(&at))
    };
    Ok((0..period.len()).map(role).collect())
}

/// Reads init code once, then the period at least twice. An instance has several parts if it stores
/// at two places.
pub fn read(init: &[u8], period: &[u8], sample: &Instruction, copies: usize, parts: usize) -> Result<Reading, String> {
    let mode = CodeMode::from_instruction(sample);
    let period = decode(period, mode);
    if is_idle(sample) {
        return Ok(Reading::default());
    }
    let roles = instances(&period, sample, copies, parts)?;
    let sample = InstructionInfoFactory::new().info(sample).clone();
    let mut reader = Reader {
        none: Origins::from([]),
        values: Values::default(),
        held: HashMap::new(),
        stored: Vec::new(),
        top: 0,
        reading: Reading::default(),
    };
    for instruction in decode(init, mode) {
        reader.step(&Step::new(instruction, None, &sample));
    }
    reader.held.clear();
    reader.stored.clear();
    let steps: Vec<Step> =
        period.into_iter().zip(roles).map(|(instruction, role)| Step::new(instruction, role, &sample)).collect();
    let repeats = INSTANCES.div_ceil(copies).max(2);
    for _ in 0..repeats {
        steps.iter().for_each(|step| reader.step(step));
        reader.count_down();
    }
    Ok(reader.reading)
}

impl Reader {
    fn step(&mut self, step: &Step) {
        let Step { instruction, info, ports, role } = step;
        let is_instance = role.is_some();
        let mut inputs: Vec<(Port, Origins)> = Vec::new();
        if is_instance || !clears(instruction) {
            for (port, resource) in &ports.inputs {
                let place = self.place(*resource);
                inputs.push((*port, self.held.get(&place).unwrap_or(&self.none).clone()));
            }
        }
        // Masked stores don't read the elements that they keep.
        let loads =
            info.used_memory().iter().filter(|memory| memory.access() != OpAccess::CondWrite && reads(memory.access()));
        inputs.extend(loads.map(|memory| (Port::Data, self.load(memory))));
        let stores: Vec<UsedMemory> =
            info.used_memory().iter().filter(|memory| writes(memory.access())).copied().collect();
        if is_instance {
            self.arrive(&inputs);
            let used =
                info.used_memory().iter().filter(|memory| memory.base() != Register::None && !memory.base().is_ip());
            self.reading.astray += used.filter(|memory| self.where_to(memory).is_none()).count();
        }
        let mut through = self.none.clone();
        if !is_instance && inputs.iter().any(|(_, origins)| !origins.is_empty()) {
            let all = inputs.iter().flat_map(|(_, origins)| origins.iter());
            let mut passed: Vec<Origin> = all.filter_map(|origin| self.passed(*origin, instruction)).collect();
            passed.sort_unstable();
            passed.dedup();
            through = passed.into();
        }
        let number = self.reading.instances;
        let leave = |port: Port| match is_instance {
            true => Origins::from([Origin { instance: number, port, path: Path::default() }]),
            false => through.clone(),
        };
        let turned = instruction.fpu_stack_increment_info().increment();
        let swapped = if is_instance { None } else { self.swapped(instruction) };
        for (at, (port, resource)) in ports.outputs.iter().enumerate() {
            let again = ports.outputs[..at].iter().any(|(_, other)| other == resource);
            let place = self.place(*resource);
            match self.held.get_mut(&place) {
                // Two operands may be one register.
                Some(held) if again => *held = [&held[..], &leave(*port)].concat().into(),
                _ => drop(self.held.insert(place, leave(*port))),
            }
        }
        self.held.extend(swapped.into_iter().flatten());
        // The database names registers as before a push, and omits the pushed one.
        if turned < 0 {
            self.turn(turned);
            let top = self.place(Resource::Register(Register::ST0));
            self.held.insert(top, leave(Port::Implied(Register::ST0)));
        }
        if turned > 0 {
            self.turn(turned);
        }
        self.store(&stores, &leave(Port::Data));
        let written: Vec<Register> = ports
            .outputs
            .iter()
            .filter_map(|(_, resource)| match resource {
                Resource::Register(register) => Some(*register),
                Resource::Flag(_) => None,
            })
            .collect();
        let places: Vec<(u32, i64)> = stores.iter().filter_map(|memory| self.where_to(memory)).collect();
        self.values.step(instruction, &written, &places);
        self.reading.instances += usize::from(*role == Some(true));
    }

    /// The loop's DEC, which may follow any period. It keeps the carry flag.
    fn count_down(&mut self) {
        self.held.retain(|resource, _| !matches!(resource, Resource::Flag(bit) if 1 << bit != RflagsBits::CF));
    }

    /// Identifies x87 registers by position, not by distance from the top.
    fn place(&self, resource: Resource) -> Resource {
        match resource {
            Resource::Register(register) if register.is_st() => {
                Resource::Register(Register::ST0 + ((register.number() + self.top) % 8) as u32)
            }
            other => other,
        }
    }

    fn turn(&mut self, by: i32) {
        self.top = (self.top as i32 + by).rem_euclid(8) as usize;
    }

    /// FXCH exchanges the origins of both values.
    fn swapped(&self, instruction: &Instruction) -> Option<[(Resource, Origins); 2]> {
        let places = [0, 1].map(|operand| self.place(Resource::Register(instruction.op_register(operand))));
        let held = |place| self.held.get(&place).unwrap_or(&self.none).clone();
        (instruction.mnemonic() == Mnemonic::Fxch).then(|| [(places[0], held(places[1])), (places[1], held(places[0]))])
    }

    fn arrive(&mut self, inputs: &[(Port, Origins)]) {
        let at = self.reading.instances;
        for (port, origins) in inputs {
            for origin in origins.iter().filter(|origin| origin.instance < at) {
                let edge =
                    Edge { output: origin.port, input: *port, distance: at - origin.instance, path: origin.path, at };
                self.reading.edges.push(edge);
            }
        }
    }

    /// A value after an instruction that is not an instance. `None` if it is too old to matter.
    fn passed(&mut self, origin: Origin, instruction: &Instruction) -> Option<Origin> {
        if self.reading.instances - origin.instance > FAR {
            return None;
        }
        let paths = &mut self.reading.paths;
        // Instructions that balance the x87 stack are not links.
        let path = match instruction.mnemonic() {
            Mnemonic::Fld | Mnemonic::Fstp => origin.path,
            mnemonic => paths.extend(origin.path, mnemonic),
        };
        (paths.of(path).len() <= LONGEST_PATH).then_some(Origin { path, ..origin })
    }

    fn where_to(&self, memory: &UsedMemory) -> Option<(u32, i64)> {
        self.values.address(memory.base(), memory.index(), memory.displacement() as i64)
    }

    fn store(&mut self, stores: &[UsedMemory], origins: &Origins) {
        for memory in stores {
            let Some((area, offset)) = self.where_to(memory) else { continue };
            let scattered = memory.index().is_vector_register();
            self.stored.push(Stored { area, offset, size: size(memory), scattered, origins: origins.clone() });
        }
    }

    /// The origins that the latest stores left at an address.
    fn load(&self, memory: &UsedMemory) -> Origins {
        let mut found = Vec::new();
        let Some((area, offset)) = self.where_to(memory) else { return self.none.clone() };
        let (size, gathered) = (size(memory), memory.index().is_vector_register());
        for stored in self.stored.iter().rev().filter(|stored| stored.area == area) {
            let apart = stored.offset + stored.size <= offset || offset + size <= stored.offset;
            if apart && !gathered && !stored.scattered {
                continue;
            }
            found.extend_from_slice(&stored.origins);
            if stored.offset <= offset && offset + size <= stored.offset + stored.size && !gathered && !stored.scattered
            {
                break;
            }
        }
        found.into()
    }
}

fn size(memory: &UsedMemory) -> i64 {
    match memory.memory_size().size() as i64 {
        0 => STATE,
        size => size,
    }
}

/// Whether it is an XOR of a register with itself, the one idiom that every core treats as
/// independent.
fn clears(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Xor
        && instruction.op_register(0) == instruction.op_register(1)
        && instruction.op_register(0).size() >= 4
}
