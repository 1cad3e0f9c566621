//! A point, and its row: the data of its result line for a table, a file and a picture.

use cyclescope_measure::result::caveat::Caveat;
use cyclescope_measure::result::record::Quantity;
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
}

impl PointVariant {
    /// Its name, or else its snippet.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.snippet)
    }
}

impl PointRow {
    /// Reads a line of the result.
    pub(super) fn from_line(line: &str) -> Result<PointRow, serde_json::Error> {
        serde_json::from_str(line)
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
