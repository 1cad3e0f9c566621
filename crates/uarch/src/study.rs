//! The study: runs the tests, checks sizes again between them, and annotates records with results
//! of other tests.

use super::agner_scripts::AGNER;
use super::conditions::{KernelCounts, RunConditions, TEST_SIBLING_POLICY, retry_if_shared};
use super::cost::BackgroundCpus;
use super::cpu_resources::CpuResources;
use super::earlier_result::EarlierResult;
use super::environment::{BackgroundActivity, environment_records};
use super::exchange::{TimeBudget, exchange_records, run_exchanges};
use super::knee_counts::count_beside_knees;
use super::level_limit;
use super::level_records::doubt_key;
use super::overlap::{MeasuredCore, OVERLAP_SIBLING_POLICY};
use super::overlap_test::{StructureEnds, record_structure_end};
use super::partition::AloneBaseline;
use super::rate_bound;
use super::record::UarchRecord;
use super::remotes::RemoteExecutors;
use super::reported_machine::ReportedMachine;
use super::resumed_tests::{count_complete_lines, read_filler_results, read_verdict_kind};
use super::shared_figures::SharedFigures;
use super::sharing::run_sharing;
use super::size_watch::SizeWatch;
use super::spec::{BackgroundLoad, Experiment, TestSpec};
use super::step_counts::CountedCore;
use super::test_list::TESTS;
use super::test_runner::run_test;
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::tsc_calibration::TscStopwatch;
use cyclescope_core::random::{Random, mix_seeds};
use cyclescope_core::unit::{Hertz, Unit};
use cyclescope_events::CounterRequest;
use cyclescope_exec::{BackgroundCode, ExecutorOpener, LoadPlan, LockState, failing_opener};
use cyclescope_measure::result::answers::MachineAnswers;
use cyclescope_measure::result::container::{ContainerError, EvidenceContainer, to_json_value};
use cyclescope_measure::ruler::least_unshared_width;
use cyclescope_measure::sibling::Retries;
use cyclescope_measure::study::{GenericStudy, StudyInfo, StudySelection};
use cyclescope_measure::study::{ResultRecord, StopReason, Study, StudyFollower, StudyProgress, check_stop};
use cyclescope_measure::{EventPlan, Plan};
use iced_x86::CpuidFeature;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io;
use std::time::Duration;

/// Makes the seed for the order of counts different from the seed for programs.
const ORDER_SEED_MASK: u64 = 0x6f72_6465_7200_0000;
/// The same for counted programs.
const COUNTING_SEED_MASK: u64 = 0x636f_756e_7473_0000;
/// The time for a test of all CPUs, in budgets of a plan.
const EXCHANGE_BUDGETS: u32 = 75;
/// The longest time for a test of all CPUs.
const MAX_EXCHANGE_TIME: Duration = Duration::from_secs(11);
/// The study's name.
const NAME: &str = "uarch";

const SUBJECTS: [(&str, &str); TESTS.len()] = {
    let mut subjects = [("", ""); TESTS.len()];
    let mut number = 0;
    while number < subjects.len() {
        subjects[number] = (TESTS[number].name, TESTS[number].about);
        number += 1;
    }
    subjects
};

/// The study's entry in the list of studies.
pub const INFO: StudyInfo = StudyInfo {
    name: NAME,
    about: "how big the structures of this core are, each with a verdict",
    restore: |container| Ok(Box::new(UarchStudy::restore(container)?)),
    generic: Some(GenericStudy {
        subjects: &SUBJECTS,
        catalogs: &[AGNER],
        columns: &["test", "verdict", "value", "limited_by"],
        explanation: Some("why"),
        count_complete: count_complete_lines,
        select: |selected| Box::new(UarchStudy::new(selected)),
    }),
};

/// The tests to run on this core, and their inputs.
struct UarchStudy {
    plan: Plan,
    /// The selected tests.
    selected_tests: Vec<&'static TestSpec>,
    /// CPU features that the tests use and the CPU has.
    features: Vec<String>,
    /// Bytes that the programs of a test may use.
    memory: u64,
    /// Reports of CPUID and the kernel.
    surroundings: ReportedMachine,
    /// Events to count beside each knee.
    counters: Option<CounterRequest>,
    /// Lines of a result file that belong to complete tests.
    resumed_lines: Vec<Value>,
    open: ExecutorOpener,
    lock: Option<LockState>,
}

