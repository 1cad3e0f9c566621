//! Answers the question of `doctor`: what can measurements use on this machine, and what should
//! change?
//!
//! [`examine`] runs all experiments about the machine itself: rate, step and phases of the TSC, the
//! core clock by the ruler, the proof of siblings, noise before and after. Nothing here fails: an
//! unknown fact is a [`Fact`] with a reason.

#![warn(unreachable_pub)]

pub mod clock_watch;
mod core_clock;
mod kernel_module;
mod offered_executors;
mod phases;
mod record;
mod siblings;
#[cfg(test)]
mod tests;

pub use clock_watch::{ClockWatch, WatchFacts, watch_core_clock};
pub use core_clock::measure_imul_latency;
pub(crate) use offered_executors::OfferedExecutor;
pub use record::DoctorRecord;
pub(crate) use siblings::MakeExecutor;

use cyclescope_code::clock::Clock;
use cyclescope_core::machine::Machine;
use cyclescope_core::machine::core_study::{CoreStudy, SiblingStudy, StepPhases};
use cyclescope_core::machine::counters::CounterFacts;
use cyclescope_core::machine::cpuid_leaves::run_on_cpu;
use cyclescope_core::machine::fact::Fact;
use cyclescope_core::machine::finding::{FindingEvidence, MachineFinding, collect_findings};
use cyclescope_core::machine::kernel_module::ModuleStudy;
use cyclescope_core::machine::noise::{NoiseBetween, NoiseCounts, count_runnable};
use cyclescope_core::machine::tsc::TscFacts;
use cyclescope_core::machine::tsc_study::TscStudy;
use cyclescope_core::random::Random;
use cyclescope_core::unit::Unit;
use cyclescope_events::detect_counters;
use cyclescope_exec::{Capabilities, CodeProtection, Executor};
use cyclescope_measure::rounds::RulerRounds;
use cyclescope_measure::ruler::least_unshared_width;
use serde::{Deserialize, Serialize};
use siblings::SiblingTarget;
use std::time::{Duration, Instant};

/// Thoroughness of an examination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExaminationEffort {
    /// Duration of the TSC's calibration; half of it if its windows agree.
    calibration: Duration,
    /// Busy time before the core's clock is read: governors raise it within some milliseconds.
    warm_up: Duration,
    /// Layouts of the ruler.
    layouts: usize,
    /// Rounds of the test of phases.
    phase_rounds: u32,
    /// Number of CPUs tested as siblings, and the time for all.
    siblings: (usize, Duration),
}

impl ExaminationEffort {
    /// Half a second; up to one second with many CPUs.
    pub const FULL: ExaminationEffort = ExaminationEffort {
        calibration: Duration::from_millis(400),
        warm_up: Duration::from_millis(40),
        layouts: 128,
        phase_rounds: 1024,
        siblings: (8, Duration::from_millis(400)),
    };
    /// A fifth of a second.
    pub const QUICK: ExaminationEffort = ExaminationEffort {
        calibration: Duration::from_millis(80),
        warm_up: Duration::from_millis(10),
        layouts: 48,
        phase_rounds: 512,
        siblings: (2, Duration::from_millis(100)),
    };
}

/// Inputs of an examination.
pub struct ExaminationInputs<'a> {
    /// Runs code on the target CPU; or the reason why nothing does.
    pub executor: Result<&'a mut dyn Executor, String>,
    /// Capabilities of that executor.
    pub capabilities: &'a Capabilities,
    /// Makes executors on other CPUs.
    pub others: &'a MakeExecutor<'a>,
    /// The timing method; `None` means the machine's default.
    pub clock: Option<&'static Clock>,
    /// Thoroughness.
    pub effort: ExaminationEffort,
    /// Seed of all random choices.
    pub seed: u64,
}

/// The timing method, and the reason for it.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ChosenClock {
    /// Its name.
    pub name: &'static str,
    /// Why it was chosen.
    pub why: &'static str,
}

