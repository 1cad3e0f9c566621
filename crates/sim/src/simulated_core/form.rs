//! The cost of one instruction form on the simulated machine.
//!
//! No table stores it: a form's figures follow from the machine's seed and the form. Some are
//! fixed, because every core has them and chains are built from them: simple integer work and
//! vector logic take one cycle. No latency is below the time that the form's own µops need for
//! their ports, so that a chain measures latencies.

use super::form_key::{FormKey, ImmediateClass};
use super::model::CoreModel;
use super::operands::{SimulatedOperands, SimulatedSlot};
use super::port_map::SimulatedPortClass;
use super::port_mask::MAX_WORK_CYCLES;
use super::ports::{PortSets, PortWork};
use super::regime::SimulatedRegime;
use super::rename_treatment::{RenameTreatment, SimulatedWorkClass};
use cyclescope_core::random::Random;
use iced_x86::{Instruction, Mnemonic, Register};

/// Additional core cycles of a special constant.
const SPECIAL_CONSTANT_CYCLES: u8 = 2;
/// No dependency between an input and an output.
const NO_DEPENDENCY: u8 = u8::MAX;

/// When an output is ready.
#[derive(Debug, Clone)]
pub(super) struct OutputTiming {
    /// Inputs that it depends on, with the cycles from each.
    pub(super) pairs: Vec<(u8, u8)>,
    /// Smallest number of cycles from the start of the first µop; `None` if it needs no µop.
    pub(super) least: Option<u8>,
}

/// A form on the simulated machine.
#[derive(Debug, Clone)]
pub(super) struct SimulatedForm {
    pub(super) operands: SimulatedOperands,
    pub(super) mnemonic: Mnemonic,
    pub(super) kind: RenameTreatment,
    /// Cycles from each input to each output, by output and then input. As an input, memory counts
    /// from the arrival of the loaded data; as an output, to the start of the store.
    latency: Vec<u8>,
    /// Cycles to outputs without a dependency.
    base: u8,
    /// The same for the pipeline, output by output.
    pub(super) results: Vec<OutputTiming>,
    /// The index of the memory input, if the form loads.
    pub(super) loaded: usize,
    /// µops other than loads and stores; results come from the first.
    pub(super) compute: Vec<PortWork>,
    /// Loads and stores.
    pub(super) memory: Vec<PortWork>,
    /// Slots of the µops that compute, if their number is another.
    compute_slots: Option<u32>,
    /// Cycles from an address to the loaded data.
    pub(super) load: u8,
    /// Cycles from a store's data, and from its address, until it can be forwarded.
    pub(super) store: [u8; 2],
    pub(super) false_dependency: bool,
}

impl SimulatedForm {
    pub(super) fn derive(model: &CoreModel, sets: &PortSets, instruction: &Instruction) -> SimulatedForm {
        let key = FormKey::from_instruction(instruction);
        let mut operands = SimulatedOperands::from_instruction(instruction);
        let kind = RenameTreatment::from_instruction(model, &key, instruction, &operands);
        let nature = SimulatedWorkClass::from_instruction(instruction, &key, &operands, kind);
        let mut random = key.seeded_random(model.seed);
        kind.break_dependencies(&mut operands);
        if model.shifts_merge_flags && kind.merges_flags() {
            operands.flags_read |= operands.flags_written;
            add_slot(&mut operands.inputs, SimulatedSlot::Flags);
        }
        let false_dependency =
            nature == SimulatedWorkClass::General && random.happens(0.04) && may_have_false_dependency(&operands);
        if false_dependency {
            operands.inputs.insert(0, SimulatedSlot::Operand(0));
        }
        let planned = draw_class(model, nature, operands.vector, &mut random);
        let compute = match planned {
            Some(class) => list_class_work(sets, class),
            None => compute_work(model, sets, nature, &operands, &key, &mut random),
        };
        let memory = memory_work(sets, &operands, instruction, &key);
        let load = (model.load_latency + if operands.vector { model.vector_load_extra } else { 0 }) as u8;
        let store = (model.store_latency + u32::from(operands.vector)) as u8;
        let mut form = SimulatedForm {
            latency: vec![NO_DEPENDENCY; operands.inputs.len() * operands.outputs.len()],
            base: 0,
            results: Vec::new(),
            loaded: operands.inputs.iter().position(|slot| *slot == SimulatedSlot::Memory).unwrap_or(0),
            store: [store, store + u8::from(random.happens(0.2))],
            load: load + u8::from(nature == SimulatedWorkClass::General && random.happens(0.1)),
            operands,
            mnemonic: instruction.mnemonic(),
            kind,
            compute,
            memory,
            compute_slots: planned.map(|class| class.slots),
            false_dependency,
        };
        form.fill_latencies(model, sets, nature, &key, &mut random);
        if nature == SimulatedWorkClass::General && is_special(model, &key) {
            form.add_special_cycles();
        }
        form.results = (0..form.operands.outputs.len()).map(|output| form.output_timing(output)).collect();
        form
    }

