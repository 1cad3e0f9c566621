//! Tests the conclusions of the document on Linux kernel markers on our records.
//!
//! Two markers are compared placement by placement. The median of the differences has an interval,
//! like a cost. Each conclusion is expressed as one difference in core cycles and a margin. The
//! difference must either exceed the margin, which is then the possible error of a cost at one
//! placement, or lie within the margin on both sides. The conclusion holds if the whole interval
//! agrees, fails if the whole interval disagrees, and is undecided otherwise.

use super::cost_difference::{CostTerm, sum_by_placement};
use super::document_figures::find_record;
use super::record::{MarkerRecord, to_quantity};
use super::source::context;
use cyclescope_core::statistics::{Interval, median_interval};
use cyclescope_measure::result::record::Quantity;
use serde::Serialize;

/// A conclusion of the document, tested here.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TestedConclusion {
    /// Identifier for programs.
    pub name: &'static str,
    /// The conclusion.
    pub text: &'static str,
    /// The document's figures compared with ours.
    pub figures: Vec<ConclusionFigure>,
    /// Our difference in core cycles that decides the conclusion.
    pub difference: Quantity,
    /// Required relation between the difference and the margin.
    pub relation: MarginRelation,
    /// The margin in core cycles; null if nothing was measured.
    pub margin: Option<f64>,
    /// Whether it holds here; null if undecided.
    pub holds: Option<bool>,
    /// Its markers with which the loop runs at another speed. The conclusion is then undecided.
    pub other_speeds: Vec<String>,
    /// Whether all necessary figures were measured.
    pub measured: bool,
}

/// A figure of the document compared with ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConclusionFigure {
    /// Description of the figure.
    pub what: &'static str,
    /// The document's value, in cycles of its machine; null if it has none.
    pub published: Option<f64>,
    /// Our value.
    pub ours: Quantity,
}

/// The required relation between a difference and a margin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MarginRelation {
    /// The difference exceeds the margin.
    MoreThan,
    /// The difference lies within the margin of zero, on both sides.
    Within,
}

impl MarginRelation {
    /// Whether the whole interval satisfies the relation; `None` if only a part does.
    fn holds(self, difference: Interval, margin: f64) -> Option<bool> {
        let Interval { low, high, .. } = difference;
        let (all, none) = match self {
            MarginRelation::MoreThan => (low > margin, high <= margin),
            MarginRelation::Within => (-margin <= low && high <= margin, high < -margin || margin < low),
        };
        if all { Some(true) } else { none.then_some(false) }
    }
}

/// One of our costs: design, state and context.
type CostKey = (&'static str, &'static str, &'static str);

/// A weighted sum of costs.
type CostSum = &'static [(f64, CostKey)];

/// A conclusion expressed in numbers.
struct ConclusionRule {
    name: &'static str,
    text: &'static str,
    relation: MarginRelation,
    margin: ConclusionMargin,
    /// Description of each figure, the document's value, and ours as a weighted sum.
    figures: &'static [(&'static str, Option<f64>, CostSum)],
    /// Weight of each figure in the difference.
    weights: &'static [f64],
}

