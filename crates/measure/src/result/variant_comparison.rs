//! Compares variants measured in the same rounds: difference, ratio, verdict and rank.

use super::counter_record::CounterRecord;
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
    /// Its counts of events per copy, if asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<CounterRecord>,
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
    /// Counts of events per copy, if asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<CounterRecord>,
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
            counters: self.counters.clone(),
        }
    }
}

/// A ratio of two costs; null if it was refused, or if a cost may be 0. One that is read from a file
/// is positive, and has its value in its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "WrittenRatio")]
pub struct CostRatio {
    /// The value.
    pub value: Option<f64>,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
}

/// A ratio as a file has it.
#[derive(Deserialize)]
struct WrittenRatio {
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

impl TryFrom<WrittenRatio> for CostRatio {
    type Error = &'static str;

    fn try_from(WrittenRatio { value, low, high }: WrittenRatio) -> Result<CostRatio, &'static str> {
        if value.or(low).is_some_and(|number| number <= 0.0) {
            return Err("a ratio of costs is not positive");
        }
        let Quantity { value, low, high, .. } = Quantity::from_parts([value, low, high], Unit::Ratio)?;
        Ok(CostRatio { value, low, high })
    }
}

impl CostRatio {
    /// A ratio that was refused.
    pub const REFUSED: CostRatio = CostRatio { value: None, low: None, high: None };

    /// Whether the verdict on the other variant contradicts its ratio to the first.
    pub fn contradicts(&self, verdict: VariantVerdict) -> bool {
        match verdict {
            VariantVerdict::Slower => self.high.is_some_and(|high| high < 1.0),
            VariantVerdict::Faster => self.low.is_some_and(|low| low > 1.0),
            VariantVerdict::Same | VariantVerdict::Unclear => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_positive_and_agrees_with_its_verdict() {
        let read = |text: &str| serde_json::from_str::<CostRatio>(text);
        let twice = read(r#"{"value":2.0,"low":1.9,"high":2.1}"#).unwrap();
        assert!(twice.contradicts(VariantVerdict::Faster) && !twice.contradicts(VariantVerdict::Slower));
        let half = read(r#"{"value":0.5,"low":0.4,"high":0.6}"#).unwrap();
        assert!(half.contradicts(VariantVerdict::Slower) && !half.contradicts(VariantVerdict::Unclear));
        assert_eq!(read(r#"{"value":null,"low":null,"high":null}"#).unwrap(), CostRatio::REFUSED);
        for bad in [r#"{"value":2,"low":3,"high":1}"#, r#"{"value":-2,"low":null,"high":null}"#] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
