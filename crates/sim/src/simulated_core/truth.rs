//! The truth about the simulated core: the figures that a measurement of it must find.

use super::form::SimulatedForm;
use super::model::CoreModel;
use super::pipeline::LINE_BYTES;
use super::rename_treatment::RenameTreatment;
use cyclescope_code::asm::access::is_non_temporal_store;
use iced_x86::Instruction;

impl CoreModel {
    fn derive_form(&self, instruction: &Instruction) -> SimulatedForm {
        SimulatedForm::derive(self, &self.port_sets(), instruction)
    }

    /// Core cycles from an input to an output; `None` if the output does not depend on the input.
    ///
    /// A load counts as hitting the cache, and `mem_data` as an input as forwarded and not renamed.
    /// Through a store and a load only the sum of the two latencies is physical: the first ends,
    /// and the second starts, when the store can be forwarded.
    pub fn latency(&self, instruction: &Instruction, from: &str, to: &str) -> Option<u32> {
        let pairs = self.latencies(instruction);
        pairs.into_iter().find(|(input, output, _)| input == from && output == to).map(|(_, _, cycles)| cycles)
    }

    /// All latencies: from, to, core cycles.
    pub fn latencies(&self, instruction: &Instruction) -> Vec<(String, String, u32)> {
        let form = self.derive_form(instruction);
        let outputs = &form.operands.outputs;
        let pairs = form.operands.inputs.iter().flat_map(|from| outputs.iter().map(move |to| (*from, *to)));
        let known = |(from, to)| form.slot_latency(self, from, to).map(|cycles| (from, to, cycles));
        pairs.filter_map(known).map(|(from, to, cycles)| (from.name(), to.name(), cycles)).collect()
    }

    /// Core cycles per instruction at the best sustained rate without dependencies, limited by
    /// issue and ports.
    pub fn throughput(&self, instruction: &Instruction) -> f64 {
        let rate = self.derive_form(instruction).throughput(self, &self.port_sets());
        let combined = self.combining_latency.filter(|_| is_non_temporal_store(instruction));
        let share = instruction.memory_size().size() as f64 / LINE_BYTES as f64;
        combined.map_or(rate, |cycles| rate.max(f64::from(cycles) * share))
    }

    /// Slots of an issue group that an instruction takes. `None` if it is dispatched in groups of its
    /// own, or waits for all others.
    pub fn slots(&self, instruction: &Instruction) -> Option<u32> {
        let form = self.derive_form(instruction);
        let alone = form.is_microcoded(self) || form.kind == RenameTreatment::Serializing;
        (!alone).then(|| form.slot_count(self))
    }

    /// The µops of an instruction that take a port, each with the numbers of the ports that it may take.
    pub fn port_uses(&self, instruction: &Instruction) -> Vec<Vec<u32>> {
        let (form, sets) = (self.derive_form(instruction), self.port_sets());
        form.compute.iter().chain(&form.memory).map(|work| sets.list_ports(work.set)).collect()
    }

    /// Number of ports and units.
    pub fn port_count(&self) -> u32 {
        self.port_sets().port_count()
    }

    /// Whether it is a move that takes no port and no time.
    pub fn is_eliminated(&self, instruction: &Instruction) -> bool {
        self.derive_form(instruction).kind == RenameTreatment::Eliminated
    }

    /// Whether it neither depends on its registers nor takes a port.
    pub fn is_zero_idiom(&self, instruction: &Instruction) -> bool {
        self.derive_form(instruction).kind == RenameTreatment::ZeroIdiom
    }

    /// Whether its latency grows when many instructions of its class wait.
    pub fn is_in_regime(&self, instruction: &Instruction) -> bool {
        self.regime.is_some_and(|regime| self.derive_form(instruction).is_in_regime(&regime))
    }

    /// Whether it waits for the old value of an operand that it only writes.
    pub fn has_false_dependency(&self, instruction: &Instruction) -> bool {
        self.derive_form(instruction).false_dependency
    }
}
