//! A whole simulated core, with a simulated number for each test.

use super::simulated_batches::SimulatedBatches as Flights;
use super::simulated_levels::SimulatedLevels as Levels;
use super::simulated_units::SimulatedUnits as Units;
use super::simulated_visits::SimulatedVisits as Visits;
use super::simulated_window::SimulatedWindow as Window;
use crate::cost::{CostPoint, MeasureCosts, MeasureMixtures};
use crate::overlap::{MeasureOverlaps, OverlapProbe, OverlapReading};
use crate::spec::{ClassCount, Experiment, LevelsSpec, MixOrder, ProgramFamily, RatesSpec, TestSpec};
use crate::test_list::TESTS;
use cyclescope_core::error::RunError;
use cyclescope_core::random::{Random, mix_seeds};
use cyclescope_core::unit::Unit;
use std::collections::{BTreeMap, BTreeSet};

/// Relative noise of an event's cost and of a rate.
const NOISE: f64 = 0.006;

/// Core cycles of a program without the event.
const CONTROL: f64 = 5.0;

/// The core.
pub(super) struct SimulatedStructures {
    pub window: Window,
    pub units: BTreeMap<&'static str, Units>,
    pub levels: BTreeMap<&'static str, Levels>,
    pub flights: BTreeMap<&'static str, Flights>,
    pub visits: BTreeMap<&'static str, Visits>,
    /// Tests whose first level ends where another structure is full, in which each counted item
    /// takes a part: two branches of a line, or lines of an instruction cache.
    pub hidden: BTreeSet<&'static str>,
    /// Core cycles of events, or their slots, by the keys of their records.
    pub events: BTreeMap<String, f64>,
    /// Core cycles of a slot in the programs of tests that count slots.
    slot_cost: f64,
    /// Rates, or costs of steps, by the keys of their records.
    pub rates: BTreeMap<String, f64>,
    /// Programs that are slowed down or hide an event, by record key and program name, with the
    /// share that is left.
    slow: BTreeMap<(String, String), f64>,
    /// Core cycles at each place, by row key.
    pub places: BTreeMap<String, Vec<f64>>,
    /// The running test.
    pub test: &'static TestSpec,
    random: Random,
}