/// The settings that decide the course of the study, as stored in a manifest.
#[derive(Serialize, Deserialize)]
struct UarchManifest {
    plan: Plan,
    tests: Vec<String>,
    features: Vec<String>,
    memory: u64,
    surroundings: ReportedMachine,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    counters: Option<CounterRequest>,
}

impl UarchStudy {
    fn new(selected: StudySelection) -> UarchStudy {
        let StudySelection { subjects, plan, open, machine, memory, counters, complete_lines: kept } = selected;
        let features = &machine.features;
        let asked = TESTS.iter().copied().filter(|test| subjects.contains(&test.name)).collect();
        let needs = TESTS.iter().flat_map(|test| test.used_features());
        let mut had: Vec<String> =
            needs.filter(|feature| features.has(*feature)).map(|feature| feature_name(&feature)).collect();
        had.sort();
        had.dedup();
        let surroundings = ReportedMachine::from_machine(machine);
        UarchStudy {
            plan,
            selected_tests: asked,
            features: had,
            memory,
            surroundings,
            counters,
            resumed_lines: kept,
            open,
            lock: None,
        }
    }

    /// The selected tests and the tests of structures that their fillers also take, in the order of
    /// the list.
    fn tests_to_run(&self) -> Vec<&'static TestSpec> {
        let mut names: Vec<&str> = self.selected_tests.iter().map(|test| test.name).collect();
        for test in TESTS.iter().rev() {
            if names.contains(&test.name) {
                names.extend(test.required_tests());
            }
        }
        TESTS.iter().copied().filter(|test| names.contains(&test.name)).collect()
    }

    /// The rate of the timing method's raw units since the start, if it is known.
    fn raw_unit_rate(
        &self,
        answers: &MachineAnswers,
        stopwatch: Option<&TscStopwatch>,
    ) -> Result<Option<Hertz>, RunError> {
        match self.plan.clock.counts {
            Unit::TscTicks => answers.ask_machine(|| Ok(stopwatch.map(|stopwatch| stopwatch.rate_bounds()[1]))),
            Unit::Nanos => Ok(Some(Hertz(1e9))),
            _ => Ok(None),
        }
    }

    /// Reads the kernel's present counters.
    fn read_kernel_counts(&self, answers: &MachineAnswers) -> Result<KernelCounts, RunError> {
        answers.ask_machine(|| KernelCounts::read_now(self.surroundings.cpu))
    }

    /// The random sources of a test: for its programs, and for the order of its counts. Each test
    /// has its own, so a resumed study measures the same programs.
    fn random_of_test(&self, test: &TestSpec) -> [Random; 2] {
        let seed = test.name.bytes().fold(self.plan.seed, |seed, byte| mix_seeds(seed, u64::from(byte)));
        [seed, seed ^ ORDER_SEED_MASK].map(Random::new)
    }

    fn has_feature(&self, feature: &CpuidFeature) -> bool {
        self.features.contains(&feature_name(feature))
    }

    /// Annotates a test's records with the results of other tests and of CPUID.
    fn annotate_records(&self, test: &TestSpec, records: &mut [UarchRecord], earlier: &[EarlierResult]) {
        rate_bound::annotate_bounds(test, records, earlier);
        level_limit::annotate_limits(test, records, earlier);
        let number = records.len();
        // If the number of a level is open, CPUID's level is unknown too.
        let doubt = records.iter().any(|record| record.what == doubt_key(test));
        for record in records {
            let figure = self.surroundings.numbers.get(&record.what).filter(|_| !doubt);
            record.cpuid = record.cpuid.or(figure.copied());
            record.records = number;
        }
    }
}

/// How often more layouts of a test follow if something else used the core. Some tests create load
/// on another CPU themselves.
fn sibling_retries(test: &TestSpec) -> Retries {
    if matches!(test.experiment, Experiment::Sharing(_)) {
        Retries::NONE
    } else {
        OVERLAP_SIBLING_POLICY.start_retries()
    }
}

/// How often a whole test runs again if the sibling was busy. Levels that others use too keep the
/// lowest of many repetitions anyway, and take most of the time.
fn test_retries(test: &TestSpec) -> Retries {
    match &test.experiment {
        Experiment::Levels(levels) if levels.fills_randomly => Retries::NONE,
        _ => TEST_SIBLING_POLICY.start_retries(),
    }
}

fn feature_name(feature: &CpuidFeature) -> String {
    format!("{feature:?}")
}

