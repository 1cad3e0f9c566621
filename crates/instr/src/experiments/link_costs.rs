//! Costs of links on this machine, measured before the first form.
//!
//! A *circuit* is a closed chain of links. If a circuit of n links takes n core cycles, each link
//! costs exactly one: none is eliminated, so none can cost less. A circuit of equal links with a
//! whole cost divides it evenly. Such a cost is *certain*. Between two classes of registers, only
//! the round trip can be measured. Its split is a convention, the same for all rows:
//!
//! - General and vector, general and mask, general and MMX registers: each direction costs half.
//! - Memory to general registers: the time of a load from its address, as in pointer chasing. It is
//!   limited to the time of a store and a load of the stored value; the store gets the rest.
//! - Memory to other registers: likewise. The way back to the address follows from the first rule.
//!
//! Each circuit shares its rounds with a circuit of plain moves, the *control*. If the control does
//! not take a whole number of core cycles, something disturbs the ruler or the moves. The layout is
//! then rejected: a busy sibling that the width sentinel misses adds 2.6 % to moves (Zen 5). The
//! error of a link's cost enters every latency that it is subtracted from.

use super::chain_turns::ChainTurns;
use super::link_circuits::{CircuitList, LinkCircuit, encode_init};
use super::modes::estimate_largest_mode;
use super::program_reading::{ProgramReading, layout_cost};
use super::regimes::{DIFFERENT_CYCLES, LongChain, RegimeVerdict, ShortChainTimer};
use super::store_load_trip::StoreLoadTrip;
use super::timing::{LoopedProgram, ProgramTimer, TimingSize, TimingSurroundings};
use crate::bodies::links::{self, Link};
use crate::forms::form_anatomy::encode_instructions;
use cyclescope_code::asm::CodeMode;
use cyclescope_code::program::EntryState;
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::features::CpuFeatures;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::{Interval, mean};
use cyclescope_exec::Executor;
use cyclescope_measure::sibling::SiblingPolicy;
use std::collections::{BTreeMap, BTreeSet};

/// Turns of a circuit per body. The number is odd, so that anything that alternates with each turn
/// also differs between iterations.
const CIRCUIT_TURNS: usize = 47;
const CIRCUIT_LOOPS: u64 = 16;
/// Layouts per sweep, and sweeps. A disturbance of one sweep may be gone in the next.
const SWEEP_LAYOUTS: usize = 4;
const SWEEPS: usize = 3;
/// Confidence level of the margins.
const CONFIDENCE: f64 = 0.95;
/// Layouts are repeated until enough have an idle sibling and a whole control.
const CONTROL_RETRY_POLICY: SiblingPolicy = SiblingPolicy { retries: 19, ..SiblingPolicy::USUAL };
const SWEEP_ROUNDS: u32 = 4;
/// A circuit's cost is whole if it is this close to a whole number, in core cycles.
const WHOLE_CYCLES: f64 = 0.03;
/// The control is whole if it is this close to a whole number, as a share of its cost.
const CONTROL_SHARE: f64 = 0.01;

/// The cost of one link.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LinkEstimate {
    /// Core cycles.
    pub cycles: f64,
    /// Whether no other value is possible.
    pub certain: bool,
    /// Half the width of the interval, in core cycles. Zero if certain.
    #[serde(default)]
    pub margin: f64,
}

/// The costs of all links that this machine supports.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LinkCosts {
    /// The mode of the links.
    mode: CodeMode,
    costs: BTreeMap<Link, LinkEstimate>,
    /// Pairs of a store and a load, under both links.
    trips: BTreeMap<Link, StoreLoadTrip>,
    nop_cycles: f64,
    /// Links that cost the same in a short chain behind a fence.
    steady: BTreeSet<Link>,
    /// Costs in a short chain, if other and certain: whole numbers of core cycles.
    fresh: BTreeMap<Link, f64>,
}

