//! The dispatch slots of a form, as a row has them.

use crate::bodies::slot_filler::SlotFiller;
use crate::experiments::slot_judgement::SlotVerdict;
use cyclescope_core::unit::Unit;
use cyclescope_measure::result::record::Quantity;
use serde::{Deserialize, Serialize};

/// Dispatch slots of one instance: the µops that the core dispatches for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DispatchSlots {
    /// The least figure of all bodies. Its interval includes the figures of all fillers that agree.
    /// Null without a figure.
    pub count: Quantity,
    /// How certain it is.
    pub verdict: SlotVerdict,
    /// The whole number that it means: certain if `verdict` is `exact`. Null without a small one.
    pub whole: Option<usize>,
    /// The kinds of fillers that agree.
    pub fillers: Vec<SlotFiller>,
    /// Why the verdict is not `exact`. Null if it is.
    pub why: Option<String>,
}

impl DispatchSlots {
    /// What no survey writes about slots.
    pub(super) fn find_contradiction(&self) -> Option<&'static str> {
        let DispatchSlots { count, verdict, whole, why, .. } = self;
        let counted = *verdict == SlotVerdict::Exact || *verdict == SlotVerdict::Upper;
        let without = matches!(verdict, SlotVerdict::Unclear | SlotVerdict::Serialising);
        if count.unit != Unit::Slots {
            Some("its slots are in another unit")
        } else if counted != whole.is_some() || without == count.value.is_some() {
            Some("its slots have a number without a verdict, or a verdict without a number")
        } else if (*verdict == SlotVerdict::Exact) == why.is_some() {
            Some("its slots are exact, with a reason why they are not")
        } else {
            None
        }
    }

    /// The number of a certain count.
    pub(crate) fn exact_number(&self) -> Option<usize> {
        self.whole.filter(|_| self.verdict == SlotVerdict::Exact)
    }

    /// In one word: `2`, `≤2`, `microcoded`, `serialising` or `-`.
    pub fn summarize(&self) -> String {
        match (self.verdict, self.whole) {
            (SlotVerdict::Exact, Some(whole)) => whole.to_string(),
            (SlotVerdict::Upper, Some(whole)) => format!("≤{whole}"),
            (SlotVerdict::Microcoded, _) => "microcoded".to_string(),
            (SlotVerdict::Serialising, _) => "serialising".to_string(),
            _ => "-".to_string(),
        }
    }

    pub(super) fn serialising() -> DispatchSlots {
        let why = "by definition others wait for it, or it for others, so time does not show its slots";
        DispatchSlots { verdict: SlotVerdict::Serialising, ..DispatchSlots::without_figure(why.to_string()) }
    }

    pub(super) fn without_figure(why: String) -> DispatchSlots {
        DispatchSlots {
            count: Quantity::refused(Unit::Slots),
            verdict: SlotVerdict::Unclear,
            whole: None,
            fillers: Vec::new(),
            why: Some(why),
        }
    }
}
