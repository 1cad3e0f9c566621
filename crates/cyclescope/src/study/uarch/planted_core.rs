//! A whole simulated core, with something planted for each test: each number that is found must be what was planted.

use super::cost::{CostPoint, Costs, Mixes};
use super::environment::Known;
use super::limit;
use super::list::TESTS;
use super::look::{Cpu, looked};
use super::overlap::{Overlaps, Point, Probe};
use super::planted_batches::Planted as Flights;
use super::planted_levels::Planted as Levels;
use super::planted_mixture::Planted as Units;
use super::planted_window::Planted as Window;
use super::queues::{key, occupied};
use super::record::UarchRecord;
use super::test::batches::Batches;
use super::test::map::Map;
use super::test::mixture::{Mixture, Order, Share};
use super::test::queues::Queues;
use super::test::rate::{Contrast, Rates};
use super::test::walk::{Walk, Walks};
use super::test::{Look, Test};
use super::trial::Knees;
use super::verdict::Kind;
use crate::error::RunError;
use crate::random::{Random, mix};
use crate::unit::Unit;
use std::collections::{BTreeMap, BTreeSet};

/// Share by which the cost of a step in a level may differ from what was planted, beside its drift.
const APART: f64 = 0.12;
/// Noise of an event's cost and of a rate, as a share.
const NOISE: f64 = 0.006;

/// Core cycles of a program in which an event does not happen.
const CONTROL: f64 = 5.0;

/// The core.
struct Planted {
    window: Window,
    units: BTreeMap<&'static str, Units>,
    levels: BTreeMap<&'static str, Levels>,
    flights: BTreeMap<&'static str, Flights>,
    /// The tests whose first level ends where another structure does, of which each that is counted takes a part: two branches of a line, or
    /// lines of an instruction cache.
    hidden: BTreeSet<&'static str>,
    /// Core cycles of events, by the keys of their records.
    events: BTreeMap<String, f64>,
    /// Rates, or what steps cost, by the keys of their records.
    rates: BTreeMap<String, f64>,
    /// Programs that something slows down or that hide an event, by the same keys and their names, and the share that is left.
    slow: BTreeMap<(String, &'static str), f64>,
    /// Core cycles at each place, by the keys of their rows.
    places: BTreeMap<String, Vec<f64>>,
    /// The test that runs.
    test: &'static Test,
    random: Random,
}

impl Planted {
    fn new(seed: u64) -> Planted {
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

/// What was found of what was planted.
#[derive(Debug, Default)]
struct Score {
    right: usize,
    visible: usize,
    wrong: Vec<String>,
    missed: Vec<String>,
}

impl Score {
    fn add(&mut self, other: Score) {
        let Score { right, visible, wrong, missed } = other;
        (self.right, self.visible) = (self.right + right, self.visible + visible);
        self.wrong.extend(wrong);
        self.missed.extend(missed);
    }

    /// Counts a number that the core shows or hides.
    fn take(&mut self, what: String, visible: bool, record: Option<&UarchRecord>, right: bool) {
        self.visible += usize::from(visible);
        let found = record.is_some_and(|record| record.verdict == Kind::Found);
        let why = record.map_or("no record", |record| &record.why);
        let told = format!("{what}: {why}, {:?}", record.map(|record| record.value.value));
        match (found, right) {
            (true, true) => self.right += usize::from(visible),
            (true, false) => self.wrong.push(told),
            (false, _) if visible => self.missed.push(told),
            _ => {}
        }
    }

    /// Of a size; returns the name of what is looked for, as the others.
    fn window(&mut self, core: &Planted, record: &UarchRecord) -> &'static str {
        let planted = core.window.sizes[core.test.name] as f64;
        let right = holds(record, planted, entries(planted));
        self.take(format!("{planted}"), core.window.shows(core.test), Some(record), right);
        "window"
    }

    fn levels(&mut self, core: &Planted, walks: &Walks, records: &[UarchRecord]) -> &'static str {
        let Levels { sizes, costs, second, ramp, early, .. } = &core.levels[core.test.name];
        let inside = |record: &UarchRecord, size: f64| holds(record, size, entries(size));
        let is_size = |record: &&UarchRecord| record.what == core.test.name || record.what.ends_with(".size");
        let found = || records.iter().filter(is_size).filter(|record| record.verdict == Kind::Found);
        let hidden = core.hidden.contains(core.test.name);
        let limited = || records.iter().filter(is_size).find(|record| record.verdict == Kind::Limited);
        // Where the second program sees another size, or one program another first one, there is nothing to agree in, here or of what
        // may be full first.
        let seen = walks.takes.iter().all(|(other, _)| {
            let other = &core.levels[other];
            other.second == 1.0 && other.early.is_none()
        });
        let agreed = seen && *second == 1.0;
        for (number, size) in sizes.iter().enumerate().skip(usize::from(early.is_some())).filter(|_| agreed) {
            let record = match hidden && number == 0 {
                true => limited(),
                false => found().find(|record| inside(record, *size)),
            };
            self.visible += 1;
            match record {
                Some(_) => self.right += 1,
                None => self.missed.push(format!("{size} of {sizes:?}: {}", records[0].why)),
            }
        }
        // The level that it is said to be. One that is hidden has no size. A drift that is as large as a rise from one level to the next is a level of its
        // own in both programs, which nothing tells from others yet: behind it numbers are not held to what was planted.
        let drifts = !walks.by_chance && ramp.0 > 0.0;
        let number = |record: &UarchRecord| match walks.one {
            true => Some(0),
            false => record.what.split('.').nth(1)?.parse::<usize>().ok()?.checked_sub(1),
        };
        let planted = |record: &&UarchRecord| {
            let its = |place: usize| drifts || number(record) == Some(place);
            let first = early.filter(|_| its(0)).map_or(1.0, |(_, share)| share);
            let right = |(place, size): (usize, &f64)| {
                let shown = !hidden || place > 0;
                shown && its(place) && [1.0, *second, first].iter().any(|share| inside(record, share * size))
            };
            sizes.iter().enumerate().any(right)
        };
        for record in found().filter(|record| !planted(record)) {
            self.wrong.push(format!("{}, {sizes:?}: {}", record.what, record.why));
        }
        let near = |cost: f64, planted: f64| {
            let slack = 0.3 * walks.rise;
            let [less, more] = [APART, APART + ramp.0].map(|share| slack.max(share * planted));
            (planted - less..=planted + more).contains(&cost)
        };
        for record in records.iter().filter(|record| record.what.ends_with("cost")) {
            let Some(cost) = record.value.value else { continue };
            if !costs.iter().any(|planted| near(cost, *planted)) {
                self.wrong.push(format!("{}, {cost:.1} of {costs:?}", record.what));
            }
        }
        "levels"
    }