impl LinkCosts {
    /// Measures all links that the CPU supports. With `regimes`, also compares them with short
    /// chains.
    pub(crate) fn measure(
        timer: &ProgramTimer,
        executor: &mut dyn Executor,
        features: &CpuFeatures,
        regimes: bool,
        random: &mut Random,
    ) -> Result<LinkCosts, RunError> {
        let mut link_costs = LinkCosts { mode: timer.mode, ..LinkCosts::default() };
        let list = CircuitList { mode: timer.mode, features };
        let mut timed: Vec<Interval> = Vec::new();
        let mut time = |circuits: &[LinkCircuit]| {
            let costs = time_circuits(timer, executor, circuits, random)?;
            timed.extend(&costs);
            Ok::<_, RunError>(costs)
        };
        let nop = LinkCircuit::nop_circuit();
        link_costs.nop_cycles = time(std::slice::from_ref(&nop))?[0].value / nop.body.len() as f64;
        let within = list.list_class_circuits();
        for (circuit, cycles) in within.iter().zip(time(&within)?) {
            link_costs.share_circuit_cost(&circuit.links, cycles);
        }
        let pairs = list.list_two_class_circuits();
        for (circuit, cycles) in pairs.iter().zip(time(&pairs)?) {
            if circuit.links[0] == links::FROM_HIGH {
                let whole = (cycles.value - circuit.links.len() as f64).abs() < WHOLE_CYCLES;
                match whole {
                    true => link_costs.share_circuit_cost(&circuit.links, cycles),
                    false => link_costs.assign_rest_cost(links::FROM_HIGH, cycles, &[links::FROM_32]),
                }
                continue;
            }
            let half = Interval { value: cycles.value / 2.0, low: cycles.low / 2.0, high: cycles.high / 2.0 };
            circuit.links.iter().for_each(|link| link_costs.set_cost(*link, half));
        }
        let threes = list.list_three_class_circuits();
        for (circuit, cycles) in threes.iter().zip(time(&threes)?) {
            link_costs.assign_rest_cost(circuit.links[1], cycles, &[circuit.links[0], circuit.links[2]]);
        }
        let loads = list.list_load_circuits();
        for (circuit, cycles) in loads.iter().zip(time(&loads)?) {
            link_costs.assign_rest_cost(circuit.links[0], cycles, &circuit.links[1..]);
        }
        let trips = list.list_memory_circuits();
        let costs = time(trips.as_flattened())?;
        for ([circuit, _], costs) in trips.iter().zip(costs.as_chunks().0) {
            let others: f64 = circuit.links[2..].iter().map(|link| link_costs.estimated_cycles(*link)).sum();
            let [plain, alternating] = costs.map(|cycles| cycles.value - others);
            let trip = StoreLoadTrip::from_costs(link_costs.estimated_cycles(circuit.links[1]), plain, alternating);
            let taken = if trip.whole == plain.max(0.0) { costs[0] } else { costs[1] };
            link_costs.split_trip_cost(circuit.links[0], circuit.links[1], trip, taken.half_width());
        }
        if regimes {
            let circuits: Vec<&LinkCircuit> =
                std::iter::once(&nop).chain(&within).chain(&pairs).chain(&threes).chain(&loads).collect();
            let timed = timed.iter().map(|cycles| cycles.value);
            let circuits: Vec<(&LinkCircuit, f64)> = circuits.into_iter().zip(timed).collect();
            link_costs.find_steady_links(timer, executor, &circuits, random)?;
        }
        Ok(link_costs)
    }

    /// Compares circuits with short chains of them behind a fence. If the costs are equal, all
    /// their links are steady.
    fn find_steady_links(
        &mut self,
        timer: &ProgramTimer,
        executor: &mut dyn Executor,
        circuits: &[(&LinkCircuit, f64)],
        random: &mut Random,
    ) -> Result<(), RunError> {
        let init = encode_init(timer.mode);
        for (circuit, cost) in circuits.iter().filter(|(circuit, _)| !circuit.links.is_empty()) {
            let period = encode_instructions(timer.mode, &circuit.body).expect("links can be encoded");
            let (world, surroundings) = find_surroundings(timer.mode, &period, &init);
            let Some(turns) = ChainTurns::from_period(timer.mode, &period, 1) else { continue };
            let chain = LongChain { turns, init: &init, world, cycles: &[*cost; 2] };
            let mut fenced = ShortChainTimer { timer, surroundings, executor: &mut *executor, random: &mut *random };
            let slopes = fenced.screen_chains(&[&chain])?.remove(0);
            let equal = circuit.links.iter().all(|link| *link == circuit.links[0]);
            let each = mean(&slopes) / circuit.links.len() as f64;
            match chain.judge_short(&slopes) {
                RegimeVerdict::Alike => self.steady.extend(&circuit.links),
                RegimeVerdict::Quicker if equal && (each - each.round()).abs() <= DIFFERENT_CYCLES => {
                    self.fresh.insert(circuit.links[0], each.round());
                }
                RegimeVerdict::Quicker | RegimeVerdict::Unclear => {}
            }
        }
        Ok(())
    }

