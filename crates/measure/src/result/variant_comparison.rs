//! Compares two variants measured in the same rounds: difference, ratio and verdict.

use super::quantity::Quantity;
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
