//! Costs that change while a curve is measured: what comes with the time and not with the count is
//! no level.

use crate::cost::{CostPoint, MeasureCosts};
use crate::level_curves::run_levels;
use crate::record::UarchRecord;
use crate::spec::{Experiment, ProgramFamily};
use crate::test_list::TESTS;
use crate::verdict::VerdictKind;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;

/// A core on which all counts cost the same, and more with each measurement: as beside background
/// load that begins, or where the instrument drifts.
struct DriftingCore {
    measured: usize,
    /// The number of a walk's measurement from which on a step costs twice as much, or none where
    /// it becomes dearer bit by bit.
    at: Option<usize>,
    family: &'static str,
}

/// Measurements in which the cost doubles that rises bit by bit.
const DOUBLED: f64 = 40.0;

impl MeasureCosts for DriftingCore {
    fn measure_cost(&mut self, family: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError> {
        // Each walk meets the same, so that walks agree in what the time shows.
        if self.family != family.name {
            (self.family, self.measured) = (family.name, 0);
        }
        self.measured += 1;
        let later = match self.at {
            Some(at) => f64::from(u8::from(self.measured > at)),
            None => self.measured as f64 / DOUBLED,
        };
        let cost = 20.0 * (1.0 + later);
        Ok(Some(CostPoint { n, cost, low: cost, high: cost }))
    }
}

/// The sizes that are found on such a core, in all tests of levels.
fn found(at: Option<usize>, seed: u64) -> Vec<String> {
    let mut all = Vec::new();
    for test in TESTS {
        let Experiment::Levels(walks) = &test.experiment else { continue };
        let mut core = DriftingCore { measured: 0, at, family: "" };
        let records =
            run_levels(&mut core, test, walks, walks.count_range[1], &mut Random::new(seed)).expect("all is simulated");
        let is_size = |record: &&UarchRecord| !record.what.ends_with("cost") && record.verdict == VerdictKind::Found;
        all.extend(records.iter().filter(is_size).map(|record| format!("{} {seed}: {}", record.what, record.why)));
    }
    all
}

/// Where counts come in their order, most of these are found.
#[test]
fn costs_that_drift_upwards_are_no_level() {
    let begins = [Some(6), Some(10), Some(14), None];
    let all: Vec<String> = begins.into_iter().flat_map(|at| (0..10).flat_map(move |seed| found(at, seed))).collect();
    let tests = TESTS.iter().filter(|test| matches!(test.experiment, Experiment::Levels(_))).count();
    let tried = begins.len() * 10 * tests;
    assert!(all.len() as f64 <= BY_CHANCE * tried as f64, "{} of {tried}: {all:#?}", all.len());
}

/// The share of climbs in which both walks by chance have an end at the same count.
const BY_CHANCE: f64 = 0.02;
