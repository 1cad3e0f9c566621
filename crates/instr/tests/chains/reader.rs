//! Follows values through machine code: which output of one instance reaches which input of a later one.

use crate::ports::{Port, Ports, Resource, reads, writes};
use crate::values::Values;
use iced_x86::RflagsBits;
use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfo, InstructionInfoFactory, Mnemonic, OpAccess, Register,
    UsedMemory,
};
use std::collections::HashMap;
use std::rc::Rc;

/// The instructions that a value went through, by its number in [`Paths`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Path(usize);

/// All paths that a reading met, each once: programs by the hundred thousand have few.
#[derive(Debug)]
pub struct Paths {
    all: Vec<Vec<Mnemonic>>,
    longer: HashMap<(Path, Mnemonic), Path>,
}

impl Default for Paths {
    /// The empty path.
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

/// Where a value came from, and the instructions that it went through since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Origin {
    instance: usize,
    port: Port,
    path: Path,
}

/// Sorted, each once.
type Origins = Rc<[Origin]>;

/// An instance's input takes what an earlier one's output left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The earlier instance's output.
    pub output: Port,
    /// The later one's input.
    pub input: Port,
    /// How many instances later.
    pub distance: usize,
    /// The instructions in between.
    pub path: Path,
    /// The later instance, from 0.
    pub at: usize,
}

/// What was read.
#[derive(Debug, Default)]
pub struct Reading {
    /// Some of them more than once.
    pub edges: Vec<Edge>,
    /// Paths of the edges.
    pub paths: Paths,
    /// Instances that were read.
    pub instances: usize,
    /// Instances whose address is not known to point into an area.
    pub astray: usize,
}

/// Dependencies over more instances than this don't matter.
pub const FAR: usize = 12;
/// No chain has more links for so many instances.
const LONGEST_PATH: usize = 20;
/// Instances that are read.
const INSTANCES: usize = 26;
/// Bytes of what has no size in the database: an area for processor state.
const STATE: i64 = 1024;

struct Stored {
    area: u32,
    offset: i64,
    size: i64,
    /// Somewhere about it: elements that a vector of indexes chooses.
    scattered: bool,
    origins: Origins,
}

/// An instruction with what the database says of it.
struct Step {
    instruction: Instruction,
    info: InstructionInfo,
    ports: Ports,
    /// Whether an instance ends with it, where it belongs to one.
    role: Option<bool>,
}

impl Step {
    /// With equal registers the database answers for the idiom, not for the form of `sample`.
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

pub fn decode(code: &[u8]) -> Vec<Instruction> {
    let instructions: Vec<Instruction> = Decoder::new(64, code, DecoderOptions::NONE).iter().collect();
    assert!(instructions.iter().all(|instruction| !instruction.is_invalid()), "{code:02x?}");
    instructions
}

/// Whether two instructions are of one form, whatever their registers are.
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

/// Which instructions of a period are the instances: the first in each turn that is of the form, or all that are where a
/// turn has an instance in `parts` parts, of which the last ends it.
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

/// Reads init code once, then the period at least twice. An instance has several parts where it stores at two places.
pub fn read(init: &[u8], period: &[u8], sample: &Instruction, copies: usize, parts: usize) -> Result<Reading, String> {
    let period = decode(period);
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
    for instruction in decode(init) {
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
        // What a masked store leaves alone it does not read.
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
                // Two operands that are one register.
                Some(held) if again => *held = [&held[..], &leave(*port)].concat().into(),
                _ => drop(self.held.insert(place, leave(*port))),
            }
        }
        self.held.extend(swapped.into_iter().flatten());
        // The database names registers as they were before a push, and leaves out what is pushed.
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

    /// The loop's DEC, which may come after any period: it leaves the carry flag alone.
    fn count_down(&mut self) {
        self.held.retain(|resource, _| !matches!(resource, Resource::Flag(bit) if 1 << bit != RflagsBits::CF));
    }

    /// Registers of the x87 stack by where they are, not by how far below the top.
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

    /// FXCH leaves each value with its own origins.
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

    /// A value that went through an instruction which is no instance; none where it is too old to matter.
    fn passed(&mut self, origin: Origin, instruction: &Instruction) -> Option<Origin> {
        if self.reading.instances - origin.instance > FAR {
            return None;
        }
        let paths = &mut self.reading.paths;
        // What keeps the x87 stack level is no link.
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

    /// What the latest stores left at a place.
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

/// Whether it is the one idiom that every core knows to depend on nothing: a register's exclusive or with itself.
fn clears(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Xor
        && instruction.op_register(0) == instruction.op_register(1)
        && instruction.op_register(0).size() >= 4
}
