//! Runs a body through the simulated core: when each instruction issues, gets its ports, and is
//! done.
//!
//! Instructions are processed in program order, so everything that one waits for is known. It
//! issues when there is room in the window, which empties in order. Retirement, fetch and branch
//! prediction cost nothing.

use super::address::SymbolicRegisters;
use super::body::{DecodedBody, RESOURCE_COUNT, ResourceUse, SimulatedAccess, SimulatedForms};
use super::form::SimulatedForm;
use super::model::CoreModel;
use super::port_assigner::PortAssigner;
use super::port_mask::PORTS_MOST;
use super::ports::{PortSchedule, PortSets, PortWork};
use super::regime::WaitingInstructions;
use super::rename_treatment::RenameTreatment;
use super::store_buffer::{ForwardableStore, StoreBuffer, StoreMatch};
use iced_x86::Register;

/// Bytes of a cache line.
pub(super) const LINE_BYTES: i64 = 64;

/// The core while it runs. Times are in core cycles from the body's start.
#[derive(Debug)]
pub(super) struct Pipeline {
    /// When each register and group of flags is ready.
    ready: [u32; RESOURCE_COUNT],
    schedule: PortSchedule,
    /// Assigns ports at dispatch, if the machine has a port map.
    assigner: Option<PortAssigner>,
    stores: StoreBuffer,
    waiting: WaitingInstructions,
    /// Whether the last instruction that waited for two results had the longer latency.
    late: bool,
    values: SymbolicRegisters,
    /// Number of writes to each register: memory renaming knows a base register only until the next
    /// one.
    written: [u32; RESOURCE_COUNT],
    /// Number of stores so far.
    stored: u64,
    /// By operation of the body: how many stores back its load found its data, and whether that
    /// repeated.
    found: Vec<(u64, bool)>,
    /// Whether memory is renamed for the next load.
    foreseen: bool,
    /// The line that combines stores past the caches, and when the next one can be sent.
    line: Option<(u64, i64)>,
    sent: u32,
    /// When each of the last slots left the window.
    left: Vec<u32>,
    /// The next index in it.
    place: usize,
    /// The cycle in which slots issue, and the number already issued in it.
    cycle: u32,
    issued: u32,
    /// Cycle in which the youngest instruction leaves the window.
    retired: u32,
    /// Cycle in which all instructions are done.
    done: u32,
    /// The x87 register at the top of the stack.
    top: u16,
    /// When each input of the current instruction is ready.
    inputs: Vec<u32>,
    /// When each of its outputs is ready.
    outputs: Vec<u32>,
    /// Number of slots issued since the core was made.
    pub(super) count: u64,
}

impl Pipeline {
    pub(super) fn new(model: &CoreModel) -> Pipeline {
        Pipeline {
            ready: [0; RESOURCE_COUNT],
            schedule: PortSchedule::default(),
            assigner: None,
            stores: StoreBuffer::default(),
            waiting: WaitingInstructions::default(),
            late: false,
            values: SymbolicRegisters::default(),
            written: [0; RESOURCE_COUNT],
            stored: 0,
            found: Vec::new(),
            foreseen: false,
            line: None,
            sent: 0,
            left: vec![0; model.window as usize],
            place: 0,
            cycle: 0,
            issued: 0,
            retired: 0,
            done: 0,
            top: 0,
            inputs: Vec::new(),
            outputs: Vec::new(),
            count: 0,
        }
    }

    /// Prepares for a body, with everything idle.
    pub(super) fn start_body(&mut self, body: &DecodedBody, forms: &SimulatedForms) {
        let work = body.operations.iter().flat_map(|operation| {
            let form = &forms.all[operation.form];
            form.compute.iter().chain(&form.memory).copied()
        });
        self.assigner = forms.model.port_map.as_ref().map(|map| {
            let masks = work.clone().map(|work| (forms.sets.port_mask(work.set), work.cycles));
            PortAssigner::new(map.assignment, masks)
        });
        self.schedule.free_all(&forms.sets, work);
        self.stores.clear();
        self.waiting.clear();
        self.late = false;
        self.ready.fill(0);
        self.left.fill(0);
        self.values = body.values.clone();
        self.found.clear();
        self.found.resize(body.operations.len(), (0, false));
        (self.stored, self.line, self.sent) = (0, None, 0);
        (self.place, self.cycle, self.issued, self.retired, self.done, self.top) = (0, 0, 0, 0, 0, 0);
    }

