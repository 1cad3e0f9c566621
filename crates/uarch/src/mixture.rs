//! Which classes of instructions slow each other down: a graph of the units that they compete for.
//!
//! A class alone runs at its own rate. It is mixed with as many instructions of another class as
//! there is room for. If the other class needs none of its units, it keeps its rate. Otherwise each
//! of the others displaces a number of its instructions: one if it always takes the place of one,
//! less if it can use other units. For this, the displaced class has to fill its units, and the
//! slots that all instructions need must not be full; otherwise the pair is hidden.
//!
//! Groups of three classes check the graph, as they did not contribute to it: each must take as
//! long as its slowest class.

use super::cost::{CostPoint, MeasureMixtures};
use super::record::{DisplacedRecord, UarchRecord};
use super::spec::{ClassCount, MixOrder, MixtureClass, MixtureSpec, TestSpec};
use super::verdict::{TestVerdict, VerdictKind};
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;
use cyclescope_measure::result::record::Quantity;

/// Number of instructions of a class alone.
const ALONE_COUNT: usize = 48;
/// The least and the largest number of core cycles for which a class fills its units in a mixture.
const FILL_CYCLES_RANGE: [f64; 2] = [16.0, 64.0];
/// The least number of instructions of that class.
const MIN_INSTRUCTIONS: f64 = 4.0;
/// Share by which two equal costs may differ.
const SAME_SHARE: f64 = 0.03;
/// Share by which a mixture must take longer to show an effect.
const VISIBLE_SHARE: f64 = 0.05;
/// Share by which the others would make a mixture longer if each displaced one. With less, there is
/// no room to see them.
const ROOM_SHARE: f64 = 0.12;
/// The least number that an instruction without other units displaces.
const FULL_DISPLACEMENT: f64 = 0.9;
/// Share by which a group of three may differ from the prediction of pairs.
const PREDICTION_TOLERANCE: f64 = 0.06;
/// The share of such groups that must match.
const MIN_HOLDING_SHARE: f64 = 0.8;
/// The largest number of measurements of a mixture, until two of its orders agree.
const MAX_MEASUREMENTS: usize = 4;

/// The effect of one class on another.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ClassEffect {
    /// Each instruction displaces the first number. The second number: core cycles of an
    /// instruction of either class in the shared units.
    Displaces(Interval, f64),
    /// The classes do not affect each other.
    None,
    /// There is no room to see an effect.
    Hidden,
    /// No two orders agree.
    Unclear,
}

impl ClassEffect {
    /// How many are displaced, if it is known.
    fn displaced_share(self) -> Option<f64> {
        match self {
            ClassEffect::Displaces(share, _) => Some(share.value),
            ClassEffect::None => Some(0.0),
            ClassEffect::Hidden | ClassEffect::Unclear => None,
        }
    }
}

/// The measured classes of a core.
struct MixtureGraph<'a> {
    core: &'a mut dyn MeasureMixtures,
    mixture: &'static MixtureSpec,
    /// Core cycles of an instruction of each class alone, in the order of the classes.
    alone_costs: Vec<Option<Interval>>,
    /// Core cycles of the slot that every instruction takes.
    slot: f64,
    /// Core cycles for which a class fills its units.
    fill_cycles: f64,
}

