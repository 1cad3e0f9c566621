//! The record of a test, kind `uarch`.

use super::conditions::BusyShare;
use super::cost::CostPoint;
use super::cost_spread::{CostSpread, SpreadRecord};
use super::knee::{KneeEdges, NoKnee};
use super::knee_counter::KneeCounter;
use super::knee_search::{KneeCurve, ProbedKnee};
use super::overlap::OverlapReading;
use super::plateau::CurveLevel;
use super::spec::{FillerSpec, TestSpec, TestedPart};
use super::verdict::{TestVerdict, VerdictKind, WitnessResult};
use cyclescope_core::error::Unavailable;
use cyclescope_core::unit::{Hertz, Unit};
use cyclescope_measure::result::caveat::{Caveat, CaveatKind};
use cyclescope_measure::result::record::Quantity;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A result of a test.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UarchRecord {
    /// The test's name.
    pub test: Cow<'static, str>,
    /// How many records the test has. They follow each other.
    #[serde(default)]
    pub records: usize,
    /// The stable key of the number.
    pub what: String,
    /// The part of the core that the test is about.
    #[serde(default)]
    pub part: TestedPart,
    /// `found`, `limited`, `none` or `unclear`.
    pub verdict: VerdictKind,
    /// The number: a size in entries or bytes, a cost in core cycles, or a rate per core cycle.
    pub value: Quantity,
    /// The size while no other thread of the core holds a part of the structure, if checks at other
    /// times found another size: the largest one.
    #[serde(default)]
    pub alone: Option<Quantity>,
    /// The size with the part that another thread of the core held: the least and the largest such
    /// end.
    #[serde(default)]
    pub as_tenant: Option<Quantity>,
    /// What the number counts.
    #[serde(default)]
    pub definition: Cow<'static, str>,
    /// The test of the structure that is full first.
    #[serde(default)]
    pub limited_by: Option<Cow<'static, str>>,
    /// The reason for the verdict, as text.
    #[serde(default)]
    pub why: String,
    /// CPUID's figure for it.
    #[serde(default)]
    pub cpuid: Option<u64>,
    /// Notes: reports of CPUID or the kernel, the share of another test's largest number, or values
    /// seen at other times.
    #[serde(default)]
    pub told: Option<String>,
    /// The curves of the fillers.
    #[serde(default)]
    pub fillers: Vec<FillerRecord>,
    /// The curves of the programs, in the first record of a test of levels.
    #[serde(default)]
    pub walks: Vec<WalkRecord>,
    /// The rates of the programs, the largest first.
    #[serde(default)]
    pub rates: Vec<RateRecord>,
    /// The cost at each place.
    #[serde(default)]
    pub places: Vec<PlaceRecord>,
    /// The two CPUs, if the number belongs to a pair.
    #[serde(default)]
    pub pair: Option<PairRecord>,
    /// The effect of each other class on a class of a mixture.
    #[serde(default)]
    pub displaced: Vec<DisplacedRecord>,
    /// Experiments that would disagree if the number meant something else.
    #[serde(default)]
    pub witnesses: Vec<WitnessResult>,
    /// Events before the knee and behind it, as requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<KneeCounter>,
    /// How a cost is spread over rounds, in core cycles and in time.
    #[serde(default)]
    pub spread: Option<SpreadRecord>,
    /// The measured spread, with its count.
    #[serde(skip)]
    pub(super) measured: Option<(usize, CostSpread)>,
    /// How the end of a size is checked again.
    #[serde(skip)]
    pub(super) probed_knee: Option<ProbedKnee>,
    /// Caveats.
    #[serde(default)]
    pub caveats: Vec<Caveat>,
    /// The source of the experiment.
    #[serde(default)]
    pub source: Cow<'static, str>,
}

/// A filler's curve.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FillerRecord {
    /// The filler's name.
    pub name: Cow<'static, str>,
    /// The edges of its knee: the last count with the whole overlap, and the last count with some.
    pub knee: Option<KneeEdges>,
    /// Why it has no knee.
    pub no_knee: Option<Cow<'static, str>>,
    /// The overlap by number of fillers.
    pub curve: Vec<OverlapReading>,
}

/// The curve of a program in a test of levels.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WalkRecord {
    /// The program's name.
    pub name: Cow<'static, str>,
    /// Its levels.
    pub levels: Vec<CurveLevel>,
    /// The cost of a step by count.
    pub curve: Vec<CostPoint>,
}

/// The rate of a program.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RateRecord {
    /// The program's name.
    pub name: String,
    /// The count that it was made for: bytes of a load, an instruction or memory, or steps per
    /// iteration.
    pub n: usize,
    /// Its rate.
    pub rate: Quantity,
}

/// The cost at one place.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlaceRecord {
    /// The place, in bytes.
    pub place: isize,
    /// Core cycles, if two programs agree.
    pub cost: Option<f64>,
}

/// A pair of CPUs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PairRecord {
    /// The numbers of the CPUs.
    pub cpus: [u32; 2],
    /// The cluster of pairs with similar times, from 1, the fastest; `None` without a number.
    pub cluster: Option<usize>,
}

/// The effect of another class of instructions on a class that fills its units.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DisplacedRecord {
    /// The other class's name.
    pub by: Cow<'static, str>,
    /// `found` if it displaces some; `none` if not; `limited` if there is no room to see it; or
    /// `unclear`.
    pub verdict: VerdictKind,
    /// How many instructions each of it displaces.
    pub share: Quantity,
}

