//! A point, and its row: the data of its result line for a table, a file and a picture.

use cyclescope_core::unit::Unit;
use cyclescope_measure::result::caveat::Caveat;
use cyclescope_measure::result::counter_record::CounterRecord;
use cyclescope_measure::result::record::{Quantity, exit};
use cyclescope_measure::result::variant_comparison::{CostRatio, VariantVerdict};
use serde::{Deserialize, Serialize};

/// A point of a sweep or a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPoint {
    /// Its number, from 0, in the order of the sweep or the list.
    pub number: usize,
    /// Distinguishes it from the others.
    #[serde(flatten)]
    pub label: PointLabel,
}

/// Distinguishes a point from the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PointLabel {
    /// The value of a sweep's variable.
    Value {
        /// The variable.
        variable: String,
        /// Its value.
        value: u64,
    },
    /// The word of a sweep's variable.
    Word {
        /// The variable.
        variable: String,
        /// Its word.
        word: String,
    },
    /// The name from a list.
    Name {
        /// The name.
        name: String,
    },
}

impl PointLabel {
    /// Formats the label: `N = 64`, `F = -O2`, or the name.
    pub fn to_text(&self) -> String {
        match self {
            PointLabel::Value { variable, value } => format!("{variable} = {value}"),
            PointLabel::Word { variable, word } if word.is_empty() => format!("{variable} = ''"),
            PointLabel::Word { variable, word } => format!("{variable} = {word}"),
            PointLabel::Name { name } => name.clone(),
        }
    }

    /// The sweep's variable; `None` for a snippet of a list.
    pub fn variable(&self) -> Option<&str> {
        match self {
            PointLabel::Value { variable, .. } | PointLabel::Word { variable, .. } => Some(variable),
            PointLabel::Name { .. } => None,
        }
    }
}

/// Exit codes of a run that fails.
const FAILURE_EXITS: [u8; 4] = [exit::INTERNAL, exit::USAGE, exit::UNAVAILABLE, exit::FAULT];

/// Data of a point for display, from its line of kind `run` or `error`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PointRow {
    /// The point.
    pub point: RunPoint,
    /// The snippet as text.
    pub snippet: Option<String>,
    /// Core cycles per copy.
    pub cost: Option<Quantity>,
    /// Time a copy.
    pub time: Option<Quantity>,
    /// Cost of a function call while calls overlap.
    pub throughput: Option<Quantity>,
    /// Cost of a function call that waits for the last one.
    pub latency: Option<Quantity>,
    /// Counts of events per copy.
    #[serde(default)]
    pub counters: Vec<CounterRecord>,
    /// Caveats of the result.
    #[serde(default)]
    pub caveats: Vec<Caveat>,
    /// The other variant, if there is one.
    pub versus: Option<OtherVariant>,
    /// All variants, if there are several others or they have names.
    #[serde(default)]
    pub variants: Vec<PointVariant>,
    /// Why there is no result.
    pub text: Option<String>,
    /// Remedy for that.
    pub remedy: Option<String>,
    /// The exit code of a run that fails this way.
    pub exit: Option<u8>,
}

/// The other variant of a point.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct OtherVariant {
    /// Its cost in core cycles per copy.
    pub cost: Quantity,
    /// Its cost as a multiple of the first variant's.
    pub ratio: CostRatio,
    /// How it compares with the first.
    pub verdict: VariantVerdict,
    /// Counts of events per copy.
    #[serde(default)]
    pub counters: Vec<CounterRecord>,
}

/// One of the variants of a point.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PointVariant {
    /// Its name.
    pub name: Option<String>,
    /// Its snippet as text.
    pub snippet: String,
    /// Its cost in core cycles per copy.
    pub cost: Quantity,
    /// Its cost as a multiple of the first variant's.
    pub ratio: Option<CostRatio>,
    /// How it compares with the first.
    pub verdict: Option<VariantVerdict>,
    /// Its rank, from 1.
    pub rank: Option<usize>,
    /// Counts of events per copy.
    #[serde(default)]
    pub counters: Vec<CounterRecord>,
}

