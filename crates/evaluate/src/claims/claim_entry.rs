//! The type of a claim, and constants shared by several claims.

use super::fault_claims::CR0_METHOD;
use crate::contamination::ContaminationFault;
use cyclescope_code::clock::{ClockSide, ClockStep};

/// A document that makes claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClaimDocument {
    /// Intel's paper.
    Paper,
    /// The notes on RDTSC(P).
    Notes,
}

impl ClaimDocument {
    pub(super) fn title(self) -> &'static str {
        match self {
            ClaimDocument::Paper => "Intel 324264-001",
            ClaimDocument::Notes => "Notes on using rdtsc(p)",
        }
    }
}

/// The test of a claim. Method names are those in [`cyclescope_code::clock::ALL_CLOCKS`].
#[derive(Debug, Clone, Copy)]
pub(super) enum ClaimTest {
    /// None of these faults occurs.
    Excludes { method: &'static str, faults: &'static [ContaminationFault] },
    /// This fault may occur: it is observed.
    LetsIn { method: &'static str, fault: ContaminationFault },
    /// Stores have not drained when the end is read.
    LeavesStores { method: &'static str },
    /// Two methods differ by less than a step.
    Alike { one: &'static str, other: &'static str },
    /// The paper's CR0 method needs nothing after its second reading.
    NothingBehind,
    /// A step costs time of the pair, or costs none.
    Takes { method: &'static str, side: ClockSide, step: ClockStep, time: bool },
    /// The steps add up to the cost of the pair.
    AddsUp { method: &'static str },
    /// The first pair takes less than the second.
    Cheaper { one: &'static str, other: &'static str },
    /// One reading varies by more than rounding to steps causes, or does not.
    Noisy { method: &'static str, noisy: bool },
    /// The shortest reading is the same in all ensembles, or is not.
    ConstantMinimum { method: &'static str, constant: bool },
    /// The variance is the same in all ensembles, or is not.
    ConstantVariance { method: &'static str, constant: bool },
    /// The shortest reading never falls as the paper's loop grows.
    Monotone { method: &'static str },
    /// The shortest reading changes within this number of iterations.
    Resolves { method: &'static str, most: f64 },
    /// Means of many readings resolve less than a step.
    FinerByMany,
    /// Readings of RDTSCP are multiples of a step.
    Multiples,
    /// The step is the same at every core clock.
    StepIsSteady,
    /// LFENCE waits for the instructions before it.
    LfenceWaits,
    /// The core clock differs from the TSC's.
    Asynchronous,
    /// RDTSCP returns the number of the CPU.
    TellsCpu,
    /// No experiment here decides it, for this reason.
    Untested { why: &'static str },
}

impl ClaimTest {
    /// Whether it uses this fault of the method `name`.
    pub(super) fn asks_about(&self, name: &str, fault: ContaminationFault) -> bool {
        match *self {
            ClaimTest::Excludes { method, faults } => method == name && faults.contains(&fault),
            ClaimTest::LetsIn { method, fault: asked } => method == name && asked == fault,
            ClaimTest::LeavesStores { method } => method == name && fault == ContaminationFault::StoresNotDrained,
            ClaimTest::Alike { one, other } => [one, other].contains(&name) && FAULTS_BUT_STORES.contains(&fault),
            ClaimTest::NothingBehind => name == CR0_METHOD && fault == ContaminationFault::FollowingInTheWay,
            _ => false,
        }
    }
}

/// A claim: its quotation and its test.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClaimEntry {
    pub(super) id: &'static str,
    pub(super) document: ClaimDocument,
    /// Section, or the paragraph's subject.
    pub(super) section: &'static str,
    /// Quotation from the document.
    pub(super) quote: &'static str,
    /// The tested statement.
    pub(super) text: &'static str,
    /// Whether the statement is our inference and not in the document.
    pub(super) ours: bool,
    pub(super) criterion: &'static str,
    pub(super) test: ClaimTest,
}

pub(super) const FIRST_METHOD: &str = "cpuid-rdtsc";
pub(super) const IMPROVED_METHOD: &str = "cpuid-rdtsc-rdtscp-cpuid";

pub(super) const FAULTS_BEFORE_READING: &[ContaminationFault] =
    &[ContaminationFault::LeadingUnfinished, ContaminationFault::BodyUnfinished];
pub(super) const FAULTS_AROUND_START: &[ContaminationFault] =
    &[ContaminationFault::LeadingUnfinished, ContaminationFault::BodyStartedEarly];
/// All faults except undrained stores, which are a separate claim.
pub(super) const FAULTS_BUT_STORES: &[ContaminationFault] = &[
    ContaminationFault::LeadingUnfinished,
    ContaminationFault::BodyStartedEarly,
    ContaminationFault::BodyUnfinished,
    ContaminationFault::FollowingInTheWay,
];

pub(super) const EXCLUDES_CRITERION: &str =
    "holds: every interval is within half a step of the TSC; fails: a fault is certainly seen";
pub(super) const LETS_IN_CRITERION: &str = "holds: it is certainly seen";
pub(super) const TAKES_CRITERION: &str = "holds: more than half a step of the TSC; fails: less";
pub(super) const CONSTANT_CRITERION: &str =
    "constant: the interval is below half a step; otherwise the paper's 100 000 readings decide";
pub(super) const EVEN_VARIANCE_CRITERION: &str = "constant: less than a quarter of a squared step, beyond chance; \
     readings at least 4 steps above the minimum of their block are dropped as interrupts; undecided if fewer than 6 \
     of 10 remain";
pub(super) const UNTESTED_CRITERION: &str = "none: it is not tested here";
