//! What one form of an instruction costs on the planted machine.
//!
//! Nothing is stored in a table: a form's figures follow from the machine's seed and the form. Some are fixed, since
//! every core has them and chains are built from them: simple integer work and vector logic take one cycle. No
//! latency is below the time in which the form's own µops get through their ports, so that a chain reads latencies.

use super::key::{Constant, FormKey};
use super::kind::{Kind, Nature};
use super::model::CoreModel;
use super::operands::{Operands, Slot};
use super::ports::{LONGEST, PortSets, Work};
use super::regime::Regime;
use cyclescope_core::random::Random;
use iced_x86::{Instruction, Mnemonic, Register};

/// Core cycles that a special constant takes longer.
const SPECIAL: u8 = 2;
/// No dependency between an input and an output.
const NONE: u8 = u8::MAX;

/// When an output is there.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    /// Inputs that it depends on, and the cycles from each.
    pub(super) pairs: Vec<(u8, u8)>,
    /// Cycles from the start of the first µop, which no pair undercuts; none where it needs no µop.
    pub(super) least: Option<u8>,
}

/// A form on the planted machine.
#[derive(Debug, Clone)]
pub(super) struct Form {
    pub(super) operands: Operands,
    pub(super) mnemonic: Mnemonic,
    pub(super) kind: Kind,
    /// Cycles from each input to each output, by output and then input. Memory as an input counts from the arrival
    /// of what was loaded, as an output to the start of the store.
    latency: Vec<u8>,
    /// Cycles to outputs that depend on nothing.
    base: u8,
    /// The same for the pipeline, output by output.
    pub(super) results: Vec<Outcome>,
    /// The input that is memory, where there is a load.
    pub(super) loaded: usize,
    /// µops beside loads and stores; results come from the first.
    pub(super) compute: Vec<Work>,
    /// Loads and stores.
    pub(super) memory: Vec<Work>,
    /// Cycles from an address to what is there.
    pub(super) load: u8,
    /// Cycles from a store's data, and from its address, until it can be forwarded.
    pub(super) store: [u8; 2],
    pub(super) false_dependency: bool,
}

impl Form {
    pub(super) fn derive(model: &CoreModel, sets: &PortSets, instruction: &Instruction) -> Form {
        let key = FormKey::of(instruction);
        let mut operands = Operands::of(instruction);
        let kind = Kind::of(model, &key, instruction, &operands);
        let nature = Nature::of(instruction, &key, &operands, kind);
        let mut random = key.random(model.seed);
        kind.break_dependencies(&mut operands);
        if model.shifts_merge_flags && kind.merges_flags() {
            operands.flags_read |= operands.flags_written;
            add(&mut operands.inputs, Slot::Flags);
        }
        let false_dependency = nature == Nature::General && random.happens(0.04) && may_be_false(&operands);
        if false_dependency {
            operands.inputs.insert(0, Slot::Operand(0));
        }
        let compute = compute(model, sets, nature, &operands, &key, &mut random);
        let memory = memory(sets, &operands, instruction, &key);
        let load = (model.load_latency + if operands.vector { model.vector_load_extra } else { 0 }) as u8;
        let store = (model.store_latency + u32::from(operands.vector)) as u8;
        let mut form = Form {
            latency: vec![NONE; operands.inputs.len() * operands.outputs.len()],
            base: 0,
            results: Vec::new(),
            loaded: operands.inputs.iter().position(|slot| *slot == Slot::Memory).unwrap_or(0),
            store: [store, store + u8::from(random.happens(0.2))],
            load: load + u8::from(nature == Nature::General && random.happens(0.1)),
            operands,
            mnemonic: instruction.mnemonic(),
            kind,
            compute,
            memory,
            false_dependency,
        };
        form.plant(model, sets, nature, &key, &mut random);
        if nature == Nature::General && is_special(model, &key) {
            form.burden();
        }
        form.results = (0..form.operands.outputs.len()).map(|output| form.outcome(output)).collect();
        form
    }