/// Measures each class alone and with each other class, and judges.
pub(super) fn run_mixture(
    core: &mut dyn MeasureMixtures,
    test: &'static TestSpec,
    mixture: &'static MixtureSpec,
    random: &mut Random,
) -> Result<Vec<UarchRecord>, RunError> {
    let mut graph = MixtureGraph { core, mixture, alone_costs: Vec::new(), slot: 0.0, fill_cycles: 0.0 };
    let mut slots = Vec::new();
    for class in mixture.slot_classes {
        slots.push(graph.measure_alone(class)?);
    }
    for class in mixture.classes {
        let alone = graph.measure_alone(class)?;
        graph.alone_costs.push(alone);
    }
    let slots: Option<Vec<Interval>> = slots.into_iter().collect();
    let Some(slots) = slots else {
        let why = "other work disturbed the no-operations";
        let record = |class: &MixtureClass| unclear_record(test, class, why.to_string());
        return Ok(mixture.classes.iter().map(record).collect());
    };
    graph.slot = slots.iter().map(|slot| slot.value).fold(0.0, f64::max);
    let slowest = graph.alone_costs.iter().flatten().map(|cost| cost.value).fold(0.0, f64::max);
    graph.fill_cycles = fill_cycles_for(slowest);
    let number = mixture.classes.len();
    let mut edges = vec![vec![ClassEffect::None; number]; number];
    for (displaced, row) in edges.iter_mut().enumerate() {
        for (by, edge) in row.iter_mut().enumerate().filter(|(by, _)| *by != displaced) {
            *edge = graph.measure_effect(displaced, by)?;
        }
    }
    let triples = graph.measure_triples(&edges, random)?;
    let mut records: Vec<_> = (0..number).map(|class| graph.class_record(test, class, &edges[class])).collect();
    records.push(judge_triples(test, &triples, mixture.triple_count));
    Ok(records)
}

/// Core cycles for which a class fills its units, from the cost of the slowest instruction.
pub(super) fn fill_cycles_for(slowest: f64) -> f64 {
    (MIN_INSTRUCTIONS * slowest).clamp(FILL_CYCLES_RANGE[0], FILL_CYCLES_RANGE[1])
}

/// The number of instructions that fill a class's units for a time, and the slots that they leave.
pub(super) fn fill_and_places(whole: f64, each: f64, slot: f64) -> (usize, usize) {
    let number = (whole / each).round().max(1.0);
    (number as usize, ((number * each / slot).floor() - number).max(0.0) as usize)
}

/// The number of the other class's instructions to mix in, if there is room to see them.
pub(super) fn others_in_room(number: usize, each: f64, other: f64, places: usize) -> Option<usize> {
    let most = (number as f64 * each / other).round() as usize;
    let others = most.max(1).min(places);
    (others as f64 >= ROOM_SHARE * number as f64).then_some(others)
}

fn unclear_record(test: &TestSpec, class: &MixtureClass, why: String) -> UarchRecord {
    let what = format!("{}.{}", test.name, class.name);
    UarchRecord::new(test, what, TestVerdict::new(VerdictKind::Unclear, why), Unit::PerCycle)
}

/// The lower of two costs, if they agree.
fn agreed_cost(costs: &[Option<CostPoint>]) -> Option<Interval> {
    let mut known: Vec<&CostPoint> = costs.iter().flatten().collect();
    known.sort_by(|one, other| one.cost.total_cmp(&other.cost));
    let [one, other, ..] = known[..] else { return None };
    let same = other.cost - one.cost <= SAME_SHARE * one.cost && one.cost > 0.0;
    same.then(|| Interval { value: one.cost, low: one.low.min(other.low), high: one.high.max(other.high) })
}

