//! The study: each test's fillers, its witnesses, and its verdict beside those of the structures that its fillers take too.

use super::overlap::Core;
use super::test::{Filler, Test};
use super::trial::Trials;
use super::window;
use crate::executor::{LockState, Open, closed};
use crate::measure::Plan;
use crate::random::Random;
use crate::result::answers::Answers;
use crate::result::container::{Container, ContainerError, plain};
use crate::study::contract::{Follow, Progress, Record, Stop, Study, going};
use crate::study::info::{Plain, Selected, StudyInfo};
use iced_x86::CpuidFeature;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io;

/// Its name.
const NAME: &str = "uarch";

const SUBJECTS: [(&str, &str); window::TESTS.len()] = {
    let mut subjects = [("", ""); window::TESTS.len()];
    let mut number = 0;
    while number < subjects.len() {
        subjects[number] = (window::TESTS[number].name, window::TESTS[number].about);
        number += 1;
    }
    subjects
};

/// How it is found.
pub(in crate::study) const INFO: StudyInfo = StudyInfo {
    name: NAME,
    about: "how big the structures of this core are, each with a verdict",
    restore: |container| Ok(Box::new(Uarch::restore(container)?)),
    plain: Some(Plain {
        subjects: &SUBJECTS,
        columns: &["test", "verdict", "value", "limited_by"],
        explanation: Some("why"),
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
    open: Open,
    lock: Option<LockState>,
}

/// What decides the course, as a manifest has it.
#[derive(Serialize, Deserialize)]
struct Saved {
    plan: Plan,
    tests: Vec<String>,
    features: Vec<String>,
}

impl Uarch {
    fn new(selected: Selected) -> Uarch {
        let Selected { subjects, plan, open, features } = selected;
        let asked = window::TESTS.iter().copied().filter(|test| subjects.contains(&test.name)).collect();
        let needs = window::TESTS.iter().flat_map(|test| test.fillers).flat_map(|filler| filler.needs);
        let mut had: Vec<String> = needs.filter(|feature| features.has(**feature)).map(name_of).collect();
        had.sort();
        had.dedup();
        Uarch { plan, asked, features: had, open, lock: None }
    }

    /// The tests that were asked for and those of structures that their fillers take, in the order of the list.
    fn needed(&self) -> Vec<&'static Test> {
        let mut names: Vec<&str> = self.asked.iter().map(|test| test.name).collect();
        for test in window::TESTS.iter().rev() {
            if names.contains(&test.name) {
                names.extend(test.fillers.iter().flat_map(|filler| filler.takes));
            }
        }
        window::TESTS.iter().copied().filter(|test| names.contains(&test.name)).collect()
    }

    /// The fillers of a test that this CPU can run.
    fn fillers(&self, test: &'static Test) -> Vec<&'static Filler> {
        let has = |feature: &CpuidFeature| self.features.contains(&name_of(feature));
        test.fillers.iter().filter(|filler| filler.needs.iter().all(has)).collect()
    }
}

fn name_of(feature: &CpuidFeature) -> String {
    format!("{feature:?}")
}

impl Study for Uarch {
    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(&self) -> io::Result<Value> {
        let tests = self.asked.iter().map(|test| test.name.to_string()).collect();
        plain(&Saved { plan: self.plan.clone(), tests, features: self.features.clone() })
    }

    fn restore(container: &Container) -> Result<Uarch, ContainerError> {
        let Saved { plan, tests, features } = container.facts()?;
        if let Some(field) = plan.unsound() {
            return Err(ContainerError::fact(&format!("plan.{field}"), "it is out of its range"));
        }
        let named = |name: &String| {
            let found = window::TESTS.iter().find(|test| test.name == name);
            found.copied().ok_or_else(|| ContainerError::fact("tests", format!("there is no test {name}")))
        };
        let asked = tests.iter().map(named).collect::<Result<_, _>>()?;
        Ok(Uarch { plan, asked, features, open: closed(), lock: None })
    }

    fn measure(&mut self, answers: &Answers, follow: &mut dyn Follow) -> Result<(), Stop> {
        let mut executor = answers.executor(|| (self.open)())?;
        let tests = self.needed();
        let mut core =
            Core { executor: executor.as_mut(), plan: &self.plan, random: Random::new(self.plan.seed) };
        let mut trials = Trials::new(&mut core);
        for (number, test) in tests.iter().enumerate() {
            let (done, total) = (number as u64, tests.len() as u64);
            going(follow.progress(Progress { done, total, message: test.name.to_string() }))?;
            let record = trials.run(test, &self.fillers(test))?;
            if self.asked.iter().any(|asked| asked.name == test.name) {
                going(follow.record(Record::new(NAME, &record)))?;
            }
        }
        self.lock = executor.lock_state().cloned();
        Ok(())
    }

    fn lock_state(&self) -> Option<&LockState> {
        self.lock.as_ref()
    }
}
