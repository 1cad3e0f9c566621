//! The counter of core cycles beside the ruler, once for each executor that a study opens.
//!
//! Where an executor counts core cycles, the ruler's programs are counted: a link of the `add` chain
//! takes one core cycle, so the counter must count one. What a call counts besides its chain cancels
//! in the difference of the chain's two lengths.
//!
//! Limits: this compares the unit of all results, not each result. `--counters` compares a cost.

use super::caveat::{Caveat, CaveatKind};
use super::quantity::Quantity;
use crate::rounds::{LayoutReading, RulerRounds};
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::{Interval, t_interval};
use cyclescope_core::unit::Unit;
use cyclescope_events::EventCode;
use cyclescope_exec::Executor;
use serde::{Deserialize, Serialize};

/// Layouts and rounds: some milliseconds.
const LAYOUTS: usize = 4;
const ROUNDS: u32 = 12;
const SEED: u64 = 1;
/// The counter and the ruler disagree if the counter's interval is further from a cycle than this:
/// the tolerance of the ruler's two chains.
const AGREEMENT: f64 = 0.01;
/// Confidence level of a disagreement. A false alarm would refuse a good number.
const CERTAIN_CONFIDENCE: f64 = 0.999;

/// What the counter counted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct CounterCheck {
    /// Core cycles of a link of the ruler's `add` chain by the counter.
    pub add_link: Quantity,
}

impl CounterCheck {
    /// Counts the ruler's programs; `None` if the executor does not count core cycles.
    ///
    /// # Errors
    ///
    /// If the executor fails.
    pub(super) fn run(executor: &mut dyn Executor) -> Result<Option<CounterCheck>, RunError> {
        let cycles = EventCode::core_cycles();
        if executor.count_fitting(&[cycles]).is_err() {
            return Ok(None);
        }
        let Ok(clock) = executor.capabilities().default_clock(executor.machine()) else { return Ok(None) };
        let counted = RulerRounds::new(clock, 1.0).count(executor, cycles, LAYOUTS, ROUNDS, &mut Random::new(SEED));
        match counted {
            // Something took the counter away, so that it is not readable.
            Err(RunError::Unavailable(_)) => Ok(None),
            counted => Ok(CounterCheck::from_readings(&counted?)),
        }
    }

    fn from_readings(readings: &[LayoutReading]) -> Option<CounterCheck> {
        let links: Vec<f64> = readings.iter().map(|reading| reading.add).collect();
        let add_link = t_interval(&links, CERTAIN_CONFIDENCE)?;
        Some(CounterCheck { add_link: Quantity::new(add_link, Unit::CoreCycles) })
    }

    /// The caveat of all results, if the counter and the ruler disagree.
    pub(super) fn find_caveat(&self) -> Option<Caveat> {
        let Quantity { value, low, high, .. } = self.add_link;
        let link = Interval { value: value?, low: low?, high: high? };
        if link.low <= 1.0 + AGREEMENT && link.high >= 1.0 - AGREEMENT {
            return None;
        }
        let text = format!(
            "the core-cycles counter counted {:.4} cycles for an add of the ruler ({:.4} to {:.4}), which takes one: \
             costs may be wrong by as much",
            link.value, link.low, link.high
        );
        Some(Caveat { code: CaveatKind::RulersDisagree, text })
    }
}
