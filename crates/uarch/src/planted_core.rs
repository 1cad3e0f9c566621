//! A whole simulated core, with something planted for each test.

use super::cost::{CostPoint, Costs, Mixes};
use super::list::TESTS;
use super::overlap::{Overlaps, Point, Probe};
use super::planted_batches::Planted as Flights;
use super::planted_levels::Planted as Levels;
use super::planted_mixture::Planted as Units;
use super::planted_window::Planted as Window;
use super::test::mixture::{Order, Share};
use super::test::rate::Rates;
use super::test::walk::{Walk, Walks};
use super::test::{Look, Test};
use cyclescope_core::error::RunError;
use cyclescope_core::random::{Random, mix};
use cyclescope_core::unit::Unit;
use std::collections::{BTreeMap, BTreeSet};

/// Noise of an event's cost and of a rate, as a share.
const NOISE: f64 = 0.006;

/// Core cycles of a program in which an event does not happen.
const CONTROL: f64 = 5.0;

/// The core.
pub(super) struct Planted {
    pub window: Window,
    pub units: BTreeMap<&'static str, Units>,
    pub levels: BTreeMap<&'static str, Levels>,
    pub flights: BTreeMap<&'static str, Flights>,
    /// The tests whose first level ends where another structure does, of which each that is counted takes a part: two branches of a line, or
    /// lines of an instruction cache.
    pub hidden: BTreeSet<&'static str>,
    /// Core cycles of events, by the keys of their records.
    pub events: BTreeMap<String, f64>,
    /// Rates, or what steps cost, by the keys of their records.
    pub rates: BTreeMap<String, f64>,
    /// Programs that something slows down or that hide an event, by the same keys and their names, and the share that is left.
    slow: BTreeMap<(String, &'static str), f64>,
    /// Core cycles at each place, by the keys of their rows.
    pub places: BTreeMap<String, Vec<f64>>,
    /// The test that runs.
    pub test: &'static Test,
    random: Random,
}

impl Planted {
    pub(super) fn new(seed: u64) -> Planted {
        let mut random = Random::new(seed);
        let (mut levels, mut events) = (BTreeMap::new(), BTreeMap::new());
        let (mut rates, mut slow) = (BTreeMap::new(), BTreeMap::new());
        let (mut units, mut places, mut flights) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (number, test) in TESTS.iter().enumerate() {
            match &test.look {
                Look::Levels(walks) => {
                    levels.insert(test.name, Levels::of(walks, mix(seed, number as u64)));
                }
                Look::Contrast(contrast) => {
                    for row in contrast.rows {
                        let none = random.happens(0.2);
                        let cost = contrast.apart * (2.0 + 20.0 * random.unit());
                        events.insert(row.key(test.name), if none { 0.0 } else { cost });
                        // One program shows a part alone, by where its code is.
                        if row.varies {
                            slow.insert(
                                (row.key(test.name), row.ways[0].walk.name),
                                0.6 + 0.4 * random.unit(),
                            );
                        }
                        for way in row.ways.iter().skip(2).filter(|_| row.hidden) {
                            let share = if random.happens(0.5) { 0.0 } else { 1.0 };
                            slow.insert((row.key(test.name), way.walk.name), share);
                        }
                    }
                }
                Look::Rates(Rates { rows, alone, .. }) => {
                    for row in *rows {
                        let key = row.key(test.name);
                        rates.insert(key.clone(), row.each * (0.5 + 5.5 * random.unit()));
                        if row.varies {
                            slow.insert((key, row.ways[0].walk.name), 0.6 + 0.4 * random.unit());
                            continue;
                        }
                        // Two programs at least do as much as the core can.
                        let mut ways: Vec<_> = row.fitting(|_| true).collect();
                        random.shuffle(&mut ways);
                        for (place, way) in ways[ways.len().min(2)..].iter().enumerate() {
                            let share = match random.below(4) {
                                0 | 1 => 0.3 + 0.6 * random.unit(),
                                // Packed, or from a cache of decoded instructions in part: each to another share.
                                2 if *alone => 1.1 + 0.25 * (place as f64 + 0.4 * random.unit()),
                                _ => 1.0,
                            };
                            slow.insert((key.clone(), way.walk.name), share);
                        }
                    }
                }
                Look::Map(map) => {
                    for row in map.rows {
                        let [least, more] = [4.0 + 4.0 * random.unit(), 8.0 + 6.0 * random.unit()];
                        let cost = |fails| if fails { least + more } else { least };
                        let costs = (0..row.places).map(|_| cost(random.happens(0.5))).collect();
                        places.insert(format!("{}.{}", test.name, row.name), costs);
                    }
                }
                Look::Mixture(mixture) => {
                    units.insert(test.name, Units::of(mixture, mix(seed, number as u64)));
                }
                Look::Batches(batches) => {
                    flights.insert(test.name, Flights::of(batches, mix(seed, number as u64)));
                }
                Look::Overlap(_)
                | Look::Queues(_)
                | Look::Sharing(_)
                | Look::Exchanges(_)
                | Look::Environment { .. } => {}
            }
        }
        let hidden = hidden(&mut levels, &mut random);
        Planted {
            window: Window::new(seed),
            units,
            levels,
            flights,
            hidden,
            events,
            rates,
            slow,
            places,
            test: TESTS[0],
            random,
        }
    }

