//! A simulated window with simulated sizes.

use crate::overlap::{MeasureOverlaps, OverlapProbe, OverlapReading};
use crate::spec::{CHAIN_LINKS, FillerSpec, TestSpec};
use crate::test_list::TESTS;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use std::collections::{BTreeMap, BTreeSet};

/// A core whose structures have these sizes.
pub(crate) struct SimulatedWindow {
    /// Entries of each structure, by the name of its test.
    pub sizes: BTreeMap<&'static str, usize>,
    /// No-operations per entry of the reorder buffer.
    packed: usize,
    /// Whether a result of zero takes a register like any other.
    zeros_take: bool,
    /// The overlap at many fillers, as when a fence costs time that the second chain does not.
    past: f64,
    /// The fall of the overlap per filler before the knee.
    slope: f64,
    noise: f64,
    /// Structures that fillers of a test also take on this core, with the test's name.
    joined: BTreeSet<[&'static str; 2]>,
    /// Entries in the first test's structure that each waiting instruction of the second test
    /// takes.
    pub queues: BTreeMap<[&'static str; 2], f64>,
    /// Whether a first chain of many links fills its scheduler before any filler comes.
    few_links: bool,
    random: Random,
}

/// The share of measurements with an undetected thread on the core.
const BESIDE: f64 = 0.005;

/// Structures in which each waiting link takes an entry.
const CHAINS_TAKE: [&str; 5] =
    ["rob", "vector_registers_xmm", "vector_registers_ymm", "vector_registers_zmm", "vector_scheduler"];

/// Structures that may be partly shared.
const QUEUES: [&str; 3] = ["integer_scheduler", "load_scheduler", "vector_scheduler"];

impl SimulatedWindow {
    pub(crate) fn new(seed: u64) -> SimulatedWindow {
        let mut random = Random::new(seed);
        let mut draw = |from: usize, to: usize| from + random.below(to - from);
        let packed = [1, 1, 1, 2, 4][draw(0, 5)];
        let zeros_take = draw(0, 8) == 0;
        let few_links = draw(0, 2) == 0;
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
            // Some cores count them only in the reorder buffer.
            ("branches_in_flight", draw(40, 700)),
            ("flags", draw(60, 420)),
            ("mmx_registers", draw(30, 180)),
            ("x87_registers", draw(30, 180)),
            ("stores_in_flight_ymm", draw(30, 220)),
            ("stores_in_flight_zmm", draw(30, 220)),
            ("loads_uncompleted", draw(20, 120)),
            ("taken_branches_in_flight", draw(40, 200)),
        ];
        let [past, slope, noise] = [0.2 * random.uniform(), 0.0004 * random.uniform(), 0.002 + 0.02 * random.uniform()];
        let fillers = TESTS.iter().flat_map(|test| test.fillers().iter().map(|filler| (test.name, filler)));
        let pairs: BTreeSet<[&'static str; 2]> =
            fillers.flat_map(|(test, filler)| filler.may_occupy.iter().map(move |other| [test, *other])).collect();
        let joined = pairs.into_iter().filter(|_| random.happens(0.5)).collect();
        let queues = QUEUES.iter().flat_map(|one| QUEUES.iter().map(move |other| [*one, *other]));
        let queues = queues.map(|pair| (pair, if random.happens(0.5) { 0.0 } else { 0.3 + 1.2 * random.uniform() }));
        let queues = queues.collect();
        SimulatedWindow {
            sizes: sizes.into(),
            packed,
            zeros_take,
            past,
            slope,
            noise,
            joined,
            queues,
            few_links,
            random,
        }
    }

    /// The other structures that a filler of a test takes.
    fn others<'a>(&'a self, test: &'a str, filler: &'a FillerSpec) -> impl Iterator<Item = &'static str> + 'a {
        let joined =
            filler.may_occupy.iter().filter(move |other| self.joined.iter().any(|pair| pair == &[test, **other]));
        filler.also_occupies.iter().chain(joined).copied()
    }

    /// Number of a test's fillers per entry of this structure.
    fn fillers_an_entry(&self, filler: &FillerSpec, structure: &str) -> f64 {
        if !filler.also_occupies.is_empty() {
            return 1.0;
        }
        // A filler without other structures may consist of several instructions that take some.
        let takes = |instruction: &&str| {
            let register = !instruction.starts_with("xor") || self.zeros_take;
            match structure {
                "rob" if instruction.starts_with("nop") => 1.0 / self.packed as f64,
                "rob" => 1.0,
                "int_registers" if instruction.starts_with("mov [") || instruction.starts_with("nop") => 0.0,
                "int_registers" => f64::from(register),
                "stores_in_flight" => f64::from(instruction.starts_with("mov [")),
                "loads_in_flight" => f64::from(instruction.starts_with("mov r")),
                _ => 0.0,
            }
        };
        filler.code.len() as f64 / filler.code.iter().map(takes).sum::<f64>()
    }

    /// Whether two fillers fill the test's structure before any other.
    pub(super) fn shows(&self, test: &TestSpec) -> bool {
        let own = self.sizes[test.name] as f64;
        let reaches = |filler: &&FillerSpec| {
            let an_entry = |other: &str| self.fillers_an_entry(filler, other);
            let room = own * an_entry(test.name);
            // Chains take an entry per link in some structures.
            let taken = |name: &str| {
                filler.also_occupies.is_empty() || self.others(test.name, filler).any(|other| other == name)
            };
            let apart = 0.08 * room + 24.0;
            let other = |(name, size): (&&str, &usize)| {
                *name == test.name || !taken(name) || *size as f64 * an_entry(name) > room + apart
            };
            // A structure that it may take but does not must be separate, and known to be.
            let elsewhere = |name: &&'static str| {
                let (size, known) = (self.sizes[name] as f64, || self.shows(named(name)));
                taken(name) || size > room + apart || size < room - apart && known()
            };
            self.sizes.iter().all(other) && filler.may_occupy.iter().all(elsewhere)
        };
        let reaching: Vec<&FillerSpec> = test.fillers().iter().filter(reaches).collect();
        let honest = |filler: &&&FillerSpec| !filler.may_pack || self.packed == 1;
        reaching.iter().filter(honest).count() >= 2 && reaching.iter().any(|filler| !filler.may_pack)
    }

