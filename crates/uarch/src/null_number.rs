//! Numbers that are null in JSON.

use serde::{Deserialize, Deserializer};

/// Reads a number of a curve. JSON has null for one that is not finite.
pub(super) fn nan_for_null<'de, D: Deserializer<'de>>(number: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(number)?.unwrap_or(f64::NAN))
}