    /// How many µops each port took since the body's start.
    pub(super) fn port_uses(&self) -> [u64; PORTS_MOST] {
        self.schedule.port_uses()
    }

    /// Runs one iteration. Returns when all is done.
    pub(super) fn run_iteration(&mut self, body: &DecodedBody, forms: &SimulatedForms) -> u32 {
        for number in 0..body.operations.len() {
            self.run_operation(number, body, forms);
        }
        self.done
    }

    fn run_operation(&mut self, number: usize, body: &DecodedBody, forms: &SimulatedForms) {
        let operation = &body.operations[number];
        let (form, model) = (&forms.all[operation.form], &forms.model);
        let slots = form.slot_count(model);
        let issued = if form.kind == RenameTreatment::Serializing {
            self.issue_serializing(model)
        } else if form.is_microcoded(model) {
            self.end_group();
            let issued = self.issue_slots(slots, model);
            self.end_group();
            issued
        } else {
            self.issue_slots(slots, model)
        };
        self.inputs.clear();
        self.inputs.resize(form.operands.inputs.len(), issued);
        for input in &body.inputs[operation.inputs.clone()] {
            let ready = self.ready[self.resource_place(input)];
            let known = &mut self.inputs[usize::from(input.slot)];
            *known = ready.max(*known);
        }
        let accesses = &body.accesses[operation.accesses.clone()];
        let mut done = issued;
        if form.operands.loads > 0 {
            self.predict_renaming(number, accesses);
            done = self.run_loads(accesses, form, forms, issued);
        }
        let begun = self.schedule_compute(form, forms, issued, &mut done);
        self.time_outputs(form, issued, begun, &mut done);
        if let Some(regime) = model.regime.filter(|regime| form.is_in_regime(regime)) {
            let late = self.waiting.enter_instruction(&regime, issued, begun);
            self.outputs.iter_mut().for_each(|output| *output += late);
            done += late;
        }
        let waits = self.inputs.iter().filter(|ready| **ready > issued).count();
        if model.second_wait_half_cycles > 0 && form.is_vector_work() && waits > 1 {
            self.late = !self.late;
            let late = (model.second_wait_half_cycles + u32::from(self.late)) / 2;
            self.outputs.iter_mut().for_each(|output| *output += late);
            done += late;
        }
        // A push to the x87 stack writes its new top; a pop writes the register below the old top.
        if operation.stack < 0 {
            self.rotate_x87_stack(operation.stack);
        }
        for output in &body.outputs[operation.outputs.clone()] {
            let place = self.resource_place(output);
            self.written[place] += u32::from(place != Register::RSP as usize);
            self.ready[place] = self.outputs[usize::from(output.slot)];
        }
        if operation.stack > 0 {
            self.rotate_x87_stack(operation.stack);
        }
        if form.operands.stores > 0 {
            let data = self.outputs.last().copied().expect("memory is the last output of a store");
            done = done.max(self.run_stores(accesses, form, forms, [issued, data]));
        }
        for change in &body.moves[operation.moves.clone()] {
            self.values.apply_change(*change);
        }
        self.retire_slots(slots as usize, done);
    }

    /// Leaves the rest of the cycle's issue group empty.
    fn end_group(&mut self) {
        self.cycle += u32::from(self.issued > 0);
        self.issued = 0;
    }

