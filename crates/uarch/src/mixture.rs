//! Which classes of instructions slow each other down: a graph of who wants the units of whom.
//!
//! Instructions of one class alone come at its rate. Mixed with so many of another class as there is room for, they come at the same
//! rate where the other wants none of their units. Where it does, each of the others displaces so many of them: one, where it always
//! takes the place of one; less, where it may go elsewhere while there is something else. As whoever displaces must be seen, the class that is displaced
//! fills its units, and what no unit executes, as the places that any instruction takes, must not be full: else the pair is hidden.
//!
//! Groups of three classes, of which no part of the graph was made, say whether it holds: each must take as long as the class that is slowed most.

use super::cost::{CostPoint, Mixes};
use super::record::{DisplacedRecord, UarchRecord};
use super::test::Test;
use super::test::mixture::{Class, Mixture, Order, Share};
use super::verdict::{Kind, Verdict};
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;
use cyclescope_measure::result::record::Quantity;

/// Instructions of a class alone.
const ALONE: usize = 48;
/// Core cycles for which a class fills its units in a mixture, at least and at most; and instructions of it at least.
const WHOLE: [f64; 2] = [16.0, 64.0];
const LEAST: f64 = 4.0;
/// Share by which two costs may differ that are the same.
const SAME: f64 = 0.03;
/// Share by which a mixture takes longer that shows something, and by which the others would make it longer at least if each
/// displaced one.
const SEEN: f64 = 0.05;
const ROOM: f64 = 0.12;
/// How many an instruction displaces at least that has no other units.
const INSIDE: f64 = 0.9;
/// Share by which a group of three may differ from what pairs tell.
const TOLD: f64 = 0.06;
/// Share of such groups that has to hold.
const HOLD: f64 = 0.8;
/// Measurements of a mixture at most, until two of its orders agree.
const TIMES: usize = 4;

/// What one class does to another one.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Edge {
    /// Each instruction displaces so many. The second number is core cycles of an instruction of either in the units of both.
    Displaces(Interval, f64),
    /// They come beside each other.
    None,
    /// There is no room to see it.
    Hidden,
    /// No two orders agree.
    Unclear,
}

impl Edge {
    /// How many are displaced, where it is known.
    fn share(self) -> Option<f64> {
        match self {
            Edge::Displaces(share, _) => Some(share.value),
            Edge::None => Some(0.0),
            Edge::Hidden | Edge::Unclear => None,
        }
    }
}

/// The classes of a core.
struct Graph<'a> {
    core: &'a mut dyn Mixes,
    mixture: &'static Mixture,
    /// Core cycles of an instruction of each class alone, in the order of the classes.
    alone: Vec<Option<Interval>>,
    /// Core cycles of what every instruction takes.
    slot: f64,
    /// Core cycles for which a class fills its units.
    whole: f64,
}

/// Measures each class alone and beside each other, and judges.
pub(super) fn mixture(
    core: &mut dyn Mixes,
    test: &'static Test,
    mixture: &'static Mixture,
    random: &mut Random,
) -> Result<Vec<UarchRecord>, RunError> {
    let mut graph = Graph { core, mixture, alone: Vec::new(), slot: 0.0, whole: 0.0 };
    let mut slots = Vec::new();
    for class in mixture.slots {
        slots.push(graph.alone(class)?);
    }
    for class in mixture.classes {
        let alone = graph.alone(class)?;
        graph.alone.push(alone);
    }
    let slots: Option<Vec<Interval>> = slots.into_iter().collect();
    let Some(slots) = slots else {
        let why = "other work disturbed the no-operations";
        let record = |class: &Class| unclear(test, class, why.to_string());
        return Ok(mixture.classes.iter().map(record).collect());
    };
    graph.slot = slots.iter().map(|slot| slot.value).fold(0.0, f64::max);
    let slowest = graph.alone.iter().flatten().map(|cost| cost.value).fold(0.0, f64::max);
    graph.whole = whole(slowest);
    let number = mixture.classes.len();
    let mut edges = vec![vec![Edge::None; number]; number];
    for (displaced, row) in edges.iter_mut().enumerate() {
        for (by, edge) in row.iter_mut().enumerate().filter(|(by, _)| *by != displaced) {
            *edge = graph.edge(displaced, by)?;
        }
    }
    let triples = graph.triples(&edges, random)?;
    let mut records: Vec<_> = (0..number).map(|class| graph.record(test, class, &edges[class])).collect();
    records.push(held(test, &triples, mixture.triples));
    Ok(records)
}

