//! The cost of background load in core cycles of its own CPU.

use crate::ruler::{Gauge, RulerPrograms, SENTINEL_LOOPS, shared_margin};
use crate::schedule::{place_fixed, ruler_calls};
use cyclescope_code::asm::CodeMode;
use cyclescope_code::clock::Clock;
use cyclescope_core::statistics::{Interval, median, median_interval};
use cyclescope_exec::{LoadOutcome, LoadRuler};

/// Iterations of the chains: some 4 µs of each round of the load.
const LOOPS: u64 = 200;

/// The ruler that a load reads in its rounds, in code of a mode.
pub fn build_load_ruler(clock: &Clock, mode: CodeMode) -> LoadRuler {
    let programs = RulerPrograms::for_mode(clock, mode).into_programs();
    let (code, end) = place_fixed(&programs);
    LoadRuler { calls: ruler_calls::<5>(LOOPS, SENTINEL_LOOPS).to_vec(), programs: programs.into(), code, end }
}

/// Core cycles of a copy of a load that read this ruler: the median over its rounds. Its interval
/// covers the rounds and the instrument, and not the places of code and data, which a load keeps.
/// `None` if too few rounds are sane. The latency of `imul` comes from the chains if it is unknown.
pub fn read_load_cost(outcome: &LoadOutcome, imul_latency: Option<f64>, confidence: f64) -> Option<Interval> {
    let in_links = Gauge::whole_ruler(LOOPS, SENTINEL_LOOPS, 1.0);
    let latency = imul_latency.or_else(|| {
        let mut ratios: Vec<f64> =
            outcome.rounds.iter().map(|round| 1.0 / in_links.read(&round.ruler).add_link()).collect();
        ratios.retain(|ratio| ratio.is_finite());
        (!ratios.is_empty()).then(|| median(&mut ratios).round().max(1.0))
    })?;
    let gauge = Gauge::whole_ruler(LOOPS, SENTINEL_LOOPS, latency);
    let in_cycles = outcome.rounds.iter().filter_map(|round| {
        let scale = gauge.read(&round.ruler);
        scale.is_sane().then(|| round.copy / scale.rate)
    });
    let cost = median_interval(&in_cycles.collect::<Vec<_>>(), confidence)?;
    Some(cost.widen_by(shared_margin(gauge.systematic_error(cost.value, outcome.copies), confidence)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ruler::{ADD_LINKS, sentinel_adds};
    use cyclescope_code::program::chains::IMUL_LINKS;
    use cyclescope_core::random::Random;
    use cyclescope_exec::LoadRound;

    /// Rounds of a load whose copies take this many core cycles, on a core whose clock moves, and
    /// which something interrupts in some rounds.
    fn simulate_load(cost: f64, imul: f64) -> LoadOutcome {
        let mut random = Random::new(3);
        let round = |_| {
            let rate = 0.5 + 0.1 * random.uniform();
            let links = [4.0, 14.0].map(|links: f64| links * imul);
            assert_eq!(IMUL_LINKS, [4, 14]);
            let adds = ADD_LINKS.map(|links| links as f64);
            let mut cycles: Vec<f64> = links.iter().chain(&adds).map(|links| links * LOOPS as f64 + 30.0).collect();
            cycles.push(sentinel_adds(SENTINEL_LOOPS) / 4.0 + 30.0);
            if random.below(20) == 0 {
                cycles[random.below(5)] += 40_000.0;
            }
            let ruler = cycles.iter().map(|cycles| (rate * cycles).round()).collect();
            LoadRound { ruler, copy: rate * cost }
        };
        let rounds = (0..400).map(round).collect();
        LoadOutcome { share: 1.0, ticks: None, copies: 10_000.0, rounds }
    }

    #[test]
    fn a_loads_own_ruler_gives_its_core_cycles_at_any_clock() {
        for (imul, known) in [(3.0, Some(3.0)), (3.0, None), (4.0, None)] {
            let cost = read_load_cost(&simulate_load(17.25, imul), known, 0.95).expect("rounds");
            assert!((cost.value / 17.25 - 1.0).abs() < 0.001, "{cost:?}");
            assert!(cost.contains(17.25) && cost.half_width() < 0.01, "{cost:?}");
        }
        assert_eq!(read_load_cost(&LoadOutcome::default(), Some(3.0), 0.95), None);
    }
}
