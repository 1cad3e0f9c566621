//! Runs a test on a core and returns its records, by kind of experiment.

use super::batches::run_batches;
use super::contrast::run_contrast;
use super::cost::{MeasureCosts, MeasureMixtures};
use super::cost_map::run_cost_map;
use super::cpu_resources::CpuResources;
use super::fade::run_fades;
use super::level_curves::run_levels;
use super::mixture::run_mixture;
use super::overlap::MeasureOverlaps;
use super::overlap_test::{OverlapTester, StructureEnds};
use super::queues::run_queues;
use super::random_visits::run_random_visits;
use super::rates::run_rates;
use super::record::UarchRecord;
use super::rooms::run_rooms;
use super::spec::{Experiment, TestRow, TestSpec};
use super::verdict::{TestVerdict, VerdictKind};
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;

/// Measures a test, with its counts in random order. Experiments that use only other tests' results
/// return no records.
pub(super) fn run_test(
    core: &mut (impl MeasureOverlaps + MeasureCosts + MeasureMixtures),
    knees: &mut StructureEnds,
    test: &'static TestSpec,
    cpu: &CpuResources,
    order: &mut Random,
) -> Result<Vec<UarchRecord>, RunError> {
    Ok(match &test.experiment {
        Experiment::Overlap(window) => {
            vec![OverlapTester::new(core, knees).run(test, window, &cpu.runnable_fillers(test))?]
        }
        Experiment::Contrast(events) => run_contrast(core, test, events, cpu)?,
        Experiment::Rates(done) => {
            if let Some((other, _)) = done.required_entries {
                knees.recheck(core, other)?;
            }
            let room = done
                .required_entries
                .map(|(other, entries)| (other, entries, knees.get(other).map(|end| end.min_entries())));
            match room {
                Some((other, entries, knee)) if knee.is_none_or(|knee| knee < entries) => {
                    let why = format!("its programs take {entries} entries of {other}, which may have fewer");
                    let verdict = |row: &TestRow| {
                        let unclear = TestVerdict::new(VerdictKind::Unclear, why.clone());
                        UarchRecord::new(test, row.record_key(test.name), unclear, done.unit)
                    };
                    done.rows.iter().map(verdict).collect()
                }
                _ => run_rates(core, test, done, cpu)?,
            }
        }
        Experiment::Levels(spec) => run_levels(core, test, spec, spec.max_count(cpu.memory), order)?,
        Experiment::Fades(fades) => run_fades(core, test, fades, cpu.has)?,
        Experiment::Rooms(rooms) => run_rooms(core, test, rooms)?,
        Experiment::CostMap(asked) => run_cost_map(core, test, asked, cpu.has)?,
        Experiment::Mixture(asked) => run_mixture(core, test, asked, order)?,
        Experiment::Batches(asked) => run_batches(core, test, asked)?,
        Experiment::Queues(asked) => run_queues(core, knees, test, asked)?,
        Experiment::RandomVisits(asked) => run_random_visits(core, test, asked, order)?,
        // The study runs these: it knows the other CPUs.
        Experiment::Sharing(_) | Experiment::Exchanges(_) | Experiment::Environment { .. } => Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::CostPoint;
    use crate::overlap::{OverlapProbe, OverlapReading};
    use crate::spec::{ClassCount, MixOrder, ProgramFamily, RatesSpec};
    use crate::test_list::TESTS;
    use crate::verdict::StructureEnd;

    /// A core on which everything costs the same.
    struct Same;

    impl MeasureOverlaps for Same {
        fn measure_overlaps(&mut self, _: &OverlapProbe, _: &[usize]) -> Result<Vec<OverlapReading>, RunError> {
            Ok(Vec::new())
        }
    }

    impl MeasureCosts for Same {
        fn measure_cost(&mut self, _: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError> {
            Ok(Some(CostPoint { n, cost: 2.0, low: 2.0, high: 2.0 }))
        }
    }

    impl MeasureMixtures for Same {
        fn measure_mixture(&mut self, _: &[ClassCount], _: MixOrder, _: &str) -> Result<Option<CostPoint>, RunError> {
            Ok(None)
        }
    }

    #[test]
    fn programs_that_fill_a_structure_prove_no_rate() {
        let mut within = 0;
        for test in TESTS {
            let Experiment::Rates(RatesSpec { required_entries: Some((other, entries)), .. }) = &test.experiment else {
                continue;
            };
            let kinds = |end: Option<StructureEnd>| {
                let mut knees: StructureEnds = end.map(|end| (*other, end)).into_iter().collect();
                let cpu = CpuResources { has: &|_| true, memory: u64::MAX, shared: None };
                let records = run_test(&mut Same, &mut knees, test, &cpu, &mut Random::new(1));
                records.expect("all is simulated").iter().map(|record| record.verdict).collect::<Vec<_>>()
            };
            let rows = test.rows().len();
            assert_eq!(kinds(Some(StructureEnd::At(*entries))), vec![VerdictKind::Found; rows], "{}", test.name);
            assert_eq!(kinds(Some(StructureEnd::AtLeast(*entries))), vec![VerdictKind::Found; rows], "{}", test.name);
            assert_eq!(kinds(Some(StructureEnd::At(entries - 1))), vec![VerdictKind::Unclear; rows], "{}", test.name);
            assert_eq!(kinds(None), vec![VerdictKind::Unclear; rows], "{}", test.name);
            within += 1;
        }
        assert!(within > 0);
    }
}