impl UarchRecord {
    /// A record of a number, without curves.
    pub(super) fn new(test: &TestSpec, what: String, verdict: TestVerdict, unit: Unit) -> UarchRecord {
        let value = verdict.size.map_or(Quantity::refused(unit), |size| Quantity::new(size, unit).at_least_zero());
        UarchRecord {
            test: test.name.into(),
            records: 1,
            what,
            part: test.part,
            verdict: verdict.kind,
            value,
            alone: None,
            as_tenant: None,
            definition: test.definition.into(),
            limited_by: verdict.limited_by.map(Cow::from),
            why: verdict.why,
            cpuid: None,
            told: None,
            fillers: Vec::new(),
            walks: Vec::new(),
            rates: Vec::new(),
            displaced: Vec::new(),
            places: Vec::new(),
            pair: None,
            witnesses: Vec::new(),
            counters: Vec::new(),
            spread: None,
            measured: None,
            probed_knee: None,
            caveats: Vec::new(),
            source: test.source.into(),
        }
    }

    /// Adds a caveat if something else used the core.
    pub(super) fn add_busy_caveat(&mut self, busy: BusyShare) {
        let share = 100.0 * busy.share;
        let text = format!(
            "something else used the core in {share:.0} % of the layouts: this thread may have had half of some \
             structures"
        );
        self.caveats.push(Caveat { code: CaveatKind::SiblingBusy, text });
    }

    /// Sets the spread of its cost, if the timing method's raw units come at this rate.
    pub(super) fn set_spread(&mut self, rate: Option<Hertz>) {
        self.spread = self.measured.take().map(|(n, spread)| spread.to_record(n, rate));
    }
}

impl UarchRecord {
    /// What no test writes: a verdict that contradicts the number, or a knee that ends before it
    /// begins.
    pub fn find_contradiction(&self) -> Option<&'static str> {
        let has_number = self.value.value.is_some();
        let knees = self.fillers.iter().filter_map(|filler| filler.knee);
        match self.verdict {
            VerdictKind::Found if !has_number => Some("the verdict is that a number was found, and there is none"),
            VerdictKind::Limited | VerdictKind::None | VerdictKind::Unclear if has_number => {
                Some("the verdict is that no number was found, and there is one")
            }
            _ if self.value.value.is_some_and(|value| value < 0.0) => Some("the number is negative"),
            _ if knees.into_iter().any(|knee| knee.low > knee.high) => Some("a knee ends before it begins"),
            _ => None,
        }
    }

    /// The record of a number whose program needs something unavailable.
    pub(super) fn unavailable(test: &TestSpec, what: String, reason: &Unavailable, unit: Unit) -> UarchRecord {
        let verdict = TestVerdict::new(VerdictKind::None, format!("{}: {}", reason.what, reason.why));
        UarchRecord::new(test, what, verdict, unit)
    }
}

impl FillerRecord {
    pub(super) fn new(filler: &FillerSpec, found: KneeCurve) -> FillerRecord {
        let no_knee = found.knee.err().map(|no| no.describe().into());
        FillerRecord { name: filler.name.into(), knee: found.knee.ok(), no_knee, curve: found.curve }
    }
}

impl NoKnee {
    /// The part's name in texts.
    pub(super) fn describe(self) -> &'static str {
        match self {
            NoKnee::AlwaysOverlaps => "the chains overlap at every count",
            NoKnee::NeverOverlaps => "the chains overlap at no count",
            NoKnee::NoSingleFall => "the curve does not fall in one place",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_list::find_test;
    use serde_json::{json, to_value};

    #[test]
    fn a_record_survives_a_round_trip() {
        let verdict = TestVerdict::new(VerdictKind::Unclear, "it is simulated");
        let mut record = UarchRecord::new(find_test("data_caches"), "data_caches".to_string(), verdict, Unit::Bytes);
        let curve = vec![CostPoint { n: 64, cost: 5.0, low: 4.5, high: f64::NAN }];
        record.walks.push(WalkRecord { name: "each line".into(), levels: Vec::new(), curve });
        record.places.push(PlaceRecord { place: -3, cost: None });
        let written = to_value(&record).expect("it is JSON");
        let read = UarchRecord::deserialize(&written).expect("it has all fields");
        assert_eq!(to_value(&read).expect("it is JSON"), written);
    }

    #[test]
    fn a_verdict_agrees_with_its_number() {
        let contradicts = |verdict: &str, value: Option<f64>| {
            let value = json!({ "value": value, "low": value, "high": value, "unit": "count" });
            let line = json!({ "test": "rob", "what": "rob", "verdict": verdict, "value": value });
            UarchRecord::deserialize(&line).expect("it has all that it needs").find_contradiction().is_some()
        };
        for verdict in ["found", "limited", "none", "unclear"] {
            assert_eq!(contradicts(verdict, Some(320.0)), verdict != "found", "{verdict}");
            assert_eq!(contradicts(verdict, None), verdict == "found", "{verdict}");
        }
        assert!(contradicts("found", Some(-1.0)));
    }

    #[test]
    fn missing_fields_of_a_line_are_empty() {
        let value = json!({ "value": 320.0, "low": 320.0, "high": 320.0, "unit": "count" });
        let line = json!({ "kind": "uarch", "test": "rob", "what": "rob", "verdict": "found", "value": value });
        let record = UarchRecord::deserialize(&line).expect("it has all that it needs");
        assert!(record.verdict == VerdictKind::Found && record.fillers.is_empty() && record.why.is_empty());
    }
}
