//! A mix that decided what is said about forms.

use cyclescope_instr::mixes::mix::Mix;
use cyclescope_instr::mixes::mix_timer::MixTime;
use cyclescope_measure::result::mix_record::MixPartRecord;
use cyclescope_measure::result::record::Quantity;
use serde::{Deserialize, Serialize};

/// How much a mix says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MixEvidence {
    /// It is fast: no assignment of fewer ports could be.
    Proves,
    /// It is slow: by shared ports, unless the core assigned badly.
    Suggests,
    /// Slots limit it, so that it says nothing about ports.
    Untold,
}

/// A timed mix, and what it says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecidingMix {
    /// The forms and their copies.
    pub parts: Vec<MixPartRecord>,
    /// Core cycles in the fastest order.
    pub cycles: Quantity,
    /// Core cycles of the slowest of its parts alone.
    pub alone: f64,
    /// Core cycles that its slots take.
    pub slots: f64,
    /// Core cycles in the slowest order.
    pub worst: f64,
    /// The fastest order.
    pub order: String,
    /// Orders timed.
    pub orders: usize,
    /// How much it says.
    pub evidence: MixEvidence,
    /// What it says.
    pub shows: String,
    /// The command that times it.
    pub repro: String,
}

/// The names of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormNames {
    /// The name in the instruction database.
    pub code: String,
    /// Code and operands: no other form has the same.
    pub full: String,
    /// The name in texts.
    pub text: String,
}

/// Core cycles of a mix by its parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MixLimits {
    /// The slowest part alone.
    pub(crate) alone: f64,
    /// The slots.
    pub(crate) slots: f64,
}

impl MixLimits {
    /// Core cycles if no two forms shared a port.
    pub(crate) fn free_cycles(self) -> f64 {
        self.alone.max(self.slots)
    }
}

impl DecidingMix {
    /// The record of a timed mix of forms with these names.
    pub(crate) fn new(
        mix: &Mix,
        time: &MixTime,
        limits: MixLimits,
        names: &[FormNames],
        (evidence, shows): (MixEvidence, String),
    ) -> DecidingMix {
        let part = |part: &cyclescope_instr::mixes::mix::MixPart| MixPartRecord {
            code: names[part.form].code.clone(),
            form: names[part.form].text.clone(),
            count: part.count,
        };
        let forms: Vec<&str> = mix.parts.iter().map(|part| names[part.form].full.as_str()).collect();
        let counts: Vec<String> = mix.parts.iter().map(|part| part.count.to_string()).collect();
        let forms = forms.join("; ");
        let forms = shlex::try_quote(&forms).unwrap_or_default();
        DecidingMix {
            parts: mix.parts.iter().map(part).collect(),
            cycles: time.to_quantity(),
            alone: limits.alone,
            slots: limits.slots,
            worst: time.worst,
            order: time.order.describe(),
            orders: time.orders,
            evidence,
            shows,
            repro: format!("cyclescope run --mix {forms} --ratio {}", counts.join(":")),
        }
    }
}
