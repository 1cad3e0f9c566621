//! Comparison of APERF with the ruler: two independent counts of core cycles.
//!
//! APERF counts core cycles and the TSC counts ticks over the same periods. Their ratio is the core
//! clock, whatever ran, including delays and untimed rounds. The ruler measures the same ratio in
//! the timed rounds alone. Limit: while the clock changes, the two are means over different
//! moments.

use crate::CostMeasurement;
use crate::result::caveat::{Caveat, CaveatKind};
use cyclescope_code::clock::Clock;
use cyclescope_core::unit::{Hertz, Unit};
use cyclescope_exec::CounterProgress;
use serde::Serialize;

/// The two disagree if APERF is outside the range of the ruler's layouts by more than this share.
/// The ruler's two chains have the same tolerance.
const AGREEMENT_SHARE: f64 = 0.01;

/// Core cycles per TSC tick, by APERF and by the ruler.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AperfComparison {
    /// By APERF, over all batches of the layouts in the estimate.
    pub by_aperf: f64,
    /// By the ruler: slowest layout, mean, fastest layout. `None` if the timing method does not
    /// count ticks.
    pub by_ruler: Option<[f64; 3]>,
}

/// APERF's part of a result.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AperfRecord {
    /// Core cycles per TSC tick, by APERF.
    pub cycles_per_tick: f64,
    /// Core cycles per TSC tick, by the ruler: the mean over the layouts. Null if the timing method
    /// does not count ticks.
    pub ruler_cycles_per_tick: Option<f64>,
    /// Core clock in MHz, by APERF; null if the rate of the TSC is unknown.
    pub core_mhz: Option<f64>,
}

impl AperfComparison {
    /// Compares the two for a measurement with this clock; `None` if APERF was not read.
    pub fn from_measurement(measurement: &CostMeasurement, clock: &Clock) -> Option<AperfComparison> {
        // A hypervisor may expose the counter without advancing it.
        let CounterProgress { tsc, aperf, .. } =
            measurement.acquisition.progress.filter(|progress| progress.tsc > 0 && progress.aperf > 0)?;
        let rate = measurement.estimate.as_ref().filter(|_| clock.counts == Unit::TscTicks);
        let by_ruler = rate.map(|estimate| {
            let [low, mean, high] = estimate.rate;
            // The largest number of ticks per cycle belongs to the slowest core.
            [high, mean, low].map(|ticks| 1.0 / ticks)
        });
        Some(AperfComparison { by_aperf: aperf as f64 / tsc as f64, by_ruler })
    }

    /// Returns a caveat if the two disagree. A value within the range of the layouts is explained
    /// by a changing clock, since a mean over time cannot leave that range.
    pub fn find_caveat(&self) -> Option<Caveat> {
        let [slow, mean, fast] = self.by_ruler?;
        if (slow * (1.0 - AGREEMENT_SHARE)..=fast * (1.0 + AGREEMENT_SHARE)).contains(&self.by_aperf) {
            return None;
        }
        let text = format!(
            "APERF counted {:.4} core cycles per TSC tick, {:+.1} % against the ruler's {mean:.4} \
             ({slow:.4} to {fast:.4})",
            self.by_aperf,
            100.0 * (self.by_aperf / mean - 1.0)
        );
        Some(Caveat { code: CaveatKind::RulersDisagree, text })
    }

    /// The comparison in the form for a record.
    pub fn to_record(&self, tsc: Option<Hertz>) -> AperfRecord {
        AperfRecord {
            cycles_per_tick: self.by_aperf,
            ruler_cycles_per_tick: self.by_ruler.map(|[_, mean, _]| mean),
            core_mhz: tsc.map(|rate| rate.to_megahertz() * self.by_aperf),
        }
    }
}