    /// Whether these links are known to cost the same in short chains.
    pub(crate) fn is_steady(&self, links: &[Link]) -> bool {
        links.iter().all(|link| self.steady.contains(link))
    }

    /// Core cycles of these links in a short chain. `None` if one has no certain cost there.
    pub(crate) fn sum_fresh(&self, links: &[Link]) -> Option<f64> {
        let certain = |link: &Link| self.costs.get(link).filter(|cost| cost.certain && self.steady.contains(link));
        let fresh = |link: &Link| self.fresh.get(link).copied().or(certain(link).map(|cost| cost.cycles));
        links.iter().map(fresh).sum()
    }

    /// Divides the cost of a circuit within one class evenly. It is certain if each link takes one
    /// core cycle.
    fn share_circuit_cost(&mut self, links: &[Link], cycles: Interval) {
        let count = links.len() as f64;
        let (each, margin) = (cycles.value / count, cycles.half_width() / count);
        let alone =
            links.iter().all(|link| *link == links[0]) && each > 1.0 && (each - each.round()).abs() < WHOLE_CYCLES;
        let certain = (cycles.value - count).abs() < WHOLE_CYCLES || alone;
        let cost = match certain {
            true => LinkEstimate { cycles: each.round(), certain, margin: 0.0 },
            false => LinkEstimate { cycles: each, certain, margin },
        };
        for link in links {
            // A certain cost from another circuit takes precedence.
            if certain || !self.costs.get(link).is_some_and(|known| known.certain) {
                self.costs.insert(*link, cost);
            }
        }
    }

    /// Splits the cost of a store and a load with this margin. The load gets its time from the
    /// address, the store the rest.
    fn split_trip_cost(&mut self, store: Link, load: Link, trip: StoreLoadTrip, margin: f64) {
        // If the core forwards faster than it reads the cache, the whole trip counts as the load.
        let loaded = trip.load.min(trip.whole);
        let known = self.costs.get(&load).map_or(f64::NAN, |cost| cost.margin);
        self.trips.extend([(store, trip), (load, trip)]);
        self.set_cost(load, Interval::with_margin(loaded, known));
        self.set_cost(store, Interval::with_margin(trip.whole - loaded, margin.hypot(known)));
    }

    /// Gives a link the cost of a circuit minus the costs of the others.
    fn assign_rest_cost(&mut self, link: Link, cycles: Interval, others: &[Link]) {
        let known = self.sum(others);
        let less = known.map_or(f64::NAN, |cost| cost.cycles);
        let rest = Interval { value: cycles.value - less, low: cycles.low - less, high: cycles.high - less };
        self.set_cost(link, rest.widen_by(known.map_or(f64::NAN, |cost| cost.margin)));
    }

    fn set_cost(&mut self, link: Link, cost: Interval) {
        self.costs.insert(link, LinkEstimate { cycles: cost.value, certain: false, margin: cost.half_width() });
    }

    fn estimated_cycles(&self, link: Link) -> f64 {
        self.costs.get(&link).map_or(f64::NAN, |cost| cost.cycles)
    }

    /// The sum of these links' costs. `None` if one could not be measured.
    pub fn sum(&self, links: &[Link]) -> Option<LinkEstimate> {
        let mut sum = LinkEstimate { cycles: 0.0, certain: true, margin: 0.0 };
        for (index, link) in links.iter().enumerate() {
            let cost = self.costs.get(link).filter(|cost| cost.cycles.is_finite())?;
            sum.cycles += cost.cycles;
            sum.certain &= cost.certain;
            // Repeated links share the same error, so their margins add up.
            let times = links.iter().filter(|other| *other == link).count() as f64;
            let first = links[..index].iter().all(|earlier| earlier != link);
            sum.margin = if first { sum.margin.hypot(times * cost.margin) } else { sum.margin };
        }
        Some(sum)
    }

    /// The pair of a store and a load that contains this link. `None` for other links.
    pub(crate) fn find_trip(&self, link: &Link) -> Option<StoreLoadTrip> {
        self.trips.get(link).copied().filter(|trip| trip.load.is_finite() && trip.whole.is_finite())
    }

    /// Costs of one certain core cycle per link.
    #[cfg(test)]
    pub(crate) fn from_ones(links: &[Link]) -> LinkCosts {
        let cost = LinkEstimate { cycles: 1.0, certain: true, margin: 0.0 };
        let costs = links.iter().map(|link| (*link, cost)).collect();
        LinkCosts { costs, nop_cycles: 0.2, steady: links.iter().copied().collect(), ..LinkCosts::default() }
    }

