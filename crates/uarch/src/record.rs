//! A test's record, kind `uarch`.

use super::conditions::Busy;
use super::cost::CostPoint;
use super::knee::{Knee, No};
use super::overlap::Point;
use super::plateau::Level;
use super::search::{Ending, Found};
use super::spread::{Spread, SpreadRecord};
use super::test::{Filler, Part, Test};
use super::verdict::{Kind, Verdict, Witness};
use cyclescope_core::error::Unavailable;
use cyclescope_core::unit::{Hertz, Unit};
use cyclescope_measure::result::caveat::{Caveat, Code};
use cyclescope_measure::result::record::Quantity;
use serde::Serialize;

/// A test's result.
#[derive(Debug, Serialize)]
pub(super) struct UarchRecord {
    /// The test.
    pub test: &'static str,
    /// How many records the test has: they follow each other.
    pub records: usize,
    /// The number: a stable key.
    pub what: String,
    /// The part of the core.
    pub part: Part,
    /// `found`, `limited`, `none` or `unclear`.
    pub verdict: Kind,
    /// The number: a size in entries or bytes, a cost in core cycles, or how much is done in each.
    pub value: Quantity,
    /// What the number counts.
    pub definition: &'static str,
    /// The structure that is full first.
    pub limited_by: Option<&'static str>,
    /// Why, in words.
    pub why: String,
    /// What CPUID says.
    pub cpuid: Option<u64>,
    /// What CPUID or the kernel says that is no such number, what share it is of the most of another test, or how often it was another
    /// number.
    pub told: Option<String>,
    /// What each filler showed.
    pub fillers: Vec<FillerRecord>,
    /// What each walk showed: in the first record of a test of levels.
    pub walks: Vec<WalkRecord>,
    /// What each program's rate was, the largest first.
    pub rates: Vec<RateRecord>,
    /// What it costs at each place.
    pub places: Vec<PlaceRecord>,
    /// The CPUs that it is of, where it is of two.
    pub pair: Option<PairRecord>,
    /// What each other class does to one of a mixture.
    pub displaced: Vec<DisplacedRecord>,
    /// What would have come out otherwise if the number meant something else.
    pub witnesses: Vec<Witness>,
    /// How a cost is spread over rounds, and what it is in time.
    pub spread: Option<SpreadRecord>,
    /// The same as it was measured, with its count.
    #[serde(skip)]
    pub measured: Option<(usize, Spread)>,
    /// How its end is looked at again, where it is a size.
    #[serde(skip)]
    pub ending: Option<Ending>,
    /// Caveats.
    pub caveats: Vec<Caveat>,
    /// Where the experiment was described.
    pub source: &'static str,
}

/// A filler's curve.
#[derive(Debug, Serialize)]
pub(super) struct FillerRecord {
    /// Its name.
    pub name: &'static str,
    /// The last counts at which the overlap is whole, and at which there is some.
    pub knee: Option<Knee>,
    /// Why there is no knee.
    pub no_knee: Option<&'static str>,
    /// The curve.
    pub curve: Vec<Point>,
}

/// A curve of levels.
#[derive(Debug, Serialize)]
pub(super) struct WalkRecord {
    /// The program's name.
    pub name: &'static str,
    /// Its levels.
    pub levels: Vec<Level>,
    /// The cost of a step by count.
    pub curve: Vec<CostPoint>,
}

/// The rate of a program.
#[derive(Debug, Serialize)]
pub(super) struct RateRecord {
    /// Its name.
    pub name: &'static str,
    /// What it was made for: bytes of a load, of an instruction, of memory, or steps of an iteration.
    pub n: usize,
    /// Its rate.
    pub rate: Quantity,
}

/// The cost at a place.
#[derive(Debug, Serialize)]
pub(super) struct PlaceRecord {
    /// The place, in bytes.
    pub place: isize,
    /// Core cycles, where two programs agree.
    pub cost: Option<f64>,
}

/// Two CPUs.
#[derive(Debug, Serialize)]
pub(super) struct PairRecord {
    /// Their numbers.
    pub cpus: [u32; 2],
    /// The cluster of pairs that are alike, from 1, the fastest; none without a number.
    pub cluster: Option<usize>,
}

/// What another class of instructions does to one that fills its units.
#[derive(Debug, Serialize)]
pub(super) struct DisplacedRecord {
    /// The other class.
    pub by: &'static str,
    /// `found` where it displaces some; `none`; `limited` where there is no room to see it; or `unclear`.
    pub verdict: Kind,
    /// How many each instruction of it displaces.
    pub share: Quantity,
}

impl UarchRecord {
    /// What is known of a number, without curves.
    pub(super) fn new(test: &Test, what: String, verdict: Verdict, unit: Unit) -> UarchRecord {
        let value =
            verdict.size.map_or(Quantity::refused(unit), |size| Quantity::new(size, unit).at_least_zero());
        UarchRecord {
            test: test.name,
            records: 1,
            what,
            part: test.part,
            verdict: verdict.kind,
            value,
            definition: test.definition,
            limited_by: verdict.limited_by,
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
            spread: None,
            measured: None,
            ending: None,
            caveats: Vec::new(),
            source: test.source,
        }
    }

    /// Says that something else used the core.
    pub(super) fn beside(&mut self, busy: Busy) {
        let share = 100.0 * busy.share;
        let text = format!(
            "something else used the core in {share:.0} % of the layouts: this thread may have had half of some structures"
        );
        self.caveats.push(Caveat { code: Code::SiblingBusy, text });
    }

    /// Tells the spread of its cost, where the timing method's raw units come at this rate.
    pub(super) fn timed(&mut self, rate: Option<Hertz>) {
        self.spread = self.measured.take().map(|(n, spread)| spread.record(n, rate));
    }
}

impl UarchRecord {
    /// Of a number whose program needs what is not to be had.
    pub(super) fn without(test: &Test, what: String, reason: &Unavailable, unit: Unit) -> UarchRecord {
        let verdict = Verdict::new(Kind::None, format!("{}: {}", reason.what, reason.why));
        UarchRecord::new(test, what, verdict, unit)
    }
}

impl FillerRecord {
    pub(super) fn new(filler: &Filler, found: Found) -> FillerRecord {
        let no_knee = found.knee.err().map(No::text);
        FillerRecord { name: filler.name, knee: found.knee.ok(), no_knee, curve: found.curve }
    }
}

impl No {
    /// In words.
    pub(super) fn text(self) -> &'static str {
        match self {
            No::End => "the chains overlap at every count",
            No::Overlap => "the chains overlap at no count",
            No::Shape => "the curve does not fall in one place",
        }
    }
}
