//! What links cost on this machine, measured before anything else.
//!
//! A cycle of n links that takes n core cycles leaves each of them exactly one: none can take less, for none of them is
//! ever eliminated. A cycle of one link leaves it all of a whole number. Such a link's cost is *certain*. Between two
//! classes of registers only the way there and back can be measured; how it is split is a convention (the *gauge*), the
//! same for all rows:
//!
//! - general and vector, general and mask, general and MMX registers: both ways cost half of the whole;
//! - memory to general registers: what a load costs from its address, as in a chain of pointers; no more than a store and
//!   a load of what it stored take together, of which the store has the rest;
//! - memory to other registers: likewise, with the way back to the address taken from the first rule.
//!
//! Each cycle shares its rounds with one of plain moves, the *control*. Where that takes no whole number of core cycles,
//! something disturbs the ruler or the moves, and the layout says nothing about the cycle either: a busy sibling that the
//! width sentinel does not see adds 2.6 % to moves (Zen 5). What a link costs has an error, which is in every latency that it
//! is subtracted from.

use super::chain_turns::ChainTurns;
use super::link_cycles::{self, LinkCycle, encode_init};
use super::modes::estimate_usual;
use super::program_reading::{ProgramReading, layout_cost};
use super::regimes::{LongChain, RegimeVerdict, ShortChainTimer};
use super::store_load_trip::StoreLoadTrip;
use super::timing::{LoopedProgram, ProgramTimer, TimingSize, TimingSurroundings};
use crate::bodies::links::{self, Link};
use crate::forms::form_anatomy::encode_instructions;
use cyclescope_code::program::EntryState;
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::features::CpuFeatures;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::Interval;
use cyclescope_exec::Executor;
use cyclescope_measure::sibling::SiblingPolicy;
use std::collections::{BTreeMap, BTreeSet};

/// Turns of a cycle in a body: an odd number, so that what changes with each turn is another in the next iteration.
const CYCLE_TURNS: usize = 47;
const CYCLE_LOOPS: u64 = 16;
/// Layouts in a sweep, and sweeps: what disturbs one may be gone in the next.
const SWEEP_LAYOUTS: usize = 4;
const SWEEPS: usize = 3;
/// Of intervals that nobody reads.
const CONFIDENCE: f64 = 0.95;
/// Layouts follow while too few had the core alone and a whole control.
const SIBLING_RETRIES: SiblingPolicy = SiblingPolicy { retries: 19, ..SiblingPolicy::USUAL };
const SWEEP_ROUNDS: u32 = 4;
/// A cycle counts as whole within this many cycles.
const WHOLE_CYCLES: f64 = 0.03;
/// The control takes a whole number of core cycles within this share of it.
const CONTROL_SHARE: f64 = 0.01;

/// What one link costs.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LinkEstimate {
    /// Core cycles.
    pub cycles: f64,
    /// Whether no other value is possible.
    pub certain: bool,
    /// Half of the width of its interval, in core cycles; zero where it is certain.
    #[serde(default)]
    pub margin: f64,
}

/// The costs of all links that this machine has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LinkCosts {
    costs: BTreeMap<Link, LinkEstimate>,
    /// By its store and by its load, each pair of a store and a load.
    trips: BTreeMap<Link, StoreLoadTrip>,
    nop_cycles: f64,
    /// Links that cost the same in a short chain behind a fence.
    steady: BTreeSet<Link>,
}

impl LinkCosts {
    /// Measures all links that the CPU has, and where `regimes` is asked for, whether they cost the same in short
    /// chains.
    pub(crate) fn measure(
        timer: &ProgramTimer,
        executor: &mut dyn Executor,
        features: &CpuFeatures,
        regimes: bool,
        random: &mut Random,
    ) -> Result<LinkCosts, RunError> {
        let mut gauge = LinkCosts::default();
        let has = |links: &[Link]| links.iter().all(|link| features.find_missing(link.features()).is_empty());
        let mut timed: Vec<Interval> = Vec::new();
        let mut time = |cycles: &[LinkCycle]| {
            let costs = time_cycles(timer, executor, cycles, random)?;
            timed.extend(&costs);
            Ok::<_, RunError>(costs)
        };
        let nop = LinkCycle::nop_cycle();
        gauge.nop_cycles = time(std::slice::from_ref(&nop))?[0].value / nop.body.len() as f64;
        let within = link_cycles::list_class_cycles(&has);
        for (cycle, cycles) in within.iter().zip(time(&within)?) {
            gauge.share_cycle_cost(&cycle.links, cycles);
        }
        let pairs = link_cycles::list_two_class_cycles(&has);
        for (cycle, cycles) in pairs.iter().zip(time(&pairs)?) {
            if cycle.links[0] == links::FROM_HIGH {
                gauge.assign_rest_cost(links::FROM_HIGH, cycles, &[links::FROM_32]);
                continue;
            }
            let half = Interval { value: cycles.value / 2.0, low: cycles.low / 2.0, high: cycles.high / 2.0 };
            cycle.links.iter().for_each(|link| gauge.set_cost(*link, half));
        }
        let threes = link_cycles::list_three_class_cycles(&has);
        for (cycle, cycles) in threes.iter().zip(time(&threes)?) {
            gauge.assign_rest_cost(cycle.links[1], cycles, &[cycle.links[0], cycle.links[2]]);
        }
        let loads = link_cycles::list_load_cycles(&has);
        for (cycle, cycles) in loads.iter().zip(time(&loads)?) {
            gauge.assign_rest_cost(cycle.links[0], cycles, &cycle.links[1..]);
        }
        let trips = link_cycles::list_memory_cycles(&has);
        let costs = time(trips.as_flattened())?;
        for ([cycle, _], costs) in trips.iter().zip(costs.as_chunks().0) {
            let beside: f64 = cycle.links[2..].iter().map(|link| gauge.link_cycles(*link)).sum();
            let [plain, alternating] = costs.map(|cycles| cycles.value - beside);
            let trip = StoreLoadTrip::from_costs(gauge.link_cycles(cycle.links[1]), plain, alternating);
            let taken = if trip.whole == plain.max(0.0) { costs[0] } else { costs[1] };
            gauge.split_trip_cost(cycle.links[0], cycle.links[1], trip, taken.half_width());
        }
        if regimes {
            let cycles: Vec<&LinkCycle> =
                std::iter::once(&nop).chain(&within).chain(&pairs).chain(&threes).chain(&loads).collect();
            let timed = timed.iter().map(|cycles| cycles.value);
            let cycles: Vec<(&LinkCycle, f64)> = cycles.into_iter().zip(timed).collect();
            gauge.find_steady_links(timer, executor, &cycles, random)?;
        }
        Ok(gauge)
    }

