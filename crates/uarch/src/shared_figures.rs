//! Figures of memory that other CPUs use too. They are measured at several times of a run.
//!
//! The third cache and memory have other users, and what they leave changes within minutes. Layouts
//! that follow each other do not show it: on a guest of a busy machine, figures of runs differed
//! by 10 to 40 %, and intervals of one run were a few percent wide. So a row's passes are spread
//! from the begin of the run to the row's own test, and the interval spans all of them. A test that
//! runs alone has all passes at one time, and its numbers say so.

use super::cost::{CostPoint, MeasureCosts, SETTLING_RUNS, measure_costs_once, measure_median_costs};
use super::spec::{Experiment, ProgramFamily, TestRow, TestSpec};
use cyclescope_core::error::RunError;
use iced_x86::CpuidFeature;
use std::collections::BTreeMap;

/// The costs of a row's programs in one pass.
pub(super) type CostPass = Vec<Option<CostPoint>>;

/// Passes over the shared rows of tests that are still to come.
#[derive(Debug, Default)]
pub(super) struct SharedFigures {
    /// Passes by the key of a row's record.
    passes: BTreeMap<String, Vec<CostPass>>,
}

impl SharedFigures {
    /// Measures the passes that are due before the test at this place: of the passes of each row,
    /// all but the last are spread evenly over the tests before its own.
    pub(super) fn measure_due(
        &mut self,
        core: &mut dyn MeasureCosts,
        tests: &[&'static TestSpec],
        place: usize,
        memory: u64,
        has: &dyn Fn(&CpuidFeature) -> bool,
    ) -> Result<(), RunError> {
        for (own, test) in tests.iter().enumerate().skip(place + 1) {
            for row in test.rows().iter().filter(|row| row.uses_shared_memory && has_room(test, row, memory)) {
                let due = (SETTLING_RUNS * (place + 1) / (own + 1)).min(SETTLING_RUNS - 1);
                let done = self.passes.entry(row.record_key(test.name)).or_default();
                if done.len() < due {
                    match measure_costs_once(core, &find_families(row, has), row.n) {
                        // The row's own test reports it.
                        Err(RunError::Unavailable(_)) => {}
                        pass => done.push(pass?),
                    }
                }
            }
        }
        Ok(())
    }

    /// The passes so far over a row of a test.
    pub(super) fn passes_of(&self, test: &TestSpec, row: &TestRow) -> &[CostPass] {
        self.passes.get(&row.record_key(test.name)).map_or(&[], Vec::as_slice)
    }
}

/// Whether the programs of a row need no more than this memory.
fn has_room(test: &TestSpec, row: &TestRow, memory: u64) -> bool {
    match &test.experiment {
        Experiment::Rates(rates) => rates.has_room(row, memory),
        _ => true,
    }
}

/// The programs of a row that this CPU can run.
pub(super) fn find_families(row: &TestRow, has: &dyn Fn(&CpuidFeature) -> bool) -> Vec<&'static ProgramFamily> {
    row.runnable_variants(has).map(|variant| &variant.family).collect()
}

/// The settled costs of programs at a count: the median of some measurements, or of earlier passes
/// and the last one, with an interval over all.
pub(super) fn measure_settled_costs(
    core: &mut dyn MeasureCosts,
    families: &[&ProgramFamily],
    n: usize,
    earlier: &[CostPass],
) -> Result<CostPass, RunError> {
    if earlier.is_empty() {
        return measure_median_costs(core, families, n);
    }
    let mut passes = earlier.to_vec();
    while passes.len() < SETTLING_RUNS {
        passes.push(measure_costs_once(core, families, n)?);
    }
    Ok(span_passes(&passes))
}

/// The middle cost of each program, with an interval over all passes; `None` for programs that all
/// passes lack.
fn span_passes(passes: &[CostPass]) -> CostPass {
    let programs = passes.first().map_or(0, Vec::len);
    let span = |program: usize| {
        let mut points: Vec<CostPoint> = passes.iter().filter_map(|pass| pass[program]).collect();
        points.sort_by(|one, other| one.cost.total_cmp(&other.cost));
        let low = points.iter().map(|point| point.low).fold(f64::INFINITY, f64::min);
        let high = points.iter().map(|point| point.high).fold(f64::NEG_INFINITY, f64::max);
        points.get(points.len() / 2).map(|point| CostPoint { low, high, ..*point })
    };
    (0..programs).map(span).collect()
}