impl MixtureGraph<'_> {
    /// Core cycles of a mixture on which two of its orders agree. Slower results are measured
    /// again: background load only makes code slower.
    fn measure_agreed_cost(&mut self, shares: &[ClassCount], least: f64) -> Result<Option<Interval>, RunError> {
        let mut lowest = [None; MixOrder::ALL.len()];
        for time in 1..=MAX_MEASUREMENTS {
            let orders = if time == 1 { MixOrder::ALL.len() - 1 } else { MixOrder::ALL.len() };
            for (order, lowest) in MixOrder::ALL.into_iter().zip(&mut lowest).take(orders) {
                let point = self.core.measure_mixture(shares, order, self.mixture.init)?;
                let lower = |point: &CostPoint| lowest.is_none_or(|lowest: CostPoint| point.cost < lowest.cost);
                *lowest = point.filter(lower).or(*lowest);
            }
            let cost = agreed_cost(&lowest);
            let sure = |cost: &Interval| time > 1 || cost.value <= (1.0 + VISIBLE_SHARE) * least;
            if cost.as_ref().is_some_and(sure) {
                return Ok(cost);
            }
        }
        Ok(None)
    }

    /// Core cycles of an instruction of a class.
    fn measure_alone(&mut self, class: &'static MixtureClass) -> Result<Option<Interval>, RunError> {
        let each = |cost: f64| cost / ALONE_COUNT as f64;
        let cost = self.measure_agreed_cost(&[(class, ALONE_COUNT)], 0.0)?;
        Ok(cost.map(|Interval { value, low, high }| Interval { value: each(value), low: each(low), high: each(high) }))
    }

    /// The least core cycles of a class and of a whole mixture, if nothing is displaced.
    fn min_cycles(&self, shares: &[(usize, usize)]) -> Option<f64> {
        let mut least = shares.iter().map(|(_, number)| *number as f64).sum::<f64>() * self.slot;
        for (class, number) in shares {
            least = least.max(self.alone_costs[*class]?.value * *number as f64);
        }
        Some(least)
    }

    fn class_counts(&self, shares: &[(usize, usize)]) -> Vec<ClassCount> {
        shares.iter().map(|(class, number)| (&self.mixture.classes[*class], *number)).collect()
    }

    /// The number of a class's instructions that fill its units, and the slots that they leave.
    fn class_fill_and_places(&self, class: usize) -> Option<(usize, usize)> {
        Some(fill_and_places(self.fill_cycles, self.alone_costs[class]?.value, self.slot))
    }

    /// The effect of one class on another class that fills its units.
    fn measure_effect(&mut self, displaced: usize, by: usize) -> Result<ClassEffect, RunError> {
        let (Some((number, places)), Some(other)) = (self.class_fill_and_places(displaced), self.alone_costs[by])
        else {
            return Ok(ClassEffect::Unclear);
        };
        let each = self.alone_costs[displaced].map_or(f64::NAN, |cost| cost.value);
        let Some(others) = others_in_room(number, each, other.value, places) else {
            return Ok(ClassEffect::Hidden);
        };
        let shares = [(displaced, number), (by, others)];
        let Some(least) = self.min_cycles(&shares) else { return Ok(ClassEffect::Unclear) };
        let Some(cost) = self.measure_agreed_cost(&self.class_counts(&shares), least)? else {
            return Ok(ClassEffect::Unclear);
        };
        if cost.value <= (1.0 + VISIBLE_SHARE) * least {
            return Ok(ClassEffect::None);
        }
        let share = |cost: f64| (cost - number as f64 * each) / (others as f64 * each);
        let shares = Interval { value: share(cost.value), low: share(cost.low), high: share(cost.high) };
        Ok(ClassEffect::Displaces(shares, cost.value / (number + others) as f64))
    }

    /// Core cycles of each random group of three: predicted from pairs, and measured.
    fn measure_triples(
        &mut self,
        edges: &[Vec<ClassEffect>],
        random: &mut Random,
    ) -> Result<Vec<ClassTriple>, RunError> {
        let number = edges.len();
        let mut groups: Vec<[usize; 3]> = (0..number)
            .flat_map(|first| (0..number).map(move |second| (first, second)))
            .flat_map(|(first, second)| (second + 1..number).map(move |third| [first, second, third]))
            .filter(|[first, second, third]| first != second && first != third)
            .collect();
        random.shuffle(&mut groups);
        let mut triples = Vec::new();
        for group in groups {
            if triples.len() == self.mixture.triple_count {
                break;
            }
            let Some((shares, predicted)) = self.predict_triple(edges, group) else { continue };
            let Some(cost) = self.measure_agreed_cost(&self.class_counts(&shares), predicted)? else { continue };
            triples.push(ClassTriple { names: group.map(|class| self.mixture.classes[class].name), predicted, cost });
        }
        Ok(triples)
    }

    /// A group of three: the first class, two others in the slots that it leaves, and its predicted
    /// core cycles.
    fn predict_triple(&self, edges: &[Vec<ClassEffect>], group: [usize; 3]) -> Option<([(usize, usize); 3], f64)> {
        let (number, places) = self.class_fill_and_places(group[0])?;
        let mut shares = [(group[0], number), (group[1], 0), (group[2], 0)];
        for (class, others) in &mut shares[1..] {
            let most = self.fill_cycles / 2.0 / self.alone_costs[*class]?.value;
            *others = (most.round() as usize).min(places / 2);
            if *others == 0 {
                return None;
            }
        }
        let mut cycles = self.min_cycles(&shares)?;
        for (class, _) in shares {
            for (other, _) in shares.iter().filter(|(other, _)| *other != class) {
                cycles = cycles.max(self.wanted_cycles(edges, [class, *other], &shares)?);
            }
        }
        Some((shares, cycles))
    }

    /// Core cycles that a mixture keeps the shared units of two classes busy.
    fn wanted_cycles(
        &self,
        edges: &[Vec<ClassEffect>],
        [class, by]: [usize; 2],
        shares: &[(usize, usize)],
    ) -> Option<f64> {
        // A class that always displaces one uses the same units. A class that displaces less has
        // units of its own too.
        let (units, each, limit) = match edges[class][by] {
            ClassEffect::None => return Some(0.0),
            ClassEffect::Displaces(share, both) if share.value < FULL_DISPLACEMENT => (vec![class, by], both, 1.0),
            ClassEffect::Displaces(..) => (vec![class], self.alone_costs[class]?.value, f64::INFINITY),
            ClassEffect::Hidden | ClassEffect::Unclear => return None,
        };
        let mut wanted = 0.0;
        for (other, number) in shares {
            let places = match units.contains(other) {
                true => 1.0,
                false => {
                    let shares = units.iter().filter_map(|class| edges[*class][*other].displaced_share());
                    shares.filter(|share| *share >= FULL_DISPLACEMENT).fold(0.0, f64::max).min(limit)
                }
            };
            wanted += *number as f64 * places * each;
        }
        Some(wanted)
    }

    /// The record of a class: its rate, and the classes that displace it.
    fn class_record(&self, test: &'static TestSpec, class: usize, edges: &[ClassEffect]) -> UarchRecord {
        let class_spec = &self.mixture.classes[class];
        let Some(Interval { value, low, high }) = self.alone_costs[class] else {
            return unclear_record(test, class_spec, "other work disturbed it, or its orders do not agree".to_string());
        };
        let rate = Interval { value: 1.0 / value, low: 1.0 / high, high: 1.0 / low };
        let others = || self.mixture.classes.iter().zip(edges).filter(|(other, _)| other.name != class_spec.name);
        let list = |describe: fn(&ClassEffect) -> Option<String>| {
            let named = others().filter_map(|(other, edge)| Some(format!("{}{}", other.name, describe(edge)?)));
            named.collect::<Vec<_>>().join(", ")
        };
        let parts = [
            (
                "slowed by",
                list(|edge| match edge {
                    ClassEffect::Displaces(share, _) => Some(format!(" ({:.2})", share.value)),
                    _ => None,
                }),
            ),
            ("not by", list(|edge| (*edge == ClassEffect::None).then(String::new))),
            ("no room to see it beside", list(|edge| (*edge == ClassEffect::Hidden).then(String::new))),
            ("unclear beside", list(|edge| (*edge == ClassEffect::Unclear).then(String::new))),
        ];
        let named_parts = parts.iter().filter(|(_, names)| !names.is_empty());
        let why = named_parts.map(|(what, names)| format!("{what} {names}")).collect::<Vec<_>>().join("; ");
        let verdict = TestVerdict { size: Some(rate), ..TestVerdict::new(VerdictKind::Found, why) };
        let what = format!("{}.{}", test.name, class_spec.name);
        let mut record = UarchRecord::new(test, what, verdict, Unit::PerCycle);
        record.displaced = others().map(|(other, edge)| DisplacedRecord::new(other.name, *edge)).collect();
        record
    }
}