    fn fill_latencies(
        &mut self,
        model: &CoreModel,
        sets: &PortSets,
        nature: SimulatedWorkClass,
        key: &FormKey,
        random: &mut Random,
    ) {
        let base = nature.draw_latency(model, self.operands.vector, random);
        let base = match (nature, self.kind) {
            (_, RenameTreatment::Serializing) => model.serialize_latency as u8,
            (SimulatedWorkClass::Free | SimulatedWorkClass::Transfer, _) => base,
            // If several µops keep the ports busy, the loop's counter and a chain's links need some
            // free slots too.
            _ => base.max(self.throughput(model, sets).ceil() as u8 + u8::from(self.compute.len() > 1)),
        };
        self.base = base;
        let general = nature == SimulatedWorkClass::General;
        let uneven = general && random.happens(0.25);
        let other =
            if general && key.has_equal_registers() && Random::new(random.next_bits()).happens(0.1) { 1 } else { 0 };
        let (inputs, outputs) = (self.operands.inputs.clone(), self.operands.outputs.clone());
        let mut uneven_random = Random::new(random.next_bits());
        for (o, output) in outputs.iter().enumerate() {
            for (i, input) in inputs.iter().enumerate() {
                let more = if uneven { uneven_random.below(3) as u8 } else { 0 };
                let cell = match (self.updated_register(*input), self.updated_register(*output)) {
                    (None, None) if !self.is_access_address(*input) => base + more + other,
                    (Some(from), Some(to)) if from == to => u8::from(!model.stack_engine || to != Register::RSP),
                    _ => NO_DEPENDENCY,
                };
                self.latency[o * inputs.len() + i] = cell;
            }
        }
    }

    /// Makes it slower: its first µop keeps its port longer, which delays all that depends on it.
    fn add_special_cycles(&mut self) {
        let Some(first) = self.compute.first_mut() else { return };
        first.cycles += SPECIAL_CONSTANT_CYCLES;
        self.base += SPECIAL_CONSTANT_CYCLES;
        self.latency
            .iter_mut()
            .filter(|latency| **latency != NO_DEPENDENCY)
            .for_each(|latency| *latency += SPECIAL_CONSTANT_CYCLES);
    }

    fn updated_register(&self, slot: SimulatedSlot) -> Option<Register> {
        match slot {
            SimulatedSlot::Implicit(register) if self.operands.updates.contains(&register) => Some(register),
            _ => None,
        }
    }

    /// Whether it is the address of a load or store, which has separate figures.
    fn is_access_address(&self, slot: SimulatedSlot) -> bool {
        slot == SimulatedSlot::Address && self.operands.loads + self.operands.stores > 0
    }

