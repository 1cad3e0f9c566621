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

use super::cycles::{self, Cycle, init};
use super::fence::Turns;
use super::modes::usual;
use super::program_reading::{ProgramReading, about};
use super::regimes::{Fenced, LongChain, Verdict};
use super::timing::{Size, Surroundings, Timed, Timer};
use super::trip::Trip;
use crate::bodies::links::{self, Link};
use crate::forms::operands::encode;
use cyclescope_code::program::World;
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::features::Features;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::Interval;
use cyclescope_exec::Executor;
use cyclescope_measure::sibling::SiblingPolicy;
use std::collections::{BTreeMap, BTreeSet};

/// Turns of a cycle in a body: an odd number, so that what changes with each turn is another in the next iteration.
const TURNS: usize = 47;
const LOOPS: u64 = 16;
/// Layouts in a sweep, and sweeps: what disturbs one may be gone in the next.
const LAYOUTS: usize = 4;
const SWEEPS: usize = 3;
/// Of intervals that nobody reads.
const CONFIDENCE: f64 = 0.95;
/// Layouts follow while too few had the core alone and a whole control.
const BESIDE_SIBLING: SiblingPolicy = SiblingPolicy { retries: 19, ..SiblingPolicy::USUAL };
const ROUNDS: u32 = 4;
/// A cycle counts as whole within this many cycles.
const WHOLE: f64 = 0.03;
/// The control takes a whole number of core cycles within this share of it.
const CONTROLLED: f64 = 0.01;

/// What one link costs.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Cost {
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
pub struct Gauge {
    costs: BTreeMap<Link, Cost>,
    /// By its store and by its load, each pair of a store and a load.
    trips: BTreeMap<Link, Trip>,
    slot: f64,
    /// Links that cost the same in a short chain behind a fence.
    steady: BTreeSet<Link>,
}

impl Gauge {
    /// Measures all links that the CPU has, and where `regimes` is asked for, whether they cost the same in short
    /// chains.
    pub(crate) fn measure(
        timer: &Timer,
        executor: &mut dyn Executor,
        features: &Features,
        regimes: bool,
        random: &mut Random,
    ) -> Result<Gauge, RunError> {
        let mut gauge = Gauge::default();
        let has = |links: &[Link]| links.iter().all(|link| features.missing(link.features()).is_empty());
        let mut timed: Vec<Interval> = Vec::new();
        let mut time = |cycles: &[Cycle]| {
            let costs = time(timer, executor, cycles, random)?;
            timed.extend(&costs);
            Ok::<_, RunError>(costs)
        };
        let nop = Cycle::nops();
        gauge.slot = time(std::slice::from_ref(&nop))?[0].value / nop.body.len() as f64;
        let within = cycles::within(&has);
        for (cycle, cycles) in within.iter().zip(time(&within)?) {
            gauge.share(&cycle.links, cycles);
        }
        let pairs = cycles::there_and_back(&has);
        for (cycle, cycles) in pairs.iter().zip(time(&pairs)?) {
            if cycle.links[0] == links::FROM_HIGH {
                gauge.rest(links::FROM_HIGH, cycles, &[links::FROM_32]);
                continue;
            }
            let half = Interval { value: cycles.value / 2.0, low: cycles.low / 2.0, high: cycles.high / 2.0 };
            cycle.links.iter().for_each(|link| gauge.set(*link, half));
        }
        let threes = cycles::over_a_third(&has);
        for (cycle, cycles) in threes.iter().zip(time(&threes)?) {
            gauge.rest(cycle.links[1], cycles, &[cycle.links[0], cycle.links[2]]);
        }
        let loads = cycles::loads(&has);
        for (cycle, cycles) in loads.iter().zip(time(&loads)?) {
            gauge.rest(cycle.links[0], cycles, &cycle.links[1..]);
        }
        let trips = cycles::trips(&has);
        let costs = time(trips.as_flattened())?;
        for ([cycle, _], costs) in trips.iter().zip(costs.as_chunks().0) {
            let beside: f64 = cycle.links[2..].iter().map(|link| gauge.of(*link)).sum();
            let [plain, alternating] = costs.map(|cycles| cycles.value - beside);
            let trip = Trip::of(gauge.of(cycle.links[1]), plain, alternating);
            let taken = if trip.whole == plain.max(0.0) { costs[0] } else { costs[1] };
            gauge.split(cycle.links[0], cycle.links[1], trip, taken.half_width());
        }
        if regimes {
            let cycles: Vec<&Cycle> =
                std::iter::once(&nop).chain(&within).chain(&pairs).chain(&threes).chain(&loads).collect();
            let timed = timed.iter().map(|cycles| cycles.value);
            let cycles: Vec<(&Cycle, f64)> = cycles.into_iter().zip(timed).collect();
            gauge.compare(timer, executor, &cycles, random)?;
        }
        Ok(gauge)
    }