/// Core cycles for which a class fills its units, where the slowest one takes so many an instruction.
pub(super) fn whole(slowest: f64) -> f64 {
    (LEAST * slowest).clamp(WHOLE[0], WHOLE[1])
}

/// Instructions of a class that take so many core cycles each and fill its units for a time, and the places that they leave.
pub(super) fn filled(whole: f64, each: f64, slot: f64) -> (usize, usize) {
    let number = (whole / each).round().max(1.0);
    (number as usize, ((number * each / slot).floor() - number).max(0.0) as usize)
}

/// How many of another class come beside so many of one, where there is room to see them.
pub(super) fn beside(number: usize, each: f64, other: f64, places: usize) -> Option<usize> {
    let most = (number as f64 * each / other).round() as usize;
    let others = most.max(1).min(places);
    (others as f64 >= ROOM * number as f64).then_some(others)
}

fn unclear(test: &Test, class: &Class, why: String) -> UarchRecord {
    let what = format!("{}.{}", test.name, class.name);
    UarchRecord::new(test, what, Verdict::new(Kind::Unclear, why), Unit::PerCycle)
}

/// The lower of two costs, where they are the same.
fn agreed(costs: &[Option<CostPoint>]) -> Option<Interval> {
    let mut known: Vec<&CostPoint> = costs.iter().flatten().collect();
    known.sort_by(|one, other| one.cost.total_cmp(&other.cost));
    let [one, other, ..] = known[..] else { return None };
    let same = other.cost - one.cost <= SAME * one.cost && one.cost > 0.0;
    same.then(|| Interval { value: one.cost, low: one.low.min(other.low), high: one.high.max(other.high) })
}

