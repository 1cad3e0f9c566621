//! Results on simulated cores: each number that is found must be the simulated one.

use super::simulated_batches::SimulatedBatches as Flights;
use super::simulated_levels::SimulatedLevels as Levels;
use super::simulated_structures::SimulatedStructures;
use crate::cpu_resources::CpuResources;
use crate::earlier_result::EarlierResult;
use crate::level_limit;
use crate::overlap_test::StructureEnds;
use crate::queues::{pair_key, waiting_count};
use crate::record::UarchRecord;
use crate::spec::{BatchesSpec, ContrastSpec, CostMapSpec, Experiment, LevelsSpec, MixtureSpec, QueuesSpec, RatesSpec};
use crate::test_list::TESTS;
use crate::test_runner::run_test;
use crate::verdict::VerdictKind;
use cyclescope_core::random::Random;
use std::collections::BTreeMap;

/// Share by which the cost of a level may differ from the simulated cost, in addition to its drift.
const APART: f64 = 0.12;

/// Counts of correct, missing and wrong results.
#[derive(Debug, Default)]
struct RecoveryScore {
    right: usize,
    visible: usize,
    wrong: Vec<String>,
    missed: Vec<String>,
}

impl RecoveryScore {
    fn add(&mut self, other: RecoveryScore) {
        let RecoveryScore { right, visible, wrong, missed } = other;
        (self.right, self.visible) = (self.right + right, self.visible + visible);
        self.wrong.extend(wrong);
        self.missed.extend(missed);
    }

    /// Counts a number that the core shows or hides.
    fn take(&mut self, what: String, visible: bool, record: Option<&UarchRecord>, right: bool) {
        self.visible += usize::from(visible);
        let found = record.is_some_and(|record| record.verdict == VerdictKind::Found);
        let why = record.map_or("no record", |record| &record.why);
        let text = format!("{what}: {why}, {:?}", record.map(|record| record.value.value));
        match (found, right) {
            (true, true) => self.right += usize::from(visible),
            (true, false) => self.wrong.push(text),
            (false, _) if visible => self.missed.push(text),
            _ => {}
        }
    }

