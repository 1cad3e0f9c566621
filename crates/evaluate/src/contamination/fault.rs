//! The ways in which neighbouring code contaminates a reading, and their tolerances.

use cyclescope_code::clock::OrderingPromises;
use serde::Serialize;

/// Confidence level of the intervals. Eighteen methods with five rows each make 90 intervals. At 95
/// %, four or five in every table would miss the true value. At this level, one table in eleven
/// contains a miss.
pub const CONFIDENCE: f64 = 0.999;

/// Smallest contamination that counts, in core cycles: the project's requirement for a fully fenced
/// method. Contrasts of programs with equivalent fences were wrong by less (at most 0.8, with
/// MFENCE before a start; Xeon, family 6, model 207).
pub const TOLERANCE_CYCLES: f64 = 1.0;

/// The same for stores, as a share of their drain time. Fences that wait for the store buffer
/// notice its end some cycles apart: SERIALIZE 3 to 6 of 520 cycles before MFENCE (Xeon, family 6,
/// model 207). One that does not wait misses all of them.
pub const TOLERANCE_DRAIN: f64 = 0.05;

/// One kind of contamination by neighbouring code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContaminationFault {
    /// Code before the pair is still executing when the start is read. Its remainder is counted.
    LeadingUnfinished,
    /// The body begins before the start is read. Its work until then is missed.
    BodyStartedEarly,
    /// The body is still executing when the end is read. Its remainder is missed.
    BodyUnfinished,
    /// Code after the pair executes before the end is read, and competes with the body for
    /// resources.
    FollowingInTheWay,
    /// Stores of the body have executed but are not globally visible when the end is read.
    StoresNotDrained,
}

/// All faults, in the order of the code that causes them.
pub const FAULTS: [ContaminationFault; 5] = [
    ContaminationFault::LeadingUnfinished,
    ContaminationFault::BodyStartedEarly,
    ContaminationFault::BodyUnfinished,
    ContaminationFault::FollowingInTheWay,
    ContaminationFault::StoresNotDrained,
];

impl ContaminationFault {
    /// The fault in words.
    pub fn describe(self) -> &'static str {
        match self {
            ContaminationFault::LeadingUnfinished => "leading code unfinished",
            ContaminationFault::BodyStartedEarly => "body started early",
            ContaminationFault::BodyUnfinished => "body unfinished",
            ContaminationFault::FollowingInTheWay => "following code in the way",
            ContaminationFault::StoresNotDrained => "stores not drained",
        }
    }

    /// Whether a method promises to exclude it.
    pub(crate) fn is_excluded_by(self, promises: &OrderingPromises) -> bool {
        match self {
            ContaminationFault::LeadingUnfinished => promises.leading_done,
            ContaminationFault::BodyStartedEarly => promises.body_waits,
            ContaminationFault::BodyUnfinished => promises.body_done,
            ContaminationFault::FollowingInTheWay => promises.following_waits,
            ContaminationFault::StoresNotDrained => promises.stores_drained,
        }
    }

    /// Whether it concerns the start of a pair and not the end.
    pub(super) fn is_of_start(self) -> bool {
        matches!(self, ContaminationFault::LeadingUnfinished | ContaminationFault::BodyStartedEarly)
    }

    /// Whether it makes a body seem longer. The other faults hide a part of it.
    pub(super) fn adds_time(self) -> bool {
        matches!(self, ContaminationFault::LeadingUnfinished | ContaminationFault::FollowingInTheWay)
    }

    /// Smallest cost that counts, in core cycles, for neighbouring code of `size` core cycles.
    pub(super) fn tolerance_cycles(self, size: f64) -> f64 {
        match self {
            ContaminationFault::StoresNotDrained => TOLERANCE_CYCLES.max(TOLERANCE_DRAIN * size),
            _ => TOLERANCE_CYCLES,
        }
    }
}

/// The conditions of a contamination measurement.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrialConditions {
    /// Cost of the neighbouring code, in core cycles.
    pub(super) size: f64,
    /// Most core cycles of the end's own time that may overlap the body.
    ///
    /// It is the end's time minus the time of the code before the body. 0 if that code takes
    /// longer, and for faults of a start. Up to this amount, a finished body may seem partly
    /// missed. It has no upper bound: if the end takes longer than the body, a missed body is
    /// indistinguishable.
    pub(super) overlap: f64,
    /// Whether no busy sibling was detected on the core.
    pub(super) alone: bool,
}
