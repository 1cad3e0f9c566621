//! A whole simulated core, with something planted for each test: each number that is found must be what was planted.

use super::cost::{CostPoint, Costs};
use super::list::TESTS;
use super::look::{Cpu, looked};
use super::overlap::{Overlaps, Point, Probe};
use super::planted_levels::Planted as Levels;
use super::planted_window::Planted as Window;
use super::record::UarchRecord;
use super::test::rate::Rates;
use super::test::walk::Walk;
use super::test::{Look, Test};
use super::trial::Knees;
use super::verdict::Kind;
use crate::error::RunError;
use crate::random::{Random, mix};
use crate::unit::Unit;
use std::collections::BTreeMap;

/// Share by which the cost of a step in a level may differ from what was planted, beside its drift.
const APART: f64 = 0.12;
/// Noise of an event's cost and of a rate, as a share.
const NOISE: f64 = 0.006;

/// The core.
struct Planted {
    window: Window,
    levels: BTreeMap<&'static str, Levels>,
    /// Core cycles of events, by the keys of their records.
    events: BTreeMap<String, f64>,
    /// Rates, or what steps cost, by the keys of their records.
    rates: BTreeMap<String, f64>,
    /// Programs that something slows down, by the same keys and their names, and the share that is left.
    slow: BTreeMap<(String, &'static str), f64>,
    /// The test that runs.
    test: &'static Test,
    random: Random,
}

impl Planted {
    fn new(seed: u64) -> Planted {
        let mut random = Random::new(seed);
        let (mut levels, mut events) = (BTreeMap::new(), BTreeMap::new());
        let (mut rates, mut slow) = (BTreeMap::new(), BTreeMap::new());
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
                    }
                }
                Look::Rates(Rates { rows, .. }) => {
                    for row in *rows {
                        let key = row.key(test.name);
                        rates.insert(key.clone(), row.each * (0.5 + 5.5 * random.unit()));
                        // Two programs at least do as much as the core can.
                        let mut ways: Vec<_> = row.fitting(|_| true).collect();
                        random.shuffle(&mut ways);
                        for way in &ways[ways.len().min(2)..] {
                            let share = if random.happens(0.5) { 0.3 + 0.6 * random.unit() } else { 1.0 };
                            slow.insert((key.clone(), way.walk.name), share);
                        }
                    }
                }
                Look::Overlap(_) | Look::Environment { .. } => {}
            }
        }
        Planted { window: Window::new(seed), levels, events, rates, slow, test: TESTS[0], random }
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

impl Costs for Planted {
    fn cost(&mut self, walk: &Walk, n: usize) -> Result<Option<CostPoint>, RunError> {
        let cost = match &self.test.look {
            Look::Levels(_) => {
                return self.levels.get_mut(self.test.name).expect("it was planted").cost(walk, n);
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
                    (_, Some(event)) => event * row.each,
                    (Look::Rates(Rates { unit: Unit::CoreCycles, .. }), None) => {
                        row.each * self.rates[&key] / share
                    }
                    _ => row.each / (self.rates[&key] * share),
                }
            }
            Look::Overlap(_) | Look::Environment { .. } => panic!("{} has no costs", self.test.name),
        };
        Ok(Some(self.noisy(n, cost)))
    }
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
    /// Counts a number that the core shows or hides.
    fn take(&mut self, seed: u64, what: &str, visible: bool, record: Option<&UarchRecord>, right: bool) {
        self.visible += usize::from(visible);
        let found = record.is_some_and(|record| record.verdict == Kind::Found);
        let told = || {
            let why = record.map_or("no record", |record| &record.why);
            format!("{seed} {what}: {why}, {:?}", record.map(|record| record.value.value))
        };
        match (found, right) {
            (true, true) => self.right += usize::from(visible),
            (true, false) => self.wrong.push(told()),
            (false, _) if visible => self.missed.push(told()),
            _ => {}
        }
    }
}

/// Whether the record's interval has the number in it, within two entries or a share.
fn holds(record: &UarchRecord, planted: f64, slack: f64) -> bool {
    let [low, high] = [record.value.low, record.value.high].map(|edge| edge.unwrap_or(f64::NAN));
    low - slack <= planted && planted <= high + slack
}