    /// Counts a size of the window. Returns the kind of number, as the methods below do.
    fn window(&mut self, core: &SimulatedStructures, record: &UarchRecord) -> &'static str {
        let simulated = core.window.sizes[core.test.name] as f64;
        let right = holds(record, simulated, entries(simulated));
        self.take(format!("{simulated}"), core.window.shows(core.test), Some(record), right);
        "window"
    }

    fn levels(&mut self, core: &SimulatedStructures, spec: &LevelsSpec, records: &[UarchRecord]) -> &'static str {
        let Levels { sizes, costs, second, ramp, early, .. } = &core.levels[core.test.name];
        let inside = |record: &UarchRecord, size: f64| holds(record, size, entries(size));
        let is_size = |record: &&UarchRecord| record.what == core.test.name || record.what.ends_with(".size");
        let found = || records.iter().filter(is_size).filter(|record| record.verdict == VerdictKind::Found);
        let hidden = core.hidden.contains(core.test.name);
        let all_limited = || records.iter().filter(is_size).filter(|record| record.verdict == VerdictKind::Limited);
        let limited = || all_limited().next();
        // If the second program sees another size, or one program another first level, there is
        // nothing to agree on. This also applies to a structure that may be full first.
        let seen = spec.also_occupies.iter().all(|(other, _)| core.occupied_sizes(other).1);
        let agreed = seen && *second == 1.0;
        // Nothing tells a level from another structure that is full at the same count.
        let is_ambiguous = |size: f64| {
            let full = |(other, each): &(&str, usize)| {
                core.occupied_sizes(other).0.iter().any(|full| {
                    let ratio = size * *each as f64 / full;
                    (1.0 / AMBIGUOUS..=AMBIGUOUS).contains(&ratio)
                })
            };
            spec.also_occupies.iter().any(full)
        };
        for (number, size) in sizes.iter().enumerate().skip(usize::from(early.is_some())).filter(|_| agreed) {
            let said = all_limited().any(|record| level_number(record) == Some(number + 1));
            if number > 0 && said && is_ambiguous(*size) {
                continue;
            }
            let record = match hidden && number == 0 {
                true => limited(),
                false => found().find(|record| inside(record, *size)),
            };
            self.visible += 1;
            match record {
                Some(_) => self.right += 1,
                None => {
                    let why = records.iter().filter(is_size).map(|record| record.why.as_str());
                    self.missed.push(format!("{size} of {sizes:?}: {}", why.collect::<Vec<_>>().join(" | ")));
                }
            }
        }
        // The level that the record refers to. A hidden level has no size.
        let number = |record: &UarchRecord| match spec.single_structure {
            true => Some(0),
            false => level_number(record)?.checked_sub(1),
        };
        let simulated = |record: &&UarchRecord| {
            let its = |place: usize| number(record) == Some(place);
            let first = early.filter(|_| its(0)).map_or(1.0, |(_, share)| share);
            let right = |(place, size): (usize, &f64)| {
                let shown = !hidden || place > 0;
                shown && its(place) && [1.0, *second, first].iter().any(|share| inside(record, share * size))
            };
            sizes.iter().enumerate().any(right)
        };
        for record in found().filter(|record| !simulated(record)) {
            self.wrong.push(format!("{}, {sizes:?}: {}", record.what, record.why));
        }
        let near = |cost: f64, simulated: f64| {
            let slack = 0.3 * spec.min_rise;
            let [less, more] = [APART, APART + ramp.0].map(|share| slack.max(share * simulated));
            (simulated - less..=simulated + more).contains(&cost)
        };
        for record in records.iter().filter(|record| record.what.ends_with("cost")) {
            let Some(cost) = record.value.value else { continue };
            if !costs.iter().any(|simulated| near(cost, *simulated)) {
                self.wrong.push(format!("{}, {cost:.1} of {costs:?}", record.what));
            }
        }
        "levels"
    }

    fn events(&mut self, core: &SimulatedStructures, contrast: &ContrastSpec, records: &[UarchRecord]) -> &'static str {
        for (row, record) in contrast.rows.iter().zip(records) {
            let simulated = core.events[&row.record_key(core.test.name)];
            let slack = contrast.tolerance.max(contrast.tolerance_share * simulated);
            if simulated == 0.0 && record.verdict == VerdictKind::None {
                (self.visible, self.right) = (self.visible + 1, self.right + 1);
            } else {
                self.take(format!("{simulated:.1}"), true, Some(record), holds(record, simulated, slack));
            }
        }
        "events"
    }

    /// Counts the costs by place.
    fn map(&mut self, core: &SimulatedStructures, map: &CostMapSpec, records: &[UarchRecord]) -> &'static str {
        for (row, record) in map.rows.iter().zip(records) {
            let simulated = &core.places[&record.what];
            assert_eq!(simulated.len(), record.places.len(), "{}", row.name);
            for (simulated, found) in simulated.iter().zip(&record.places) {
                self.visible += 1;
                let text = format!("{} at {}: {:?} of {simulated}", row.name, found.place, found.cost);
                match found.cost {
                    Some(cost) if (cost - simulated).abs() <= 0.03 * simulated => self.right += 1,
                    Some(_) => self.wrong.push(text),
                    None => self.missed.push(text),
                }
            }
        }
        "maps"
    }

    /// Counts the effects of each class on each other one. Random units are shared in ways that
    /// pairs do not fully show, so groups of three prove little.
    fn mixture(
        &mut self,
        core: &SimulatedStructures,
        mixture: &'static MixtureSpec,
        records: &[UarchRecord],
    ) -> &'static str {
        let units = &core.units[core.test.name];
        for (class, record) in mixture.classes.iter().zip(records) {
            for (what, right) in units.judged(record, class, mixture) {
                self.visible += 1;
                match right {
                    Some(true) => self.right += 1,
                    Some(false) => self.wrong.push(what),
                    None => self.missed.push(what),
                }
            }
        }
        "mixtures"
    }

    /// Counts the numbers of events in flight.
    fn batches(&mut self, core: &SimulatedStructures, batches: &BatchesSpec, record: &UarchRecord) -> &'static str {
        let Flights { room: [room, other], paced, .. } = core.flights[core.test.name];
        let simulated = room as f64;
        // Another structure may be full at the same number.
        let full = batches.also_occupies.iter().filter_map(|(name, _)| core.flights.get(name));
        let full = full.map(|other| other.room[0] as f64).any(|other| (other - simulated).abs() <= entries(simulated));
        let shown = !paced && other == room && !full;
        let right = !paced && holds(record, simulated, batches.counts[1].abs_diff(batches.counts[0]) as f64);
        let hidden = batches.also_occupies.iter().any(|(name, _)| {
            let Flights { room, paced, .. } = core.flights[name];
            paced || room[0] != room[1]
        });
        self.take(format!("{simulated} and {other}, paced {paced}"), shown && !hidden, Some(record), right);
        "batches"
    }

    /// Counts the structures that are visited at random.
    fn visits(&mut self, core: &SimulatedStructures, record: &UarchRecord) -> &'static str {
        let simulated = &core.visits[core.test.name];
        let right = simulated.agrees && holds(record, simulated.size, 0.0);
        self.take(format!("{simulated:?}"), simulated.is_visible(), Some(record), right);
        "visits"
    }

    /// Counts the shared queues.
    fn queues(&mut self, core: &SimulatedStructures, queues: &QueuesSpec, records: &[UarchRecord]) -> &'static str {
        let sizes = &core.window.sizes;
        for class in queues.classes {
            for by in queues.classes.iter().filter(|by| by.name != class.name) {
                let (key, tests) = (pair_key(core.test, class, by), [class.size_test, by.size_test]);
                let record = records.iter().find(|record| record.what == key).expect("each pair has one");
                let [own, others] = tests.map(|test| sizes[test]);
                let number = waiting_count(own, others);
                let room = |name: &&str| sizes[*name] > own + number + ROOM;
                let taken = class.waiting[0].also_occupies.iter().chain(by.waiting[0].also_occupies);
                let shows = tests.iter().all(|test| {
                    let test = TESTS.iter().find(|other| other.name == *test).expect("it is a test's name");
                    core.window.shows(test)
                });
                let visible = shows && number >= 12 && taken.into_iter().all(room);
                let simulated = core.window.queues[&tests];
                if simulated == 0.0 && record.verdict == VerdictKind::None {
                    (self.visible, self.right) =
                        (self.visible + usize::from(visible), self.right + usize::from(visible));
                    continue;
                }
                let right = simulated > 0.0 && holds(record, simulated, 1.0 / number as f64);
                if simulated > 0.0 && record.verdict == VerdictKind::None {
                    self.wrong.push(format!("{key}, {simulated:.2} of {number}: {}", record.why));
                }
                self.take(format!("{key}, {simulated:.2} of {number}"), visible, Some(record), right);
            }
        }
        "queues"
    }

    fn rates(&mut self, core: &SimulatedStructures, rates: &RatesSpec, records: &[UarchRecord]) -> &'static str {
        for (row, record) in rates.rows.iter().zip(records) {
            let simulated = core.rates[&row.record_key(core.test.name)];
            self.take(format!("{simulated:.1}"), true, Some(record), holds(record, simulated, 0.02 * simulated));
        }
        "rates"
    }
}

