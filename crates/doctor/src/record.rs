//! A diagnosis as a JSON line, kind `doctor`.

use super::{ChosenClock, Diagnosis, OfferedExecutor};
use cyclescope_core::machine::Machine;
use cyclescope_core::machine::core_study::{CoreStudy, SiblingStudy, StepPhases};
use cyclescope_core::machine::counters::CounterFacts;
use cyclescope_core::machine::fact::Fact;
use cyclescope_core::machine::finding::{FindingState, MachineFinding};
use cyclescope_core::machine::kernel_module::ModuleStudy;
use cyclescope_core::machine::noise::{NoiseBetween, NoiseCounts};
use cyclescope_core::machine::tsc_study::TscStudy;
use cyclescope_core::unit::Unit;
use cyclescope_exec::CodeProtection;
use cyclescope_measure::result::record::Quantity;
use serde::Serialize;

/// Results of `doctor`.
#[derive(Debug, Serialize)]
pub struct DoctorRecord<'a> {
    cpu: Option<u32>,
    cpu_model: String,
    executor: &'static str,
    clock: &'a Fact<ChosenClock>,
    tsc: &'a Fact<TscStudy>,
    core: Fact<DoctorCoreRecord>,
    phases: &'a Fact<StepPhases>,
    counters: &'a CounterFacts,
    executors: &'a [OfferedExecutor],
    kernel_module: &'a Fact<ModuleStudy>,
    siblings: &'a Fact<SiblingStudy>,
    exclusive: &'a Fact<bool>,
    /// The barriers around measured code.
    protections: &'a [CodeProtection],
    noise: &'a NoiseCounts,
    during: &'a NoiseBetween,
    runnable: &'a Fact<u32>,
    /// State of the worst finding.
    state: FindingState,
    findings: &'a [MachineFinding],
    seed: u64,
    elapsed_s: f64,
    repro: String,
}

/// The core, measured with the ruler.
#[derive(Debug, Serialize)]
struct DoctorCoreRecord {
    clock: &'static str,
    core_clock: Quantity,
    /// The slowest and the fastest layout.
    core_mhz_range: Option<[f64; 2]>,
    /// Units that the clock counts per core cycle.
    per_core_cycle: Quantity,
    imul_latency: Quantity,
    imul_latency_known: Option<u32>,
    add_link: Quantity,
    /// Independent additions per core cycle: lowest, median, highest.
    width: [f64; 3],
    width_known: Option<f64>,
    shared: bool,
    layouts: usize,
    samples: usize,
    dropped: usize,
}

impl DoctorCoreRecord {
    fn new(core: CoreStudy) -> DoctorCoreRecord {
        DoctorCoreRecord {
            clock: core.clock,
            core_clock: core
                .megahertz
                .map_or(Quantity::refused(Unit::Megahertz), |found| Quantity::new(found, Unit::Megahertz)),
            core_mhz_range: core.range,
            per_core_cycle: Quantity::new(core.raw_per_cycle, core.unit),
            imul_latency: Quantity::new(core.imul, Unit::Adds),
            imul_latency_known: core.imul_known,
            add_link: core
                .add_link_cycles()
                .map_or(Quantity::refused(Unit::CoreCycles), |link| Quantity::new(link, Unit::CoreCycles)),
            width: core.width,
            width_known: core.width_known,
            shared: core.shared,
            layouts: core.layouts,
            samples: core.kept,
            dropped: core.dropped,
        }
    }
}

impl<'a> DoctorRecord<'a> {
    /// Creates the record of a diagnosis made with an executor of this name.
    pub fn new(
        machine: &Machine,
        diagnosis: &'a Diagnosis,
        executor: &'static str,
        seed: u64,
        repro: String,
    ) -> DoctorRecord<'a> {
        DoctorRecord {
            cpu: machine.target.as_ref().map(|target| target.cpu),
            cpu_model: machine.cpu.name(),
            executor,
            clock: &diagnosis.clock,
            tsc: &diagnosis.tsc,
            core: diagnosis.core.clone().map(DoctorCoreRecord::new),
            phases: &diagnosis.phases,
            counters: &diagnosis.counters,
            executors: &diagnosis.executors,
            kernel_module: &diagnosis.kernel_module,
            siblings: &diagnosis.siblings,
            exclusive: &diagnosis.exclusive,
            protections: &diagnosis.protections,
            noise: &diagnosis.noise,
            during: &diagnosis.between,
            runnable: &diagnosis.runnable,
            state: diagnosis.findings.iter().map(|finding| finding.state).max().unwrap_or(FindingState::Ok),
            findings: &diagnosis.findings,
            seed,
            elapsed_s: diagnosis.seconds,
            repro,
        }
    }
}
