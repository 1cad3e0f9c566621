//! Levels of caches and translations on simulated hierarchies, where translations end before the
//! second cache does, and a sibling holds a random share of each level at times.

use crate::cost::{CostPoint, MeasureCosts, subtract_control};
use crate::level_curves::run_levels;
use crate::record::UarchRecord;
use crate::spec::{Experiment, LevelsSpec, ProgramFamily, TestSpec};
use crate::test_list::find_test;
use crate::verdict::VerdictKind;
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_core::error::RunError;
use cyclescope_core::random::{Random, mix_seeds};
use cyclescope_sim::{CacheSibling, HeldShares, MemoryHierarchy};
use std::collections::BTreeMap;
use std::ops::Range;

/// Number of cores without a sibling, and with one.
const IDLE_CORES: u64 = 60;
const SHARED_CORES: u64 = 240;
/// Relative noise of a cost.
const NOISE: f64 = 0.004;
/// The tolerance of a size, as a share: programs skip counts that are nearer.
const SIZE_SLACK: f64 = 0.02;
/// The tolerance of a cost, as a share: a level's points differ by as much.
const COST_SLACK: f64 = 0.12;

/// Bytes of a large ring.
const LARGE: usize = 8 << 20;
/// The largest number of their measurements in a test.
const LARGE_MOST: usize = 220;

/// A core with such a hierarchy.
struct SimulatedRings<'a> {
    hierarchy: MemoryHierarchy,
    held: HeldShares,
    random: Random,
    /// Measurements of rings from [`LARGE`] bytes on, each of which takes a tenth of a second on a
    /// real machine.
    large: usize,
    memories: &'a mut RingMemories,
}

/// The memory of each program at a count, and that of its control: programs are assembled once.
type RingMemories = BTreeMap<(usize, usize), [Option<ProgramMemory>; 2]>;

impl SimulatedRings<'_> {
    fn new(hierarchy: MemoryHierarchy, seed: u64, memories: &mut RingMemories) -> SimulatedRings<'_> {
        let random = Random::new(mix_seeds(seed, 1));
        SimulatedRings { hierarchy, held: HeldShares::default(), random, large: 0, memories }
    }
}

impl MeasureCosts for SimulatedRings<'_> {
    fn measure_cost(&mut self, family: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError> {
        Ok(self.measure_with_control(family, n)?.map(subtract_control))
    }

    fn measure_with_control(
        &mut self,
        family: &ProgramFamily,
        n: usize,
    ) -> Result<Option<(CostPoint, Option<CostPoint>)>, RunError> {
        self.large += usize::from(n >= LARGE);
        let SimulatedRings { hierarchy, held, random, memories, .. } = self;
        let mut point_of = |memory: &ProgramMemory| {
            hierarchy.draw_held(held, random);
            let burst = if random.happens(0.01) { 1.0 + random.uniform() } else { 1.0 };
            let cost = hierarchy.cost_of_load(memory, held) * burst * (1.0 + NOISE * random.normal());
            CostPoint { n, cost, low: 0.99 * cost, high: 1.01 * cost }
        };
        let [program, control] = memories.entry((std::ptr::from_ref(family) as usize, n)).or_insert_with(|| {
            [Some(family.program(n)), family.control(n)].map(|steps| steps.map(|steps| steps.memory))
        });
        let point = program.as_ref().map(&mut point_of);
        Ok(point.map(|point| (point, control.as_ref().map(point_of))))
    }
}

