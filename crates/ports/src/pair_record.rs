//! The line of a pair, of kind `ports.pair`.

use crate::pair_share::{PairForm, PairMix, PairShare, PairVerdict};
use cyclescope_instr::forms::target_form::TargetForm;
use cyclescope_measure::result::caveat::Caveat;
use cyclescope_measure::result::record::Quantity;
use serde::{Deserialize, Serialize};

/// What two forms share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairRecord {
    /// Both forms.
    pub forms: Vec<PairFormRecord>,
    /// `disjoint`, `overlap`, `contained`, `equal` or `untold`.
    pub share: PairShare,
    /// Bounds of the number of ports that both use together. Null unless each takes one slot and has
    /// a rate that is a whole number.
    pub union: Option<UnionRecord>,
    /// The reason, with the mix that decided it.
    pub why: String,
    /// The mixes.
    pub mixes: Vec<PairMixRecord>,
    /// Slots per core cycle.
    pub width: Option<f64>,
    /// Reservations.
    pub caveats: Vec<Caveat>,
    /// The command that repeats it.
    pub repro: String,
}

/// A form of the pair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairFormRecord {
    /// The name in the instruction database.
    pub code: String,
    /// The mnemonic.
    pub mnemonic: String,
    /// The operands.
    pub operands: String,
    /// The encoding.
    pub encoding: String,
    /// Core cycles of a copy alone. Null if it can't be timed.
    pub cycles: Quantity,
    /// Dispatch slots: `2`, `≤2`, `microcoded`, `serialising` or `-`.
    pub slots: String,
    /// Number of ports, if it takes one slot and its rate is a whole number.
    pub ports: Option<u32>,
    /// Why it can't be mixed. Null if it can.
    pub reason: Option<String>,
}

/// Bounds of a number of ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnionRecord {
    /// Proved by a fast mix.
    pub low: u32,
    /// Suggested by slow mixes, or the sum.
    pub high: u32,
}

/// A mix of both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairMixRecord {
    /// Copies of each form.
    pub copies: [usize; 2],
    /// Core cycles in the fastest order.
    pub cycles: Quantity,
    /// Core cycles of the slower form alone.
    pub alone: f64,
    /// Core cycles that the slots take. Null if the slots of one form are not known.
    pub slots: Option<f64>,
    /// Core cycles in the slowest order.
    pub worst: f64,
    /// The fastest order.
    pub order: String,
    /// Orders timed.
    pub orders: usize,
}

impl PairFormRecord {
    /// The record of a form.
    pub(crate) fn new(
        target: &TargetForm,
        cycles: Quantity,
        slots: String,
        ports: Option<u32>,
        reason: Option<String>,
    ) -> PairFormRecord {
        PairFormRecord {
            code: target.code(),
            mnemonic: target.mnemonic(),
            operands: target.operands(),
            encoding: target.encoding().to_string(),
            cycles,
            slots,
            ports,
            reason,
        }
    }

    /// Its name in texts.
    pub fn name(&self) -> String {
        format!("{} {}", self.mnemonic, self.operands).trim_end().to_string()
    }
}

impl PairMixRecord {
    /// The record of a mix.
    pub(crate) fn new(mix: &PairMix, forms: [PairForm; 2], width: Option<f64>) -> PairMixRecord {
        let time = mix.time;
        PairMixRecord {
            copies: mix.counts,
            cycles: time.to_quantity(),
            alone: mix.alone(forms),
            slots: width.and_then(|width| mix.slot_cycles(forms, width)),
            worst: time.worst,
            order: time.order.describe(),
            orders: time.orders,
        }
    }
}

impl PairRecord {
    /// The record of a verdict.
    pub(crate) fn new(
        forms: [PairFormRecord; 2],
        verdict: PairVerdict,
        mixes: Vec<PairMixRecord>,
        width: Option<f64>,
        repro: String,
    ) -> PairRecord {
        let union = verdict.union.map(|(low, high)| UnionRecord { low, high });
        let (share, why, forms) = (verdict.share, verdict.why, forms.to_vec());
        PairRecord { forms, share, union, why, mixes, width, caveats: Vec::new(), repro }
    }
}
