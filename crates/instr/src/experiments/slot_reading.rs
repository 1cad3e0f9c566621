//! The reading of one body that counts dispatch slots.

use crate::bodies::slot_body::SlotShape;
use serde::{Deserialize, Serialize};

/// Core cycles of one body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlotReading {
    /// Its instances and fillers.
    pub shape: SlotShape,
    /// Instructions that each instance needs.
    pub extra: usize,
    /// Core cycles of an iteration, by layout.
    pub cycles: Vec<f64>,
    /// The same without the instances, if these need other instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Vec<f64>>,
    /// Core cycles of an iteration in layouts where fillers alone took another time than on the scale, or had
    /// none. They count no slots.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbed: Vec<f64>,
}

impl SlotReading {
    /// Adds the layouts of another reading of the same body.
    pub(crate) fn add_layouts(&mut self, other: SlotReading) {
        self.cycles.extend(other.cycles);
        self.disturbed.extend(other.disturbed);
        if let Some(control) = &mut self.control {
            control.extend(other.control.unwrap_or_default());
        }
    }
}
