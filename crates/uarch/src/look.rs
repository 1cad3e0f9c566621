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
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::CostPoint;
    use crate::list::TESTS;
    use crate::overlap::{Point, Probe};
    use crate::test::mixture::{Order, Share};
    use crate::test::rate::Rates;
    use crate::test::walk::Walk;
    use crate::verdict::End;

    /// A core on which all costs the same.
    struct Same;

    impl Overlaps for Same {
        fn at(&mut self, _: &Probe, _: &[usize]) -> Result<Vec<Point>, RunError> {
            Ok(Vec::new())
        }
    }

    impl Costs for Same {
        fn cost(&mut self, _: &Walk, n: usize) -> Result<Option<CostPoint>, RunError> {
            Ok(Some(CostPoint { n, cost: 2.0, low: 2.0, high: 2.0 }))
        }
    }

    impl Mixes for Same {
        fn mixed(&mut self, _: &[Share], _: Order, _: &str) -> Result<Option<CostPoint>, RunError> {
            Ok(None)
        }
    }

    #[test]
    fn programs_that_fill_a_structure_tell_no_rate_of_another_one() {
        let mut within = 0;
        for test in TESTS {
            let Look::Rates(Rates { within: Some((other, entries)), .. }) = &test.look else { continue };
            let kinds = |end: Option<End>| {
                let mut knees: Knees = end.map(|end| (*other, end)).into_iter().collect();
                let cpu = Cpu { has: &|_| true, memory: u64::MAX };
                let records = looked(&mut Same, &mut knees, test, &cpu, &mut Random::new(1));
                records.expect("all is simulated").iter().map(|record| record.verdict).collect::<Vec<_>>()
            };
            let rows = test.rows().len();
            assert_eq!(kinds(Some(End::At(*entries))), vec![Kind::Found; rows], "{}", test.name);
            assert_eq!(kinds(Some(End::From(*entries))), vec![Kind::Found; rows], "{}", test.name);
            assert_eq!(kinds(Some(End::At(entries - 1))), vec![Kind::Unclear; rows], "{}", test.name);
            assert_eq!(kinds(None), vec![Kind::Unclear; rows], "{}", test.name);
            within += 1;
        }
        assert!(within > 0);
    }
}
