//! Numbers that JSON has as null.

use serde::{Deserialize, Deserializer};

/// A number of a curve, which JSON has as null where it is not finite.
pub(super) fn nan_for_null<'de, D: Deserializer<'de>>(number: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(number)?.unwrap_or(f64::NAN))
}