    fn events(&mut self, core: &Planted, contrast: &Contrast, records: &[UarchRecord]) -> &'static str {
        for (row, record) in contrast.rows.iter().zip(records) {
            let planted = core.events[&row.key(core.test.name)];
            let slack = contrast.apart.max(contrast.apart_share * planted);
            if planted == 0.0 && record.verdict == Kind::None {
                (self.visible, self.right) = (self.visible + 1, self.right + 1);
            } else {
                self.take(format!("{planted:.1}"), true, Some(record), holds(record, planted, slack));
            }
        }
        "events"
    }

    /// Of the cost at each place.
    fn map(&mut self, core: &Planted, map: &Map, records: &[UarchRecord]) -> &'static str {
        for (row, record) in map.rows.iter().zip(records) {
            let planted = &core.places[&record.what];
            assert_eq!(planted.len(), record.places.len(), "{}", row.name);
            for (planted, found) in planted.iter().zip(&record.places) {
                self.visible += 1;
                let told = format!("{} at {}: {:?} of {planted}", row.name, found.place, found.cost);
                match found.cost {
                    Some(cost) if (cost - planted).abs() <= 0.03 * planted => self.right += 1,
                    Some(_) => self.wrong.push(told),
                    None => self.missed.push(told),
                }
            }
        }
        "maps"
    }

    /// Of what each class does to each other one. Units that are drawn are shared in ways of which pairs do not tell all, so that groups of
    /// three say little.
    fn mixture(
        &mut self,
        core: &Planted,
        mixture: &'static Mixture,
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

    /// Of how many events are on their way at once.
    fn batches(&mut self, core: &Planted, batches: &Batches, record: &UarchRecord) -> &'static str {
        let Flights { room: [room, other], paced, .. } = core.flights[core.test.name];
        let planted = room as f64;
        // What others take may be full at the same number.
        let full = batches.takes.iter().filter_map(|(name, _)| core.flights.get(name));
        let full =
            full.map(|other| other.room[0] as f64).any(|other| (other - planted).abs() <= entries(planted));
        let shown = !paced && other == room && !full;
        let right = !paced && holds(record, planted, batches.counts[1].abs_diff(batches.counts[0]) as f64);
        let hidden = batches.takes.iter().any(|(name, _)| {
            let Flights { room, paced, .. } = core.flights[name];
            paced || room[0] != room[1]
        });
        self.take(format!("{planted} and {other}, paced {paced}"), shown && !hidden, Some(record), right);
        "batches"
    }

    /// Of which queues are shared.
    fn queues(&mut self, core: &Planted, queues: &Queues, records: &[UarchRecord]) -> &'static str {
        let sizes = &core.window.sizes;
        for class in queues.classes {
            for by in queues.classes.iter().filter(|by| by.name != class.name) {
                let (key, tests) = (key(core.test, class, by), [class.test, by.test]);
                let record = records.iter().find(|record| record.what == key).expect("each pair has one");
                let [own, others] = tests.map(|test| sizes[test]);
                let number = occupied(own, others);
                let room = |name: &&str| sizes[*name] > own + number + ROOM;
                let taken = class.waiting[0].takes.iter().chain(by.waiting[0].takes);
                let shows = tests.iter().all(|test| {
                    let test = TESTS.iter().find(|other| other.name == *test).expect("it is a test's name");
                    core.window.shows(test)
                });
                let visible = shows && number >= 12 && taken.into_iter().all(room);
                let planted = core.window.queues[&tests];
                if planted == 0.0 && record.verdict == Kind::None {
                    (self.visible, self.right) =
                        (self.visible + usize::from(visible), self.right + usize::from(visible));
                    continue;
                }
                let right = planted > 0.0 && holds(record, planted, 1.0 / number as f64);
                if planted > 0.0 && record.verdict == Kind::None {
                    self.wrong.push(format!("{key}, {planted:.2} of {number}: {}", record.why));
                }
                self.take(format!("{key}, {planted:.2} of {number}"), visible, Some(record), right);
            }
        }
        "queues"
    }

    fn rates(&mut self, core: &Planted, rates: &Rates, records: &[UarchRecord]) -> &'static str {
        for (row, record) in rates.rows.iter().zip(records) {
            let planted = core.rates[&row.key(core.test.name)];
            self.take(format!("{planted:.1}"), true, Some(record), holds(record, planted, 0.02 * planted));
        }
        "rates"
    }
}

