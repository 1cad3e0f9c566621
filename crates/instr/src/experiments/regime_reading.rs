//! Readings of short chains behind a fence.

use super::experiment::ChainVariation;
use serde::{Deserialize, Serialize};

/// Costs of short chains behind a fence.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RegimeReading {
    /// The variation of the chain. Null for the planned one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variation: Option<ChainVariation>,
    /// Instructions in a turn of the chain.
    pub instructions: u32,
    /// Core cycles per further turn in a short chain, by layout.
    pub short: Vec<f64>,
    /// Numbers of turns on the curve. Empty if short and long chains cost the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<u32>,
    /// Core cycles of these chains, including fence and loop, by layout. Null if a chain has no
    /// figure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<Vec<Option<f64>>>,
}
