//! A test on a core: its records, by what it looks for.

use super::batches::batches;
use super::climb::climb;
use super::contrast::contrast;
use super::cost::{Costs, Mixes};
use super::map::map;
use super::mixture::mixture;
use super::overlap::Overlaps;
use super::queues::queues;
use super::rates::rates;
use super::record::UarchRecord;
use super::test::rate::Row;
use super::test::{Filler, Look, Test};
use super::trial::{Knees, Trials};
use super::verdict::{Kind, Verdict};
use crate::error::RunError;
use crate::random::Random;
use iced_x86::CpuidFeature;

/// What of the CPU a test has to know.
pub(super) struct Cpu<'a> {
    /// Whether it has a feature.
    pub has: &'a dyn Fn(&CpuidFeature) -> bool,
    /// Bytes that the programs of a test may use.
    pub memory: u64,
}

impl Cpu<'_> {
    /// The fillers of a test that it can run.
    pub(super) fn fillers(&self, test: &'static Test) -> Vec<&'static Filler> {
        test.fillers().iter().filter(|filler| filler.needs.iter().all(self.has)).collect()
    }
}

/// Measures a test, its counts in an order of chance. What is told by other tests alone has no records of its own.
pub(super) fn looked(
    core: &mut (impl Overlaps + Costs + Mixes),
    knees: &mut Knees,
    test: &'static Test,
    cpu: &Cpu,
    order: &mut Random,
) -> Result<Vec<UarchRecord>, RunError> {
    Ok(match &test.look {
        Look::Overlap(window) => vec![Trials::new(core, knees).run(test, window, &cpu.fillers(test))?],
        Look::Contrast(events) => contrast(core, test, events, cpu.has)?,
        Look::Rates(done) => {
            let room =
                done.within.map(|(other, entries)| (other, entries, knees.get(other).map(|end| end.least())));
            match room {
                Some((other, entries, knee)) if knee.is_none_or(|knee| knee < entries) => {
                    let why = format!("its programs take {entries} entries of {other}, which may have fewer");
                    let verdict = |row: &Row| {
                        let unclear = Verdict::new(Kind::Unclear, why.clone());
                        UarchRecord::new(test, row.key(test.name), unclear, done.unit)
                    };
                    done.rows.iter().map(verdict).collect()
                }
                _ => rates(core, test, done, cpu.memory, cpu.has)?,
            }
        }
        Look::Levels(walks) => climb(core, test, walks, walks.most(cpu.memory), order)?,
        Look::Map(asked) => map(core, test, asked, cpu.has)?,
        Look::Mixture(asked) => mixture(core, test, asked, order)?,
        Look::Batches(asked) => batches(core, test, asked)?,
        Look::Queues(asked) => queues(core, knees, test, asked)?,
        // The study knows the other CPUs.
        Look::Sharing(_) | Look::Exchanges(_) | Look::Environment { .. } => Vec::new(),
    })
}
