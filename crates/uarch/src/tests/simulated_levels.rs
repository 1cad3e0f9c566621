//! Simulated levels with simulated ends. Each reported end must match; all others must be unclear.

use crate::cost::{CostPoint, MeasureCosts};
use crate::level_curves::run_levels;
use crate::record::UarchRecord;
use crate::spec::{Experiment, LevelsSpec, ProgramFamily, TestSpec};
use crate::test_list::TESTS;
use crate::verdict::VerdictKind;
use cyclescope_core::error::{RunError, Unavailable};
use cyclescope_core::random::Random;

/// How a level ends.
#[derive(Debug, Clone, Copy)]
enum SimulatedEnding {
    /// Sets of this many ways that fill evenly. The oldest line is replaced.
    Ordered(f64),
    /// Sets of this many ways that pages fill by chance.
    Coloured(f64),
}

/// A core with levels of these sizes.
pub(super) struct SimulatedLevels {
    spec: &'static LevelsSpec,
    pub sizes: Vec<f64>,
    pub costs: Vec<f64>,
    endings: Vec<SimulatedEnding>,
    /// The relative rise of the last levels' cost from translations, and the count from which on it
    /// rises.
    pub ramp: (f64, f64),
    noise: f64,
    /// How often background load takes a part of the last level.
    neighbours: f64,
    /// The size that the second program sees, as a share of each size.
    pub second: f64,
    /// Whether the first programs see no end if there are fallback programs, as when decoders are
    /// as fast as the core.
    pub blind: bool,
    /// A program in which the first level ends early, and at which share of its size. Background
    /// load held a part of it whenever counts before its end were measured.
    pub early: Option<(usize, f64)>,
    random: Random,
}

impl SimulatedLevels {
    fn new(seed: u64, least: usize, most: usize) -> SimulatedLevels {
        let mut random = Random::new(seed);
        let mut draw = |from: f64, to: f64| from + (to - from) * random.uniform();
        let (mut sizes, mut costs) = (Vec::new(), vec![draw(1.0, 6.0)]);
        // No x86-64 CPU has less than 16 KiB.
        let mut size = least as f64 * draw(4.0, 16.0);
        while size < most as f64 / 6.0 && sizes.len() < 3 {
            sizes.push(size.round());
            costs.push(costs[costs.len() - 1] * draw(2.2, 5.0) + 4.0);
            size *= draw(5.0, 40.0);
        }
        // Virtual addresses select the sets of the nearest level, physical pages those of the
        // others.
        let ending = |number: usize, draw: &mut dyn FnMut(f64, f64) -> f64| {
            let variants = draw(4.0, 17.0).floor();
            match number {
                0 => SimulatedEnding::Ordered(variants),
                _ => SimulatedEnding::Coloured(variants.max(8.0)),
            }
        };
        let endings = (0..sizes.len()).map(|number| ending(number, &mut draw)).collect();
        let ramp = (draw(0.0, 0.25), least as f64 * draw(50.0, 200.0));
        let noise = draw(0.001, 0.02);
        let spec = caches().1;
        SimulatedLevels {
            spec,
            sizes,
            costs,
            endings,
            ramp,
            noise,
            neighbours: 0.0,
            second: 1.0,
            blind: false,
            early: None,
            random,
        }
    }