/// The number in a level's key.
fn level_number(record: &UarchRecord) -> Option<usize> {
    record.what.split('.').nth(1)?.parse().ok()
}

/// The largest ratio of two sizes whose gradual ends may overlap: 0.65 and 0.4 of a rise.
const AMBIGUOUS: f64 = 1.4;

/// Extra entries of the other structures, which then hide nothing.
const ROOM: usize = 50;

/// The tolerance of a size: two entries, or a share.
fn entries(size: f64) -> f64 {
    2f64.max(0.02 * size)
}

/// Whether the record's interval contains the number, within this tolerance.
fn holds(record: &UarchRecord, simulated: f64, slack: f64) -> bool {
    let [low, high] = [record.value.low, record.value.high].map(|edge| edge.unwrap_or(f64::NAN));
    low - slack <= simulated && simulated <= high + slack
}

/// The scores of random cores, by kind of number and by test.
fn scores() -> BTreeMap<(&'static str, &'static str), RecoveryScore> {
    let mut scores: BTreeMap<_, RecoveryScore> = BTreeMap::new();
    for seed in 0..SEEDS {
        let mut core = SimulatedStructures::new(seed);
        let (mut knees, mut known) = (StructureEnds::new(), Vec::new());
        let cpu = CpuResources { has: &|_| true, memory: u64::MAX, shared: None };
        let mut order = Random::new(seed);
        for test in TESTS {
            core.test = test;
            // A test of its own plants these ends.
            if matches!(test.experiment, Experiment::Fades(_) | Experiment::Rooms(_)) {
                continue;
            }
            let mut records = run_test(&mut core, &mut knees, test, &cpu, &mut order).expect("all is simulated");
            level_limit::annotate_limits(test, &mut records, &known);
            known.extend(records.iter().map(EarlierResult::from_record));
            let mut score = RecoveryScore::default();
            let look = match &test.experiment {
                Experiment::Overlap(_) => score.window(&core, &records[0]),
                Experiment::Levels(spec) => score.levels(&core, spec, &records),
                Experiment::Contrast(contrast) => score.events(&core, contrast, &records),
                Experiment::Rates(rates) => score.rates(&core, rates, &records),
                Experiment::CostMap(map) => score.map(&core, map, &records),
                Experiment::Batches(batches) => score.batches(&core, batches, &records[0]),
                Experiment::Queues(queues) => score.queues(&core, queues, &records),
                Experiment::Mixture(mixture) => score.mixture(&core, mixture, &records),
                Experiment::RandomVisits(_) => score.visits(&core, &records[0]),
                Experiment::Fades(_)
                | Experiment::Rooms(_)
                | Experiment::Sharing(_)
                | Experiment::Exchanges(_)
                | Experiment::Environment { .. } => {
                    continue;
                }
            };
            scores.entry((look, test.name)).or_default().add(score);
        }
    }
    scores
}