impl SimulatedStructures {
    pub(super) fn new(seed: u64) -> SimulatedStructures {
        let mut random = Random::new(seed);
        let (mut levels, mut events) = (BTreeMap::new(), BTreeMap::new());
        let (mut rates, mut slow) = (BTreeMap::new(), BTreeMap::new());
        let (mut units, mut places) = (BTreeMap::new(), BTreeMap::new());
        let (mut flights, mut visits) = (BTreeMap::new(), BTreeMap::new());
        for (number, test) in TESTS.iter().enumerate() {
            match &test.experiment {
                Experiment::Levels(spec) => {
                    levels.insert(test.name, Levels::from_seed(spec, mix_seeds(seed, number as u64)));
                }
                Experiment::Contrast(contrast) => {
                    for row in contrast.rows {
                        let none = random.happens(0.2);
                        let cost = contrast.tolerance * (2.0 + 20.0 * random.uniform());
                        events.insert(row.record_key(test.name), if none { 0.0 } else { cost });
                        // One program shows only a part, by the place of its code.
                        if row.varies_by_place {
                            slow.insert(
                                (row.record_key(test.name), row.variants[0].family.label()),
                                0.6 + 0.4 * random.uniform(),
                            );
                        }
                        for variant in row.variants.iter().skip(2).filter(|_| row.may_be_hidden) {
                            let share = if random.happens(0.5) { 0.0 } else { 1.0 };
                            slow.insert((row.record_key(test.name), variant.family.label()), share);
                        }
                    }
                }
                Experiment::Rates(RatesSpec { rows, allow_outlier: alone, .. }) => {
                    for row in *rows {
                        let key = row.record_key(test.name);
                        rates.insert(key.clone(), row.amount_per_step * (0.5 + 5.5 * random.uniform()));
                        if row.varies_by_place {
                            slow.insert((key, row.variants[0].family.label()), 0.6 + 0.4 * random.uniform());
                            continue;
                        }
                        // At least two programs reach the core's rate.
                        let mut variants: Vec<_> = row.runnable_variants(|_| true).collect();
                        random.shuffle(&mut variants);
                        for (place, variant) in variants[variants.len().min(2)..].iter().enumerate() {
                            let share = match random.below(4) {
                                0 | 1 => 0.3 + 0.6 * random.uniform(),
                                // Packed, or partly from a cache of decoded instructions: each by
                                // another share.
                                2 if *alone => 1.1 + 0.25 * (place as f64 + 0.4 * random.uniform()),
                                _ => 1.0,
                            };
                            slow.insert((key.clone(), variant.family.label()), share);
                        }
                    }
                }
                Experiment::CostMap(map) => {
                    for row in map.rows {
                        let [least, more] = [4.0 + 4.0 * random.uniform(), 8.0 + 6.0 * random.uniform()];
                        let cost = |fails| if fails { least + more } else { least };
                        let costs = (0..row.place_count).map(|_| cost(random.happens(0.5))).collect();
                        places.insert(format!("{}.{}", test.name, row.name), costs);
                    }
                }
                Experiment::Mixture(mixture) => {
                    units.insert(test.name, Units::from_seed(mixture, mix_seeds(seed, number as u64)));
                }
                Experiment::Batches(batches) => {
                    flights.insert(test.name, Flights::from_seed(batches, mix_seeds(seed, number as u64)));
                }
                Experiment::RandomVisits(spec) => {
                    visits.insert(test.name, Visits::from_seed(spec, mix_seeds(seed, number as u64)));
                }
                Experiment::Overlap(_)
                | Experiment::Queues(_)
                | Experiment::Fades(_)
                | Experiment::Rooms(_)
                | Experiment::Sharing(_)
                | Experiment::Exchanges(_)
                | Experiment::Environment { .. } => {}
            }
        }
        let hidden = hidden(&mut levels, &visits, &mut random);
        SimulatedStructures {
            window: Window::new(seed),
            units,
            levels,
            flights,
            visits,
            hidden,
            events,
            slot_cost: [1.0, 4.0, 8.0][random.below(3)],
            rates,
            slow,
            places,
            test: TESTS[0],
            random,
        }
    }

    /// The sizes of a structure that items of other tests occupy too, and whether a test can tell
    /// all of them.
    pub(super) fn occupied_sizes(&self, name: &str) -> (Vec<f64>, bool) {
        let (sizes, seen) = occupied_sizes(&self.levels, &self.visits, name);
        (sizes, seen && self.levels.get(name).is_none_or(|other| other.early.is_none()))
    }

    fn noisy(&mut self, n: usize, cost: f64) -> CostPoint {
        let burst = if self.random.happens(0.02) { 1.0 + self.random.uniform() } else { 1.0 };
        let cost = cost * burst * (1.0 + NOISE * self.random.normal()) + 0.002 * self.random.normal();
        CostPoint { n, cost, low: cost - 0.004 - NOISE * cost, high: cost + 0.004 + NOISE * cost }
    }
}

impl MeasureOverlaps for SimulatedStructures {
    fn measure_overlaps(&mut self, probe: &OverlapProbe, counts: &[usize]) -> Result<Vec<OverlapReading>, RunError> {
        self.window.measure_overlaps(probe, counts)
    }
}

impl MeasureMixtures for SimulatedStructures {
    fn measure_mixture(
        &mut self,
        shares: &[ClassCount],
        order: MixOrder,
        before: &str,
    ) -> Result<Option<CostPoint>, RunError> {
        self.units.get_mut(self.test.name).expect("it was simulated").measure_mixture(shares, order, before)
    }
}

