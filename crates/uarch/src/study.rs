//! The study: each test's fillers, its witnesses, and its verdict beside those of the structures that its fillers take too.

use super::agner::AGNER;
use super::bound;
use super::conditions::{Conditions, Counted, retry_if_shared};
use super::cost::Others;
use super::environment::{Course, environment};
use super::exchange::{Time, exchanged, records};
use super::kept::{filled, kind, whole};
use super::known::Known;
use super::levels::in_doubt;
use super::limit;
use super::list::TESTS;
use super::look::{Cpu, looked};
use super::overlap::{BESIDE_SIBLING, Core};
use super::partition::Alone;
use super::record::UarchRecord;
use super::remotes::Remotes;
use super::sharing::sharing;
use super::surroundings::Surroundings;
use super::test::{Look, Test};
use super::trial::{Knees, learn};
use super::watch::Watch;
use cyclescope_code::program::memory::Memory;
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::calibrate::Stopwatch;
use cyclescope_core::random::{Random, mix};
use cyclescope_core::unit::{Hertz, Unit};
use cyclescope_exec::{Companion, LockState, Open, closed};
use cyclescope_measure::Plan;
use cyclescope_measure::result::answers::Answers;
use cyclescope_measure::result::container::{Container, ContainerError, plain};
use cyclescope_measure::ruler::sentinel_width;
use cyclescope_measure::sibling::Retries;
use cyclescope_measure::study::{Follow, Progress, Record, Stop, Study, going};
use cyclescope_measure::study::{Plain, Selected, StudyInfo};
use iced_x86::CpuidFeature;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io;
use std::time::Duration;

/// Makes the seed of the order of counts another one than that of the programs.
const ORDER: u64 = 0x6f72_6465_7200_0000;
/// The time of a test of all CPUs, in budgets of a plan, and at most.
const BUDGETS: u32 = 75;
const MOST: Duration = Duration::from_secs(11);
/// Its name.
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

/// How it is found.
pub const INFO: StudyInfo = StudyInfo {
    name: NAME,
    about: "how big the structures of this core are, each with a verdict",
    restore: |container| Ok(Box::new(Uarch::restore(container)?)),
    plain: Some(Plain {
        subjects: &SUBJECTS,
        catalogs: &[AGNER],
        columns: &["test", "verdict", "value", "limited_by"],
        explanation: Some("why"),
        whole,
        select: |selected| Box::new(Uarch::new(selected)),
    }),
};

/// Tests of this core.
struct Uarch {
    plan: Plan,
    /// Those that were asked for.
    asked: Vec<&'static Test>,
    /// Features of instruction sets that the tests need and that the CPU has.
    features: Vec<String>,
    /// Bytes that the programs of a test may use.
    memory: u64,
    /// What CPUID and the kernel tell.
    surroundings: Surroundings,
    /// The lines that a result file has of tests that are complete.
    kept: Vec<Value>,
    open: Open,
    lock: Option<LockState>,
}

/// What decides the course, as a manifest has it.
#[derive(Serialize, Deserialize)]
struct Saved {
    plan: Plan,
    tests: Vec<String>,
    features: Vec<String>,
    memory: u64,
    surroundings: Surroundings,
}

impl Uarch {
    fn new(selected: Selected) -> Uarch {
        let Selected { subjects, plan, open, machine, memory, kept } = selected;
        let features = &machine.features;
        let asked = TESTS.iter().copied().filter(|test| subjects.contains(&test.name)).collect();
        let needs = TESTS.iter().flat_map(|test| test.features());
        let mut had: Vec<String> =
            needs.filter(|feature| features.has(*feature)).map(|feature| name_of(&feature)).collect();
        had.sort();
        had.dedup();
        let surroundings = Surroundings::of(machine);
        Uarch { plan, asked, features: had, memory, surroundings, kept, open, lock: None }
    }