    /// Issues some slots of µops. Returns when the last one issues.
    fn issue_slots(&mut self, slots: u32, model: &CoreModel) -> u32 {
        let mut place = self.place;
        for _ in 0..slots {
            if self.issued == model.width {
                self.cycle += 1;
                self.issued = 0;
            }
            if self.left[place] > self.cycle {
                self.cycle = self.left[place];
                self.issued = 0;
            }
            self.issued += 1;
            if let Some(assigner) = &mut self.assigner {
                assigner.begin_slot(self.cycle);
            }
            place = self.next_place(place);
        }
        self.cycle
    }

    /// Takes a port for some work from `ready` on, whose result is there after `latency` cycles. Returns
    /// its start.
    fn take_port(&mut self, work: PortWork, ready: u32, latency: u8, forms: &SimulatedForms) -> u32 {
        let (sets, model): (&PortSets, &CoreModel) = (&forms.sets, &forms.model);
        let (Some(assigner), Some(map)) = (&mut self.assigner, &model.port_map) else {
            return self.schedule.take_port(work, ready);
        };
        let port = assigner.choose_port(sets.port_mask(work.set));
        let finishes = map.has_result_buses.then_some(latency.max(1));
        let start = self.schedule.take_one_port(port, work.cycles, ready, finishes);
        assigner.note_end(port, start + u32::from(work.cycles));
        start
    }

    /// When an instruction that waits for everything has finished.
    fn issue_serializing(&mut self, model: &CoreModel) -> u32 {
        self.cycle = self.cycle.max(self.done) + model.serialize_latency;
        self.issued = 0;
        self.done = self.cycle;
        self.cycle
    }

    fn retire_slots(&mut self, slots: usize, done: u32) {
        self.done = self.done.max(done);
        self.retired = self.retired.max(done);
        for _ in 0..slots {
            self.left[self.place] = self.retired;
            self.place = self.next_place(self.place);
        }
        self.count += slots as u64;
    }

    /// The next index in the window.
    fn next_place(&self, place: usize) -> usize {
        if place + 1 == self.left.len() { 0 } else { place + 1 }
    }

    fn resource_place(&self, used: &ResourceUse) -> usize {
        const FIRST: u16 = Register::ST0 as u16;
        const LAST: u16 = Register::ST7 as u16;
        let stack = self.top != 0 && (FIRST..=LAST).contains(&used.resource);
        let place = if stack { FIRST + (used.resource - FIRST + self.top) % 8 } else { used.resource };
        place.into()
    }

    fn rotate_x87_stack(&mut self, by: i8) {
        self.top = (i16::from(by) + self.top as i16).rem_euclid(8) as u16;
    }

    fn address_ready(&self, access: &SimulatedAccess, issued: u32) -> u32 {
        let part = |register: Register| self.ready[register.full_register() as usize];
        issued.max(part(access.expression.base)).max(part(access.expression.index))
    }

    /// Performs the loads. Returns when the last µop is done.
    fn run_loads(
        &mut self,
        accesses: &[SimulatedAccess],
        form: &SimulatedForm,
        forms: &SimulatedForms,
        issued: u32,
    ) -> u32 {
        let (loads, slot) = (form.operands.loads, form.loaded);
        let each = (form.memory.len() - form.operands.stores) / loads;
        let mut last = issued;
        for access in accesses.iter().filter(|access| access.load) {
            let ready = self.address_ready(access, issued);
            let start = self.take_port(form.memory[0], ready, 1, forms);
            for _ in 1..each {
                last = last.max(1 + self.take_port(form.memory[0], ready, 1, forms));
            }
            let arrival = self.data_arrival(access, &forms.model, start + u32::from(form.load));
            self.inputs[slot] = self.inputs[slot].max(arrival);
        }
        last.max(self.inputs[slot])
    }

    /// The base register that memory renaming may identify an access by, and its version.
    fn renaming_base(&self, access: &SimulatedAccess) -> Option<(Register, u32)> {
        let base = access.expression.base;
        access.renamable.then(|| (base, self.written[base.full_register() as usize]))
    }