    fn plant(
        &mut self,
        model: &CoreModel,
        sets: &PortSets,
        nature: Nature,
        key: &FormKey,
        random: &mut Random,
    ) {
        let base = nature.latency(model, self.operands.vector, random);
        let base = match (nature, self.kind) {
            (_, Kind::Serializing) => model.serialize_latency as u8,
            (Nature::Free | Nature::Transfer, _) => base,
            // Where several µops keep the ports busy, the loop's counter and a chain's links need some room too.
            _ => base.max(self.throughput(model, sets).ceil() as u8 + u8::from(self.compute.len() > 1)),
        };
        self.base = base;
        let general = nature == Nature::General;
        let uneven = general && random.happens(0.25);
        let other = if general && key.same() && Random::new(random.bits()).happens(0.1) { 1 } else { 0 };
        let (inputs, outputs) = (self.operands.inputs.clone(), self.operands.outputs.clone());
        let mut uneven_random = Random::new(random.bits());
        for (o, output) in outputs.iter().enumerate() {
            for (i, input) in inputs.iter().enumerate() {
                let more = if uneven { uneven_random.below(3) as u8 } else { 0 };
                let cell = match (self.updated(*input), self.updated(*output)) {
                    (None, None) if !self.is_address(*input) => base + more + other,
                    (Some(from), Some(to)) if from == to => {
                        u8::from(!model.stack_engine || to != Register::RSP)
                    }
                    _ => NONE,
                };
                self.latency[o * inputs.len() + i] = cell;
            }
        }
    }

    /// Makes it slower: its first µop keeps its port for longer, and all that depends on it comes later.
    fn burden(&mut self) {
        let Some(first) = self.compute.first_mut() else { return };
        first.cycles += SPECIAL;
        self.base += SPECIAL;
        self.latency.iter_mut().filter(|latency| **latency != NONE).for_each(|latency| *latency += SPECIAL);
    }

    fn updated(&self, slot: Slot) -> Option<Register> {
        match slot {
            Slot::Implicit(register) if self.operands.updates.contains(&register) => Some(register),
            _ => None,
        }
    }

    /// Whether it is the address of a load or store, which have figures of their own.
    fn is_address(&self, slot: Slot) -> bool {
        slot == Slot::Address && self.operands.loads + self.operands.stores > 0
    }

    fn outcome(&self, output: usize) -> Outcome {
        let cells = (0..).zip(self.latencies(output)).filter(|(_, latency)| **latency != NONE);
        let pairs: Vec<(u8, u8)> = cells.map(|(input, latency)| (input, *latency)).collect();
        let least = pairs.iter().map(|(_, latency)| *latency).min().unwrap_or(self.base);
        let updates = self.updated(self.operands.outputs[output]).is_some();
        Outcome { pairs, least: (!updates && !self.compute.is_empty()).then_some(least) }
    }

    /// Latencies to an output, one for each input.
    fn latencies(&self, output: usize) -> &[u8] {
        let inputs = self.operands.inputs.len();
        &self.latency[output * inputs..(output + 1) * inputs]
    }

    /// Cycles from one slot to another, through a load that hits the cache or a store that is forwarded.
    pub(super) fn between(&self, model: &CoreModel, from: Slot, to: Slot) -> Option<u32> {
        let output = self.operands.outputs.iter().position(|slot| *slot == to)?;
        let cell = |slot: Slot| {
            let input = self.operands.inputs.iter().position(|input| *input == slot)?;
            let latency = self.latencies(output)[input];
            (latency != NONE).then_some(u32::from(latency))
        };
        let store = if to == Slot::Memory { u32::from(self.store[0]) } else { 0 };
        match from {
            Slot::Address if self.is_address(from) && self.operands.loads > 0 => {
                Some(u32::from(self.load) + cell(Slot::Memory)? + store)
            }
            Slot::Address if self.is_address(from) => (to == Slot::Memory).then_some(self.store[1].into()),
            Slot::Memory => Some(model.forward_latency + cell(from)? + store),
            _ => Some(cell(from)? + store),
        }
    }

