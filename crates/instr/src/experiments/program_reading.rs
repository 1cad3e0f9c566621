//! The readings of one program: what each of its layouts came to.

use super::experiment::ChainVariation;
use super::regime_reading::RegimeReading;
use super::timing::ProgramTiming;
use cyclescope_core::statistics::{mean, median};
use serde::{Deserialize, Serialize};

/// From the short to the long half, the cost of an instance may differ by these core cycles or this share
/// of it, whichever is more.
const BEND_CYCLES: f64 = 0.03;
const BEND_SHARE: f64 = 0.05;
/// No instance takes less: sixteen in a cycle.
const CYCLES_LEAST: f64 = 0.06;
/// Rounds of one layout within this share of their median are averaged.
const ROUND_SHARE: f64 = 0.02;

/// One experiment's figures: core cycles a copy, by layout.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ProgramReading {
    /// Core cycles an instance with all that comes with it.
    pub cycles: Vec<f64>,
    /// Layouts that were left out because the cost was not proportional to the number of instances.
    pub bent: u32,
    /// Layouts without a round to go by: the clock moved, the ruler was slow, or wide units slept.
    #[serde(default)]
    pub void: u32,
    /// The figures of layouts in which something else used the core in every round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<f64>,
    /// About what it took in the one layout by which programs were chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_look: Option<f64>,
    /// The same chain in other ways, where it may be slow for another reason than its latency.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub again: Vec<(ChainVariation, Vec<f64>)>,
    /// With the first experiment, the rate of its instances from the decoders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decoded: Vec<f64>,
    /// Short chains behind a fence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regimes: Option<RegimeReading>,
    /// With the first experiment, where other constants were tried: the readings of the same plan with those that may
    /// matter, by their places among those of the form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constants: Option<Vec<ConstantReadings>>,
}

/// The readings of a plan with another constant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConstantReadings {
    /// The place of the constant among those of the form.
    pub place: usize,
    /// By experiment.
    pub readings: Vec<ProgramReading>,
}

impl ProgramReading {
    /// Adds a layout, unless all its rounds were disturbed or its cost is not proportional to the iterations.
    pub(crate) fn add_layout(&mut self, timing: &ProgramTiming) {
        let alone = !timing.cycles.is_empty();
        let (all, bends) = if alone { (&timing.cycles, &timing.bend) } else { (&timing.shared, &timing.shared_bend) };
        if all.is_empty() {
            self.void += 1;
            return;
        }
        let (cycles, bend) = (mean_near_median(all), median(&mut bends.clone()));
        if cycles <= CYCLES_LEAST || cycles.is_nan() || bend.abs() > BEND_CYCLES.max(BEND_SHARE * cycles.abs()) {
            self.bent += 1;
        } else if alone {
            self.cycles.push(cycles);
        } else {
            self.shared.push(cycles);
        }
    }
}

/// A layout's cost, whatever disturbed it.
pub(crate) fn layout_cost(timing: &ProgramTiming) -> f64 {
    mean_near_median(if timing.cycles.is_empty() { &timing.shared } else { &timing.cycles })
}

/// The mean of the rounds near their median.
fn mean_near_median(cycles: &[f64]) -> f64 {
    if cycles.is_empty() {
        return f64::NAN;
    }
    let middle = median(&mut cycles.to_vec());
    let near: Vec<f64> =
        cycles.iter().copied().filter(|cycles| (cycles - middle).abs() <= ROUND_SHARE * middle.abs()).collect();
    if near.is_empty() { middle } else { mean(&near) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(cycles: f64, bend: f64) -> ProgramTiming {
        ProgramTiming { cycles: vec![cycles; 3], bend: vec![bend; 3], ..ProgramTiming::default() }
    }

    #[test]
    fn layouts_that_are_bent_or_impossible_are_left_out() {
        let mut reading = ProgramReading::default();
        reading.add_layout(&timing(1.0, 0.01));
        for (cycles, bend) in [(1.0, 0.2), (1.0, -0.2), (-0.167, 0.0), (0.01, 0.0), (f64::NAN, 0.0)] {
            reading.add_layout(&timing(cycles, bend));
        }
        reading.add_layout(&ProgramTiming::default());
        assert_eq!((reading.cycles, reading.bent, reading.void), (vec![1.0], 5, 1));
    }

    #[test]
    fn a_neighbours_figures_are_kept_apart() {
        let mut reading = ProgramReading::default();
        reading.add_layout(&ProgramTiming { shared: vec![2.0], shared_bend: vec![0.0], ..ProgramTiming::default() });
        reading.add_layout(&timing(1.0, 0.0));
        assert_eq!((reading.cycles, reading.shared), (vec![1.0], vec![2.0]));
    }
}