    /// The tests that were asked for and those of structures that their fillers take, in the order of the list.
    fn needed(&self) -> Vec<&'static Test> {
        let mut names: Vec<&str> = self.asked.iter().map(|test| test.name).collect();
        for test in TESTS.iter().rev() {
            if names.contains(&test.name) {
                names.extend(test.needs());
            }
        }
        TESTS.iter().copied().filter(|test| names.contains(&test.name)).collect()
    }

    /// The rate of the timing method's raw units since the start, where it is known.
    fn rate(&self, answers: &Answers, stopwatch: Option<&Stopwatch>) -> Result<Option<Hertz>, RunError> {
        match self.plan.clock.counts {
            Unit::TscTicks => answers.get(|| Ok(stopwatch.map(|stopwatch| stopwatch.rate()[1]))),
            Unit::Nanos => Ok(Some(Hertz(1e9))),
            _ => Ok(None),
        }
    }

    /// What the kernel has counted up to now.
    fn counted(&self, answers: &Answers) -> Result<Counted, RunError> {
        answers.get(|| Counted::now(self.surroundings.cpu))
    }

    /// What the programs of a test are drawn from, and the order of its counts: the test's own, so that a study that is gone on
    /// with measures the same programs.
    fn random(&self, test: &Test) -> [Random; 2] {
        let seed = test.name.bytes().fold(self.plan.seed, |seed, byte| mix(seed, u64::from(byte)));
        [seed, seed ^ ORDER].map(Random::new)
    }

    fn has(&self, feature: &CpuidFeature) -> bool {
        self.features.contains(&name_of(feature))
    }

    /// Tells of a test's records what other tests and CPUID tell of them.
    fn tell(&self, test: &Test, records: &mut [UarchRecord], known: &[Known]) {
        bound::told(test, records, known);
        limit::told(test, records, known);
        let number = records.len();
        // Which level of CPUID's it is has to be known.
        let doubt = records.iter().any(|record| record.what == in_doubt(test));
        for record in records {
            let told = self.surroundings.numbers.get(&record.what).filter(|_| !doubt);
            record.cpuid = record.cpuid.or(told.copied());
            record.records = number;
        }
    }
}

/// How often more layouts of a test follow because something else used the core: work on another CPU is part of some.
fn again(test: &Test) -> Retries {
    if matches!(test.look, Look::Sharing(_)) { Retries::NONE } else { BESIDE_SIBLING.start() }
}

fn name_of(feature: &CpuidFeature) -> String {
    format!("{feature:?}")
}

/// Looks at the sizes again whose turn it is.
fn look_again(watch: &mut Watch, core: &mut Core) -> Result<(), RunError> {
    let width = core.plan.adders.map(sentinel_width);
    for size in watch.due() {
        let from = core.conditions.layouts();
        let knee = size.look(core)?;
        size.met(knee, core.conditions.busy(from, width));
    }
    Ok(())
}

/// Other CPUs whose answers are kept: a replay starts nothing.
struct Kept<'a> {
    answers: &'a Answers,
    running: Option<Companion>,
}

impl Others for Kept<'_> {
    fn begin(&mut self, cpu: u32, text: &'static str, memory: Option<Memory>) -> Result<(), RunError> {
        let Kept { answers, running } = self;
        answers.get(|| {
            let snippet = Snippet::parse(text).expect("the tests' instructions are assembly");
            *running = Some(match memory {
                Some(memory) => Companion::start_in(&snippet, memory, cpu)?,
                None => Companion::start(&snippet, cpu)?,
            });
            Ok(())
        })
    }

    fn end(&mut self) -> Result<f64, RunError> {
        let running = self.running.take();
        self.answers.get(|| running.map_or(Ok(0.0), Companion::stop))
    }
}

impl Study for Uarch {
    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(&self) -> io::Result<Value> {
        let tests = self.asked.iter().map(|test| test.name.to_string()).collect();
        let Uarch { plan, features, memory, surroundings, .. } = self;
        plain(&Saved {
            plan: plan.clone(),
            tests,
            features: features.clone(),
            memory: *memory,
            surroundings: surroundings.clone(),
        })
    }

    fn restore(container: &Container) -> Result<Uarch, ContainerError> {
        let Saved { plan, tests, features, memory, surroundings } = container.facts()?;
        if let Some(field) = plan.unsound() {
            return Err(ContainerError::fact(&format!("plan.{field}"), "it is out of its range"));
        }
        let named = |name: &String| {
            let found = TESTS.iter().find(|test| test.name == name);
            found.copied().ok_or_else(|| ContainerError::fact("tests", format!("there is no test {name}")))
        };
        let asked = tests.iter().map(named).collect::<Result<_, _>>()?;
        let kept = Vec::new();
        Ok(Uarch { plan, asked, features, memory, surroundings, kept, open: closed(), lock: None })
    }