    /// Entries of a structure that a filler takes, before the structures that a test owns.
    fn entries(&self, filler: &FillerSpec, own: &'static str, structure: &str) -> f64 {
        let owner = owner(filler);
        if filler.also_occupies.is_empty() || owner == Some(own) {
            return 1.0 / self.fillers_an_entry(filler, structure);
        }
        let shared = owner.and_then(|owner| self.queues.get(&[own, owner]));
        match shared {
            Some(shared) if structure == own => *shared,
            _ => f64::from(self.others(owner.unwrap_or_default(), filler).any(|other| other == structure)),
        }
    }

    /// The overlap without noise if this many threads own equal parts of everything. The links of
    /// the second chain that fit run along with the first chain.
    fn overlap(&self, probe: &OverlapProbe, n: usize, threads: usize) -> f64 {
        if self.few_links && probe.first_chain.link_count > CHAIN_LINKS {
            return self.past;
        }
        let own = owner(probe.filler).unwrap_or("rob");
        // A test's own filler takes the structures of its instructions.
        let all: Vec<&str> = match probe.filler.also_occupies {
            [] => self.sizes.keys().copied().collect(),
            _ => self.others(own, probe.filler).chain([own]).collect(),
        };
        let room = all.iter().map(|structure| {
            // The last link of the first chain stays until the end.
            let head = usize::from(*structure == "rob");
            let before =
                probe.occupied.map_or(0.0, |(filler, number)| number as f64 * self.entries(filler, own, structure));
            let entries = n as f64 / self.fillers_an_entry(probe.filler, structure) + before;
            let free = (self.sizes[structure] / threads) as i64 - entries.ceil() as i64 - head as i64;
            match (CHAINS_TAKE.contains(structure), free) {
                (true, free) => free.clamp(0, CHAIN_LINKS as i64),
                (false, 0..) => CHAIN_LINKS as i64,
                (false, _) => 0,
            }
        });
        let links = room.min().unwrap_or_default() as f64 / CHAIN_LINKS as f64;
        let whole = 0.98 - self.slope * n as f64;
        self.past + (whole - self.past).max(0.0) * links
    }
}

/// The test that has this filler.
fn owner(filler: &FillerSpec) -> Option<&'static str> {
    let all = |filler: &FillerSpec| (filler.code, filler.prologue, filler.also_occupies);
    let has = |test: &&&TestSpec| test.fillers().iter().any(|other| all(other) == all(filler));
    TESTS.iter().find(has).map(|test| test.name)
}

fn named(name: &str) -> &'static TestSpec {
    TESTS.iter().find(|test| test.name == name).expect("it is a test's name")
}

impl MeasureOverlaps for SimulatedWindow {
    fn measure_overlaps(&mut self, probe: &OverlapProbe, counts: &[usize]) -> Result<Vec<OverlapReading>, RunError> {
        // Another thread may start on the core between two measurements; it then owns half of
        // everything.
        let threads = if self.random.happens(BESIDE) { 2 } else { 1 };
        // A burst of the sibling affects one of some hundred points.
        let point = |n: &usize| {
            let overlap = self.overlap(probe, *n, threads) + self.noise * self.random.normal();
            let burst = self.random.happens(0.01);
            let overlap = if burst { overlap + 0.3 * (self.random.uniform() - 0.5) } else { overlap };
            OverlapReading { n: *n, overlap, fast: f64::from(u8::from(overlap >= 0.5)) }
        };
        Ok(counts.iter().map(point).collect())
    }
}
