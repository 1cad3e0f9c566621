//! Parts of a study that is not complete: a study that is resumed begins with them.

use cyclescope_instr::mixes::mix::Mix;
use cyclescope_instr::mixes::mix_timer::MixOutcome;
use cyclescope_instr::rows::instr_row::InstrRow;
use serde::{Deserialize, Serialize};

/// What is known before any row.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StudyPart {
    /// Slots of forms.
    Slots(MeasuredSlots),
    /// Times of mixes.
    Mixes(TimedMixes),
}

/// The slots of all forms.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MeasuredSlots {
    /// The row of each form.
    pub(crate) rows: Vec<Option<InstrRow>>,
    /// Slots per core cycle.
    pub(crate) width: Option<f64>,
}

/// Timed mixes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TimedMixes {
    pub(crate) mixes: Vec<(Mix, MixOutcome)>,
}