fn levels_spec(test: &'static TestSpec) -> &'static LevelsSpec {
    let Experiment::Levels(spec) = &test.experiment else { panic!("{} is one of levels", test.name) };
    spec
}

/// The truth about a key: the least and the largest right number.
fn simulated_numbers(hierarchy: &MemoryHierarchy) -> BTreeMap<String, [f64; 2]> {
    let MemoryHierarchy { caches, translations, walk, memory, .. } = hierarchy;
    let mut all = BTreeMap::new();
    let sizes = |size: f64| [size * (1.0 - SIZE_SLACK), size * (1.0 + SIZE_SLACK)];
    // A translation is part of a load.
    let costs = |cost: f64, more: f64| [(1.0 - COST_SLACK) * cost - 0.3, (1.0 + COST_SLACK) * (cost + more) + 0.3];
    for test in ["data_caches", "data_caches_huge", "data_caches_by_page"] {
        for (number, cache) in caches.iter().enumerate() {
            let more = [0.0, translations[1].cost, *walk][number];
            all.insert(format!("{test}.{}.size", number + 1), sizes(cache.bytes));
            all.insert(format!("{test}.{}.cost", number + 1), costs(cache.cost, more));
        }
        all.insert(format!("{test}.beyond.cost"), costs(*memory, *walk));
    }
    // By page, prefetchers hide a part; up to 8 MiB, the third cache is beyond.
    all.insert("data_caches_huge.beyond.cost".to_string(), costs(caches[2].cost, memory + walk));
    for (number, level) in translations.iter().enumerate() {
        all.insert(format!("data_tlb.{}.size", number + 1), sizes(level.entries));
        all.insert(format!("data_tlb.{}.cost", number + 1), costs(level.cost, 0.0));
    }
    // The control needs a few translations too.
    let near = translations[1].cost;
    all.insert("data_tlb.beyond.cost".to_string(), costs(walk - near, near));
    all
}

/// Results by key, over all cores.
#[derive(Debug, Default)]
struct KeyScore {
    found: usize,
    wrong: Vec<String>,
    missed: Vec<String>,
    /// The widest interval, as a ratio of its edges.
    widest: f64,
}

fn score_tests(
    tests: &[&str],
    seeds: Range<u64>,
    sibling: fn(u64) -> Option<CacheSibling>,
) -> BTreeMap<String, KeyScore> {
    let mut scores = BTreeMap::<String, KeyScore>::new();
    let mut memories = RingMemories::new();
    for seed in seeds {
        let hierarchy = MemoryHierarchy { sibling: sibling(seed), ..MemoryHierarchy::from_seed(seed) };
        let numbers = simulated_numbers(&hierarchy);
        for name in tests {
            let test = find_test(name);
            let spec = levels_spec(test);
            let mut core = SimulatedRings::new(hierarchy.clone(), seed, &mut memories);
            let records = run_levels(&mut core, test, spec, spec.count_range[1], &mut Random::new(seed))
                .expect("all is simulated");
            assert!(core.large <= LARGE_MOST, "{name} {seed}: {} measurements of large rings", core.large);
            add_scores(&mut scores, seed, &numbers, &records);
        }
    }
    scores
}

fn add_scores(
    scores: &mut BTreeMap<String, KeyScore>,
    seed: u64,
    numbers: &BTreeMap<String, [f64; 2]>,
    records: &[UarchRecord],
) {
    for record in records {
        let score = scores.entry(record.what.clone()).or_default();
        let value = record.value;
        let (Some(number), Some(low), Some(high)) = (value.value, value.low, value.high) else {
            score.missed.push(format!("{seed}: {}", record.why));
            continue;
        };
        assert_eq!(record.verdict, VerdictKind::Found);
        score.found += 1;
        score.widest = score.widest.max(high / low);
        let right = numbers.get(&record.what).is_some_and(|[least, most]| low <= *most && *least <= high);
        if !right {
            score.wrong.push(format!(
                "{seed}: {number} [{low}, {high}] for {:?}: {}",
                numbers.get(&record.what),
                record.why
            ));
        }
    }
}

/// Sizes and costs that everybody asks for.
const WANTED: &[&str] = &[
    "data_caches.1.size",
    "data_caches.1.cost",
    "data_caches.2.size",
    "data_caches.2.cost",
    "data_caches.3.size",
    "data_caches.3.cost",
    "data_tlb.1.size",
    "data_tlb.1.cost",
    "data_tlb.2.size",
    "data_tlb.2.cost",
];

/// The scores of all hierarchies, half of them on another thread.
fn score_in_halves(
    tests: &[&str],
    number: u64,
    sibling: fn(u64) -> Option<CacheSibling>,
) -> BTreeMap<String, KeyScore> {
    let halves = [0..number / 2, number / 2..number];
    let scores = std::thread::scope(|scope| {
        halves
            .map(|seeds| scope.spawn(move || score_tests(tests, seeds, sibling)))
            .map(|half| half.join().expect("all is simulated"))
    });
    let mut all = BTreeMap::<String, KeyScore>::new();
    for (key, half) in scores.into_iter().flatten() {
        let score = all.entry(key).or_default();
        score.found += half.found;
        score.wrong.extend(half.wrong);
        score.missed.extend(half.missed);
        score.widest = score.widest.max(half.widest);
    }
    all
}

/// Fails if a wanted number is missing in more than a tenth of the hierarchies, or if one is wrong.
fn check_scores(scores: &BTreeMap<String, KeyScore>, number: u64) {
    for (key, KeyScore { found, wrong, missed, widest }) in scores {
        println!("{key}: {found} of {number}, widest {widest:.2}, wrong {wrong:#?}, missed {missed:#?}");
    }
    for key in WANTED {
        let found = scores.get(*key).map_or(0, |score| score.found);
        assert!(found as f64 >= 0.9 * number as f64, "{key}: {found} of {number}");
    }
    // The cost beyond all levels may be that of the end of a rise.
    let wrong = scores.iter().filter(|(key, _)| key.ends_with("size") || WANTED.contains(&key.as_str()));
    let wrong: Vec<_> = wrong.flat_map(|(_, score)| &score.wrong).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

const LEVEL_TESTS: &[&str] = &["data_caches", "data_caches_by_page", "data_caches_huge", "data_tlb"];

#[test]
fn levels_are_found_on_an_idle_core() {
    check_scores(&score_in_halves(LEVEL_TESTS, IDLE_CORES, |_| None), IDLE_CORES);
}

/// A sibling that holds a random part of each level for a random share of the time, at most six
/// tenths of the far levels for four tenths of the time.
fn sibling_from_seed(seed: u64) -> Option<CacheSibling> {
    let mut random = Random::new(mix_seeds(seed, 2));
    let mut draw = |from: f64, to: f64| from + (to - from) * random.uniform();
    Some(CacheSibling { active: draw(0.05, 0.4), spell: draw(1.0, 12.0), most: [draw(0.0, 0.3), draw(0.1, 0.6)] })
}

#[test]
fn levels_are_found_beside_a_sibling_that_takes_cache() {
    check_scores(&score_in_halves(LEVEL_TESTS, SHARED_CORES, sibling_from_seed), SHARED_CORES);
}