/// Results of an examination.
#[derive(Debug, Clone)]
pub struct Diagnosis {
    /// The timing method.
    pub clock: Fact<ChosenClock>,
    /// Performance counters.
    pub counters: CounterFacts,
    /// The available and unavailable executors.
    pub executors: Vec<OfferedExecutor>,
    /// Facts from the kernel module, or the reason why there are none.
    pub kernel_module: Fact<ModuleStudy>,
    /// The experiments on the TSC.
    pub tsc: Fact<TscStudy>,
    /// The core by the ruler.
    pub core: Fact<CoreStudy>,
    /// Whether averaging sees through the TSC's step.
    pub phases: Fact<StepPhases>,
    /// Which CPUs share the core.
    pub siblings: Fact<SiblingStudy>,
    /// Whether other runs of cyclescope stayed off the CPU.
    pub exclusive: Fact<bool>,
    /// Whether measured code runs in a process that shares nothing with this one.
    pub own_process: Fact<bool>,
    /// The barriers around measured code, and whether each holds.
    pub protections: Vec<CodeProtection>,
    /// Noise at the end.
    pub noise: NoiseCounts,
    /// Disturbances during the examination.
    pub between: NoiseBetween,
    /// Tasks that waited for the target CPU before the examination.
    pub runnable: Fact<u32>,
    /// Duration in seconds.
    pub seconds: f64,
    /// Findings from all facts.
    pub findings: Vec<MachineFinding>,
}

/// Examines the machine's target CPU.
pub fn examine(machine: &Machine, means: ExaminationInputs) -> Diagnosis {
    let cpu = machine.target.as_ref().map_or(0, |target| target.cpu);
    let started = ExaminationTimer::start(machine);
    let runnable = count_runnable(&machine.files, cpu);
    let before = NoiseCounts::read(&machine.files, cpu);
    let counters = detect_counters(machine);
    let study = || TscStudy::measure(machine, &counters, means.effort.calibration);
    let tsc = match machine.tsc.require() {
        Err(refused) => Fact::unknown(refused.why),
        Ok(()) => Fact::from(
            run_on_cpu(cpu, study).map_err(String::from).and_then(|study| study.map_err(|refused| refused.why)),
        ),
    };
    let code = CoreExperiments::run(machine, means, tsc.known());
    let noise = NoiseCounts::read(&machine.files, cpu);
    let diagnosis = Diagnosis {
        clock: code.clock,
        counters,
        executors: offered_executors::list_executors(machine),
        kernel_module: kernel_module::examine_module(tsc.known()),
        tsc,
        core: code.core,
        phases: code.phases,
        siblings: code.siblings,
        exclusive: code.exclusive,
        own_process: code.own_process,
        protections: code.protections,
        between: noise.since(&before),
        noise,
        runnable,
        seconds: started.elapsed_seconds(),
        findings: Vec::new(),
    };
    Diagnosis { findings: diagnosis.derive_findings(machine), ..diagnosis }
}

impl Diagnosis {
    fn derive_findings(&self, machine: &Machine) -> Vec<MachineFinding> {
        collect_findings(&FindingEvidence {
            machine,
            counters: Some(&self.counters),
            module: Some(&self.kernel_module),
            study: self.tsc.known(),
            core: Some(&self.core),
            phases: self.phases.known(),
            siblings: self.siblings.known(),
            exclusive: self.exclusive.known().copied(),
            own_process: self.own_process.known().copied(),
            noise: Some(&self.noise),
            between: Some((&self.between, self.seconds)),
            runnable: self.runnable.known().copied(),
        })
    }
}

/// Start of the examination. If the TSC is forbidden, reading the system's clock would fault too.
struct ExaminationTimer(Option<Instant>);

impl ExaminationTimer {
    fn start(machine: &Machine) -> ExaminationTimer {
        ExaminationTimer(machine.tsc.require().is_ok().then(Instant::now))
    }

    fn elapsed_seconds(&self) -> f64 {
        self.0.map_or(0.0, |start| start.elapsed().as_secs_f64())
    }
}

/// Experiments that run code on the target CPU.
struct CoreExperiments {
    clock: Fact<ChosenClock>,
    core: Fact<CoreStudy>,
    phases: Fact<StepPhases>,
    siblings: Fact<SiblingStudy>,
    exclusive: Fact<bool>,
    own_process: Fact<bool>,
    protections: Vec<CodeProtection>,
}

impl CoreExperiments {
    /// No experiment ran, all for the same reason.
    fn all_unknown(clock: Fact<ChosenClock>, why: &str) -> CoreExperiments {
        CoreExperiments {
            clock,
            core: Fact::unknown(why),
            phases: Fact::unknown(why),
            siblings: Fact::unknown(why),
            exclusive: Fact::unknown(why),
            own_process: Fact::unknown(why),
            protections: Vec::new(),
        }
    }

