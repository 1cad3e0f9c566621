//! The two latencies of a chain, and the knee between them.
//!
//! A chain of n turns behind a fence takes a constant plus n times the fresh cost, up to the knee.
//! Beyond it, each further turn takes the saturated cost, which is that of the long loop. Two lines
//! that meet at the knee are fitted to each layout's curve. If the median curve does not match
//! them, something else bends it, and no latencies are reported. The fresh cost is the slope well
//! below the knee.

use super::instr_row::LatencyRegimes;
use crate::experiments::modes::estimate_largest_mode;
use crate::experiments::program_reading::ProgramReading;
use crate::experiments::regime_reading::RegimeReading;
use crate::experiments::regimes::{DIFFERENT_CYCLES, DIFFERENT_SHARE, SCREENING_LENGTHS};
use cyclescope_core::statistics::{self, Interval, median, t_interval};
use cyclescope_core::unit::Unit;
use cyclescope_measure::result::record::Quantity;

/// Least number of lengths on the fresh line, and on the saturated line.
const FRESH_LEAST: usize = 3;
const SATURATED_LEAST: usize = 3;
/// Steps per turn in the search for the knee.
const KNEE_STEPS: usize = 4;
/// Tolerance of a length's distance from its line, as a share of its time plus these core cycles.
const OFF_SHARE: f64 = 0.08;
const OFF_CYCLES: f64 = 3.0;
/// A chain with shorter turns does not wait for itself: its start hides behind the fence.
const TURN_LEAST: f64 = 0.95;
/// The longer chain of a screening has at least this many turns.
const SCREENED_TURNS: f64 = 3.0;
/// Chains up to this share of the knee's length are well below it.
const EARLY_SHARE: f64 = 0.7;
/// A knee is reported only if its interval is within this share to either side.
const KNEE_SHARE: f64 = 0.25;

/// Two lines that meet at a knee.
#[derive(Debug, Clone, Copy, PartialEq)]
struct TwoLineFit {
    /// Core cycles per turn on the first line.
    fresh: f64,
    /// Turns at the knee.
    knee: f64,
    /// Distance of the lengths from the lines: root mean square in core cycles.
    off: f64,
    /// Distance of the lengths on the first line.
    fresh_off: f64,
}

/// The fresh cost of a turn, and the knee in turns.
#[derive(Debug, Clone, Copy, PartialEq)]
struct TurnCosts {
    fresh: Interval,
    knee: Interval,
    instructions: f64,
}

/// Fits two lines to the curve of one layout. The second has the slope `saturated`.
fn fit_lines(turns: &[f64], cycles: &[f64], saturated: f64) -> Option<TwoLineFit> {
    let (first, last) = (*turns.get(FRESH_LEAST - 1)?, *turns.get(turns.len().checked_sub(SATURATED_LEAST)?)?);
    let steps = ((last - first) * KNEE_STEPS as f64) as usize;
    let knees = (0..=steps).map(|step| first + step as f64 / KNEE_STEPS as f64);
    let lines = knees.map(|knee| (knee, FreshLine::fit(turns, cycles, saturated, knee)));
    let (knee, line) = lines.min_by(|(_, a), (_, b)| a.off.total_cmp(&b.off))?;
    let FreshLine { fresh, constant, off } = line;
    let fit = TwoLineFit { fresh, knee, off, fresh_off: line.find_fresh_off(turns, cycles, knee) };
    let near = turns.iter().zip(cycles).all(|(turns, cycles)| {
        let expected = constant + fit.fresh * turns.min(fit.knee) + saturated * (turns - fit.knee).max(0.0);
        (cycles - expected).abs() <= OFF_CYCLES + OFF_SHARE * cycles
    });
    near.then_some(fit)
}

/// The best first line for a knee.
#[derive(Debug, Clone, Copy, PartialEq)]
struct FreshLine {
    /// See [`TwoLineFit::fresh`].
    fresh: f64,
    /// Core cycles of a chain without turns.
    constant: f64,
    /// See [`TwoLineFit::off`].
    off: f64,
}

