//! Two variants that were measured in the same rounds: difference, ratio, and a verdict.

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
    /// The difference is below 2 % of the cost, if there is one.
    Same,
    /// The interval of the difference contains 0, and is too wide to say more; or there is no number.
    Unclear,
}

/// The other variant, and how it compares with the first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VariantComparison {
    /// The other snippet as text.
    pub snippet: String,
    /// The machine code of one copy, in hexadecimal.
    pub bytes: String,
    /// Its cost in core cycles a copy.
    pub cost: Quantity,
    /// Its cost less that of the first, in core cycles a copy.
    pub difference: Quantity,
    /// Its cost as a multiple of the first one's.
    pub ratio: CostRatio,
    /// The verdict, at a level of confidence of 99 %.
    pub verdict: VariantVerdict,
}

/// A ratio of two costs; null where it was refused, or where a cost may be 0.
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