    fn output_timing(&self, output: usize) -> OutputTiming {
        let cells = (0..).zip(self.latencies_to_output(output)).filter(|(_, latency)| **latency != NO_DEPENDENCY);
        let pairs: Vec<(u8, u8)> = cells.map(|(input, latency)| (input, *latency)).collect();
        let least = pairs.iter().map(|(_, latency)| *latency).min().unwrap_or(self.base);
        let updates = self.updated_register(self.operands.outputs[output]).is_some();
        OutputTiming { pairs, least: (!updates && !self.compute.is_empty()).then_some(least) }
    }

    /// Latencies to an output, one for each input.
    fn latencies_to_output(&self, output: usize) -> &[u8] {
        let inputs = self.operands.inputs.len();
        &self.latency[output * inputs..(output + 1) * inputs]
    }

    /// Cycles from one slot to another, through a load that hits the cache or a forwarded store.
    pub(super) fn slot_latency(&self, model: &CoreModel, from: SimulatedSlot, to: SimulatedSlot) -> Option<u32> {
        let output = self.operands.outputs.iter().position(|slot| *slot == to)?;
        let cell = |slot: SimulatedSlot| {
            let input = self.operands.inputs.iter().position(|input| *input == slot)?;
            let latency = self.latencies_to_output(output)[input];
            (latency != NO_DEPENDENCY).then_some(u32::from(latency))
        };
        let store = if to == SimulatedSlot::Memory { u32::from(self.store[0]) } else { 0 };
        match from {
            SimulatedSlot::Address if self.is_access_address(from) && self.operands.loads > 0 => {
                Some(u32::from(self.load) + cell(SimulatedSlot::Memory)? + store)
            }
            SimulatedSlot::Address if self.is_access_address(from) => {
                (to == SimulatedSlot::Memory).then_some(self.store[1].into())
            }
            SimulatedSlot::Memory => Some(model.forward_latency + cell(from)? + store),
            _ => Some(cell(from)? + store),
        }
    }

    /// Cycles from the start of its first µop to results without another dependency.
    pub(super) fn base_latency(&self) -> u8 {
        self.base
    }

    /// Whether it belongs to a regime's class, and waits in the scheduler at all.
    pub(super) fn is_in_regime(&self, regime: &SimulatedRegime) -> bool {
        !self.compute.is_empty() && regime.contains_instruction(self.mnemonic, self.operands.vector)
    }

    /// Whether it has µops of the vector ports.
    pub(super) fn is_vector_work(&self) -> bool {
        !self.compute.is_empty() && self.operands.vector
    }

    /// Slots of an issue group that it takes.
    pub(super) fn slot_count(&self, model: &CoreModel) -> u32 {
        let compute = self.compute_slots.map_or(self.compute.len(), |slots| slots as usize);
        let memory = self.memory.len();
        let slots = if model.fuses_memory { compute.max(memory) } else { compute + memory };
        slots.max(1) as u32
    }

    /// Whether it is dispatched in groups of its own.
    pub(super) fn is_microcoded(&self, model: &CoreModel) -> bool {
        model.microcode_above.is_some_and(|most| self.slot_count(model) > most)
    }

    pub(super) fn throughput(&self, model: &CoreModel, sets: &PortSets) -> f64 {
        let work: Vec<PortWork> = self.compute.iter().chain(&self.memory).copied().collect();
        let slots = self.slot_count(model);
        let issue = match self.is_microcoded(model) {
            true => f64::from(slots.div_ceil(model.width)),
            false => f64::from(slots) / f64::from(model.width),
        };
        match self.kind {
            RenameTreatment::Serializing => f64::from(model.serialize_latency),
            _ => issue.max(sets.throughput_bound(&work)),
        }
    }
}

/// Whether a form costs more with this constant than with others: with one of the special ones,
/// different for each form.
fn is_special(model: &CoreModel, key: &FormKey) -> bool {
    let Some(every) = model.special_constants else { return false };
    let mut random = Random::new(key.with_ordinary_constant().seeded_random(model.seed).next_bits());
    let chosen = random.below(every as usize) == 0;
    let special = [ImmediateClass::Zero, ImmediateClass::One, ImmediateClass::Ones];
    chosen && special[random.below(special.len())..].contains(&key.constant())
}

