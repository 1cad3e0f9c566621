//! What short chains behind a fence took.

use serde::{Deserialize, Serialize};

/// What short chains behind a fence took.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RegimeReading {
    /// Instructions in a turn of the chain.
    pub instructions: u32,
    /// Core cycles of a further turn in a short chain, by layout.
    pub short: Vec<f64>,
    /// Turns of the chains of the curve; empty where short and long chains cost the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<u32>,
    /// Core cycles of these chains with the fence and the loop, by layout; null where a chain gave no number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<Vec<Option<f64>>>,
}