#[test]
fn all_numbers_of_a_whole_simulated_core_are_found() {
    let scores = scores();
    for look in ["window", "levels", "events", "rates", "maps", "mixtures", "batches", "queues", "visits"] {
        let own = || scores.iter().filter(|((other, _), _)| *other == look);
        let sum = |count: fn(&RecoveryScore) -> usize| own().map(|(_, score)| count(score)).sum::<usize>();
        let [right, visible, wrong] =
            [sum(|score| score.right), sum(|score| score.visible), sum(|score| score.wrong.len())];
        println!("{look}: {right} of {visible} found, {wrong} wrong");
        for ((_, test), RecoveryScore { right, visible, wrong, missed }) in own() {
            println!("  {test}: {right} of {visible}, wrong {wrong:#?}");
            let few = format!("{test}: {right} of {visible}, {missed:#?}");
            assert!(*right as f64 >= EACH_RIGHT * *visible as f64, "{few}");
            assert!(wrong.len() as f64 <= (EACH_WRONG * *visible as f64).max(1.0), "{test}: {wrong:#?}");
        }
        assert!(right as f64 >= 0.95 * visible as f64, "{look}: {right} of {visible}");
        assert!(wrong as f64 <= 0.005 * visible as f64, "{look}: {wrong} of {visible} wrong");
    }
}

/// Number of random cores.
const SEEDS: u64 = 200;
/// The least share of each test's numbers to find.
const EACH_RIGHT: f64 = 0.85;
/// The largest share of each test's numbers that may be wrong.
const EACH_WRONG: f64 = 0.015;