impl FreshLine {
    /// Fits the line in one walk over the lengths, because the search tries hundreds of knees. The
    /// variance is proportional to the time.
    fn fit(turns: &[f64], cycles: &[f64], saturated: f64, knee: f64) -> FreshLine {
        let [mut all, mut x, mut y, mut xx, mut xy, mut yy] = [0.0; 6];
        for (turns, cycles) in turns.iter().zip(cycles) {
            let (at, value) = (turns.min(knee), cycles - saturated * (turns - knee).max(0.0));
            let weight = 1.0 / cycles;
            all += weight;
            x += weight * at;
            y += weight * value;
            xx += weight * at * at;
            xy += weight * at * value;
            yy += weight * value * value;
        }
        let fresh = (xy - x * y / all) / (xx - x * x / all);
        let rest = (yy - y * y / all) - fresh * (xy - x * y / all);
        FreshLine { fresh, constant: (y - fresh * x) / all, off: (rest.max(0.0) / all).sqrt() }
    }

    /// See [`TwoLineFit::fresh_off`].
    fn find_fresh_off(&self, turns: &[f64], cycles: &[f64], knee: f64) -> f64 {
        let before = turns.iter().zip(cycles).filter(|(turns, _)| **turns < knee);
        let errors = before.map(|(turns, cycles)| (cycles - self.constant - self.fresh * turns).powi(2));
        statistics::mean(&errors.collect::<Vec<f64>>()).sqrt()
    }
}

/// The slope of a curve well below the knee: some chains bend a little before they reach the second
/// line. `None` with too few lengths there.
fn find_early_slope(turns: &[f64], cycles: &[f64], knee: f64) -> Option<f64> {
    let early = turns.iter().filter(|turns| **turns <= EARLY_SHARE * knee).count();
    let (turns, cycles) = (turns.get(..early.max(FRESH_LEAST))?, cycles.get(..early)?);
    let deviations = |values: &[f64]| values.iter().map(|value| value - statistics::mean(values)).collect::<Vec<f64>>();
    let (x, y) = (deviations(turns), deviations(cycles));
    let sum = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(one, other)| one * other).sum::<f64>();
    (early >= FRESH_LEAST).then(|| sum(&x, &y) / sum(&x, &x))
}

/// The first reading with a curve.
fn find_drawn<'a>(passes: &[&'a ProgramReading]) -> Option<&'a RegimeReading> {
    passes.iter().filter_map(|reading| reading.regimes.as_ref()).find(|reading| !reading.turns.is_empty())
}

/// The numbers of turns, the instructions per turn, and all complete curves of all passes.
fn collect_curves(passes: &[&ProgramReading]) -> Option<(Vec<f64>, f64, Vec<Vec<f64>>)> {
    let drawn = || passes.iter().filter_map(|reading| reading.regimes.as_ref());
    let RegimeReading { turns, instructions, variation, .. } = find_drawn(passes)?;
    let alike = |reading: &&RegimeReading| reading.turns == *turns && reading.variation == *variation;
    let layouts = drawn().filter(alike).flat_map(|reading| &reading.curve);
    let curves = layouts.filter_map(|layout| layout.iter().copied().collect()).collect();
    Some((turns.iter().map(|turns| f64::from(*turns)).collect(), f64::from(*instructions), curves))
}