    /// Compares cycles with short chains of them behind a fence: where these cost the same, all links are steady.
    fn find_steady_links(
        &mut self,
        timer: &ProgramTimer,
        executor: &mut dyn Executor,
        cycles: &[(&LinkCycle, f64)],
        random: &mut Random,
    ) -> Result<(), RunError> {
        let init = encode_init();
        for (cycle, cost) in cycles.iter().filter(|(cycle, _)| !cycle.links.is_empty()) {
            let period = encode_instructions(&cycle.body).expect("links can be encoded");
            let (world, surroundings) = find_surroundings(&period, &init);
            let Some(turns) = ChainTurns::from_period(&period, 1) else { continue };
            let chain = LongChain { turns, init: &init, world, cycles: &[*cost; 2] };
            let mut fenced = ShortChainTimer { timer, surroundings, executor: &mut *executor, random: &mut *random };
            let slopes = fenced.screen_chains(&[&chain])?.remove(0);
            if chain.judge_short(&slopes) == RegimeVerdict::Alike {
                self.steady.extend(&cycle.links);
            }
        }
        Ok(())
    }

    /// Whether these links cost the same in short chains, as far as is known.
    pub(crate) fn is_steady(&self, links: &[Link]) -> bool {
        links.iter().all(|link| self.steady.contains(link))
    }

    /// Shares the cost of a cycle within one class evenly; certain where each takes one cycle.
    fn share_cycle_cost(&mut self, links: &[Link], cycles: Interval) {
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
            // What is known for certain from another cycle stays.
            if certain || !self.costs.get(link).is_some_and(|known| known.certain) {
                self.costs.insert(*link, cost);
            }
        }
    }

    /// Shares what a store and a load take together, of which the margin is given: a load has what it takes from its
    /// address, a store the rest.
    fn split_trip_cost(&mut self, store: Link, load: Link, trip: StoreLoadTrip, margin: f64) {
        // On a core that forwards data faster than it reads the cache, that is all that the load takes here.
        let loaded = trip.load.min(trip.whole);
        let known = self.costs.get(&load).map_or(f64::NAN, |cost| cost.margin);
        self.trips.extend([(store, trip), (load, trip)]);
        self.set_cost(load, Interval::with_margin(loaded, known));
        self.set_cost(store, Interval::with_margin(trip.whole - loaded, margin.hypot(known)));
    }

    /// Gives a link what is left of a cycle when the others have what they cost.
    fn assign_rest_cost(&mut self, link: Link, cycles: Interval, others: &[Link]) {
        let known = self.sum(others);
        let less = known.map_or(f64::NAN, |cost| cost.cycles);
        let rest = Interval { value: cycles.value - less, low: cycles.low - less, high: cycles.high - less };
        self.set_cost(link, rest.widen_by(known.map_or(f64::NAN, |cost| cost.margin)));
    }

    fn set_cost(&mut self, link: Link, cost: Interval) {
        self.costs.insert(link, LinkEstimate { cycles: cost.value, certain: false, margin: cost.half_width() });
    }

    fn link_cycles(&self, link: Link) -> f64 {
        self.costs.get(&link).map_or(f64::NAN, |cost| cost.cycles)
    }

    /// What these links cost together; `None` where one of them could not be measured.
    pub fn sum(&self, links: &[Link]) -> Option<LinkEstimate> {
        let mut sum = LinkEstimate { cycles: 0.0, certain: true, margin: 0.0 };
        for (index, link) in links.iter().enumerate() {
            let cost = self.costs.get(link).filter(|cost| cost.cycles.is_finite())?;
            sum.cycles += cost.cycles;
            sum.certain &= cost.certain;
            // The same link several times is off by the same each time.
            let times = links.iter().filter(|other| *other == link).count() as f64;
            let first = links[..index].iter().all(|earlier| earlier != link);
            sum.margin = if first { sum.margin.hypot(times * cost.margin) } else { sum.margin };
        }
        Some(sum)
    }

    /// The pair of a store and a load that this one is of; `None` for other links.
    pub(crate) fn find_trip(&self, link: &Link) -> Option<StoreLoadTrip> {
        self.trips.get(link).copied().filter(|trip| trip.load.is_finite() && trip.whole.is_finite())
    }

    /// A gauge in which each link takes a cycle for certain.
    #[cfg(test)]
    pub(crate) fn from_ones(links: &[Link]) -> LinkCosts {
        let cost = LinkEstimate { cycles: 1.0, certain: true, margin: 0.0 };
        LinkCosts { costs: links.iter().map(|link| (*link, cost)).collect(), nop_cycles: 0.2, ..LinkCosts::default() }
    }

    /// The same where each store and load among these links takes this.
    #[cfg(test)]
    pub(crate) fn with_trip(self, links: &[Link], trip: StoreLoadTrip) -> LinkCosts {
        LinkCosts { trips: links.iter().map(|link| (*link, trip)).collect(), ..self }
    }

    /// Takes what links cost in an earlier part of the same survey: its rows follow one convention.
    pub fn adopt_cost(&mut self, name: &str, cost: LinkEstimate) {
        self.costs.iter_mut().filter(|(link, _)| link.name == name).for_each(|(_, known)| *known = cost);
    }

    /// Core cycles of a NOP: one over the width of the core.
    pub fn nop_cycles(&self) -> f64 {
        self.nop_cycles
    }

    /// Every link's name and cost.
    pub fn costs(&self) -> impl Iterator<Item = (&'static str, LinkEstimate)> {
        self.costs.iter().map(|(link, cost)| (link.name, *cost))
    }
}

