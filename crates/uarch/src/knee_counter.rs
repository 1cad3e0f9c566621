//! An event beside a knee, as a record has it.

use cyclescope_measure::result::record::Quantity;
use serde::{Deserialize, Serialize};

/// An event on both sides of a knee.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KneeCounter {
    /// The event's name.
    pub name: String,
    /// The counts at which it was counted: before the knee, and behind it.
    pub at: [usize; 2],
    /// Events per step before the knee.
    pub before: Quantity,
    /// Events per step behind it.
    pub behind: Quantity,
    /// Whether it agrees with the knee; null if the event is not expected to show it.
    pub agrees: Option<bool>,
    /// Why it has no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}