/// Both costs of a turn, if short chains are quicker and their curve consists of two lines.
fn estimate_turn(passes: &[&ProgramReading], confidence: f64) -> Option<(TurnCosts, Interval)> {
    let variation = find_drawn(passes)?.variation;
    let long = passes.iter().flat_map(|reading| match variation {
        None => reading.cycles.clone(),
        Some(variation) => reading.find_variation(variation).unwrap_or_default().to_vec(),
    });
    let long: Vec<f64> = long.collect();
    let saturated = estimate_largest_mode(&long, confidence)?.cost;
    let (turns, instructions, curves) = collect_curves(passes)?;
    // Uses the median curve: a disturbance of a few layouts is not a property of the chain.
    let length = |at: usize| median(&mut curves.iter().map(|curve| curve[at]).collect::<Vec<f64>>());
    if curves.is_empty() {
        return None;
    }
    let middle: Vec<f64> = (0..turns.len()).map(length).collect();
    fit_lines(&turns, &middle, saturated.value)?;
    let fit = |cycles: &Vec<f64>| {
        let fit = fit_lines(&turns, cycles, saturated.value)?;
        let fresh = find_early_slope(&turns, cycles, fit.knee).unwrap_or(fit.fresh);
        Some(TwoLineFit { fresh, ..fit })
    };
    let fitting: Vec<TwoLineFit> = curves.iter().filter_map(fit).collect();
    let all = |figure: fn(&TwoLineFit) -> f64| fitting.iter().map(figure).collect::<Vec<f64>>();
    let fitted = t_interval(&all(|fit| fit.fresh), confidence)?;
    // The effect of the remaining distances on slope and knee.
    let [off, fresh_off] = [all(|fit| fit.off), all(|fit| fit.fresh_off)].map(|distances| statistics::mean(&distances));
    let knee = t_interval(&all(|fit| fit.knee), confidence)?;
    let fitted = fitted.widen_by(2.0 * fresh_off / knee.value);
    // The start of some chains hides behind the fence, others bend before the knee. The estimate
    // that varies less between layouts counts.
    let screened = estimate_screened(passes, knee.low * instructions, confidence);
    let counts = |cost: &Interval| cost.value >= TURN_LEAST && cost.half_width() < fitted.half_width();
    let fresh = screened.filter(counts).unwrap_or(fitted);
    if fresh.value < TURN_LEAST || !is_quicker(fresh, saturated) {
        return None;
    }
    let knee = knee.widen_by(off / (saturated.value - fresh.value));
    Some((TurnCosts { fresh, knee, instructions }, saturated))
}

/// The cost of a turn between the two lengths of the screening, if both are below a knee at this
/// number of instructions.
fn estimate_screened(passes: &[&ProgramReading], knee: f64, confidence: f64) -> Option<Interval> {
    let first = find_drawn(passes)?;
    let screened = passes.iter().filter_map(|reading| reading.regimes.as_ref());
    let slopes = screened.filter(|one| one.variation == first.variation).flat_map(|one| one.short.clone());
    let least = SCREENED_TURNS * f64::from(first.instructions);
    let longest = SCREENING_LENGTHS.map(|length| length as f64).into_iter().fold(least, f64::max);
    let mode = estimate_largest_mode(&slopes.collect::<Vec<f64>>(), confidence)?;
    (longest < knee).then_some(mode.cost)
}

/// Both latencies and the knee as shown in a row, without the cost of links.
pub(super) fn estimate_regimes(passes: &[&ProgramReading], links: f64, confidence: f64) -> Option<LatencyRegimes> {
    let (TurnCosts { fresh, knee, instructions }, saturated) = estimate_turn(passes, confidence)?;
    // Every executed instruction takes a cycle, and a knee that may be anywhere is useless.
    if fresh.value - links < TURN_LEAST || knee.half_width() > KNEE_SHARE * knee.value {
        return None;
    }
    let map =
        |of: Interval, to: &dyn Fn(f64) -> f64| Interval { value: to(of.value), low: to(of.low), high: to(of.high) };
    let less = |of: Interval| Quantity::new(map(of, &|cycles| cycles - links), Unit::CoreCycles);
    Some(LatencyRegimes {
        fresh: less(fresh),
        saturated: less(saturated),
        knee: Quantity::new(map(knee, &|turns| turns * instructions), Unit::Instructions),
    })
}