    fn noisy(&mut self, n: usize, cost: f64) -> CostPoint {
        let burst = if self.random.happens(0.02) { 1.0 + self.random.unit() } else { 1.0 };
        let cost = cost * burst * (1.0 + NOISE * self.random.normal()) + 0.002 * self.random.normal();
        CostPoint { n, cost, low: cost - 0.004 - NOISE * cost, high: cost + 0.004 + NOISE * cost }
    }
}

impl Overlaps for Planted {
    fn at(&mut self, probe: &Probe, counts: &[usize]) -> Result<Vec<Point>, RunError> {
        self.window.at(probe, counts)
    }
}

impl Mixes for Planted {
    fn mixed(&mut self, shares: &[Share], order: Order, before: &str) -> Result<Option<CostPoint>, RunError> {
        self.units.get_mut(self.test.name).expect("it was planted").mixed(shares, order, before)
    }
}

impl Costs for Planted {
    fn cost(&mut self, walk: &Walk, n: usize) -> Result<Option<CostPoint>, RunError> {
        let cost = match &self.test.look {
            Look::Levels(_) => {
                return self.levels.get_mut(self.test.name).expect("it was planted").cost(walk, n);
            }
            Look::Batches(_) => {
                return Ok(Some(self.flights.get_mut(self.test.name).expect("it was planted").cost(walk, n)));
            }
            Look::Map(map) => {
                let mut rows = map.rows.iter();
                let row = rows.find(|row| row.ways.iter().any(|way| std::ptr::eq(way, walk)));
                let row = row.expect("it is a row's program");
                self.places[&format!("{}.{}", self.test.name, row.name)][n]
            }
            Look::Contrast(_) | Look::Rates(_) => {
                // The study walks over these rows themselves.
                let mut rows = self.test.rows().iter();
                let row =
                    rows.find(|row| row.n == n && row.ways.iter().any(|way| std::ptr::eq(&way.walk, walk)));
                let row = row.expect("it is a row's program");
                let key = row.key(self.test.name);
                let share = self.slow.get(&(key.clone(), walk.name)).copied().unwrap_or(1.0);
                match (&self.test.look, self.events.get(&key)) {
                    // What is not subtracted stays.
                    (_, Some(event)) if walk.without.is_none() => event * row.each + CONTROL,
                    (_, Some(event)) => event * row.each * share,
                    (Look::Rates(Rates { unit: Unit::CoreCycles, .. }), None) => {
                        row.each * self.rates[&key] / share
                    }
                    _ => row.each / (self.rates[&key] * share),
                }
            }
            Look::Overlap(_)
            | Look::Queues(_)
            | Look::Mixture(_)
            | Look::Sharing(_)
            | Look::Exchanges(_)
            | Look::Environment { .. } => {
                panic!("{} has no costs", self.test.name)
            }
        };
        Ok(Some(self.noisy(n, cost)))
    }
}

/// Has the first levels of some tests end where a structure of another test is full.
fn hidden(levels: &mut BTreeMap<&'static str, Levels>, random: &mut Random) -> BTreeSet<&'static str> {
    let mut hidden = BTreeSet::new();
    for test in TESTS {
        let Look::Levels(Walks { takes: [(other, each)], .. }) = &test.look else { continue };
        let full = levels[other].sizes[0] / *each as f64;
        let seen = levels[other].second == 1.0;
        let own = levels.get_mut(test.name).expect("it was planted");
        if seen && random.happens(0.5) && own.hide(full.floor()) {
            hidden.insert(test.name);
        }
    }
    hidden
}