    /// A core with levels for any test of levels.
    pub(super) fn from_seed(spec: &'static LevelsSpec, seed: u64) -> SimulatedLevels {
        let [least, most] = spec.count_range.map(|n| n as f64);
        let caches = SimulatedLevels::new(seed, spec.count_range[0], spec.count_range[1]);
        let mut random = Random::new(seed ^ 1);
        let mut draw = |from: f64, to: f64| from + (to - from) * random.uniform();
        // A visible level spans some counts and has another level behind it.
        let (first, last) = (2.2 * least, most / 2.2);
        let (mut sizes, mut costs): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
        // A difference leaves a low cost.
        costs.push(if spec.programs[0].control.is_some() { draw(0.0, 0.3) } else { draw(1.0, 6.0) });
        let mut size = first * (last / first).powf(draw(0.0, if spec.single_structure { 1.0 } else { 0.5 }));
        while size <= last && sizes.len() < if spec.single_structure { 1 } else { 3 } {
            sizes.push(size.round());
            let cost = costs[costs.len() - 1];
            costs.push((cost * spec.min_ratio * draw(1.3, 3.0)).max(cost + spec.min_rise * draw(1.5, 6.0)));
            size *= draw(4.0, 20.0);
        }
        let variants = |number: usize, draw: &mut dyn FnMut(f64, f64) -> f64| match number {
            // Entries that are used one by one, and sets.
            _ if spec.single_structure => SimulatedEnding::Ordered(sizes[number]),
            0 => SimulatedEnding::Ordered(draw(4.0, 17.0).floor()),
            _ if spec.fills_randomly => SimulatedEnding::Coloured(draw(8.0, 17.0).floor()),
            _ => SimulatedEnding::Ordered(draw(4.0, 17.0).floor()),
        };
        let endings = (0..sizes.len()).map(|number| variants(number, &mut draw)).collect();
        // Costs may drift for other reasons too.
        let drifts = spec.programs[0].control.is_none() && draw(0.0, 1.0) < 0.3;
        let ramp = match spec.fills_randomly {
            true => caches.ramp,
            false => (if drifts { draw(0.2, 0.8) } else { 0.0 }, least * draw(2.0, 20.0)),
        };
        let second = if draw(0.0, 1.0) < 0.1 { draw(0.3, 0.7) } else { 1.0 };
        let neighbours = if spec.fills_randomly { 0.08 } else { 0.0 };
        let blind = !spec.fallback_programs.is_empty() && draw(0.0, 1.0) < 0.4;
        let early = (draw(0.0, 1.0) < 0.1).then(|| (usize::from(draw(0.0, 1.0) < 0.5), draw(0.75, 0.93)));
        SimulatedLevels { spec, sizes, costs, endings, ramp, neighbours, second, blind, early, ..caches }
    }

    /// Makes the first level end where another structure is full, in which each counted item takes
    /// a part. Returns whether that is before the second level and visible.
    pub(super) fn hide(&mut self, other: f64) -> bool {
        let [least, most] = self.spec.count_range.map(|n| n as f64);
        let next = self.sizes.get(1).map_or(most / 2.2, |next| next / 4.0);
        let seen = self.second == 1.0 && self.early.is_none();
        let hides = (2.2 * least..=next).contains(&other) && seen;
        if hides {
            self.sizes[0] = other;
            self.endings[0] = SimulatedEnding::Ordered(8.0);
        }
        hides
    }

    /// The share of steps that miss a level.
    fn missing(&self, number: usize, n: f64) -> f64 {
        let size = self.sizes[number];
        match self.endings[number] {
            SimulatedEnding::Ordered(variants) => ((n - size) / (size / variants)).clamp(0.0, 1.0),
            SimulatedEnding::Coloured(variants) => {
                // The number of other pages of the same colour is random. At most all but one of
                // them fit.
                let mean = n / size * variants;
                let (mut term, mut room) = ((-mean).exp(), 0.0);
                for others in 0..variants as usize {
                    room += term;
                    term *= mean / (others + 1) as f64;
                }
                1.0 - room
            }
        }
    }

    /// The cost with background load that holds a part of the last level, and that share of the
    /// first level.
    fn plain_cost(&self, n: f64, shared: f64, early: f64) -> f64 {
        let mut cost = self.costs[0];
        for number in 0..self.sizes.len() {
            let n = match number {
                0 => n / early,
                _ if number > 1 && number + 1 == self.sizes.len() => n * shared,
                _ => n,
            };
            cost += self.missing(number, n) * (self.costs[number + 1] - self.costs[number]);
        }
        let (share, from) = self.ramp;
        let ramp = if n > from { share * (1.0 - from / n) } else { 0.0 };
        cost * (1.0 + ramp)
    }
}