    /// Compares cycles with short chains of them behind a fence: where these cost the same, all links are steady.
    fn compare(
        &mut self,
        timer: &Timer,
        executor: &mut dyn Executor,
        cycles: &[(&Cycle, f64)],
        random: &mut Random,
    ) -> Result<(), RunError> {
        let init = init();
        for (cycle, cost) in cycles.iter().filter(|(cycle, _)| !cycle.links.is_empty()) {
            let period = encode(&cycle.body).expect("links can be encoded");
            let (world, surroundings) = surroundings(&period, &init);
            let Some(turns) = Turns::of(&period, 1) else { continue };
            let chain = LongChain { turns, init: &init, world, cycles: &[*cost; 2] };
            let mut fenced = Fenced { timer, surroundings, executor: &mut *executor, random: &mut *random };
            let slopes = fenced.screen(&[&chain])?.remove(0);
            if chain.verdict(&slopes) == Verdict::Alike {
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
    fn share(&mut self, links: &[Link], cycles: Interval) {
        let count = links.len() as f64;
        let (each, margin) = (cycles.value / count, cycles.half_width() / count);
        let alone =
            links.iter().all(|link| *link == links[0]) && each > 1.0 && (each - each.round()).abs() < WHOLE;
        let certain = (cycles.value - count).abs() < WHOLE || alone;
        let cost = match certain {
            true => Cost { cycles: each.round(), certain, margin: 0.0 },
            false => Cost { cycles: each, certain, margin },
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
    fn split(&mut self, store: Link, load: Link, trip: Trip, margin: f64) {
        // On a core that forwards data faster than it reads the cache, that is all that the load takes here.
        let loaded = trip.load.min(trip.whole);
        let known = self.costs.get(&load).map_or(f64::NAN, |cost| cost.margin);
        self.trips.extend([(store, trip), (load, trip)]);
        self.set(load, Interval::around(loaded, known));
        self.set(store, Interval::around(trip.whole - loaded, margin.hypot(known)));
    }

    /// Gives a link what is left of a cycle when the others have what they cost.
    fn rest(&mut self, link: Link, cycles: Interval, others: &[Link]) {
        let known = self.sum(others);
        let less = known.map_or(f64::NAN, |cost| cost.cycles);
        let rest = Interval { value: cycles.value - less, low: cycles.low - less, high: cycles.high - less };
        self.set(link, rest.widened(known.map_or(f64::NAN, |cost| cost.margin)));
    }

    fn set(&mut self, link: Link, cost: Interval) {
        self.costs.insert(link, Cost { cycles: cost.value, certain: false, margin: cost.half_width() });
    }

    fn of(&self, link: Link) -> f64 {
        self.costs.get(&link).map_or(f64::NAN, |cost| cost.cycles)
    }

    /// What these links cost together; `None` where one of them could not be measured.
    pub fn sum(&self, links: &[Link]) -> Option<Cost> {
        let mut sum = Cost { cycles: 0.0, certain: true, margin: 0.0 };
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
    pub(crate) fn trip(&self, link: &Link) -> Option<Trip> {
        self.trips.get(link).copied().filter(|trip| trip.load.is_finite() && trip.whole.is_finite())
    }

    /// A gauge in which each link takes a cycle for certain.
    #[cfg(test)]
    pub(crate) fn of_ones(links: &[Link]) -> Gauge {
        let cost = Cost { cycles: 1.0, certain: true, margin: 0.0 };
        Gauge { costs: links.iter().map(|link| (*link, cost)).collect(), slot: 0.2, ..Gauge::default() }
    }

    /// The same where each store and load among these links takes this.
    #[cfg(test)]
    pub(crate) fn with_trip(self, links: &[Link], trip: Trip) -> Gauge {
        Gauge { trips: links.iter().map(|link| (*link, trip)).collect(), ..self }
    }

    /// Takes what links cost in an earlier part of the same survey: its rows follow one convention.
    pub fn adopt(&mut self, name: &str, cost: Cost) {
        self.costs.iter_mut().filter(|(link, _)| link.name == name).for_each(|(_, known)| *known = cost);
    }

    /// Core cycles of a NOP: one over the width of the core.
    pub fn slot(&self) -> f64 {
        self.slot
    }

    /// Every link's name and cost.
    pub fn costs(&self) -> impl Iterator<Item = (&'static str, Cost)> {
        self.costs.iter().map(|(link, cost)| (link.name, *cost))
    }
}

/// What a cycle's program needs around it.
fn surroundings(period: &[u8], init: &[u8]) -> (World, Surroundings) {
    let world = Snippet::new(period.to_vec(), init.to_vec(), "").outline(true).world;
    (world, Surroundings { touches_memory: true, vectors: world.vectors, ..Surroundings::default() })
}

/// Core cycles of one turn of each cycle: what most of its layouts say, of several sweeps over all cycles.
fn time(
    timer: &Timer,
    executor: &mut dyn Executor,
    cycles: &[Cycle],
    random: &mut Random,
) -> Result<Vec<Interval>, RunError> {
    let init = init();
    // Each by itself: wide vector units rest while narrower code runs.
    let program = |cycle: &Cycle| {
        let period = encode(&cycle.body).expect("links can be encoded");
        let (world, surroundings) = surroundings(&period, &init);
        let program = timer.program(world, &init, &period, TURNS);
        (Timed { program, copies: TURNS, loops: LOOPS }, surroundings)
    };
    let control = program(&Cycle::control()).0;
    let programs = cycles.iter().map(program).map(|(timed, around)| ([timed, control.clone()], around));
    let programs: Vec<([Timed; 2], Surroundings)> = programs.collect();
    let mut costs: Vec<Vec<f64>> = vec![Vec::new(); cycles.len()];
    for _ in 0..SWEEPS {
        for ((timed, surroundings), costs) in programs.iter().zip(&mut costs) {
            costs.extend(some(timer, executor, timed, *surroundings, random)?);
        }
    }
    let unknown = Interval::around(f64::NAN, f64::NAN);
    let most = |costs: Vec<f64>| usual(&costs, CONFIDENCE).map_or(unknown, |estimate| estimate.cost);
    Ok(costs.into_iter().map(most).collect())
}

/// A program's cost in some layouts, with the control behind it.
fn some(
    timer: &Timer,
    executor: &mut dyn Executor,
    timed: &[Timed; 2],
    surroundings: Surroundings,
    random: &mut Random,
) -> Result<Vec<f64>, RunError> {
    let (mut costs, mut retries) = (Vec::new(), BESIDE_SIBLING.start());
    loop {
        let size = Size { layouts: LAYOUTS, warm_up: 1, rounds: ROUNDS };
        let timings = timer.time(executor, timed, size, surroundings, random)?;
        let last = retries.is_last();
        let mut reading = ProgramReading::default();
        for layout in &timings {
            // Of a core on which the control is never whole, all layouts are as good.
            if last || is_controlled(about(&layout[1])) {
                reading.add(&layout[0]);
            }
        }
        // Beside a neighbour that does not go, its figures are all there is.
        let shared = reading.cycles.is_empty() && last;
        costs.extend(if shared { reading.shared } else { reading.cycles });
        if costs.len() >= LAYOUTS || !retries.retry() {
            return Ok(costs);
        }
    }
}

/// Whether the control took a whole number of core cycles.
fn is_controlled(cycles: f64) -> bool {
    (cycles - cycles.round()).abs() <= CONTROLLED * cycles
}