    fn run(machine: &Machine, means: ExaminationInputs, study: Option<&TscStudy>) -> CoreExperiments {
        let clock = match choose_clock(machine, means.capabilities, means.clock) {
            Ok(clock) => clock,
            Err(why) => return CoreExperiments::all_unknown(Fact::Unknown(why.clone()), &why),
        };
        let chosen = Fact::Known(ChosenClock { name: clock.name, why: explain_clock(machine, means.clock, clock) });
        let executor = match means.executor {
            Ok(executor) => executor,
            Err(why) => return CoreExperiments::all_unknown(chosen, &why),
        };
        let ExaminationEffort { layouts, phase_rounds, siblings: (most, time), warm_up, .. } = means.effort;
        let mut random = Random::new(means.seed);
        let step = clock_step(clock, &machine.tsc, study);
        let rounds = RulerRounds::new(clock, step);
        let calibrated = study.map(|study| {
            let calibration = &study.calibration;
            [calibration.low, calibration.hertz, calibration.high]
        });
        let rate = calibrated.or_else(|| machine.tsc.given.map(|given| [given.rate; 3]));
        let core = warm_core(executor, &rounds, warm_up, &mut random).and_then(|()| {
            core_clock::measure_core_clock(executor, &rounds, clock, rate, &machine.cpu, layouts, &mut random)
        });
        let core = Fact::from(core);
        let phases = match &core {
            Fact::Unknown(why) => Fact::unknown(why.clone()),
            Fact::Known(core) => {
                let cycle = core.raw_per_cycle.value;
                Fact::from(phases::measure_phases(executor, clock, step, cycle, phase_rounds, &mut random))
            }
        };
        let width = core.known().and_then(|core| core.adders).map(least_unshared_width);
        let mut target = SiblingTarget { executor, rounds: &rounds, clock, width, random: &mut random };
        let siblings = match machine.other_cpus(most) {
            Fact::Unknown(why) => Fact::Unknown(why),
            Fact::Known(_) if clock.counts != Unit::TscTicks => {
                Fact::unknown("the timing method doesn't read the TSC, which both CPUs share")
            }
            Fact::Known((cpus, rest)) => {
                let mut study = siblings::prove_siblings(&mut target, means.others, &cpus, time);
                study.untested.extend(rest);
                Fact::Known(study)
            }
        };
        let (exclusive, own_process) = (target.executor.had_exclusive_cpu(), target.executor.has_own_process());
        let protections = target.executor.protections();
        CoreExperiments { clock: chosen, core, phases, siblings, exclusive, own_process, protections }
    }
}

fn choose_clock(
    machine: &Machine,
    capabilities: &Capabilities,
    asked: Option<&'static Clock>,
) -> Result<&'static Clock, String> {
    let clock = match asked {
        Some(clock) => capabilities.require_clock(clock, machine).map(|()| clock),
        None => capabilities.default_clock(machine),
    };
    clock.map_err(|refused| refused.to_string())
}

/// Why a timing method is used: see [`cyclescope_code::clock::preferred_clocks`].
fn explain_clock(machine: &Machine, asked: Option<&Clock>, clock: &Clock) -> &'static str {
    if asked.is_some() {
        return "requested";
    }
    match (machine.features.lfence_order().known().is_some(), clock.name) {
        (true, "lfence-rdtsc-lfence") => "LFENCE waits here, so it is fenced on both sides and cheap",
        (_, "serialize-rdtsc") => "LFENCE is not guaranteed to wait, but SERIALIZE is",
        _ => "LFENCE is not guaranteed to wait, but RDTSCP is",
    }
}

/// The step of a timing method's readings in its raw units: from the study of the TSC, otherwise
/// from the machine's facts.
pub fn clock_step(clock: &Clock, tsc: &TscFacts, study: Option<&TscStudy>) -> f64 {
    let studied = study.filter(|_| clock.counts == Unit::TscTicks).and_then(|study| study.find_step(clock.tsc_read()));
    studied.map_or_else(|| clock.reading_step(tsc), |step| step.ticks)
}

/// Keeps the core busy for a while.
fn warm_core(
    executor: &mut dyn Executor,
    rounds: &RulerRounds,
    time: Duration,
    random: &mut Random,
) -> Result<(), String> {
    let started = executor.now();
    while executor.now().saturating_sub(started) < time {
        rounds.run(executor, 16, 16, random).map_err(|error| error.to_string())?;
    }
    Ok(())
}