/// The source of a margin.
enum ConclusionMargin {
    /// Possible error of a cost in this context at one placement.
    Aim(&'static str),
    /// A share of a figure.
    Share(f64, usize),
}

const IMMEDIATE: CostKey = ("immediate", "dormant", "empty");
const FLAG: CostKey = ("flag", "dormant", "empty");
const CALL: CostKey = ("immediate", "guarded-empty", "empty");
const DIRECT: CostKey = ("immediate", "guarded-direct", "empty");
const VARARGS: CostKey = ("immediate", "guarded-varargs", "empty");
const FORMAT: CostKey = ("immediate", "guarded-format", "empty");
/// "Almost as much": within a third. "Almost no difference": within a tenth of the marker's total
/// cost.
const ALMOST_AS_MUCH: f64 = 1.0 / 3.0;
const ALMOST_NONE: f64 = 0.1;

const CONCLUSION_RULES: &[ConclusionRule] = &[
    ConclusionRule {
        name: "generic-faster-in-empty-loop",
        text: "in an empty loop, the generic marker is faster than the optimized one",
        relation: MarginRelation::MoreThan,
        margin: ConclusionMargin::Aim("empty"),
        figures: &[("optimized", Some(2.50), &[(1.0, IMMEDIATE)]), ("generic", Some(1.17), &[(1.0, FLAG)])],
        weights: &[1.0, -1.0],
    },
    ConclusionRule {
        name: "byte-write-slows-optimized",
        text: "in an empty loop, the optimized marker is slow because its movb writes a part of a register",
        relation: MarginRelation::MoreThan,
        margin: ConclusionMargin::Aim("empty"),
        figures: &[
            ("writes a byte", Some(2.50), &[(1.0, IMMEDIATE)]),
            ("writes the whole register", None, &[(1.0, ("immediate-32", "dormant", "empty"))]),
        ],
        weights: &[1.0, -1.0],
    },
    ConclusionRule {
        name: "generic-slower-in-memcpy",
        text: "in a loop of 4 kB copies, the generic marker costs more than the optimized one",
        relation: MarginRelation::MoreThan,
        margin: ConclusionMargin::Aim("memcpy"),
        figures: &[
            ("generic", Some(2.123), &[(1.0, ("flag", "dormant", "memcpy"))]),
            ("optimized", Some(0.074), &[(1.0, ("immediate", "dormant", "memcpy"))]),
        ],
        weights: &[1.0, -1.0],
    },
    ConclusionRule {
        name: "call-like-parsing",
        text: "the guard and the call of an empty probe cost almost as much as parsing the format string",
        relation: MarginRelation::Within,
        margin: ConclusionMargin::Share(ALMOST_AS_MUCH, 0),
        figures: &[
            ("guard and call", Some(48.11), &[(1.0, CALL), (-1.0, IMMEDIATE)]),
            ("parsing", Some(40.48), &[(1.0, FORMAT), (-1.0, VARARGS)]),
        ],
        weights: &[1.0, -1.0],
    },
    ConclusionRule {
        name: "varargs-like-direct",
        text: "there is almost no difference between passing arguments directly and by a variable argument list whose \
               layout is known",
        relation: MarginRelation::Within,
        margin: ConclusionMargin::Share(ALMOST_NONE, 2),
        figures: &[
            ("direct, over an empty probe", Some(0.89), &[(1.0, DIRECT), (-1.0, CALL)]),
            ("varargs, over direct", Some(2.74), &[(1.0, VARARGS), (-1.0, DIRECT)]),
            // 53.00 minus the loop's own 1.50.
            ("the marker with direct arguments", Some(51.50), &[(1.0, DIRECT)]),
        ],
        weights: &[0.0, 1.0, 0.0],
    },
    ConclusionRule {
        name: "load-dearer-in-memcpy",
        text: "the impact of the generic marker's load becomes greater in a loop of 4 kB copies",
        relation: MarginRelation::MoreThan,
        margin: ConclusionMargin::Aim("memcpy"),
        figures: &[
            ("generic, memcpy", Some(2.123), &[(1.0, ("flag", "dormant", "memcpy"))]),
            ("generic, empty loop", Some(1.17), &[(1.0, FLAG)]),
        ],
        weights: &[1.0, -1.0],
    },
    ConclusionRule {
        name: "load-takes-bandwidth",
        text: "the generic marker's load costs more because it uses the memory's bandwidth: in a loop that reads more \
               than the level 2 cache holds, it costs more than the optimized one",
        relation: MarginRelation::MoreThan,
        margin: ConclusionMargin::Aim("l3"),
        figures: &[
            ("generic", None, &[(1.0, ("flag", "dormant", "l3"))]),
            ("optimized", None, &[(1.0, ("immediate", "dormant", "l3"))]),
        ],
        weights: &[1.0, -1.0],
    },
];

/// Tests the document's conclusions, in its order.
pub fn test_conclusions(records: &[MarkerRecord]) -> Vec<TestedConclusion> {
    CONCLUSION_RULES.iter().map(|claim| claim.test_records(records)).collect()
}

impl ConclusionRule {
    fn test_records(&self, records: &[MarkerRecord]) -> TestedConclusion {
        let sum = |weight: f64, terms: &[(f64, CostKey)]| {
            let found = |(own, (design, state, context)): &(f64, CostKey)| {
                let record = find_record(records, design, state, context)?;
                Some(CostTerm { weight: weight * own, record })
            };
            terms.iter().map(found).collect::<Option<Vec<_>>>()
        };
        let interval = |terms: Option<Vec<CostTerm>>| {
            let terms = terms?;
            median_interval(&sum_by_placement(&terms), terms.first()?.record.confidence)
        };
        let figures: Vec<Option<Interval>> =
            self.figures.iter().map(|(_, _, terms)| interval(sum(1.0, terms))).collect();
        let weighed = self.figures.iter().zip(self.weights).filter(|(_, weight)| **weight != 0.0);
        let terms: Option<Vec<Vec<_>>> = weighed.map(|((_, _, terms), weight)| sum(*weight, terms)).collect();
        let measured = terms.is_some();
        let other_speeds = list_other_speeds(terms.iter().flatten().flatten());
        let difference = interval(terms.map(|terms| terms.into_iter().flatten().collect()));
        let margin = match self.margin {
            ConclusionMargin::Aim(name) => Some(context_aim(name)),
            ConclusionMargin::Share(share, of) => figures[of].map(|figure| (share * figure.value).abs()),
        };
        let decided = difference.zip(margin).filter(|_| other_speeds.is_empty());
        let holds = decided.and_then(|(found, margin)| self.relation.holds(found, margin));
        let figure = |((what, published, _), ours): (&(&'static str, Option<f64>, _), &Option<Interval>)| {
            ConclusionFigure { what, published: *published, ours: to_quantity(*ours) }
        };
        TestedConclusion {
            name: self.name,
            text: self.text,
            figures: self.figures.iter().zip(&figures).map(figure).collect(),
            difference: to_quantity(difference),
            relation: self.relation,
            margin: margin.filter(|_| difference.is_some()),
            holds,
            other_speeds,
            measured,
        }
    }
}

/// The names of markers whose cost is a difference of the loop's speeds.
fn list_other_speeds<'a>(terms: impl Iterator<Item = &'a CostTerm<'a>>) -> Vec<String> {
    let mut names = Vec::new();
    for CostTerm { record, .. } in terms.filter(|term| term.record.other_speed.is_some()) {
        let name = format!("{}/{} in {}", record.design, record.state, record.context);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn context_aim(name: &str) -> f64 {
    context::ALL.iter().find(|context| context.name == name).map_or(context::CUSTOM_LOOP_AIM, |context| context.aim)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::cost_difference::median_difference;
    use super::*;
    use crate::anatomy::CacheLines;
    use crate::placement_cost::LoopTimes;
    use crate::record::{CodeRecord, PlacementRecord, StateStep};
    use crate::source::design;
    use crate::speeds::OtherSpeed;
    use cyclescope_core::unit::Unit;

    /// A simulated record with these costs at the placements.
    pub(crate) fn record(design: &str, state: &str, context: &str, costs: &[f64]) -> MarkerRecord {
        let cycles = |value: f64| Quantity::new(Interval::with_margin(value, 0.01), Unit::CoreCycles);
        let placement = |(index, cost): (usize, &f64)| PlacementRecord {
            offset: 4 * index,
            cost: cycles(*cost),
            base: Some(1.0),
            modes: Vec::new(),
            visits: 96,
        };
        let cost = to_quantity(median_interval(costs, 0.95));
        MarkerRecord {
            design: design::ALL.iter().find(|one| one.name == design).expect("a design").name,
            state: state.to_string(),
            guard: "none".to_string(),
            context: context.to_string(),
            bits: cyclescope_code::asm::CodeMode::default(),
            cost,
            step: StateStep { over: None, cost },
            base: cycles(1.0),
            site: cycles(1.0 + costs[0]),
            other_speed: None,
            timed: LoopTimes { loops: 1000, base: 1000.0, site: 1000.0 * (1.0 + costs[0]) },
            working_set: None,
            best: None,
            worst: None,
            placements: costs.iter().enumerate().map(placement).collect(),
            code: CodeRecord {
                likely_bytes: 6,
                unlikely_bytes: 51,
                function_likely_bytes: 9,
                function_unlikely_bytes: 51,
                cache_lines: CacheLines { base: 1, likely: 1, both: 2 },
                assembly: Vec::new(),
                base_assembly: Vec::new(),
            },
            calls: None,
            counters: Vec::new(),
            counter_passes: None,
            compiler: String::new(),
            executor: "user",
            clock: "rdtscp",
            confidence: 0.95,
            visits: 1536,
            add_link: Some(1.0),
            cpu: 1,
            cpu_model: String::new(),
            seed: 7,
            caveats: Vec::new(),
            repro: String::new(),
        }
    }

    /// Records with the document's costs.
    fn published() -> Vec<MarkerRecord> {
        let costs = [
            (IMMEDIATE, 2.50),
            (FLAG, 1.17),
            (("immediate", "dormant", "memcpy"), 0.074),
            (("flag", "dormant", "memcpy"), 2.123),
            // The document's two causes, as it supposes them.
            (("immediate-32", "dormant", "empty"), 1.17),
            (("immediate", "dormant", "l3"), 0.074),
            (("flag", "dormant", "l3"), 2.123),
            (CALL, 50.61),
            (DIRECT, 51.50),
            (VARARGS, 54.24),
            (FORMAT, 94.72),
        ];
        let record =
            |((design, state, context), cost): ((&str, &str, &str), f64)| record(design, state, context, &[cost; 16]);
        costs.map(record).into()
    }

    #[test]
    fn the_documents_figures_confirm_its_conclusions() {
        for conclusion in test_conclusions(&published()) {
            assert_eq!(conclusion.holds, Some(true), "{conclusion:?}");
            for figure in &conclusion.figures {
                let ours = figure.ours.value.unwrap();
                assert!(figure.published.is_none_or(|published| (ours - published).abs() < 0.005), "{figure:?}");
            }
        }
    }

    #[test]
    fn a_cause_is_refused_where_the_control_costs_the_same() {
        let causes = [(("immediate-32", "empty"), 2.50), (("flag", "l3"), 0.074)];
        for (name, (changed, cost)) in ["byte-write-slows-optimized", "load-takes-bandwidth"].iter().zip(causes) {
            let mut records = published();
            let found = records.iter_mut().find(|record| (record.design, record.context.as_str()) == changed);
            *found.expect("a control") = record(changed.0, "dormant", changed.1, &[cost; 16]);
            for conclusion in test_conclusions(&records) {
                assert_eq!(conclusion.holds, Some(conclusion.name != *name), "{conclusion:?}");
            }
        }
    }

    #[test]
    fn a_loop_at_another_speed_decides_nothing() {
        let mut records = published();
        let other_speed = |certain| {
            let controls = Vec::new();
            Some(OtherSpeed { placements: 16, without: 150.0, with: 138.0, certain, controls })
        };
        for certain in [true, false] {
            records[3].other_speed = other_speed(certain);
            for conclusion in test_conclusions(&records) {
                let about = ["generic-slower-in-memcpy", "load-dearer-in-memcpy"].contains(&conclusion.name);
                assert_eq!(conclusion.holds, (!about).then_some(true), "{conclusion:?}");
                let names: &[&str] = if about { &["flag/dormant in memcpy"] } else { &[] };
                assert_eq!(conclusion.other_speeds, names);
            }
        }
    }

    #[test]
    fn differences_are_paired_by_placement() {
        // Common variation over placements cancels, although it exceeds the difference.
        let waves = |more: f64| -> Vec<f64> { (0..16).map(|at| f64::from(at % 4) + more).collect() };
        let (one, mut other) = (record("flag", "dormant", "empty", &waves(0.2)), published().remove(0));
        other.placements = record("immediate", "dormant", "empty", &waves(0.0)).placements;
        let found = median_difference(&one, &other).unwrap();
        assert!((found.value - 0.2).abs() < 1e-9 && found.half_width() < 1e-9, "{found:?}");
        // Placements are matched by offset, not by order.
        other.placements.reverse();
        assert!((median_difference(&one, &other).unwrap().half_width()) < 1e-9);
        other.placements.truncate(4);
        assert_eq!(median_difference(&one, &other), None);
    }

    #[test]
    fn a_verdict_needs_all_of_the_interval() {
        let around = |value| Interval::with_margin(value, 0.1);
        let cases = [
            (MarginRelation::MoreThan, 0.3, Some(true)),
            (MarginRelation::MoreThan, 0.05, None),
            (MarginRelation::MoreThan, -0.1, Some(false)),
            (MarginRelation::Within, 0.0, Some(true)),
            (MarginRelation::Within, 0.1, None),
            (MarginRelation::Within, 0.3, Some(false)),
            (MarginRelation::Within, -0.3, Some(false)),
        ];
        for (relation, value, holds) in cases {
            assert_eq!(relation.holds(around(value), 0.1), holds, "{relation:?} {value}");
        }
    }

    #[test]
    fn missing_measurements_leave_a_conclusion_undecided() {
        let mut records = published();
        let modern = [(0, 0.5), (1, 0.5)];
        for (index, cost) in modern {
            records[index].placements.iter_mut().for_each(|one| one.cost.value = Some(cost));
        }
        let found = test_conclusions(&records[..2]);
        assert_eq!((found[0].holds, found[0].measured), (Some(false), true));
        for other in &found[1..] {
            assert_eq!((other.holds, other.measured, other.margin), (None, false, None), "{other:?}");
        }
        // An emulated machine has no costs.
        records.iter_mut().for_each(|record| record.placements.iter_mut().for_each(|one| one.cost.value = None));
        assert!(test_conclusions(&records).iter().all(|one| one.holds.is_none() && one.measured));
    }
}