impl PointVariant {
    /// Its name, or else its snippet.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.snippet)
    }
}

impl PointRow {
    /// Reads a line of the result; `None` if it is no whole row, or contradicts itself.
    pub(super) fn from_line(line: &str) -> Option<PointRow> {
        serde_json::from_str(line).ok().filter(PointRow::is_consistent)
    }

    /// Whether a run may have this row: either a cost, or the failure that prevents one.
    fn is_consistent(&self) -> bool {
        let costs = [&self.cost, &self.throughput, &self.latency].into_iter().flatten();
        let others = self.versus.iter().map(|versus| (&versus.cost, Some(versus.ratio), Some(versus.verdict)));
        let ranked = self.variants.iter().map(|variant| (&variant.cost, variant.ratio, variant.verdict));
        let (mut compared, is_ranked) = (
            others.chain(ranked),
            self.variants
                .iter()
                .all(|variant| variant.rank.is_none_or(|rank| (1..=self.variants.len()).contains(&rank))),
        );
        let is_failure = self.text.is_some();
        (self.cost.is_some() != is_failure)
            && (self.exit.is_some_and(|code| FAILURE_EXITS.contains(&code)) == is_failure)
            && costs.into_iter().all(|cost| cost.unit == Unit::CoreCycles)
            && self.time.is_none_or(|time| time.unit == Unit::Nanos)
            && is_ranked
            && compared.all(|(cost, ratio, verdict)| {
                cost.unit == Unit::CoreCycles
                    && !ratio.zip(verdict).is_some_and(|(ratio, verdict)| ratio.contradicts(verdict))
            })
    }

    /// The cost, if it has a number.
    pub fn measured_cost(&self) -> Option<&Quantity> {
        self.cost.as_ref().filter(|cost| cost.value.is_some())
    }

    /// `measured`, `refused` for a run without a number, or `failed` for a fault or a hang.
    pub fn status(&self) -> &'static str {
        match (self.measured_cost(), &self.text) {
            (Some(_), _) => "measured",
            (None, None) => "refused",
            (None, Some(_)) => "failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: &str = r#"{"value":3.0,"low":2.9,"high":3.1,"unit":"core_cycles"}"#;
    const RATIO: &str = r#"{"value":2.0,"low":1.9,"high":2.1}"#;

    fn is_read(fields: &str) -> bool {
        PointRow::from_line(&format!(r#"{{"point":{{"number":0,"variable":"N","value":1}},{fields}}}"#)).is_some()
    }

    #[test]
    fn a_row_that_contradicts_itself_is_measured_again() {
        let versus = |verdict: &str| {
            is_read(&format!(r#""cost":{COST},"versus":{{"cost":{COST},"ratio":{RATIO},"verdict":"{verdict}"}}"#))
        };
        assert!(versus("slower") && versus("unclear") && !versus("faster"));
        let ranked = |rank: usize| {
            is_read(&format!(r#""cost":{COST},"variants":[{{"snippet":"nop","cost":{COST},"rank":{rank}}}]"#))
        };
        assert!(ranked(1) && !ranked(0) && !ranked(2));
        let failed = r#""text":"it faulted","exit":4"#;
        assert!(is_read(failed) && is_read(&format!(r#""cost":{COST}"#)));
        assert!(!is_read(&format!(r#""cost":{COST},{failed}"#)) && !is_read(r#""snippet":"nop""#));
        assert!(!is_read(r#""text":"it faulted""#) && !is_read(r#""text":"it is done","exit":0"#));
        assert!(!is_read(&format!(r#""cost":{}"#, COST.replace("core_cycles", "ns"))));
        assert!(!is_read(&format!(r#""cost":{COST},"time":{COST}"#)));
    }
}