impl Graph<'_> {
    /// Core cycles of a mixture that takes so many at least, which two orders of it show. What takes longer is measured again: nothing makes
    /// code faster than it is, and other work makes it slower.
    fn cost(&mut self, shares: &[Share], least: f64) -> Result<Option<Interval>, RunError> {
        let mut lowest = [None; Order::ALL.len()];
        for time in 1..=TIMES {
            let orders = if time == 1 { Order::ALL.len() - 1 } else { Order::ALL.len() };
            for (order, lowest) in Order::ALL.into_iter().zip(&mut lowest).take(orders) {
                let point = self.core.mixed(shares, order, self.mixture.before)?;
                let lower =
                    |point: &CostPoint| lowest.is_none_or(|lowest: CostPoint| point.cost < lowest.cost);
                *lowest = point.filter(lower).or(*lowest);
            }
            let cost = agreed(&lowest);
            let sure = |cost: &Interval| time > 1 || cost.value <= (1.0 + SEEN) * least;
            if cost.as_ref().is_some_and(sure) {
                return Ok(cost);
            }
        }
        Ok(None)
    }

    /// Core cycles of an instruction of a class.
    fn alone(&mut self, class: &'static Class) -> Result<Option<Interval>, RunError> {
        let each = |cost: f64| cost / ALONE as f64;
        let cost = self.cost(&[(class, ALONE)], 0.0)?;
        Ok(cost.map(|Interval { value, low, high }| Interval {
            value: each(value),
            low: each(low),
            high: each(high),
        }))
    }

    /// Core cycles that a class and all of a mixture take at least, if nobody displaces.
    fn least(&self, shares: &[(usize, usize)]) -> Option<f64> {
        let mut least = shares.iter().map(|(_, number)| *number as f64).sum::<f64>() * self.slot;
        for (class, number) in shares {
            least = least.max(self.alone[*class]?.value * *number as f64);
        }
        Some(least)
    }

    fn shares(&self, shares: &[(usize, usize)]) -> Vec<Share> {
        shares.iter().map(|(class, number)| (&self.mixture.classes[*class], *number)).collect()
    }

    /// Instructions of a class that fill its units, and the places that they leave.
    fn filled(&self, class: usize) -> Option<(usize, usize)> {
        Some(filled(self.whole, self.alone[class]?.value, self.slot))
    }

    /// What one class does to another one that fills its units.
    fn edge(&mut self, displaced: usize, by: usize) -> Result<Edge, RunError> {
        let (Some((number, places)), Some(other)) = (self.filled(displaced), self.alone[by]) else {
            return Ok(Edge::Unclear);
        };
        let each = self.alone[displaced].map_or(f64::NAN, |cost| cost.value);
        let Some(others) = beside(number, each, other.value, places) else { return Ok(Edge::Hidden) };
        let shares = [(displaced, number), (by, others)];
        let Some(least) = self.least(&shares) else { return Ok(Edge::Unclear) };
        let Some(cost) = self.cost(&self.shares(&shares), least)? else { return Ok(Edge::Unclear) };
        if cost.value <= (1.0 + SEEN) * least {
            return Ok(Edge::None);
        }
        let share = |cost: f64| (cost - number as f64 * each) / (others as f64 * each);
        let shares = Interval { value: share(cost.value), low: share(cost.low), high: share(cost.high) };
        Ok(Edge::Displaces(shares, cost.value / (number + others) as f64))
    }

    /// Core cycles of each group of three that was drawn, by what pairs tell and measured.
    fn triples(&mut self, edges: &[Vec<Edge>], random: &mut Random) -> Result<Vec<Triple>, RunError> {
        let number = edges.len();
        let mut groups: Vec<[usize; 3]> = (0..number)
            .flat_map(|first| (0..number).map(move |second| (first, second)))
            .flat_map(|(first, second)| (second + 1..number).map(move |third| [first, second, third]))
            .filter(|[first, second, third]| first != second && first != third)
            .collect();
        random.shuffle(&mut groups);
        let mut triples = Vec::new();
        for group in groups {
            if triples.len() == self.mixture.triples {
                break;
            }
            let Some((shares, told)) = self.told(edges, group) else { continue };
            let Some(cost) = self.cost(&self.shares(&shares), told)? else { continue };
            triples.push(Triple { names: group.map(|class| self.mixture.classes[class].name), told, cost });
        }
        Ok(triples)
    }

    /// The first class of a group with two others in the places that it leaves, and what this takes by what pairs tell.
    fn told(&self, edges: &[Vec<Edge>], group: [usize; 3]) -> Option<([(usize, usize); 3], f64)> {
        let (number, places) = self.filled(group[0])?;
        let mut shares = [(group[0], number), (group[1], 0), (group[2], 0)];
        for (class, others) in &mut shares[1..] {
            let most = self.whole / 2.0 / self.alone[*class]?.value;
            *others = (most.round() as usize).min(places / 2);
            if *others == 0 {
                return None;
            }
        }
        let mut told = self.least(&shares)?;
        for (class, _) in shares {
            for (other, _) in shares.iter().filter(|(other, _)| *other != class) {
                told = told.max(self.wanted(edges, [class, *other], &shares)?);
            }
        }
        Some((shares, told))
    }

    /// Core cycles that the units of two classes take for all of a mixture that wants them.
    fn wanted(&self, edges: &[Vec<Edge>], [class, by]: [usize; 2], shares: &[(usize, usize)]) -> Option<f64> {
        // What always takes the place of one wants the same units, and what takes it now and then has units of its own.
        let (units, each, limit) = match edges[class][by] {
            Edge::None => return Some(0.0),
            Edge::Displaces(share, both) if share.value < INSIDE => (vec![class, by], both, 1.0),
            Edge::Displaces(..) => (vec![class], self.alone[class]?.value, f64::INFINITY),
            Edge::Hidden | Edge::Unclear => return None,
        };
        let mut wanted = 0.0;
        for (other, number) in shares {
            let places = match units.contains(other) {
                true => 1.0,
                false => {
                    let shares = units.iter().filter_map(|class| edges[*class][*other].share());
                    shares.filter(|share| *share >= INSIDE).fold(0.0, f64::max).min(limit)
                }
            };
            wanted += *number as f64 * places * each;
        }
        Some(wanted)
    }

    /// A class with its rate, and who displaces it.
    fn record(&self, test: &'static Test, class: usize, edges: &[Edge]) -> UarchRecord {
        let one = &self.mixture.classes[class];
        let Some(Interval { value, low, high }) = self.alone[class] else {
            return unclear(test, one, "other work disturbed it, or its orders do not agree".to_string());
        };
        let rate = Interval { value: 1.0 / value, low: 1.0 / high, high: 1.0 / low };
        let others = || self.mixture.classes.iter().zip(edges).filter(|(other, _)| other.name != one.name);
        let list = |of: fn(&Edge) -> Option<String>| {
            let named = others().filter_map(|(other, edge)| Some(format!("{}{}", other.name, of(edge)?)));
            named.collect::<Vec<_>>().join(", ")
        };
        let parts = [
            (
                "slowed by",
                list(|edge| match edge {
                    Edge::Displaces(share, _) => Some(format!(" ({:.2})", share.value)),
                    _ => None,
                }),
            ),
            ("not by", list(|edge| (*edge == Edge::None).then(String::new))),
            ("no room to see it beside", list(|edge| (*edge == Edge::Hidden).then(String::new))),
            ("unclear beside", list(|edge| (*edge == Edge::Unclear).then(String::new))),
        ];
        let told = parts.iter().filter(|(_, names)| !names.is_empty());
        let why = told.map(|(what, names)| format!("{what} {names}")).collect::<Vec<_>>().join("; ");
        let verdict = Verdict { size: Some(rate), ..Verdict::new(Kind::Found, why) };
        let what = format!("{}.{}", test.name, one.name);
        let mut record = UarchRecord::new(test, what, verdict, Unit::PerCycle);
        record.displaced = others().map(|(other, edge)| DisplacedRecord::new(other.name, *edge)).collect();
        record
    }
}