/// Checks the sizes again whose turn it is.
fn recheck_sizes(watch: &mut SizeWatch, core: &mut MeasuredCore) -> Result<(), RunError> {
    let width = core.plan.adders.map(least_unshared_width);
    for size in watch.due_sizes() {
        let from = core.conditions.used_layouts();
        let knee = size.recheck_knee(core)?;
        size.record_recheck(knee, core.conditions.busy_since(from, width));
    }
    Ok(())
}

/// Other CPUs whose answers are recorded: a replay starts nothing.
struct ReplayableCpus<'a> {
    answers: &'a MachineAnswers,
    running: Option<BackgroundCode>,
}

impl BackgroundCpus for ReplayableCpus<'_> {
    fn start_load(&mut self, cpu: u32, load: BackgroundLoad, memory: Option<ProgramMemory>) -> Result<(), RunError> {
        let ReplayableCpus { answers, running } = self;
        answers.ask_machine(|| {
            let copy = Snippet::parse(load.text).expect("the tests' instructions are assembly");
            let snippet = Snippet::new(copy.code().repeat(load.copies), Vec::new(), load.text);
            *running = Some(BackgroundCode::start(LoadPlan { memory, ..LoadPlan::from(snippet) }, cpu)?);
            Ok(())
        })
    }

    fn stop_load(&mut self) -> Result<f64, RunError> {
        let running = self.running.take();
        self.answers.ask_machine(|| running.map_or(Ok(0.0), |running| running.stop().map(|outcome| outcome.share)))
    }
}

