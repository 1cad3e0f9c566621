//! Parts of a study that is not complete: a study that is resumed begins with them.

use crate::reference_forms::list_reference_forms;
use cyclescope_instr::forms::target_form::TargetForm;
use cyclescope_instr::mixes::mix::Mix;
use cyclescope_instr::mixes::mix_timer::MixOutcome;
use cyclescope_instr::rows::instr_row::InstrRow;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

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

/// Slots of forms that an earlier survey measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KnownSlots {
    /// Rows of `instr` with slots.
    pub rows: Vec<InstrRow>,
    /// Slots per core cycle.
    pub width: f64,
}

impl KnownSlots {
    /// The rows that a study of these forms needs.
    pub fn new(rows: Vec<InstrRow>, width: f64, forms: &[TargetForm]) -> KnownSlots {
        let reference = list_reference_forms(forms);
        let needed: HashSet<(String, String)> = forms.iter().chain(&reference).map(key_of).collect();
        let is_needed =
            |row: &InstrRow| row.slots.is_some() && needed.contains(&(row.code.clone(), row.operands.clone()));
        KnownSlots { rows: rows.into_iter().filter(is_needed).collect(), width }
    }

    /// The row of each form, if it is known.
    pub(crate) fn find_rows(&self, forms: &[TargetForm]) -> Vec<Option<InstrRow>> {
        let key = |row: &InstrRow| (row.code.clone(), row.operands.clone());
        let rows: HashMap<(String, String), &InstrRow> = self.rows.iter().map(|row| (key(row), row)).collect();
        forms.iter().map(|target| rows.get(&key_of(target)).copied().cloned()).collect()
    }
}

fn key_of(target: &TargetForm) -> (String, String) {
    (target.code(), target.operands())
}
