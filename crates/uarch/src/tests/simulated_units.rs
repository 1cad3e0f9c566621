//! Simulated execution units, some of which each class of instructions can use.

use crate::cost::{CostPoint, MeasureMixtures};
use crate::mixture::{fill_and_places, fill_cycles_for, others_in_room};
use crate::record::UarchRecord;
use crate::spec::{ClassCount, MixOrder, MixtureClass, MixtureSpec};
use crate::test_list::find_test;
use crate::verdict::VerdictKind;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;

/// Relative noise of a cost.
const NOISE: f64 = 0.004;
/// How much longer an order takes that fills the units badly, as a share.
const POOR: f64 = 0.15;

/// A pair that takes this share longer must be found.
const SHOWN: f64 = 0.06;
/// Below this share, nothing may be found.
const UNSEEN: f64 = 0.04;

/// Classes, each with its units as bits, and the core cycles for which an instruction occupies one.
pub(super) struct SimulatedUnits {
    classes: Vec<(&'static str, u32, f64)>,
    /// Instructions per cycle over all units.
    slots: f64,
    /// Mixtures that one order fills badly, by the sum of their numbers.
    poor: usize,
    random: Random,
}

impl SimulatedUnits {
    pub(super) fn from_seed(mixture: &MixtureSpec, seed: u64) -> SimulatedUnits {
        let mut random = Random::new(seed);
        let units = 3 + random.below(4) as u32;
        let classes = mixture.classes.iter().map(|class| {
            // Some classes have no units, like those that renaming completes.
            let some = 1 + random.below((1 << units) - 1) as u32;
            let wanted = if random.happens(0.1) { 0 } else { some };
            let long = if random.happens(0.1) { 4.0 } else { 1.0 };
            (class.name, wanted, long)
        });
        let classes = classes.collect();
        SimulatedUnits { classes, slots: f64::from(units) + 2.0, poor: 2 + random.below(30), random }
    }

    /// The units of a class, and the core cycles per instruction. Classes of slots have no units.
    fn class(&self, class: &MixtureClass) -> Option<(u32, f64)> {
        let found = self.classes.iter().find(|(name, _, _)| *name == class.name);
        found.map(|(_, units, long)| (*units, *long))
    }

    /// Core cycles of a mixture: the most that any set of its classes needs in all of its units
    /// (Hall's theorem).
    fn cost(&self, shares: &[ClassCount]) -> f64 {
        let all = shares.iter().map(|(_, number)| *number as f64).sum::<f64>() / self.slots;
        let of_set = |set: usize| {
            let members = shares.iter().enumerate().filter(|(place, _)| set & (1 << place) != 0);
            let known = members.filter_map(|(_, (class, number))| Some((self.class(class)?, *number as f64)));
            let (units, work) =
                known.fold((0, 0.0), |(units, work), ((more, long), number)| (units | more, work + number * long));
            if units == 0 { 0.0 } else { work / f64::from(units.count_ones()) }
        };
        (0..1 << shares.len()).map(of_set).fold(all, f64::max)
    }

    /// How many of a class each instruction of another one displaces, and the share by which this
    /// slows the pair; `None` if there is no room to see it.
    fn displaced(
        &self,
        class: &'static MixtureClass,
        by: &'static MixtureClass,
        mixture: &MixtureSpec,
    ) -> Option<(f64, f64)> {
        let each = |class| self.cost(&[(class, 1)]);
        let slowest = mixture.classes.iter().map(each).fold(0.0, f64::max);
        let (number, places) = fill_and_places(fill_cycles_for(slowest), each(class), 1.0 / self.slots);
        let others = others_in_room(number, each(class), each(by), places)?;
        let alone = number as f64 * each(class);
        let longer = self.cost(&[(class, number), (by, others)]) - alone;
        Some((longer / (others as f64 * each(class)), longer / alone))
    }

