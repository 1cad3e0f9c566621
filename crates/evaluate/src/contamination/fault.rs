//! The ways in which neighbouring code contaminates a reading, and from when on one counts.

use cyclescope_code::clock::OrderingPromises;
use serde::Serialize;

/// The level of the intervals. Eighteen methods with five rows each make 90 of them: at 95 % four or five would miss the
/// truth in every table, at this level one does in one table of eleven.
pub const CONFIDENCE: f64 = 0.999;

/// From how many core cycles on a contamination counts: what the project holds a fully fenced method to. Contrasts of
/// programs whose fences make them equal were wrong by less (at most 0.8, with MFENCE before a start; Xeon, family 6,
/// model 207).
pub const TOLERANCE_CYCLES: f64 = 1.0;

/// The same for stores, as a share of the time in which they drain. Fences that all wait for the store buffer notice
/// its end some cycles apart: SERIALIZE 3 to 6 of 520 cycles before MFENCE (Xeon, family 6, model 207), while one
/// that does not wait misses all of them.
pub const TOLERANCE_DRAIN: f64 = 0.05;

/// One way in which neighbouring code contaminates a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContaminationFault {
    /// Code before the pair is still executing when the start is read, and its rest is counted.
    LeadingUnfinished,
    /// The body begins before the start has been read, and what it has done by then is missed.
    BodyStartedEarly,
    /// The body is still executing when the end is read, and its rest is missed.
    BodyUnfinished,
    /// Code after the pair executes before the end is read, and takes resources from what is measured.
    FollowingInTheWay,
    /// Stores of the body have executed but are not globally visible when the end is read.
    StoresNotDrained,
}

/// All faults, in the order of the code they come from.
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

    /// Whether a method promises that it does not happen.
    pub(crate) fn is_excluded_by(self, promises: &OrderingPromises) -> bool {
        match self {
            ContaminationFault::LeadingUnfinished => promises.leading_done,
            ContaminationFault::BodyStartedEarly => promises.body_waits,
            ContaminationFault::BodyUnfinished => promises.body_done,
            ContaminationFault::FollowingInTheWay => promises.following_waits,
            ContaminationFault::StoresNotDrained => promises.stores_drained,
        }
    }

    /// Whether it is one of a pair's start; else it is one of its end.
    pub(super) fn is_of_start(self) -> bool {
        matches!(self, ContaminationFault::LeadingUnfinished | ContaminationFault::BodyStartedEarly)
    }

    /// Whether it makes a body seem longer. The others hide a part of it.
    pub(super) fn adds_time(self) -> bool {
        matches!(self, ContaminationFault::LeadingUnfinished | ContaminationFault::FollowingInTheWay)
    }

    /// From how many core cycles on it counts, beside a neighbour that takes `size` of them.
    pub(super) fn tolerance_cycles(self, size: f64) -> f64 {
        match self {
            ContaminationFault::StoresNotDrained => TOLERANCE_CYCLES.max(TOLERANCE_DRAIN * size),
            _ => TOLERANCE_CYCLES,
        }
    }
}

/// Under which conditions a contamination was measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrialConditions {
    /// What the neighbour takes, in core cycles.
    pub(super) size: f64,
    /// By how many core cycles at most the end's own time exceeds that of the code before what it may miss; 0 where
    /// that code takes longer, and for faults of a start. As much may seem missed of a body that is finished. It has no
    /// upper bound: of an end that takes longer than the body it can't be told whether it misses the body.
    pub(super) overlap: f64,
    /// Whether the core was not shared with a busy sibling, as far as can be seen.
    pub(super) alone: bool,
}
