//! The best of several programs, and what it takes.
//!
//! The lowest of several figures is lower than the truth by what chance did for it: of six programs with the same rate and a
//! spread of one percent over their layouts, the interval of the lowest holds the truth in one case of four. So layouts that
//! choose a program do not tell its rate. Each pass is left out in turn: the others choose the program, and the pass says what
//! it takes. Of a single pass each layout is left out in turn. The figures that were found so have no bias, but go together,
//! for what is low in one part also chooses in the others; their interval is wider by as much. Limits: of which mode of a
//! program the figures are is told by all layouts, and a mode that chance splits from the rest has a bias.

use crate::experiments::modes::{add_instrument_error, find_lowest_mode};
use cyclescope_core::statistics::{Interval, mean, t_interval};

/// How much figures of two parts that chose for each other go together, at most: the correlation of two programs' figures
/// is between 0.26 and 0.36 for two to ten equal programs, by integration of the lowest of normal values.
const CORRELATION_MOST: f64 = 0.36;

/// A program and its rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BestProgram {
    /// The program's place.
    pub place: usize,
    /// Core cycles an instance.
    pub cost: Interval,
}

/// Figures of one program that belong to its lowest mode, by part.
type ModeFigures = Vec<Vec<f64>>;

/// The best of some programs, of which there are the figures of layouts by pass. `None` where there is no figure.
pub(super) fn find_best(programs: &[Vec<Vec<f64>>], confidence: f64) -> Option<BestProgram> {
    let own: Vec<ModeFigures> = programs.iter().map(|passes| sustained_figures(passes)).collect();
    let place = find_lowest(&own, |_| true)?;
    let alone = || own[place].concat();
    let parts = if programs.len() > 1 { split_parts(&own) } else { Vec::new() };
    let count = parts.first().map_or(0, Vec::len);
    let mut held = Vec::new();
    for part in 0..count {
        if let Some(chosen) = find_lowest(&parts, |other| other != part) {
            held.extend(&parts[chosen][part]);
        }
    }
    let wider = (1.0 + CORRELATION_MOST * (count.max(1) - 1) as f64).sqrt();
    let stretched = |cost: Interval| Interval::with_margin(cost.value, wider * cost.half_width());
    let cost = match t_interval(&held, confidence) {
        Some(cost) => stretched(cost),
        None => {
            t_interval(&alone(), confidence).unwrap_or_else(|| Interval::with_margin(mean(&alone()), f64::INFINITY))
        }
    };
    Some(BestProgram { place, cost: add_instrument_error(cost) })
}

/// The figures of a program's lowest mode, by pass.
fn sustained_figures(passes: &[Vec<f64>]) -> ModeFigures {
    let Some(mode) = find_lowest_mode(&passes.concat()) else { return vec![Vec::new(); passes.len()] };
    let within =
        |values: &Vec<f64>| values.iter().copied().filter(|value| (mode.low..=mode.high).contains(value)).collect();
    passes.iter().map(within).collect()
}

/// The same parts where several passes have figures; else each layout by itself.
fn split_parts(programs: &[ModeFigures]) -> Vec<ModeFigures> {
    let passes = programs.iter().map(Vec::len).max().unwrap_or(0);
    let has = |pass: &usize| programs.iter().any(|parts| parts.get(*pass).is_some_and(|part| !part.is_empty()));
    if (0..passes).filter(has).count() > 1 {
        return programs.to_vec();
    }
    let all: Vec<Vec<f64>> = programs.iter().map(|parts| parts.concat()).collect();
    let layouts = all.iter().map(Vec::len).max().unwrap_or(0);
    let each = |values: &Vec<f64>| (0..layouts).map(|at| values.get(at).copied().into_iter().collect()).collect();
    all.iter().map(each).collect()
}

/// The program with the lowest mean over some of its parts. A figure that was seen once only is none of a rate that is
/// sustained.
fn find_lowest(programs: &[ModeFigures], chooses: impl Fn(usize) -> bool) -> Option<usize> {
    let rank = |(place, parts): (usize, &ModeFigures)| {
        let some: Vec<f64> =
            parts.iter().enumerate().filter(|(part, _)| chooses(*part)).flat_map(|(_, part)| part.clone()).collect();
        (!some.is_empty()).then(|| (place, some.len() < 2, mean(&some)))
    };
    let ranked = programs.iter().enumerate().filter_map(rank);
    let best = ranked.min_by(|one, other| (one.1, one.2).partial_cmp(&(other.1, other.2)).expect("figures are finite"));
    best.map(|(place, ..)| place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_core::random::Random;
    use cyclescope_core::statistics::normal_quantile;

    const CONFIDENCE: f64 = 0.95;

    /// Layouts of some programs by pass, of the same rate, normal.
    fn equal(random: &mut Random, programs: usize, passes: usize, layouts: usize, spread: f64) -> Vec<ModeFigures> {
        let mut figure = || {
            let uniform = (random.below(1 << 30) as f64 + 0.5) / f64::from(1 << 30);
            1.0 + spread * normal_quantile(uniform)
        };
        let mut pass = || (0..layouts).map(|_| figure()).collect::<Vec<f64>>();
        let mut program = || (0..passes).map(|_| pass()).collect();
        (0..programs).map(|_| program()).collect()
    }

    #[test]
    fn the_best_of_equal_programs_is_as_good_as_any_of_them() {
        let mut random = Random::new(7);
        for (passes, layouts, programs) in [(2, 6, 6), (3, 6, 6), (2, 6, 2), (1, 3, 3)] {
            for spread in [0.002, 0.005, 0.01] {
                let trials = 2000;
                let mut held = 0;
                let mut bias = 0.0;
                for _ in 0..trials {
                    let some = equal(&mut random, programs, passes, layouts, spread);
                    let BestProgram { cost, .. } = find_best(&some, CONFIDENCE).unwrap();
                    held += u32::from(cost.contains(1.0));
                    bias += (cost.value - 1.0) / f64::from(trials);
                }
                let share = f64::from(held) / f64::from(trials);
                let case = format!("{passes} passes, {layouts} layouts, {programs} programs, spread {spread}");
                assert!(share >= 0.93, "{case}: {share}");
                assert!(bias.abs() < 0.1 * spread, "{case}: a bias of {bias}");
            }
        }
    }

    #[test]
    fn the_lowest_sustained_rate_counts_and_a_single_layout_does_not() {
        let steady = |value: f64| vec![vec![value, value + 0.001, value - 0.001]; 2];
        let mut lucky = steady(0.6);
        lucky[0][0] = 0.2;
        let found = find_best(&[steady(0.7), steady(0.5), lucky], CONFIDENCE).unwrap();
        assert!(found.place == 1 && (found.cost.value - 0.5).abs() < 0.01, "{found:?}");
        assert!(find_best(&[vec![Vec::new(); 2]], CONFIDENCE).is_none());
        assert!(find_best(&[vec![vec![2.0]]], CONFIDENCE).unwrap().cost.high.is_infinite());
    }
}