/// Entries that other structures have more than what is in them, where they hide nothing.
const ROOM: usize = 50;

/// Two entries, or a share.
fn entries(size: f64) -> f64 {
    2f64.max(0.02 * size)
}

/// Whether the record's interval has the number in it, within so much.
fn holds(record: &UarchRecord, planted: f64, slack: f64) -> bool {
    let [low, high] = [record.value.low, record.value.high].map(|edge| edge.unwrap_or(f64::NAN));
    low - slack <= planted && planted <= high + slack
}

/// The scores of cores that are drawn, by what is looked for and by test.
fn scores() -> BTreeMap<(&'static str, &'static str), Score> {
    let mut scores: BTreeMap<_, Score> = BTreeMap::new();
    for seed in 0..SEEDS {
        let mut core = Planted::new(seed);
        let (mut knees, mut known) = (Knees::new(), Vec::new());
        let cpu = Cpu { has: &|_| true, memory: u64::MAX };
        let mut order = Random::new(seed);
        for test in TESTS {
            core.test = test;
            let mut records =
                looked(&mut core, &mut knees, test, &cpu, &mut order).expect("all is simulated");
            limit::told(test, &mut records, &known);
            known.extend(records.iter().map(Known::of));
            let mut score = Score::default();
            let look = match &test.look {
                Look::Overlap(_) => score.window(&core, &records[0]),
                Look::Levels(walks) => score.levels(&core, walks, &records),
                Look::Contrast(contrast) => score.events(&core, contrast, &records),
                Look::Rates(rates) => score.rates(&core, rates, &records),
                Look::Map(map) => score.map(&core, map, &records),
                Look::Batches(batches) => score.batches(&core, batches, &records[0]),
                Look::Queues(queues) => score.queues(&core, queues, &records),
                Look::Mixture(mixture) => score.mixture(&core, mixture, &records),
                Look::Sharing(_) | Look::Exchanges(_) | Look::Environment { .. } => continue,
            };
            scores.entry((look, test.name)).or_default().add(score);
        }
    }
    scores
}

#[test]
fn what_is_planted_in_a_whole_core_is_found() {
    let scores = scores();
    for look in ["window", "levels", "events", "rates", "maps", "mixtures", "batches", "queues"] {
        let own = || scores.iter().filter(|((other, _), _)| *other == look);
        let sum = |count: fn(&Score) -> usize| own().map(|(_, score)| count(score)).sum::<usize>();
        let [right, visible, wrong] =
            [sum(|score| score.right), sum(|score| score.visible), sum(|score| score.wrong.len())];
        println!("{look}: {right} of {visible} found, {wrong} wrong");
        for ((_, test), Score { right, visible, wrong, missed }) in own() {
            println!("  {test}: {right} of {visible}, wrong {wrong:#?}");
            let few = format!("{test}: {right} of {visible}, {missed:#?}");
            assert!(*right as f64 >= EACH_RIGHT * *visible as f64, "{few}");
            assert!(wrong.len() as f64 <= (EACH_WRONG * *visible as f64).max(1.0), "{test}: {wrong:#?}");
        }
        assert!(right as f64 >= 0.95 * visible as f64, "{look}: {right} of {visible}");
        assert!(wrong as f64 <= 0.005 * visible as f64, "{look}: {wrong} of {visible} wrong");
    }
}

/// Cores that are drawn.
const SEEDS: u64 = 200;
/// Shares of each test's numbers that have to be found, and that may be wrong.
const EACH_RIGHT: f64 = 0.85;
const EACH_WRONG: f64 = 0.015;