    /// For each other class whose effect is visible: whether the record is right about it, if it
    /// says anything.
    pub(super) fn judged(
        &self,
        record: &UarchRecord,
        class: &'static MixtureClass,
        mixture: &'static MixtureSpec,
    ) -> Vec<(String, Option<bool>)> {
        let (units, long) = self.class(class).expect("it was simulated");
        let others = mixture.classes.iter().filter_map(|other| {
            let effect = record.displaced.iter().find(|effect| effect.by == other.name)?;
            let (wanted, takes) = self.class(other)?;
            let share = effect.share.value.unwrap_or(0.0);
            let expected = self.displaced(class, other, mixture)?;
            let right = match (effect.verdict, expected) {
                (VerdictKind::None, (_, longer)) => longer <= SHOWN,
                (_, (_, longer)) if longer <= UNSEEN => false,
                (_, (expected, _)) => (share - expected).abs() <= 0.1 * expected.max(takes / long),
            };
            let what = format!("{} {units:b} beside {} {wanted:b}: {effect:?}", class.name, other.name);
            let known = matches!(effect.verdict, VerdictKind::Found | VerdictKind::None);
            (effect.verdict != VerdictKind::Limited).then_some((what, known.then_some(right)))
        });
        others.collect()
    }
}

impl MeasureMixtures for SimulatedUnits {
    fn measure_mixture(
        &mut self,
        shares: &[ClassCount],
        order: MixOrder,
        _: &str,
    ) -> Result<Option<CostPoint>, RunError> {
        let sum: usize = shares.iter().map(|(_, number)| number).sum();
        let poor =
            if shares.len() > 1 && sum.is_multiple_of(self.poor) && order == MixOrder::Runs { POOR } else { 0.0 };
        let burst = if self.random.happens(0.03) { 0.5 } else { 0.0 };
        let cost = self.cost(shares) * (1.0 + poor + burst + NOISE * self.random.normal());
        Ok(Some(CostPoint { n: 0, cost, low: (1.0 - NOISE) * cost, high: (1.0 + NOISE) * cost }))
    }
}

#[test]
fn a_mixture_takes_as_long_as_its_busiest_units() {
    const CLASS: MixtureClass = MixtureClass { name: "one", code: [&[], &[]], alternatives: [&[], &[]] };
    const OTHER: MixtureClass = MixtureClass { name: "other", code: [&[], &[]], alternatives: [&[], &[]] };
    let classes = vec![("one", 0b011, 1.0), ("other", 0b110, 2.0)];
    let core = SimulatedUnits { classes, slots: 4.0, poor: 2, random: Random::new(1) };
    for (shares, cost) in [([4, 0], 2.0), ([0, 4], 4.0), ([4, 1], 2.0), ([4, 2], 8.0 / 3.0), ([4, 8], 20.0 / 3.0)] {
        assert_eq!(
            core.cost(&[(&CLASS, shares[0]), (&OTHER, shares[1])]),
            f64::max(cost, 2.0 * shares[1] as f64 / 2.0),
            "{shares:?}"
        );
    }
}

/// Units of a realistic core: of six units, two multiply or shift vectors.
const REAL: [(&str, u32, f64); 14] = [
    ("alu", 0b110_0111, 1.0),
    ("shift", 0b010_0001, 1.0),
    ("lea", 0b010_0011, 1.0),
    ("multiply", 0b000_0010, 1.0),
    ("load", 0b1_0000_0000, 1.0),
    ("store", 0b10_0000_0000, 1.0),
    ("vector_add", 0b000_0111, 1.0),
    ("vector_shift", 0b000_0011, 1.0),
    ("shuffle", 0b000_0110, 1.0),
    ("float_add", 0b000_0110, 1.0),
    ("float_multiply", 0b000_0011, 1.0),
    ("root", 0b1000_0000_0000, 5.0),
    ("to_general", 0b000_0001, 1.0),
    ("to_vector", 0b000_0100, 1.0),
];

#[test]
fn pairs_predict_the_cost_of_groups_of_three() {
    let test = find_test("mixed_throughput");
    let crate::spec::Experiment::Mixture(asked) = &test.experiment else { panic!("it is one of mixtures") };
    let mut core = SimulatedUnits { classes: REAL.to_vec(), slots: 7.0, poor: 7, random: Random::new(3) };
    let records = crate::mixture::run_mixture(&mut core, test, asked, &mut Random::new(5)).unwrap();
    let groups = records.last().unwrap();
    assert_eq!((groups.what.as_str(), groups.verdict), ("mixed_throughput.groups_of_three", VerdictKind::Found));
    let alu = &records[0];
    let slowed = alu.displaced.iter().filter(|other| other.verdict == VerdictKind::Found);
    assert!(slowed.clone().all(|other| (other.share.value.unwrap() - 1.0).abs() < 0.05), "{}", alu.why);
    assert_eq!(slowed.count(), REAL.len() - 4, "all but itself, load, store and root");
    assert!(alu.why.ends_with("not by load, store; no room to see it beside root"), "{}", alu.why);
    assert!((alu.value.value.unwrap() - 5.0).abs() < 0.1);
}

/// Each class has four units of its own, and there are six slots. With a class that fills its four
/// units, half of the other class's rate fits.
#[test]
fn classes_with_separate_units_show_no_effect_when_slots_are_few() {
    let test = find_test("mixed_throughput");
    let crate::spec::Experiment::Mixture(asked) = &test.experiment else { panic!("it is one of mixtures") };
    let classes = REAL.map(|class| match class.0 {
        "alu" => (class.0, 0b1111, 1.0),
        "vector_add" => (class.0, 0b1111_0000, 1.0),
        _ => class,
    });
    let mut core = SimulatedUnits { classes: classes.to_vec(), slots: 6.0, poor: 7, random: Random::new(3) };
    let records = crate::mixture::run_mixture(&mut core, test, asked, &mut Random::new(5)).expect("it has costs");
    for (class, by) in [("alu", "vector_add"), ("vector_add", "alu")] {
        let record = records.iter().find(|record| record.what.ends_with(&format!(".{class}")));
        let effect = record.and_then(|record| record.displaced.iter().find(|effect| effect.by == by));
        assert_eq!(effect.map(|effect| effect.verdict), Some(VerdictKind::None), "{class}: {effect:?}");
    }
}