/// A group of three classes.
struct ClassTriple {
    names: [&'static str; 3],
    /// Core cycles that pairs predict.
    predicted: f64,
    /// Measured core cycles.
    cost: Interval,
}

/// How many groups of three take as long as pairs predict.
fn judge_triples(test: &'static TestSpec, triples: &[ClassTriple], wanted: usize) -> UarchRecord {
    let holds =
        |triple: &&ClassTriple| (triple.cost.value - triple.predicted).abs() <= PREDICTION_TOLERANCE * triple.predicted;
    let held = triples.iter().filter(holds).count();
    let share = held as f64 / triples.len().max(1) as f64;
    let others = triples.iter().filter(|triple| !holds(triple)).map(|triple| {
        format!("{} take {:.1} core cycles for {:.1}", triple.names.join(", "), triple.cost.value, triple.predicted)
    });
    let counted = format!("{held} of {} groups take what pairs tell", triples.len());
    let why = std::iter::once(counted).chain(others).collect::<Vec<_>>().join("; ");
    let kind = if share >= MIN_HOLDING_SHARE && 2 * triples.len() >= wanted {
        VerdictKind::Found
    } else {
        VerdictKind::Unclear
    };
    let size = (kind == VerdictKind::Found).then_some(Interval { value: share, low: share, high: share });
    let verdict = TestVerdict { size, ..TestVerdict::new(kind, why) };
    let definition = "share of groups of three classes that take as long as what pairs of them take tells";
    let record = UarchRecord::new(test, format!("{}.groups_of_three", test.name), verdict, Unit::Share);
    UarchRecord { definition: definition.into(), ..record }
}

impl DisplacedRecord {
    fn new(by: &'static str, edge: ClassEffect) -> DisplacedRecord {
        let (verdict, share) = match edge {
            ClassEffect::Displaces(share, _) => (VerdictKind::Found, Quantity::new(share, Unit::Ratio)),
            ClassEffect::None => (VerdictKind::None, Quantity::refused(Unit::Ratio)),
            ClassEffect::Hidden => (VerdictKind::Limited, Quantity::refused(Unit::Ratio)),
            ClassEffect::Unclear => (VerdictKind::Unclear, Quantity::refused(Unit::Ratio)),
        };
        DisplacedRecord { by: by.into(), verdict, share }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Experiment;
    use crate::test_list::TESTS;

    #[test]
    fn two_orders_have_to_agree() {
        let point = |cost: f64| Some(CostPoint { n: 0, cost, low: cost, high: cost });
        let value = |costs: &[Option<CostPoint>]| agreed_cost(costs).map(|cost| cost.value);
        assert_eq!(value(&[point(10.0), None, point(10.1)]), Some(10.0));
        assert_eq!(value(&[point(10.0), point(11.0)]), None);
        assert_eq!(value(&[point(10.0), None]), None);
    }

    #[test]
    fn a_graph_holds_if_most_groups_of_three_match_it() {
        let find = |test: &&&'static TestSpec| matches!(test.experiment, Experiment::Mixture(_));
        let test = *TESTS.iter().find(find).expect("there is a test of mixtures");
        let kind = |right: usize, wrong: usize, wanted| {
            let triple = |cost: f64| {
                let cost = Interval { value: cost, low: cost, high: cost };
                ClassTriple { names: ["one", "two", "three"], predicted: 20.0, cost }
            };
            let mut triples: Vec<ClassTriple> = (0..right).map(|_| triple(20.5)).collect();
            triples.extend((0..wrong).map(|_| triple(25.0)));
            judge_triples(test, &triples, wanted).verdict
        };
        assert_eq!(kind(9, 1, 10), VerdictKind::Found);
        assert_eq!(kind(7, 3, 10), VerdictKind::Unclear, "too many do not hold");
        assert_eq!(kind(4, 0, 10), VerdictKind::Unclear, "too few were measured");
    }
}