/// Whether a turn of short chains is quicker, beyond chance and instrument error.
fn is_quicker(fresh: Interval, saturated: Interval) -> bool {
    let least = DIFFERENT_CYCLES.max(DIFFERENT_SHARE * saturated.value.abs());
    fresh.high < saturated.low && saturated.value - fresh.value > least
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const TURNS: [u32; 14] = [6, 10, 14, 18, 24, 32, 40, 48, 56, 64, 80, 96, 128, 176];

    /// A pass of a chain with this curve, with small errors by layout.
    pub(in super::super) fn pass(cycles: &dyn Fn(f64) -> f64, long: f64) -> ProgramReading {
        let layout = |number: u32| {
            let off = 0.1 * f64::from(number % 3) - 0.1;
            TURNS.iter().map(|turns| Some(cycles(f64::from(*turns)) + off)).collect()
        };
        // Chains of 8 and 24 instructions.
        let slope = (cycles(12.0) - cycles(4.0)) / 8.0;
        let regimes = RegimeReading {
            variation: None,
            instructions: 2,
            short: [-0.02, 0.0, 0.03].map(|off| slope + off).to_vec(),
            turns: TURNS.to_vec(),
            curve: (0..6).map(layout).collect(),
        };
        let cycles = [-0.01, 0.0, 0.01].map(|off| long + off).to_vec();
        ProgramReading { cycles, regimes: Some(regimes), ..ProgramReading::default() }
    }

    fn found(cycles: &dyn Fn(f64) -> f64, long: f64) -> Option<[f64; 3]> {
        let passes = [pass(cycles, long), pass(cycles, long)];
        let found = estimate_regimes(&[&passes[0], &passes[1]], 1.0, 0.95)?;
        let value = |quantity: &Quantity| {
            let value = quantity.value.unwrap();
            assert!(quantity.low.unwrap() <= value && value <= quantity.high.unwrap());
            (value * 10.0).round() / 10.0
        };
        Some([&found.fresh, &found.saturated, &found.knee].map(value))
    }

    #[test]
    fn two_lines_give_two_latencies_and_a_knee_in_instructions() {
        for (fresh, saturated, knee) in [(3.0, 4.0, 50.0), (2.0, 2.5, 20.0), (7.0, 8.0, 30.0)] {
            let cycles = |turns: f64| 18.0 + fresh * turns + (saturated - fresh) * (turns - knee).max(0.0);
            assert_eq!(found(&cycles, saturated), Some([fresh - 1.0, saturated - 1.0, 2.0 * knee]));
        }
    }

    #[test]
    fn a_curve_that_bends_before_its_knee_has_the_slope_of_its_short_chains() {
        let bent = |turns: f64| 18.0 + 2.0 * turns + 0.5 * (turns - 38.0).max(0.0) + 0.5 * (turns - 56.0).max(0.0);
        let [fresh, saturated, _] = found(&bent, 3.0).unwrap();
        assert_eq!([fresh, saturated], [1.0, 2.0]);
        let turns = TURNS.map(f64::from);
        let slope = find_early_slope(&turns, &turns.map(bent), 50.0).unwrap();
        assert!((slope - 2.0).abs() < 1e-9 && find_early_slope(&turns, &turns.map(bent), 10.0).is_none(), "{slope}");
    }

    #[test]
    fn other_curves_give_no_latencies() {
        // Equal costs; a curve that grows in steps; one that never reaches the long loop's cost; a
        // start that hides; short chains that are slower.
        let alike = |turns: f64| 18.0 + 2.0 * turns;
        let steps = |turns: f64| 18.0 + 2.0 * turns + 40.0 * (turns / 30.0).floor();
        let never = |turns: f64| 18.0 + turns;
        let hidden = |turns: f64| (18.0 + 2.0 * turns).max(80.0);
        let slower = |turns: f64| 18.0 + 3.0 * turns - (turns - 30.0).max(0.0);
        let found =
            [found(&alike, 2.0), found(&steps, 3.5), found(&never, 2.0), found(&hidden, 2.0), found(&slower, 2.0)];
        assert_eq!(found, [None; 5]);
    }
}