    fn measure(&mut self, answers: &Answers, follow: &mut dyn Follow) -> Result<(), Stop> {
        let mut executor = answers.executor(|| (self.open)())?;
        let tests = self.needed();
        let (mut knees, mut known, mut conditions) = (Knees::new(), Vec::new(), Conditions::default());
        let mut watch = Watch::default();
        let begun = (executor.now(), self.counted(answers)?);
        let stopwatch = Stopwatch::start(&executor.machine().tsc).ok();
        for (number, test) in tests.iter().enumerate() {
            let kept: Vec<Value> =
                self.kept.iter().filter(|line| line["test"] == test.name).cloned().collect();
            if !kept.is_empty() {
                learn(&mut knees, test, &filled(test, &kept), kind(&kept));
                known.extend(kept.iter().filter_map(Known::read));
                kept.iter().try_for_each(|line| going(follow.record(Record::resumed(NAME, line))))?;
                continue;
            }
            let (done, total) = (number as u64, tests.len() as u64);
            going(follow.progress(Progress { done, total, message: test.name.to_string() }))?;
            let [random, mut order] = self.random(test);
            let (plan, executor) = (&self.plan, executor.as_mut());
            let zmm = self.has(&CpuidFeature::AVX512F);
            let mut core =
                Core { executor, plan, random, zmm, again: Retries::NONE, conditions: &mut conditions };
            look_again(&mut watch, &mut core)?;
            core.again = again(test);
            let cpu = Cpu { has: &|feature| self.has(feature), memory: self.memory };
            let mut records = match &test.look {
                Look::Environment { .. } => {
                    let (then, counted) = &begun;
                    let time = core.executor.now().saturating_sub(*then);
                    let counted = [counted.clone(), self.counted(answers)?];
                    let width = plan.adders.map(sentinel_width);
                    let course = Course { conditions: &conditions, width, counted, time };
                    environment(&self.surroundings, &known, &course)
                }
                Look::Sharing(asked) => {
                    let mut others = Kept { answers, running: None };
                    let size =
                        |name: &str| known.iter().find(|known| known.what == name).and_then(Known::found);
                    let alone = Alone { cpu: &cpu, size: &size };
                    sharing(&mut core, &mut others, test, asked, &self.surroundings.others, &alone)?
                }
                Look::Exchanges(asked) => {
                    let places = &self.surroundings.places;
                    let cpus: Vec<u32> = places.iter().map(|place| place.cpu).collect();
                    let now = || core.executor.now();
                    let time = Time { now: &now, most: (plan.budget * BUDGETS).min(MOST) };
                    let pairs = exchanged(&mut Remotes::new(answers), asked, &cpus, &time)?;
                    let rate = answers
                        .get(|| Ok::<_, RunError>(stopwatch.as_ref().map(|stopwatch| stopwatch.rate()[1])))?;
                    records(test, asked, &pairs, places, rate)
                }
                _ => {
                    let width = plan.adders.map(sentinel_width);
                    let ((mut records, learned), busy) = retry_if_shared(|| {
                        let (from, mut learned) = (core.conditions.layouts(), knees.clone());
                        let records = looked(&mut core, &mut learned, test, &cpu, &mut order)?;
                        Ok::<_, RunError>(((records, learned), core.conditions.busy(from, width)))
                    })?;
                    knees = learned;
                    if busy.counts() {
                        records.iter_mut().for_each(|record| record.beside(busy));
                    }
                    records
                }
            };
            self.tell(test, &mut records, &known);
            let rate = match records.iter().any(|record| record.measured.is_some()) {
                true => self.rate(answers, stopwatch.as_ref())?,
                false => None,
            };
            records.iter_mut().for_each(|record| record.timed(rate));
            known.extend(records.iter().map(Known::of));
            if self.asked.iter().any(|asked| asked.name == test.name) {
                let records = watch.take(records);
                records.iter().try_for_each(|record| going(follow.record(Record::new(NAME, record))))?;
            }
        }
        let records = watch.records();
        records.iter().try_for_each(|record| going(follow.record(Record::new(NAME, record))))?;
        self.lock = executor.lock_state().cloned();
        Ok(())
    }

    fn lock_state(&self) -> Option<&LockState> {
        self.lock.as_ref()
    }
}

#[cfg(test)]
mod tests;