impl MeasureCosts for SimulatedLevels {
    fn measure_cost(&mut self, family: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError> {
        if self.random.happens(0.01) {
            return Ok(None);
        }
        let place = |all: &[ProgramFamily]| all.iter().position(|other| other.name == family.name);
        let first = place(self.spec.programs);
        if self.blind && first.is_some() {
            let cost = self.costs[0] * (1.0 + self.noise * self.random.normal());
            return Ok(Some(CostPoint { n, cost, low: cost * 0.99, high: cost * 1.01 }));
        }
        let place = first.or(place(self.spec.fallback_programs));
        let second = if place == Some(1) { self.second } else { 1.0 };
        let early = self.early.filter(|(number, _)| place == Some(*number)).map_or(1.0, |(_, share)| share);
        let witness = self.spec.witness.as_ref().filter(|witness| witness.family.name == family.name);
        let occupied = witness.map_or(0.0, |witness| witness.occupied as f64);
        // At times, background load takes a part of all shared levels, or time.
        let taken = if self.random.happens(0.02) { 1.0 + 0.7 * self.random.uniform() } else { 1.0 };
        let burst = if self.random.happens(0.02) { 1.0 + 2.0 * self.random.uniform() } else { 1.0 };
        let shared = if self.random.happens(self.neighbours) { 1.0 + 0.7 * self.random.uniform() } else { 1.0 };
        let clean = self.plain_cost((n as f64 + occupied) * taken / second, shared, early);
        // A difference of two programs has the noise of both.
        let whole = clean + if family.control.is_some() { self.spec.min_rise } else { 0.0 };
        let cost = clean * burst + whole * self.noise * self.random.normal();
        Ok(Some(CostPoint { n, cost, low: cost * 0.99, high: cost * 1.01 }))
    }
}

fn caches() -> (&'static TestSpec, &'static LevelsSpec) {
    let found = TESTS.iter().find_map(|test| match &test.experiment {
        Experiment::Levels(spec) if test.name == "data_caches" => Some((*test, spec)),
        _ => None,
    });
    found.expect("there is a test of caches")
}

fn climbed(core: &mut SimulatedLevels, seed: u64) -> Vec<UarchRecord> {
    let (test, spec) = caches();
    run_levels(core, test, spec, spec.count_range[1], &mut Random::new(seed)).unwrap()
}

fn sizes_found(records: &[UarchRecord]) -> Vec<&UarchRecord> {
    sizes(records).filter(|record| record.verdict == VerdictKind::Found).collect()
}

fn sizes(records: &[UarchRecord]) -> impl Iterator<Item = &UarchRecord> {
    records.iter().filter(|record| record.what.ends_with(".size"))
}

#[test]
fn an_invisible_short_level_enlarges_no_other_level() {
    let [least, most] = caches().1.count_range;
    let mut second = 0;
    for seed in 0..40 {
        let simulated = SimulatedLevels::new(seed, least, most);
        let (sizes, costs) = (vec![49152.0, 2e6, 5e6], vec![5.0, 16.0, 130.0, 600.0]);
        let endings =
            vec![SimulatedEnding::Ordered(12.0), SimulatedEnding::Coloured(16.0), SimulatedEnding::Coloured(8.0)];
        let mut core = SimulatedLevels { sizes: sizes.clone(), costs, endings, ..simulated };
        let records = climbed(&mut core, seed);
        for record in sizes_found(&records) {
            let number: usize = record.what.split('.').nth(1).and_then(|number| number.parse().ok()).unwrap();
            let (low, high) = (record.value.low.unwrap(), record.value.high.unwrap());
            let size = sizes[number - 1];
            assert!(0.98 * low <= size && size <= 1.02 * high, "{seed} {}: {}", record.what, record.why);
            second += usize::from(number == 2);
        }
    }
    assert!(second >= 30, "{second} of 40 second levels are found");
}

#[test]
fn levels_in_which_no_two_programs_agree_are_unclear() {
    let [least, most] = caches().1.count_range;
    for seed in 0..40 {
        // As when jumps that are farther apart share sets.
        let mut core = SimulatedLevels { second: 0.4, ..SimulatedLevels::new(seed, least, most) };
        let records = climbed(&mut core, seed);
        assert!(sizes(&records).any(|record| record.verdict == VerdictKind::Unclear), "{seed}");
        // Wide ends may overlap.
        for record in sizes_found(&records) {
            let [low, high] = [record.value.low.unwrap(), record.value.high.unwrap()];
            let sizes = &core.sizes;
            let holds = |size: &f64| low <= *size && *size <= high;
            let one = sizes.iter().any(|size| holds(size) || holds(&(0.4 * size)));
            assert!(one, "{seed}: {} {sizes:?}", record.why);
        }
    }
}

#[test]
fn a_size_that_the_witness_does_not_shrink_is_unclear() {
    struct Unmoved(SimulatedLevels);
    impl MeasureCosts for Unmoved {
        fn measure_cost(&mut self, family: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError> {
            let is_witness = family.name.contains("beside");
            let point = self.0.measure_cost(family, if is_witness { n.saturating_sub(8192).max(1) } else { n })?;
            Ok(point.map(|point| CostPoint { n, ..point }))
        }
    }
    let (test, spec) = caches();
    let mut left = Vec::new();
    for seed in 0..20 {
        let mut core = SimulatedLevels::new(seed, spec.count_range[0], spec.count_range[1]);
        core.sizes[0] = 49152.0;
        core.sizes.truncate(1);
        core.endings[0] = SimulatedEnding::Ordered(12.0);
        let records = run_levels(&mut Unmoved(core), test, spec, spec.count_range[1], &mut Random::new(seed)).unwrap();
        let first = &records[0];
        let [held, why] = [first.witnesses.iter().any(|witness| witness.holds), first.verdict != VerdictKind::Unclear];
        if held || why {
            let known = (seed, first.verdict, &first.why, &first.witnesses);
            left.push(format!("{known:?}"));
        }
    }
    assert!(left.len() <= 1, "{left:#?}");
}

#[test]
fn a_level_that_ends_early_in_one_program_keeps_its_number() {
    let [least, most] = caches().1.count_range;
    let mut second = 0;
    for seed in 0..40 {
        let simulated = SimulatedLevels::new(seed, least, most);
        let (sizes, costs) = (vec![32768.0, 1e6, 2e7], vec![4.0, 14.0, 50.0, 500.0]);
        let endings =
            vec![SimulatedEnding::Ordered(8.0), SimulatedEnding::Coloured(8.0), SimulatedEnding::Coloured(16.0)];
        // As with a sibling that was busy whenever one program was near the end of the nearest
        // cache.
        let early = Some((seed as usize % 2, 0.8));
        let mut core = SimulatedLevels { sizes: sizes.clone(), costs, endings, early, ..simulated };
        for record in sizes_found(&climbed(&mut core, seed)) {
            let number: usize = record.what.split('.').nth(1).and_then(|number| number.parse().ok()).unwrap();
            let [low, high] = [record.value.low.unwrap(), record.value.high.unwrap()];
            let size = sizes[number - 1];
            assert!(0.98 * low <= size && size <= 1.02 * high, "{seed} {}: {}", record.what, record.why);
            second += usize::from(number == 2);
        }
    }
    assert!(second >= 36, "{second} of 40 second levels are found");
}

/// A machine that lacks this memory.
struct Without;

impl MeasureCosts for Without {
    fn measure_cost(&mut self, _: &ProgramFamily, _: usize) -> Result<Option<CostPoint>, RunError> {
        let [what, why, remedy] = ["pages of 2 MiB", "none came", "ask for some"].map(str::to_string);
        Err(RunError::Unavailable(Unavailable { what, why, remedy }))
    }
}

#[test]
fn an_unavailable_program_has_no_levels() {
    let (test, spec) = caches();
    let records = run_levels(&mut Without, test, spec, spec.count_range[1], &mut Random::new(5)).expect("it is said");
    let [record] = &records[..] else { panic!("{} records", records.len()) };
    assert_eq!((record.verdict, record.value.value), (VerdictKind::None, None));
    assert_eq!((record.what.as_str(), record.why.as_str()), ("data_caches.1.size", "pages of 2 MiB: none came"));
}

/// A core on which all programs cost the same at each count.
struct Flat;

impl MeasureCosts for Flat {
    fn measure_cost(&mut self, _: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError> {
        Ok(Some(CostPoint { n, cost: 0.25, low: 0.25, high: 0.25 }))
    }
}

#[test]
fn an_optional_structure_without_an_end_is_none() {
    let verdict = |name: &str| {
        let test = *TESTS.iter().find(|test| test.name == name).expect("it is in the list");
        let Experiment::Levels(spec) = &test.experiment else { panic!("it is one of levels") };
        let records =
            run_levels(&mut Flat, test, spec, spec.count_range[1], &mut Random::new(5)).expect("it has costs");
        (records[0].what.clone(), records.len(), records[0].verdict)
    };
    assert_eq!(verdict("loop_buffer"), ("loop_buffer".to_string(), 1, VerdictKind::None));
    assert_eq!(verdict("l1d_ways"), ("l1d_ways".to_string(), 1, VerdictKind::Unclear));
}
