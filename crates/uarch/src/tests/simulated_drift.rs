//! Costs that drift during a measurement. A change over time must not appear as a level.

use crate::cost::{CostPoint, MeasureCosts};
use crate::level_curves::run_levels;
use crate::record::UarchRecord;
use crate::spec::{Experiment, ProgramFamily};
use crate::test_list::TESTS;
use crate::verdict::VerdictKind;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use std::collections::BTreeMap;

/// A core with the same cost at all counts, which rises with each measurement: as when background
/// load begins, or when the instrument drifts.
struct DriftingCore {
    /// Measurements of each program.
    measured: BTreeMap<&'static str, usize>,
    /// The measurement of a program from which on a step costs twice as much; `None` if the cost
    /// rises gradually.
    at: Option<usize>,
}

/// Number of measurements in which a gradual rise doubles the cost.
const DOUBLED: f64 = 40.0;

impl MeasureCosts for DriftingCore {
    fn measure_cost(&mut self, family: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError> {
        // Each program meets the same drift, so programs agree on its effect.
        let measured = self.measured.entry(family.name).or_default();
        *measured += 1;
        let later = match self.at {
            Some(at) => f64::from(u8::from(*measured > at)),
            None => *measured as f64 / DOUBLED,
        };
        let cost = 20.0 * (1.0 + later);
        Ok(Some(CostPoint { n, cost, low: cost, high: cost }))
    }
}

/// The sizes found on such a core, over all tests of levels.
fn found(at: Option<usize>, seed: u64) -> Vec<String> {
    let mut all = Vec::new();
    for test in TESTS {
        let Experiment::Levels(spec) = &test.experiment else { continue };
        let mut core = DriftingCore { measured: BTreeMap::new(), at };
        let records =
            run_levels(&mut core, test, spec, spec.count_range[1], &mut Random::new(seed)).expect("all is simulated");
        let is_size = |record: &&UarchRecord| !record.what.ends_with("cost") && record.verdict == VerdictKind::Found;
        all.extend(records.iter().filter(is_size).map(|record| format!("{} {seed}: {}", record.what, record.why)));
    }
    all
}

/// Without random order, most of these would be found.
#[test]
fn costs_that_drift_upwards_are_no_level() {
    let begins = [Some(6), Some(10), Some(14), None];
    let all: Vec<String> = begins.into_iter().flat_map(|at| (0..10).flat_map(move |seed| found(at, seed))).collect();
    let tests = TESTS.iter().filter(|test| matches!(test.experiment, Experiment::Levels(_))).count();
    let tried = begins.len() * 10 * tests;
    assert!(all.len() as f64 <= BY_CHANCE * tried as f64, "{} of {tried}: {all:#?}", all.len());
}

/// The share of runs in which both programs have an end at the same count by chance.
const BY_CHANCE: f64 = 0.02;
