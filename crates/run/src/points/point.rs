//! A point, and its row: what a table, a file and a picture take from its line of the result.

use cyclescope_measure::result::caveat::Caveat;
use cyclescope_measure::result::record::Quantity;
use cyclescope_measure::result::variant_comparison::{CostRatio, VariantVerdict};
use serde::{Deserialize, Serialize};

/// A point of a sweep or a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPoint {
    /// Its number, from 0, in the order of the sweep or the list.
    pub number: usize,
    /// What tells it from the others.
    #[serde(flatten)]
    pub label: PointLabel,
}

/// What tells a point from the others.
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
    /// The name that a list gives.
    Name {
        /// The name.
        name: String,
    },
}

impl PointLabel {
    /// `N = 64`, or the name.
    pub fn to_text(&self) -> String {
        match self {
            PointLabel::Value { variable, value } => format!("{variable} = {value}"),
            PointLabel::Name { name } => name.clone(),
        }
    }
}

/// What is shown of a point: from its line of kind `run`, or of kind `error`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PointRow {
    /// The point.
    pub point: RunPoint,
    /// The snippet as text.
    pub snippet: Option<String>,
    /// Core cycles a copy.
    pub cost: Option<Quantity>,
    /// Time a copy.
    pub time: Option<Quantity>,
    /// What a call of a function costs where calls overlap.
    pub throughput: Option<Quantity>,
    /// What a call of a function costs that waits for the last one.
    pub latency: Option<Quantity>,
    /// Caveats of the result.
    #[serde(default)]
    pub caveats: Vec<Caveat>,
    /// The other variant.
    pub versus: Option<OtherVariant>,
    /// Why there is no result.
    pub text: Option<String>,
    /// What helps against that.
    pub remedy: Option<String>,
    /// The exit code of a run that ends so.
    pub exit: Option<u8>,
}

/// The other variant of a point.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct OtherVariant {
    /// Its cost in core cycles a copy.
    pub cost: Quantity,
    /// Its cost as a multiple of the first one's.
    pub ratio: CostRatio,
    /// How it compares.
    pub verdict: VariantVerdict,
}

impl PointRow {
    /// Reads a line of the result.
    pub(super) fn from_line(line: &str) -> Result<PointRow, serde_json::Error> {
        serde_json::from_str(line)
    }

    /// The cost, where it has a number.
    pub fn measured_cost(&self) -> Option<&Quantity> {
        self.cost.as_ref().filter(|cost| cost.value.is_some())
    }

    /// `measured`; `refused` for a run without a number; `failed` for one that faulted or hung.
    pub fn status(&self) -> &'static str {
        match (self.measured_cost(), &self.text) {
            (Some(_), _) => "measured",
            (None, None) => "refused",
            (None, Some(_)) => "failed",
        }
    }
}