    /// Predicts renaming for this load if its data were the same number of stores back the last two
    /// times.
    fn predict_renaming(&mut self, number: usize, accesses: &[SimulatedAccess]) {
        let back = accesses.iter().find(|access| access.load).map(|access| {
            match self.stores.find_overlap(self.values.resolve_address(&access.expression), access.size) {
                StoreMatch::All(store) => self.stored - store.number,
                StoreMatch::Nothing | StoreMatch::Part(_) => 0,
            }
        });
        let back = back.unwrap_or(0);
        let (known, _) = self.found[number];
        self.found[number] = (back, back > 0 && back == known);
        self.foreseen = self.found[number].1;
    }

    /// When a load has its data, which the cache would deliver at `cached`.
    fn data_arrival(&self, access: &SimulatedAccess, model: &CoreModel, cached: u32) -> u32 {
        let base = self.renaming_base(access);
        match self.stores.find_overlap(self.values.resolve_address(&access.expression), access.size) {
            StoreMatch::Nothing => cached,
            StoreMatch::All(store) => match model.renamed_latency {
                // Renaming knows the data before the address.
                Some(renamed)
                    if base.is_some()
                        && store.renamed.is_some()
                        && access.size == store.size
                        && (if model.renames_any_base { self.foreseen } else { base == store.renamed }) =>
                {
                    store.data + renamed
                }
                _ => cached.max(store.visible + model.forward_latency),
            },
            StoreMatch::Part(store) => cached.max(store.visible + model.blocked_latency),
        }
    }

    /// Gives ports to the µops other than loads and stores. Returns when the first starts.
    fn schedule_compute(&mut self, form: &SimulatedForm, forms: &SimulatedForms, issued: u32, done: &mut u32) -> u32 {
        let Some((first, others)) = form.compute.split_first() else { return issued };
        let mut ready = issued;
        for input in &self.inputs {
            ready = ready.max(*input);
        }
        let start = self.take_port(*first, ready, form.base_latency(), forms);
        *done = (*done).max(start + 1);
        for work in others {
            *done = (*done).max(1 + self.take_port(*work, ready, 1, forms));
        }
        start
    }

    /// Computes when each output is ready.
    fn time_outputs(&mut self, form: &SimulatedForm, issued: u32, begun: u32, done: &mut u32) {
        self.outputs.clear();
        for outcome in &form.results {
            let mut time = outcome.least.map_or(issued, |least| begun + u32::from(least));
            for (input, latency) in &outcome.pairs {
                time = time.max(self.inputs[usize::from(*input)] + u32::from(*latency));
            }
            *done = (*done).max(time);
            self.outputs.push(time);
        }
    }

    /// Performs the stores. Returns when the last µop is done.
    fn run_stores(
        &mut self,
        accesses: &[SimulatedAccess],
        form: &SimulatedForm,
        forms: &SimulatedForms,
        [issued, data]: [u32; 2],
    ) -> u32 {
        let combining = forms.model.combining_latency;
        let work = *form.memory.last().expect("a store has a µop");
        let stores = form.operands.stores;
        let each = (form.memory.len() - form.operands.loads).max(stores) / stores;
        let mut last = issued;
        for access in accesses.iter().filter(|access| access.store) {
            let address = self.address_ready(access, issued);
            let start = self.take_port(work, data.max(address), 1, forms);
            last = last.max(start + 1);
            for _ in 1..each {
                last = last.max(1 + self.take_port(work, data.max(address), 1, forms));
            }
            let [from_data, from_address] = form.store.map(u32::from);
            let place = self.values.resolve_address(&access.expression);
            if let Some(cycles) = combining.filter(|_| access.combined) {
                let line = Some((place.symbol, place.offset.div_euclid(LINE_BYTES)));
                if line != self.line {
                    self.line = line;
                    self.sent = self.sent.max(start) + cycles;
                }
                last = last.max(self.sent);
            }
            self.stored += 1;
            self.stores.push_store(ForwardableStore {
                address: place,
                number: self.stored - 1,
                size: access.size,
                renamed: self.renaming_base(access),
                data,
                visible: (start + from_data).max(address + from_address),
            });
        }
        last
    }
}