/// What a number says whose passes all ran at one time.
pub(super) const ONE_TIME: &str =
    "at one time only: it depends on what others do in this memory, which a whole run spans better";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contrast::run_contrast;
    use crate::cpu_resources::CpuResources;
    use crate::rates::run_rates;
    use crate::record::UarchRecord;
    use crate::test_list::TESTS;
    use crate::verdict::VerdictKind;

    /// A machine on which shared memory gets slower with each test, and nothing else.
    struct SlowerMemory {
        place: usize,
        measured: usize,
    }

    impl MeasureCosts for SlowerMemory {
        fn measure_cost(&mut self, _: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError> {
            self.measured += 1;
            let cost = 10.0 * (1.0 + 0.002 * self.place as f64);
            Ok(Some(CostPoint { n, cost, low: 0.999 * cost, high: 1.001 * cost }))
        }
    }

    fn run_rows(core: &mut SlowerMemory, test: &'static TestSpec, cpu: &CpuResources) -> Vec<UarchRecord> {
        let records = match &test.experiment {
            Experiment::Rates(rates) => run_rates(core, test, rates, cpu),
            Experiment::Contrast(contrast) => run_contrast(core, test, contrast, cpu),
            _ => panic!("it has no rows"),
        };
        records.expect("all is simulated")
    }

    /// The records of a test in a run that begins with `others` other tests.
    fn records_behind(name: &str, others: usize) -> (Vec<(f64, Option<String>)>, usize) {
        let own = TESTS.iter().position(|test| test.name == name).expect("it is in the list");
        let tests = &TESTS[own - others..=own];
        let (mut core, mut figures) = (SlowerMemory { place: 0, measured: 0 }, SharedFigures::default());
        let has = |_: &CpuidFeature| true;
        for place in 0..tests.len() {
            core.place = place;
            figures.measure_due(&mut core, tests, place, u64::MAX, &has).expect("all is simulated");
        }
        let cpu = CpuResources { has: &has, memory: u64::MAX, shared: Some(&figures) };
        let records = run_rows(&mut core, tests[others], &cpu);
        let width = |value: &cyclescope_measure::result::record::Quantity| value.high.unwrap() / value.low.unwrap();
        let shared = records.into_iter().filter(|record| {
            let mut rows = tests[others].rows().iter();
            rows.any(|row| row.uses_shared_memory && row.record_key(name) == record.what)
        });
        let shown = shared.map(|record| {
            assert_eq!(record.verdict, VerdictKind::Found, "{}", record.why);
            (width(&record.value), record.told)
        });
        (shown.collect(), core.measured)
    }

    #[test]
    fn the_interval_of_shared_memory_spans_the_run() {
        for name in ["read_bandwidth", "strided_load", "huge_pages"] {
            let (spread, measured) = records_behind(name, 40);
            let (alone, same) = records_behind(name, 0);
            assert!(!spread.is_empty() && spread.len() == alone.len(), "{name}");
            // From a third of 40 tests to the last one, at 0.2 % each.
            assert!(spread.iter().all(|(width, told)| *width > 1.04 && told.is_none()), "{name}: {spread:?}");
            assert!(alone.iter().all(|(width, told)| *width < 1.01 && told.as_deref() == Some(ONE_TIME)), "{alone:?}");
            // Other tests before it have shared rows too.
            assert!(measured >= same, "{name}");
        }
    }

    #[test]
    fn passes_of_a_run_are_as_many_as_those_at_one_time() {
        let place = TESTS.iter().position(|test| test.name == "strided_load").expect("it is in the list");
        let mut core = SlowerMemory { place: 0, measured: 0 };
        let mut figures = SharedFigures::default();
        for before in 0..=place {
            figures.measure_due(&mut core, TESTS, before, u64::MAX, &|_| true).expect("all is simulated");
        }
        for row in TESTS[place].rows() {
            assert_eq!(figures.passes_of(TESTS[place], row).len(), SETTLING_RUNS - 1, "{}", row.name);
        }
    }

    #[test]
    fn far_rows_of_bandwidth_and_strides_use_shared_memory() {
        let shared = |name: &str| {
            let test = TESTS.iter().find(|test| test.name == name).expect("it is in the list");
            test.rows().iter().filter(|row| row.uses_shared_memory).map(|row| row.name).collect::<Vec<_>>()
        };
        assert_eq!(shared("read_bandwidth"), ["8_MiB", "64_MiB"]);
        assert!(shared("strided_load").len() > 8 && shared("load_rate").is_empty());
        assert!(TESTS.iter().all(|test| match test.experiment {
            Experiment::Rates(_) | Experiment::Contrast(_) => true,
            _ => shared(test.name).is_empty(),
        }));
    }
}
