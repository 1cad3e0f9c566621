//! One timed program of an explanation: its code, its figures by pass, and why its cost counts or not.

use crate::experiments::experiment::{ChainVariation, FormExperiment};
use crate::experiments::modes;
use crate::experiments::program_reading::ProgramReading;
use crate::experiments::regime_reading::RegimeReading;
use cyclescope_code::asm::{CodeMode, Listing};
use cyclescope_core::statistics::median;
use serde::{Deserialize, Serialize};

/// The cost of a link in a chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkCost {
    /// The link's name.
    pub name: String,
    /// Core cycles. Null if it could not be measured.
    pub cycles: Option<f64>,
    /// Whether no other value is possible.
    pub certain: bool,
    /// Half the width of the interval, in core cycles. Null if unknown.
    #[serde(default)]
    pub margin: Option<f64>,
}

/// Figures of one program in one pass, in core cycles per instance, including links.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PassSpread {
    /// Layouts with a figure.
    pub layouts: usize,
    /// The lowest figure.
    pub min: f64,
    /// The median.
    pub median: f64,
    /// The highest figure.
    pub max: f64,
}

/// A short chain behind a fence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ShortChainCost {
    /// Instructions of the chain.
    pub instructions: u32,
    /// Core cycles including fence and loop: the median of layouts and passes.
    pub cycles: f64,
}

/// One timed program.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProgramTrial {
    /// `throughput`, `latency`, `false_dependency` or `slots`.
    pub question: &'static str,
    /// The recipe as text.
    pub recipe: String,
    /// The input of a latency.
    pub from: Option<String>,
    /// The output of a latency.
    pub to: Option<String>,
    /// The name of the variant, if any.
    pub variant: Option<String>,
    /// One turn of a chain, or one period of another program, as assembly.
    pub assembly: String,
    /// Assembly of the init code. May be empty.
    pub init: String,
    /// Approximate number of instances in the body.
    pub copies: usize,
    /// The links in the chain.
    pub links: Vec<LinkCost>,
    /// The figures by pass.
    pub passes: Vec<PassSpread>,
    /// Number of rejected layouts: the cost was not proportional to the number of instances.
    pub bent: u32,
    /// Number of layouts without a usable round: the clock moved, the ruler was slow, or wide units
    /// slept.
    pub void: u32,
    /// Short chains behind a fence, by length, if their turns have another cost.
    pub curve: Vec<ShortChainCost>,
    /// The estimate without links, in core cycles or slots. Null if there are no figures.
    pub cost: Option<f64>,
    /// Whether the row's figure comes from this program.
    pub taken: bool,
    /// The reason for or against this program.
    pub why: String,
}

/// A trial with the figures of its layouts by pass, and their estimate.
pub(super) fn build_trial(
    experiment: &FormExperiment,
    layouts: &[Vec<f64>],
    confidence: f64,
) -> (ProgramTrial, Option<f64>) {
    let estimate =
        if experiment.meaning.is_throughput() { modes::estimate_lowest_mode } else { modes::estimate_largest_mode };
    let raw = estimate(&layouts.concat(), confidence).map(|estimate| estimate.cost.value);
    let passes = layouts.iter().filter_map(|cycles| find_spread(cycles)).collect();
    (ProgramTrial { passes, ..empty_trial(experiment) }, raw)
}

fn empty_trial(experiment: &FormExperiment) -> ProgramTrial {
    ProgramTrial {
        question: "throughput",
        recipe: String::new(),
        from: None,
        to: None,
        variant: None,
        assembly: disassemble(&experiment.period, experiment.world.mode),
        init: disassemble(&experiment.init, experiment.world.mode),
        copies: experiment.count_repeats(usize::MAX) * experiment.copies,
        links: Vec::new(),
        passes: Vec::new(),
        bent: 0,
        void: 0,
        curve: Vec::new(),
        cost: None,
        taken: false,
        why: String::new(),
    }
}

pub(super) fn disassemble(code: &[u8], mode: CodeMode) -> String {
    Listing::from_code(code, mode).text()
}

fn find_spread(cycles: &[f64]) -> Option<PassSpread> {
    let mut known: Vec<f64> = cycles.iter().copied().filter(|cycles| cycles.is_finite()).collect();
    known.sort_by(f64::total_cmp);
    let (min, max) = (*known.first()?, *known.last()?);
    Some(PassSpread { layouts: known.len(), min, median: median(&mut known), max })
}

/// Costs of short chains of a variation, from all passes that measured them.
pub(super) fn summarize_curve(readings: &[&ProgramReading], variation: Option<ChainVariation>) -> Vec<ShortChainCost> {
    let drawn = |one: &&RegimeReading| !one.turns.is_empty() && one.variation == variation;
    let curves: Vec<&RegimeReading> = readings.iter().filter_map(|one| one.regimes.as_ref()).filter(drawn).collect();
    let Some(first) = curves.first() else { return Vec::new() };
    let layouts = || curves.iter().flat_map(|reading| &reading.curve);
    let length = |(at, turns): (usize, &u32)| {
        let mut cycles: Vec<f64> = layouts().filter_map(|layout| *layout.get(at)?).collect();
        let instructions = turns * first.instructions;
        (!cycles.is_empty()).then(|| ShortChainCost { instructions, cycles: median(&mut cycles) })
    };
    first.turns.iter().enumerate().filter_map(length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_belongs_to_the_variation_that_it_was_measured_with() {
        let regimes = |variation| RegimeReading {
            variation,
            turns: vec![6],
            curve: vec![vec![Some(25.0)]],
            ..Default::default()
        };
        for drawn in [None, Some(ChainVariation::Cleared)] {
            let reading = ProgramReading { regimes: Some(regimes(drawn)), ..ProgramReading::default() };
            let has_curve = |asked| !summarize_curve(&[&reading], asked).is_empty();
            assert_eq!([None, Some(ChainVariation::Cleared)].map(has_curve), [drawn.is_none(), drawn.is_some()]);
        }
    }
}