impl MeasureCosts for SimulatedStructures {
    fn measure_cost(&mut self, family: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError> {
        let cost = match &self.test.experiment {
            Experiment::Levels(_) => {
                return self.levels.get_mut(self.test.name).expect("it was simulated").measure_cost(family, n);
            }
            Experiment::Batches(_) => {
                return Ok(Some(self.flights.get_mut(self.test.name).expect("it was simulated").cost(family, n)));
            }
            Experiment::RandomVisits(_) => {
                return Ok(Some(self.visits.get_mut(self.test.name).expect("it was simulated").cost(family, n)));
            }
            Experiment::CostMap(map) => {
                let mut rows = map.rows.iter();
                let row = rows.find(|row| row.programs.iter().any(|variant| std::ptr::eq(variant, family)));
                let row = row.expect("it is a row's program");
                self.places[&format!("{}.{}", self.test.name, row.name)][n]
            }
            Experiment::Contrast(contrast) if contrast.slot_costs.iter().any(|own| std::ptr::eq(own, family)) => {
                self.slot_cost
            }
            Experiment::Contrast(_) | Experiment::Rates(_) => {
                // The study goes through the same rows.
                let mut rows = self.test.rows().iter();
                let row = rows
                    .find(|row| row.n == n && row.variants.iter().any(|variant| std::ptr::eq(&variant.family, family)));
                let row = row.expect("it is a row's program");
                let key = row.record_key(self.test.name);
                let share = self.slow.get(&(key.clone(), family.label())).copied().unwrap_or(1.0);
                match (&self.test.experiment, self.events.get(&key)) {
                    // Without a control, the full cost remains.
                    (_, Some(event)) if family.control.is_none() => event * row.amount_per_step + CONTROL,
                    (Experiment::Contrast(contrast), Some(event)) if !contrast.slot_costs.is_empty() => {
                        event * row.amount_per_step * share * self.slot_cost
                    }
                    (_, Some(event)) => event * row.amount_per_step * share,
                    (Experiment::Rates(RatesSpec { unit: Unit::CoreCycles, .. }), None) => {
                        row.amount_per_step * self.rates[&key] / share
                    }
                    _ => row.amount_per_step / (self.rates[&key] * share),
                }
            }
            Experiment::Overlap(_)
            | Experiment::Queues(_)
            | Experiment::Fades(_)
            | Experiment::Rooms(_)
            | Experiment::Mixture(_)
            | Experiment::Sharing(_)
            | Experiment::Exchanges(_)
            | Experiment::Environment { .. } => {
                panic!("{} has no costs", self.test.name)
            }
        };
        Ok(Some(self.noisy(n, cost)))
    }
}

/// The sizes of a structure that items of other tests occupy too, and whether both programs see
/// them.
fn occupied_sizes(
    levels: &BTreeMap<&'static str, Levels>,
    visits: &BTreeMap<&'static str, Visits>,
    name: &str,
) -> (Vec<f64>, bool) {
    match visits.get(name) {
        Some(visited) => (vec![visited.size], visited.is_visible()),
        None => (levels[name].sizes.clone(), levels[name].second == 1.0),
    }
}

/// Makes the first levels of some tests end where a structure of another test is full.
fn hidden(
    levels: &mut BTreeMap<&'static str, Levels>,
    visits: &BTreeMap<&'static str, Visits>,
    random: &mut Random,
) -> BTreeSet<&'static str> {
    let mut hidden = BTreeSet::new();
    for test in TESTS {
        let Experiment::Levels(LevelsSpec { also_occupies: [(other, each)], .. }) = &test.experiment else {
            continue;
        };
        let (sizes, seen) = occupied_sizes(levels, visits, other);
        let full = sizes[0] / *each as f64;
        let own = levels.get_mut(test.name).expect("it was simulated");
        if seen && random.happens(0.5) && own.hide(full.floor()) {
            hidden.insert(test.name);
        }
    }
    hidden
}