#[test]
fn what_is_planted_in_a_whole_core_is_found() {
    let mut score: BTreeMap<&str, Score> = BTreeMap::new();
    for seed in 0..SEEDS {
        let mut core = Planted::new(seed);
        let mut knees = Knees::new();
        let cpu = Cpu { has: &|_| true, memory: u64::MAX };
        let mut order = Random::new(seed);
        for test in TESTS {
            core.test = test;
            let records = looked(&mut core, &mut knees, test, &cpu, &mut order).expect("all is simulated");
            let named = |what: &str| records.iter().find(|record| record.what == what);
            match &test.look {
                Look::Overlap(_) => {
                    let planted = core.window.sizes[test.name] as f64;
                    let right = holds(&records[0], planted, 2f64.max(0.02 * planted));
                    let visible = core.window.shows(test);
                    let score = score.entry("window").or_default();
                    score.take(seed, test.name, visible, records.first(), right);
                }
                Look::Levels(walks) => {
                    let levels = &core.levels[test.name];
                    let inside =
                        |record: &UarchRecord, size: &f64| holds(record, *size, 2f64.max(0.02 * size));
                    let score = score.entry("levels").or_default();
                    let sizes = || {
                        records.iter().filter(|record| {
                            record.verdict == Kind::Found
                                && (record.what == test.name || record.what.ends_with(".size"))
                        })
                    };
                    for size in &levels.sizes {
                        let record = sizes().find(|record| inside(record, size));
                        let told = record.or(records.first());
                        let what = format!("{} {size} of {:?}", test.name, levels.sizes);
                        score.visible += usize::from(levels.second == 1.0);
                        match record {
                            Some(_) => score.right += usize::from(levels.second == 1.0),
                            None if levels.second == 1.0 => {
                                score
                                    .missed
                                    .push(format!("{seed} {what}: {}", told.map_or("", |one| &one.why)));
                            }
                            None => {}
                        }
                    }
                    let seen = |record: &UarchRecord, size: &f64| {
                        inside(record, size) || inside(record, &(size * levels.second))
                    };
                    let near = |cost: f64, planted: &f64| {
                        let more = cost - planted;
                        let slack = 0.3 * walks.rise;
                        (-slack.max(APART * planted)..=slack.max((APART + levels.ramp.0) * planted))
                            .contains(&more)
                    };
                    for record in records.iter().filter(|record| record.what.ends_with("cost")) {
                        let Some(cost) = record.value.value else { continue };
                        if !levels.costs.iter().any(|planted| near(cost, planted)) {
                            score
                                .wrong
                                .push(format!("{seed} {}, {cost:.1} of {:?}", record.what, levels.costs));
                        }
                    }
                    for record in sizes().filter(|record| !levels.sizes.iter().any(|size| seen(record, size)))
                    {
                        let what = format!("{seed} {}, {:?}: {}", record.what, levels.sizes, record.why);
                        score.wrong.push(what);
                    }
                }
                Look::Contrast(contrast) => {
                    let score = score.entry("events").or_default();
                    for (row, record) in contrast.rows.iter().zip(&records) {
                        let planted = core.events[&row.key(test.name)];
                        let slack = contrast.apart.max(contrast.apart_share * planted);
                        if planted == 0.0 && record.verdict == Kind::None {
                            (score.visible, score.right) = (score.visible + 1, score.right + 1);
                        } else {
                            score.take(seed, test.name, true, Some(record), holds(record, planted, slack));
                        }
                    }
                }
                Look::Rates(rates) => {
                    let score = score.entry("rates").or_default();
                    for row in rates.rows {
                        let key = row.key(test.name);
                        let record = named(&key);
                        let planted = core.rates[&key];
                        let right = record.is_some_and(|record| holds(record, planted, 0.02 * planted));
                        score.take(seed, &key, true, record, right);
                    }
                }
                Look::Environment { .. } => assert!(records.is_empty()),
            }
        }
    }
    for (part, Score { right, visible, wrong, missed }) in &score {
        println!("{part}: {right} of {visible}, wrong {}: {wrong:#?}", wrong.len());
        println!("missed {:#?}", missed.iter().take(20).collect::<Vec<_>>());
    }
    for (part, Score { right, visible, wrong, missed }) in &score {
        assert!(*right as f64 >= 0.95 * *visible as f64, "{part}: {right} of {visible}, {missed:#?}");
        assert!(wrong.len() as f64 <= 0.005 * *visible as f64, "{part}: {wrong:#?}");
    }
}

/// Cores that are drawn.
const SEEDS: u64 = 200;
