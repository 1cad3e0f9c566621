//! Simulated cores with planted sizes: what is found must be what was planted, or be said not to be.

use super::list::TESTS;
use super::overlap::{Overlaps, Point, Probe};
use super::test::Look;
use super::test::chain::LINKS;
use super::trial::{Knees, Trials};
use super::verdict::Kind;
use crate::error::RunError;
use crate::random::Random;
use std::collections::BTreeMap;

/// A core whose structures have these sizes.
struct Planted {
    /// Entries of each structure, by the name of its test.
    sizes: BTreeMap<&'static str, usize>,
    /// Overlap at many fillers, as where a fence costs time that the second chain does not.
    past: f64,
    /// Fall of the overlap with each filler before the knee.
    slope: f64,
    noise: f64,
    random: Random,
}

/// Structures of which each link takes an entry while it waits.
const CHAINS_TAKE: [&str; 5] =
    ["rob", "vector_registers_xmm", "vector_registers_ymm", "vector_registers_zmm", "vector_scheduler"];

impl Planted {
    fn new(seed: u64) -> Planted {
        let mut random = Random::new(seed);
        let mut draw = |from: usize, to: usize| from + random.below(to - from);
        let rob = draw(120, 620);
        let sizes = [
            ("rob", rob),
            ("int_registers", draw(60, 420)),
            ("vector_registers_xmm", draw(60, 420)),
            ("vector_registers_ymm", draw(60, 420)),
            ("vector_registers_zmm", draw(60, 420)),
            ("mask_registers", draw(30, 180)),
            ("loads_in_flight", draw(40, 320)),
            ("stores_in_flight", draw(30, 220)),
            ("integer_scheduler", draw(30, 180)),
            ("load_scheduler", draw(20, 120)),
            ("vector_scheduler", draw(50, 180)),
            ("branches_in_flight", draw(40, 200)),
            ("flags", draw(60, 420)),
            ("mmx_registers", draw(30, 180)),
            ("stores_in_flight_ymm", draw(30, 220)),
            ("stores_in_flight_zmm", draw(30, 220)),
        ];
        let [past, slope, noise] =
            [0.2 * random.unit(), 0.0004 * random.unit(), 0.002 + 0.02 * random.unit()];
        Planted { sizes: sizes.into(), past, slope, noise, random }
    }

    /// The overlap without noise: as many links of the second chain as are let in run beside the first.
    fn overlap(&self, probe: &Probe, n: usize) -> f64 {
        let owner =
            TESTS.iter().find(|test| test.fillers().iter().any(|filler| std::ptr::eq(filler, probe.filler)));
        let own = owner.map_or("rob", |test| test.name);
        let before = probe.occupied.map_or(0, |(_, number)| number);
        let room = probe.filler.takes.iter().chain([&own]).map(|structure| {
            // The last link of the first chain is there until the end.
            let head = usize::from(*structure == "rob");
            let free = self.sizes[structure] as i64 - (n + before + head) as i64;
            match (CHAINS_TAKE.contains(structure), free) {
                (true, free) => free.clamp(0, LINKS as i64),
                (false, 0..) => LINKS as i64,
                (false, _) => 0,
            }
        });
        let links = room.min().unwrap_or_default() as f64 / LINKS as f64;
        let whole = 0.98 - self.slope * n as f64;
        self.past + (whole - self.past).max(0.0) * links
    }
}

impl Overlaps for Planted {
    fn at(&mut self, probe: &Probe, counts: &[usize]) -> Result<Vec<Point>, RunError> {
        // A neighbour's burst falls on one point of some hundred.
        let point = |n: &usize| {
            let overlap = self.overlap(probe, *n) + self.noise * self.random.normal();
            let burst = self.random.happens(0.01);
            let overlap = if burst { overlap + 0.3 * (self.random.unit() - 0.5) } else { overlap };
            Point { n: *n, overlap, fast: f64::from(u8::from(overlap >= 0.5)) }
        };
        Ok(counts.iter().map(point).collect())
    }
}

/// Counts over seeds: sizes that were found within their interval, confidently wrong ones, hidden structures that were said to
/// be limited or unclear, and all structures that can be seen.
#[derive(Debug, Default)]
struct Score {
    right: usize,
    wrong: Vec<String>,
    visible: usize,
    missed: Vec<String>,
}

fn score(seeds: std::ops::Range<u64>) -> Score {
    let mut score = Score::default();
    for seed in seeds {
        let mut core = Planted::new(seed);
        let sizes = core.sizes.clone();
        let mut knees = Knees::new();
        let mut trials = Trials::new(&mut core, &mut knees);
        for test in TESTS {
            let Look::Overlap(window) = &test.look else { continue };
            let fillers: Vec<_> = window.fillers.iter().collect();
            let record = trials.run(test, window, &fillers).unwrap();
            let own = sizes[test.name];
            // Two fillers must be able to reach the size before anything else that they take is full.
            let reaching = test.fillers().iter().filter(|filler| {
                filler.takes.iter().all(|other| sizes[other] as f64 > 1.08 * own as f64 + 24.0)
            });
            let visible = reaching.count() >= 2;
            score.visible += usize::from(visible);
            let (low, high) = (record.value.low.unwrap_or(0.0), record.value.high.unwrap_or(0.0));
            // The interval is of counts that were tried, and a noisy edge is off by a link.
            let slack = 2f64.max(0.02 * own as f64);
            let inside = low - slack <= own as f64 && own as f64 <= high + slack;
            match (record.verdict, inside) {
                (Kind::Found, true) => score.right += usize::from(visible),
                (Kind::Found, false) => {
                    score.wrong.push(format!("{seed} {}: {own} found as {low} to {high}", test.name));
                }
                (_, _) if visible => {
                    score.missed.push(format!("{seed} {}: {own}, {}", test.name, record.why))
                }
                _ => {}
            }
        }
    }
    score
}

#[test]
fn planted_sizes_are_found() {
    let score = score(0..200);
    println!("{} of {} found, wrong {:?}", score.right, score.visible, score.wrong);
    println!("missed {:#?}", score.missed.iter().take(20).collect::<Vec<_>>());
    assert!(score.right as f64 >= 0.95 * score.visible as f64, "{:?}", score.missed);
    assert!(score.wrong.len() as f64 <= 0.005 * score.visible as f64, "{:?}", score.wrong);
}

#[test]
fn tests_name_structures_that_come_before_them() {
    for (number, test) in TESTS.iter().enumerate() {
        assert!(TESTS[..number].iter().all(|other| other.name != test.name), "{}", test.name);
        for other in test.needs() {
            assert!(TESTS[..number].iter().any(|test| test.name == other), "{}: {other}", test.name);
        }
        let programs = match &test.look {
            Look::Overlap(window) => window.fillers.len(),
            Look::Levels(walks) => walks.walks.len(),
            Look::Contrast(contrast) => contrast.walks.len(),
            Look::Environment { reads } => reads.len(),
            Look::Rates(rates) => rates.rows.iter().map(|row| row.ways.len()).min().unwrap_or_default(),
        };
        assert!(programs >= 2 && test.about.is_ascii(), "{}", test.name);
    }
}
