//! Compares variants measured in the same rounds: difference, ratio, verdict and rank.

use super::quantity::Quantity;
use cyclescope_core::unit::Unit;
use serde::{Deserialize, Serialize};

/// How the other variant compares with the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VariantVerdict {
    /// It takes longer.
    Slower,
    /// It takes less time.
    Faster,
    /// Any difference is below 2 % of the cost.
    Same,
    /// The interval of the difference contains 0 and is too wide to say more, or there is no
    /// number.
    Unclear,
}

/// The other variant, and how it compares with the first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VariantComparison {
    /// The other snippet as text.
    pub snippet: String,
    /// The machine code of one copy, in hexadecimal.
    pub bytes: String,
    /// Its cost in core cycles per copy.
    pub cost: Quantity,
    /// Its cost minus that of the first, in core cycles per copy.
    pub difference: Quantity,
    /// Its cost as a multiple of the first variant's.
    pub ratio: CostRatio,
    /// The verdict, at a confidence level of 99 %.
    pub verdict: VariantVerdict,
}

/// One of several variants, how it compares with the first, and its rank.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankedVariant {
    /// What distinguishes it from the others, such as `F = -O3`; `None` if its snippet does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The snippet as text.
    pub snippet: String,
    /// The machine code of one copy, in hexadecimal.
    pub bytes: String,
    /// The init code, in hexadecimal.
    pub init: String,
    /// Core cycles per copy.
    pub cost: Quantity,
    /// Its cost minus that of the first, in core cycles per copy; `None` for the first.
    pub difference: Option<Quantity>,
    /// Its cost as a multiple of the first variant's; `None` for the first.
    pub ratio: Option<CostRatio>,
    /// How it compares with the first; `None` for the first.
    pub verdict: Option<VariantVerdict>,
    /// One more than the number of variants that are found to be faster; `None` without a cost.
    pub rank: Option<usize>,
}

impl RankedVariant {
    /// The second of two variants, and how it compares with the first.
    pub fn to_comparison(&self) -> VariantComparison {
        VariantComparison {
            snippet: self.snippet.clone(),
            bytes: self.bytes.clone(),
            cost: self.cost,
            difference: self.difference.unwrap_or(Quantity::refused(Unit::CoreCycles)),
            ratio: self.ratio.unwrap_or(CostRatio::REFUSED),
            verdict: self.verdict.unwrap_or(VariantVerdict::Unclear),
        }
    }
}

/// A ratio of two costs; null if it was refused, or if a cost may be 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CostRatio {
    /// The value.
    pub value: Option<f64>,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
}

impl CostRatio {
    /// A ratio that was refused.
    pub const REFUSED: CostRatio = CostRatio { value: None, low: None, high: None };
}