/// What a cycle's program needs around it.
fn find_surroundings(period: &[u8], init: &[u8]) -> (EntryState, TimingSurroundings) {
    let world = Snippet::new(period.to_vec(), init.to_vec(), "").outline(true).world;
    (world, TimingSurroundings { touches_memory: true, vectors: world.vectors, ..TimingSurroundings::default() })
}

/// Core cycles of one turn of each cycle: what most of its layouts say, of several sweeps over all cycles.
fn time_cycles(
    timer: &ProgramTimer,
    executor: &mut dyn Executor,
    cycles: &[LinkCycle],
    random: &mut Random,
) -> Result<Vec<Interval>, RunError> {
    let init = encode_init();
    // Each by itself: wide vector units rest while narrower code runs.
    let program = |cycle: &LinkCycle| {
        let period = encode_instructions(&cycle.body).expect("links can be encoded");
        let (world, surroundings) = find_surroundings(&period, &init);
        let program = timer.build_program(world, &init, &period, CYCLE_TURNS);
        (LoopedProgram { program, copies: CYCLE_TURNS, loops: CYCLE_LOOPS }, surroundings)
    };
    let control = program(&LinkCycle::control_cycle()).0;
    let programs = cycles.iter().map(program).map(|(timed, around)| ([timed, control.clone()], around));
    let programs: Vec<([LoopedProgram; 2], TimingSurroundings)> = programs.collect();
    let mut costs: Vec<Vec<f64>> = vec![Vec::new(); cycles.len()];
    for _ in 0..SWEEPS {
        for ((timed, surroundings), costs) in programs.iter().zip(&mut costs) {
            costs.extend(time_layouts(timer, executor, timed, *surroundings, random)?);
        }
    }
    let unknown = Interval::with_margin(f64::NAN, f64::NAN);
    let most = |costs: Vec<f64>| estimate_usual(&costs, CONFIDENCE).map_or(unknown, |estimate| estimate.cost);
    Ok(costs.into_iter().map(most).collect())
}

/// A program's cost in some layouts, with the control behind it.
fn time_layouts(
    timer: &ProgramTimer,
    executor: &mut dyn Executor,
    timed: &[LoopedProgram; 2],
    surroundings: TimingSurroundings,
    random: &mut Random,
) -> Result<Vec<f64>, RunError> {
    let (mut costs, mut retries) = (Vec::new(), SIBLING_RETRIES.start_retries());
    loop {
        let size = TimingSize { layouts: SWEEP_LAYOUTS, warm_up: 1, rounds: SWEEP_ROUNDS };
        let timings = timer.time_programs(executor, timed, size, surroundings, random)?;
        let last = retries.is_last();
        let mut reading = ProgramReading::default();
        for layout in &timings {
            // Of a core on which the control is never whole, all layouts are as good.
            if last || is_control_whole(layout_cost(&layout[1])) {
                reading.add_layout(&layout[0]);
            }
        }
        // Beside a neighbour that does not go, its figures are all there is.
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