    /// Whether it is of the class that a regime is about, and waits in the scheduler at all.
    pub(super) fn is_in(&self, regime: &Regime) -> bool {
        !self.compute.is_empty() && regime.has(self.mnemonic, self.operands.vector)
    }

    pub(super) fn uops(&self) -> u32 {
        (self.compute.len() + self.memory.len()).max(1) as u32
    }

    pub(super) fn throughput(&self, model: &CoreModel, sets: &PortSets) -> f64 {
        let work: Vec<Work> = self.compute.iter().chain(&self.memory).copied().collect();
        let issue = f64::from(self.uops()) / f64::from(model.width);
        match self.kind {
            Kind::Serializing => f64::from(model.serialize_latency),
            _ => issue.max(sets.bound(&work)),
        }
    }
}

/// Whether a form costs more with this constant than with others: one of the special ones, another for each form.
fn is_special(model: &CoreModel, key: &FormKey) -> bool {
    let Some(every) = model.special_constants else { return false };
    let mut random = Random::new(key.general().random(model.seed).bits());
    let chosen = random.below(every as usize) == 0;
    let special = [Constant::Zero, Constant::One, Constant::Ones];
    chosen && special[random.below(special.len())..].contains(&key.constant())
}

fn add(slots: &mut Vec<Slot>, slot: Slot) {
    if !slots.contains(&slot) {
        slots.push(slot);
    }
}

/// Whether the first operand is written whole and not read.
fn may_be_false(operands: &Operands) -> bool {
    let first = Slot::Operand(0);
    operands.outputs.contains(&first) && !operands.inputs.contains(&first)
}

fn memory(sets: &PortSets, operands: &Operands, instruction: &Instruction, key: &FormKey) -> Vec<Work> {
    // A gather or scatter accesses memory for each element; four represent every number of elements.
    let each = if instruction.is_vsib() { 4 } else { 1 };
    let load = Work { set: sets.load, cycles: 1 };
    let store = Work { set: sets.store, cycles: if key.locked() { LONGEST as u8 } else { 1 } };
    let loads = std::iter::repeat_n(load, operands.loads * each);
    loads.chain(std::iter::repeat_n(store, operands.stores * each)).collect()
}

/// µops beside loads and stores.
fn compute(
    model: &CoreModel,
    sets: &PortSets,
    nature: Nature,
    operands: &Operands,
    key: &FormKey,
    random: &mut Random,
) -> Vec<Work> {
    let mut work = Vec::new();
    let all = if operands.vector { &sets.vector } else { &sets.integer };
    let one = |set: u8| Work { set, cycles: 1 };
    match nature {
        Nature::Free | Nature::Transfer => {}
        Nature::Simple => work.push(one(all[0])),
        Nature::Multiply => work.push(one(*sets.integer.last().expect("single ports are sets"))),
        Nature::Branch => work.push(one(sets.branch)),
        Nature::Divide => {
            let set = if operands.vector { sets.vector_divider } else { sets.integer_divider };
            work.push(Work { set, cycles: 2 + random.below(LONGEST - 1) as u8 });
            work.push(one(pick(all, random)));
        }
        Nature::General => {
            let count = if key.repeated() { 8 } else { [1, 1, 1, 1, 1, 1, 1, 2, 2, 4][random.below(10)] };
            work.extend((0..count).map(|_| one(pick(all, random))));
        }
    }
    let updates = operands.updates.iter().filter(|updated| !model.stack_engine || **updated != Register::RSP);
    work.extend(updates.map(|_| one(sets.integer[0])));
    work
}

/// All ports of a kind in two of five forms, halves and single ports in the others.
fn pick(sets: &[u8], random: &mut Random) -> u8 {
    if random.happens(0.4) { sets[0] } else { sets[random.below(sets.len())] }
}