    /// The same costs with this trip for all these stores and loads.
    #[cfg(test)]
    pub(crate) fn with_trip(self, links: &[Link], trip: StoreLoadTrip) -> LinkCosts {
        LinkCosts { trips: links.iter().map(|link| (*link, trip)).collect(), ..self }
    }

    /// Adopts a cost from an earlier part of the same survey, so that all rows use the same ones.
    pub fn adopt_cost(&mut self, name: &str, cost: LinkEstimate) {
        self.costs.iter_mut().filter(|(link, _)| link.name(self.mode) == name).for_each(|(_, known)| *known = cost);
    }

    /// Core cycles per NOP: one over the width of the core.
    pub fn nop_cycles(&self) -> f64 {
        self.nop_cycles
    }

    /// Name and cost of every link.
    pub fn costs(&self) -> impl Iterator<Item = (&'static str, LinkEstimate)> {
        self.costs.iter().map(|(link, cost)| (link.name(self.mode), *cost))
    }
}

/// The entry state and surroundings that a circuit's program needs.
fn find_surroundings(mode: CodeMode, period: &[u8], init: &[u8]) -> (EntryState, TimingSurroundings) {
    let world = Snippet::new(period.to_vec(), init.to_vec(), "").with_mode(mode).outline(true).world;
    (world, TimingSurroundings { touches_memory: true, vectors: world.vectors, ..TimingSurroundings::default() })
}

/// Core cycles per turn of each circuit: the most common mode of all layouts in several sweeps.
fn time_circuits(
    timer: &ProgramTimer,
    executor: &mut dyn Executor,
    circuits: &[LinkCircuit],
    random: &mut Random,
) -> Result<Vec<Interval>, RunError> {
    let init = encode_init(timer.mode);
    // Each circuit is timed by itself: wide vector units sleep while narrower code runs.
    let program = |circuit: &LinkCircuit| {
        let period = encode_instructions(timer.mode, &circuit.body).expect("links can be encoded");
        let (world, surroundings) = find_surroundings(timer.mode, &period, &init);
        let program = timer.build_program(world, &init, &period, CIRCUIT_TURNS);
        (LoopedProgram { program, copies: CIRCUIT_TURNS, loops: CIRCUIT_LOOPS }, surroundings)
    };
    let control = program(&LinkCircuit::control_circuit(timer.mode)).0;
    let programs = circuits.iter().map(program).map(|(timed, around)| ([timed, control.clone()], around));
    let programs: Vec<([LoopedProgram; 2], TimingSurroundings)> = programs.collect();
    let mut costs: Vec<Vec<f64>> = vec![Vec::new(); circuits.len()];
    for _ in 0..SWEEPS {
        for ((timed, surroundings), costs) in programs.iter().zip(&mut costs) {
            costs.extend(time_layouts(timer, executor, timed, *surroundings, random)?);
        }
    }
    let unknown = Interval::with_margin(f64::NAN, f64::NAN);
    let most = |costs: Vec<f64>| estimate_largest_mode(&costs, CONFIDENCE).map_or(unknown, |estimate| estimate.cost);
    Ok(costs.into_iter().map(most).collect())
}

/// A program's cost in several layouts, each with its control.
fn time_layouts(
    timer: &ProgramTimer,
    executor: &mut dyn Executor,
    timed: &[LoopedProgram; 2],
    surroundings: TimingSurroundings,
    random: &mut Random,
) -> Result<Vec<f64>, RunError> {
    let (mut costs, mut retries) = (Vec::new(), CONTROL_RETRY_POLICY.start_retries());
    loop {
        let size = TimingSize { layouts: SWEEP_LAYOUTS, warm_up: 1, rounds: SWEEP_ROUNDS };
        let timings = timer.time_programs(executor, timed, size, surroundings, random)?;
        let last = retries.is_last();
        let mut reading = ProgramReading::default();
        for layout in &timings {
            // If the control is never whole, all layouts count in the last attempt.
            if last || is_control_whole(layout_cost(&layout[1])) {
                reading.add_layout(&layout[0]);
            }
        }
        // If the sibling stays busy, shared figures are better than none.
        let shared = reading.cycles.is_empty() && last;
        costs.extend(if shared { reading.shared } else { reading.cycles });
        if costs.len() >= SWEEP_LAYOUTS || !retries.use_retry() {
            return Ok(costs);
        }
    }
}

/// Whether the control took a whole number of core cycles.
fn is_control_whole(cycles: f64) -> bool {
    (cycles - cycles.round()).abs() <= CONTROL_SHARE * cycles
}