/// A group of three.
struct Triple {
    names: [&'static str; 3],
    /// Core cycles by what pairs tell.
    told: f64,
    /// Core cycles.
    cost: Interval,
}

/// How many groups of three take what pairs tell.
fn held(test: &'static Test, triples: &[Triple], wanted: usize) -> UarchRecord {
    let holds = |triple: &&Triple| (triple.cost.value - triple.told).abs() <= TOLD * triple.told;
    let held = triples.iter().filter(holds).count();
    let share = held as f64 / triples.len().max(1) as f64;
    let others = triples.iter().filter(|triple| !holds(triple)).map(|triple| {
        format!(
            "{} take {:.1} core cycles for {:.1}",
            triple.names.join(", "),
            triple.cost.value,
            triple.told
        )
    });
    let counted = format!("{held} of {} groups take what pairs tell", triples.len());
    let why = std::iter::once(counted).chain(others).collect::<Vec<_>>().join("; ");
    let kind = if share >= HOLD && 2 * triples.len() >= wanted { Kind::Found } else { Kind::Unclear };
    let size = (kind == Kind::Found).then_some(Interval { value: share, low: share, high: share });
    let verdict = Verdict { size, ..Verdict::new(kind, why) };
    let definition = "share of groups of three classes that take as long as what pairs of them take tells";
    let record = UarchRecord::new(test, format!("{}.groups_of_three", test.name), verdict, Unit::Share);
    UarchRecord { definition, ..record }
}

impl DisplacedRecord {
    fn new(by: &'static str, edge: Edge) -> DisplacedRecord {
        let (verdict, share) = match edge {
            Edge::Displaces(share, _) => (Kind::Found, Quantity::new(share, Unit::Ratio)),
            Edge::None => (Kind::None, Quantity::refused(Unit::Ratio)),
            Edge::Hidden => (Kind::Limited, Quantity::refused(Unit::Ratio)),
            Edge::Unclear => (Kind::Unclear, Quantity::refused(Unit::Ratio)),
        };
        DisplacedRecord { by, verdict, share }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::TESTS;
    use crate::test::Look;

    #[test]
    fn two_orders_have_to_agree() {
        let point = |cost: f64| Some(CostPoint { n: 0, cost, low: cost, high: cost });
        let value = |costs: &[Option<CostPoint>]| agreed(costs).map(|cost| cost.value);
        assert_eq!(value(&[point(10.0), None, point(10.1)]), Some(10.0));
        assert_eq!(value(&[point(10.0), point(11.0)]), None);
        assert_eq!(value(&[point(10.0), None]), None);
    }

    #[test]
    fn a_graph_holds_where_most_groups_of_three_take_what_it_tells() {
        let find = |test: &&&'static Test| matches!(test.look, Look::Mixture(_));
        let test = *TESTS.iter().find(find).expect("there is a test of mixtures");
        let kind = |right: usize, wrong: usize, wanted| {
            let triple = |cost: f64| {
                let cost = Interval { value: cost, low: cost, high: cost };
                Triple { names: ["one", "two", "three"], told: 20.0, cost }
            };
            let mut triples: Vec<Triple> = (0..right).map(|_| triple(20.5)).collect();
            triples.extend((0..wrong).map(|_| triple(25.0)));
            held(test, &triples, wanted).verdict
        };
        assert_eq!(kind(9, 1, 10), Kind::Found);
        assert_eq!(kind(7, 3, 10), Kind::Unclear, "too many do not hold");
        assert_eq!(kind(4, 0, 10), Kind::Unclear, "too few were measured");
    }
}