impl Study for UarchStudy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(&self) -> io::Result<Value> {
        let tests = self.selected_tests.iter().map(|test| test.name.to_string()).collect();
        let UarchStudy { plan, features, memory, surroundings, counters, .. } = self;
        to_json_value(&UarchManifest {
            plan: plan.clone(),
            tests,
            features: features.clone(),
            memory: *memory,
            surroundings: surroundings.clone(),
            counters: counters.clone(),
        })
    }

    fn restore(container: &EvidenceContainer) -> Result<UarchStudy, ContainerError> {
        let UarchManifest { plan, tests, features, memory, surroundings, counters } = container.facts()?;
        if counters.as_ref().is_some_and(|request| !request.is_sound()) {
            return Err(ContainerError::damaged_fact("counters", "a column has no event"));
        }
        if let Some(field) = plan.find_unsound_field() {
            return Err(ContainerError::damaged_fact(&format!("plan.{field}"), "it is out of its range"));
        }
        let named = |name: &String| {
            let found = TESTS.iter().find(|test| test.name == name);
            found.copied().ok_or_else(|| ContainerError::damaged_fact("tests", format!("there is no test {name}")))
        };
        let asked = tests.iter().map(named).collect::<Result<_, _>>()?;
        let kept = Vec::new();
        Ok(UarchStudy {
            plan,
            selected_tests: asked,
            features,
            memory,
            surroundings,
            counters,
            resumed_lines: kept,
            open: failing_opener(),
            lock: None,
        })
    }

    fn measure(&mut self, answers: &MachineAnswers, follow: &mut dyn StudyFollower) -> Result<(), StopReason> {
        let mut executor = answers.open_executor(|| (self.open)())?;
        let request = self.counters.as_ref();
        let events = request.map(|request| EventPlan::new(request, executor.as_ref(), answers)).transpose()?;
        let tests = self.tests_to_run();
        let (mut knees, mut earlier, mut conditions) = (StructureEnds::new(), Vec::new(), RunConditions::default());
        let (mut watch, mut figures) = (SizeWatch::default(), SharedFigures::default());
        let begun = (executor.now(), self.read_kernel_counts(answers)?);
        let stopwatch = TscStopwatch::start(&executor.machine().tsc).ok();
        for (number, test) in tests.iter().enumerate() {
            let kept: Vec<Value> =
                self.resumed_lines.iter().filter(|line| line["test"] == test.name).cloned().collect();
            if !kept.is_empty() {
                let (filled, kind) = (read_filler_results(test, &kept), read_verdict_kind(&kept));
                record_structure_end(&mut knees, test, &filled, kind, None);
                earlier.extend(kept.iter().filter_map(EarlierResult::from_line));
                kept.iter().try_for_each(|line| {
                    check_stop(follow.accept_record(ResultRecord::from_resumed_line(NAME, line)))
                })?;
                continue;
            }
            let (done, total) = (number as u64, tests.len() as u64);
            check_stop(follow.report_progress(StudyProgress { done, total, message: test.name.to_string() }))?;
            let [random, mut order] = self.random_of_test(test);
            let random_of_counts = self.random_of_test(test)[0].next_bits() ^ COUNTING_SEED_MASK;
            let (plan, executor) = (&self.plan, executor.as_mut());
            let zmm = self.has_feature(&CpuidFeature::AVX512F);
            let mut core = MeasuredCore {
                executor: &mut *executor,
                plan,
                random,
                zmm,
                retries: Retries::NONE,
                conditions: &mut conditions,
            };
            recheck_sizes(&mut watch, &mut core)?;
            core.retries = sibling_retries(test);
            let has = |feature: &CpuidFeature| self.has_feature(feature);
            figures.measure_due(&mut core, &tests, number, self.memory, &has)?;
            let cpu = CpuResources { has: &has, memory: self.memory, shared: Some(&figures) };
            let mut records = match &test.experiment {
                Experiment::Environment { .. } => {
                    let (then, counted) = &begun;
                    let time = core.executor.now().saturating_sub(*then);
                    let counted = [counted.clone(), self.read_kernel_counts(answers)?];
                    let width = plan.adders.map(least_unshared_width);
                    let course = BackgroundActivity { conditions: &conditions, width, counted, time };
                    environment_records(&self.surroundings, &earlier, &course)
                }
                Experiment::Sharing(asked) => {
                    let mut others = ReplayableCpus { answers, running: None };
                    let size = |name: &str| {
                        let result = earlier.iter().find(|result: &&EarlierResult| result.what == name)?;
                        // What another thread held when the test ran may have been free since.
                        let value = watch.present_size(name).unwrap_or(result.value);
                        EarlierResult { value, ..result.clone() }.found_size()
                    };
                    let alone = AloneBaseline { cpu: &cpu, size_of: &size };
                    run_sharing(&mut core, &mut others, test, asked, &self.surroundings.others, &alone)?
                }
                Experiment::Exchanges(asked) => {
                    let places = &self.surroundings.places;
                    let cpus: Vec<u32> = places.iter().map(|place| place.cpu).collect();
                    let now = || core.executor.now();
                    let time = TimeBudget { now: &now, max: (plan.budget * EXCHANGE_BUDGETS).min(MAX_EXCHANGE_TIME) };
                    let pairs = run_exchanges(&mut RemoteExecutors::new(answers), asked, &cpus, &time)?;
                    let rate = answers.ask_machine(|| {
                        Ok::<_, RunError>(stopwatch.as_ref().map(|stopwatch| stopwatch.rate_bounds()[1]))
                    })?;
                    exchange_records(test, asked, &pairs, places, rate)
                }
                _ => {
                    let width = plan.adders.map(least_unshared_width);
                    let ((mut records, learned), busy) = retry_if_shared(test_retries(test), || {
                        let (from, mut learned) = (core.conditions.used_layouts(), knees.clone());
                        let records = run_test(&mut core, &mut learned, test, &cpu, &mut order)?;
                        Ok::<_, RunError>(((records, learned), core.conditions.busy_since(from, width)))
                    })?;
                    knees = learned;
                    if busy.is_significant() {
                        records.iter_mut().for_each(|record| record.add_busy_caveat(busy));
                    }
                    records
                }
            };
            self.annotate_records(test, &mut records, &earlier);
            if let Some(events) =
                events.as_ref().filter(|_| self.selected_tests.iter().any(|own| own.name == test.name))
            {
                let random = Random::new(random_of_counts);
                let mut counted = CountedCore { executor: &mut *executor, plan, events, random, zmm };
                count_beside_knees(&mut counted, test, &mut records)?;
            }
            let rate = match records.iter().any(|record| record.measured.is_some()) {
                true => self.raw_unit_rate(answers, stopwatch.as_ref())?,
                false => None,
            };
            records.iter_mut().for_each(|record| record.set_spread(rate));
            earlier.extend(records.iter().map(EarlierResult::from_record));
            if self.selected_tests.iter().any(|asked| asked.name == test.name) {
                let records = watch.take_sizes(records);
                records
                    .iter()
                    .try_for_each(|record| check_stop(follow.accept_record(ResultRecord::new(NAME, record))))?;
            }
        }
        let records = watch.into_records();
        records.iter().try_for_each(|record| check_stop(follow.accept_record(ResultRecord::new(NAME, record))))?;
        self.lock = executor.lock_state().cloned();
        Ok(())
    }

    fn lock_state(&self) -> Option<&LockState> {
        self.lock.as_ref()
    }
}

#[cfg(test)]
mod tests;