fn add_slot(slots: &mut Vec<SimulatedSlot>, slot: SimulatedSlot) {
    if !slots.contains(&slot) {
        slots.push(slot);
    }
}

/// Whether the first operand is overwritten as a whole without being read.
fn may_have_false_dependency(operands: &SimulatedOperands) -> bool {
    let first = SimulatedSlot::Operand(0);
    operands.outputs.contains(&first) && !operands.inputs.contains(&first)
}

fn memory_work(
    sets: &PortSets,
    operands: &SimulatedOperands,
    instruction: &Instruction,
    key: &FormKey,
) -> Vec<PortWork> {
    // A gather or scatter accesses memory for each element; four represent every number of
    // elements.
    let each = if instruction.is_vsib() { 4 } else { 1 };
    let load = PortWork { set: sets.load, cycles: 1 };
    let store = PortWork { set: sets.store, cycles: if key.is_locked() { MAX_WORK_CYCLES as u8 } else { 1 } };
    let loads = std::iter::repeat_n(load, operands.loads * each);
    loads.chain(std::iter::repeat_n(store, operands.stores * each)).collect()
}

/// The class of a form's ports, if the machine has a port map and the form is no special one.
fn draw_class<'a>(
    model: &'a CoreModel,
    nature: SimulatedWorkClass,
    is_vector: bool,
    random: &mut Random,
) -> Option<&'a SimulatedPortClass> {
    let map = model.port_map.as_ref().filter(|_| nature == SimulatedWorkClass::General)?;
    let classes = map.classes_of_kind(is_vector);
    Some(classes[random.below(classes.len())])
}

fn list_class_work(sets: &PortSets, class: &SimulatedPortClass) -> Vec<PortWork> {
    class.uops.iter().map(|(mask, cycles)| PortWork { set: sets.find_set(*mask), cycles: *cycles }).collect()
}

/// µops other than loads and stores.
fn compute_work(
    model: &CoreModel,
    sets: &PortSets,
    nature: SimulatedWorkClass,
    operands: &SimulatedOperands,
    key: &FormKey,
    random: &mut Random,
) -> Vec<PortWork> {
    let mut work = Vec::new();
    let all = if operands.vector { &sets.vector } else { &sets.integer };
    let one = |set: u8| PortWork { set, cycles: 1 };
    match nature {
        SimulatedWorkClass::Free | SimulatedWorkClass::Transfer => {}
        SimulatedWorkClass::Simple => work.push(one(all[0])),
        SimulatedWorkClass::Multiply => work.push(one(*sets.integer.last().expect("single ports are sets"))),
        SimulatedWorkClass::Branch => work.push(one(sets.branch)),
        SimulatedWorkClass::Divide => {
            let set = if operands.vector { sets.vector_divider } else { sets.integer_divider };
            work.push(PortWork { set, cycles: 2 + random.below(MAX_WORK_CYCLES - 1) as u8 });
            work.push(one(pick_port_set(all, random)));
        }
        SimulatedWorkClass::General => {
            let count = if key.is_repeated() { 8 } else { [1, 1, 1, 1, 1, 1, 1, 2, 2, 4][random.below(10)] };
            work.extend((0..count).map(|_| one(pick_port_set(all, random))));
        }
    }
    let updates = operands.updates.iter().filter(|updated| !model.stack_engine || **updated != Register::RSP);
    work.extend(updates.map(|_| one(sets.integer[0])));
    work
}

/// All ports of a kind in two of five forms, halves and single ports in the others.
fn pick_port_set(sets: &[u8], random: &mut Random) -> u8 {
    if random.happens(0.4) { sets[0] } else { sets[random.below(sets.len())] }
}
