//! The best of several programs, and its cost.
//!
//! The lowest of several figures is biased downward by chance. Take six programs with the same rate
//! and a spread of one percent over their layouts. The interval of the lowest contains the true
//! rate in one case of four. Layouts that choose a program must therefore not determine its rate.
//! Each pass is left out in turn: the other passes choose the program, and this pass gives the
//! cost. A single pass leaves out each layout in turn.
//!
//! Chance decides only between programs whose rates are alike. All layouts together decide which
//! mode counts, because a sustained rate stays proved if other passes or programs are slower.
//!
//! The resulting figures have no bias but are correlated: a low part also influences the other
//! choices. Their interval is widened accordingly. Limits: a mode that chance splits from the rest
//! has a bias.

use crate::experiments::modes::{add_instrument_error, find_lowest_mode, mode_width};
use cyclescope_core::statistics::{Interval, mean, t_interval};

/// Upper limit of the correlation between figures of two parts that choose for each other. For two
/// to ten equal programs it is 0.26 to 0.36, by integration over the minimum of normal values.
const CORRELATION_MOST: f64 = 0.36;

/// Programs are equally fast within this share.
const ALIKE_SHARE: f64 = 0.005;

/// A program and its rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BestProgram {
    /// The program's index.
    pub place: usize,
    /// Core cycles per instance.
    pub cost: Interval,
}

/// Figures of one program that belong to its lowest mode, by part.
type ModeFigures = Vec<Vec<f64>>;

/// The best of several programs, given the figures of their layouts by pass. `None` without
/// figures.
pub(super) fn find_best(programs: &[Vec<Vec<f64>>], confidence: f64) -> Option<BestProgram> {
    let own: Vec<ModeFigures> = programs.iter().map(|passes| sustained_figures(passes)).collect();
    let place = find_first_best(&own)?;
    let alone = || own[place].concat();
    let rivals = find_rivals(&own, place);
    let parts = if rivals.iter().filter(|parts| parts.iter().any(|part| !part.is_empty())).count() > 1 {
        split_parts(&rivals)
    } else {
        Vec::new()
    };
    let count = parts.first().map_or(0, Vec::len);
    let mut held = Vec::new();
    for part in 0..count {
        let chosen = find_lowest(&parts, |other| other != part).unwrap_or(place);
        held.extend(&parts[chosen][part]);
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

/// The first program that is as fast as the fastest: programs are listed from the most ordinary one
/// on.
fn find_first_best(own: &[ModeFigures]) -> Option<usize> {
    let best = find_lowest(own, |_| true)?;
    let figures = |place: usize| own[place].concat();
    let most = (1.0 + ALIKE_SHARE) * mean(&figures(best));
    let is_alike = |place: &usize| figures(*place).len() > 1 && mean(&figures(*place)) <= most;
    (0..best).find(is_alike).or(Some(best))
}

/// The figures of the programs whose lowest modes are as fast as that of the program at `place`.
fn find_rivals(own: &[ModeFigures], place: usize) -> Vec<ModeFigures> {
    let best = mean(&own[place].concat());
    let is_rival = |parts: &ModeFigures| mean(&parts.concat()) <= best + mode_width(best);
    let figures = |parts: &ModeFigures| if is_rival(parts) { parts.clone() } else { vec![Vec::new(); parts.len()] };
    own.iter().map(figures).collect()
}

/// The figures of a program's lowest mode, by pass.
fn sustained_figures(passes: &[Vec<f64>]) -> ModeFigures {
    let Some(mode) = find_lowest_mode(&passes.concat()) else { return vec![Vec::new(); passes.len()] };
    let within =
        |values: &Vec<f64>| values.iter().copied().filter(|value| (mode.low..=mode.high).contains(value)).collect();
    passes.iter().map(within).collect()
}

/// The passes as parts if several have figures, otherwise single layouts.
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

/// The program with the lowest mean over the choosing parts. A single figure is not a sustained
/// rate, so it ranks last.
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

    /// Layouts by pass of several programs with the same rate, normally distributed.
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
    fn the_best_of_equal_programs_has_no_bias() {
        let mut random = Random::new(7);
        for (passes, layouts, count) in [(2, 6, 6), (3, 6, 6), (2, 6, 2), (1, 3, 3)] {
            for spread in [0.002, 0.005, 0.01] {
                let trials = 2000;
                let mut held = 0;
                let mut bias = 0.0;
                for _ in 0..trials {
                    let programs = equal(&mut random, count, passes, layouts, spread);
                    let BestProgram { cost, .. } = find_best(&programs, CONFIDENCE).unwrap();
                    held += u32::from(cost.contains(1.0));
                    bias += (cost.value - 1.0) / f64::from(trials);
                }
                let share = f64::from(held) / f64::from(trials);
                let case = format!("{passes} passes, {layouts} layouts, {count} programs, spread {spread}");
                assert!(share >= 0.93, "{case}: {share}");
                assert!(bias.abs() < 0.1 * spread, "{case}: a bias of {bias}");
            }
        }
    }

    #[test]
    fn the_lowest_sustained_rate_counts_and_a_single_lucky_layout_does_not() {
        let steady = |value: f64| vec![vec![value, value + 0.001, value - 0.001]; 2];
        let mut lucky = steady(0.6);
        lucky[0][0] = 0.2;
        let found = find_best(&[steady(0.7), steady(0.5), lucky], CONFIDENCE).unwrap();
        assert!(found.place == 1 && (found.cost.value - 0.5).abs() < 0.01, "{found:?}");
        assert!(find_best(&[vec![Vec::new(); 2]], CONFIDENCE).is_none());
    }

    #[test]
    fn a_slower_pass_does_not_unprove_a_rate() {
        let slow = || vec![1.0, 1.001, 0.999, 1.002, 1.0, 0.998];
        let fast_twice = || vec![0.662, 1.001, 0.999, 1.002, 0.663, 0.998];
        let other = || vec![vec![0.75, 0.751, 0.749]; 2];
        for programs in [
            vec![vec![fast_twice(), slow()], other()],
            vec![other(), vec![slow(), fast_twice(), slow()]],
            vec![vec![slow(), fast_twice()]],
        ] {
            let BestProgram { cost, .. } = find_best(&programs, CONFIDENCE).unwrap();
            assert!((cost.value - 0.6625).abs() < 0.001 && cost.high < 0.68, "{cost:?}");
        }
        assert!(find_best(&[vec![vec![2.0]]], CONFIDENCE).unwrap().cost.high.is_infinite());
    }
}
