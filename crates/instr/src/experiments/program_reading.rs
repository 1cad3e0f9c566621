//! The readings of one program: one figure per layout.

use super::experiment::ChainVariation;
use super::regime_reading::RegimeReading;
use super::slot_reading::SlotReading;
use super::timing::ProgramTiming;
use cyclescope_core::statistics::{mean, median};
use serde::{Deserialize, Serialize};

/// Allowed difference of an instance's cost between the short and the long half of the iterations:
/// in core cycles or as a share, whichever is more.
const BEND_CYCLES: f64 = 0.03;
const BEND_SHARE: f64 = 0.05;
/// Lower limit of a plausible cost: sixteen instances per cycle.
const CYCLES_LEAST: f64 = 0.06;
/// Rounds of one layout within this share of their median are averaged.
const ROUND_SHARE: f64 = 0.02;

/// Figures of one experiment: core cycles per instance, by layout.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ProgramReading {
    /// Core cycles per instance, including links and other code of its turn.
    pub cycles: Vec<f64>,
    /// Core cycles per instance in each round of a throughput program, in all layouts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<f64>,
    /// Number of rejected layouts: the cost was not proportional to the number of instances.
    pub bent: u32,
    /// Number of layouts without a usable round: the clock moved, the ruler was slow, or wide units
    /// slept.
    #[serde(default)]
    pub void: u32,
    /// Figures of layouts with a busy sibling in every round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<f64>,
    /// Approximate cost in the single layout of the first look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_look: Option<f64>,
    /// Variations of the chain, measured if it may be slow for another reason than its latency.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub again: Vec<(ChainVariation, Vec<f64>)>,
    /// Core cycles per further turn in short chains of a variation, by layout. Measured if the rate
    /// of its instances limits the chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_variation: Option<(ChainVariation, Vec<f64>)>,
    /// Only in the first experiment: the rate of its instances from the decoders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decoded: Vec<f64>,
    /// Costs of short chains behind a fence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regimes: Option<RegimeReading>,
    /// Only in the first experiment: bodies that count dispatch slots.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slots: Vec<SlotReading>,
    /// Only in the first experiment, if other constants were screened: readings of the same plan
    /// with those that may matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constants: Option<Vec<ConstantReadings>>,
}

/// Readings of a plan with another constant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConstantReadings {
    /// Index among the form's constants.
    pub place: usize,
    /// Readings by experiment.
    pub readings: Vec<ProgramReading>,
}

impl ProgramReading {
    /// The layouts of a variation of the chain.
    pub(crate) fn find_variation(&self, variation: ChainVariation) -> Option<&[f64]> {
        self.again.iter().find(|(other, _)| *other == variation).map(|(_, cycles)| cycles.as_slice())
    }

    /// Adds a layout, unless it has no usable round or its cost is not proportional to the
    /// iterations.
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

impl ProgramReading {
    /// Adds a layout of a throughput program by the best rate that one of its rounds sustained. The
    /// scheduling mode can change from call to call. Then the calls of a round don't fit together: a
    /// slow short call makes the difference between calls too small. The difference is therefore
    /// used only if the cost is proportional to the iterations and the longest call alone allows
    /// it. Otherwise the longest call gives the cost, which it can't understate.
    pub(crate) fn add_rate_layout(&mut self, timing: &ProgramTiming) {
        let alone = !timing.cycles.is_empty();
        let (all, bends, wholes, floors) = match alone {
            true => (&timing.cycles, &timing.bend, &timing.whole, &timing.floor),
            false => (&timing.shared, &timing.shared_bend, &timing.shared_whole, &timing.shared_floor),
        };
        if all.is_empty() {
            self.void += 1;
            return;
        }
        let round = |at: usize| {
            let (cycles, bend) = (all[at], bends[at]);
            let is_sound = cycles >= floors[at] && bend.abs() <= BEND_CYCLES.max(BEND_SHARE * cycles);
            if is_sound { cycles.min(wholes[at]) } else { wholes[at] }
        };
        let is_plausible = |cycles: &f64| *cycles > CYCLES_LEAST && cycles.is_finite();
        let mut sound: Vec<f64> = (0..all.len()).map(round).filter(is_plausible).collect();
        sound.sort_by(f64::total_cmp);
        let Some(least) = sound.first().copied() else {
            self.bent += 1;
            return;
        };
        let best: Vec<f64> = sound.iter().copied().filter(|cycles| *cycles <= (1.0 + ROUND_SHARE) * least).collect();
        if alone {
            self.cycles.push(mean(&best));
            self.rounds.extend(sound);
        } else {
            self.shared.push(mean(&best));
        }
    }
}

/// The figures of an experiment's layouts by pass: those with an idle sibling, or if it was always busy, the others.
pub(crate) fn figures_by_pass(passes: &[Vec<ProgramReading>], experiment: usize) -> Vec<Vec<f64>> {
    let readings = || passes.iter().filter_map(|pass| pass.get(experiment));
    let alone: Vec<Vec<f64>> = readings().map(|reading| reading.cycles.clone()).collect();
    let never = alone.iter().all(Vec::is_empty);
    if never { readings().map(|reading| reading.shared.clone()).collect() } else { alone }
}

/// A layout's cost, even with a busy sibling.
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
    fn bent_or_impossible_layouts_are_rejected() {
        let mut reading = ProgramReading::default();
        reading.add_layout(&timing(1.0, 0.01));
        for (cycles, bend) in [(1.0, 0.2), (1.0, -0.2), (-0.167, 0.0), (0.01, 0.0), (f64::NAN, 0.0)] {
            reading.add_layout(&timing(cycles, bend));
        }
        reading.add_layout(&ProgramTiming::default());
        assert_eq!((reading.cycles, reading.bent, reading.void), (vec![1.0], 5, 1));
    }

    #[test]
    fn a_rate_is_the_best_sound_round() {
        let rounds = |rounds: &[[f64; 3]]| {
            let mut reading = ProgramReading::default();
            reading.add_rate_layout(&ProgramTiming {
                cycles: rounds.iter().map(|round| round[0]).collect(),
                bend: rounds.iter().map(|round| round[1]).collect(),
                whole: rounds.iter().map(|round| round[2]).collect(),
                floor: rounds.iter().map(|round| 0.97 * if round[2] < 9.0 { round[2] } else { 0.5 }).collect(),
                ..ProgramTiming::default()
            });
            reading
        };
        // The mode changes from round to round.
        let two = rounds(&[[0.577, 0.0, 0.58], [0.5, 0.0, 0.503], [0.578, 0.0, 0.58]]);
        assert_eq!((two.cycles, two.rounds.len()), (vec![0.5], 3));
        // A slow short call, as the bend or the longest call shows.
        let mixed = rounds(&[[0.577, 0.0, 0.58], [0.42, 0.1, 0.503], [0.48, 0.02, 0.503]]);
        assert_eq!((mixed.cycles, mixed.rounds.len()), (vec![0.503], 3));
        // Buffers took a part of the longest call.
        let buffered = rounds(&[[0.8, 0.2, f64::INFINITY]]);
        assert_eq!((buffered.cycles, buffered.bent), (vec![], 1));
        assert_eq!(rounds(&[]).void, 1);
    }

    #[test]
    fn figures_with_a_busy_sibling_are_kept_apart() {
        let mut reading = ProgramReading::default();
        reading.add_layout(&ProgramTiming { shared: vec![2.0], shared_bend: vec![0.0], ..ProgramTiming::default() });
        reading.add_layout(&timing(1.0, 0.0));
        assert_eq!((reading.cycles, reading.shared), (vec![1.0], vec![2.0]));
    }
}
