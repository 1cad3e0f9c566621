//! Serializes a timing method as its name.

use super::Clock;
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::Serializer;

/// Writes the name.
pub fn serialize<S: Serializer>(clock: &&'static Clock, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(clock.name)
}

/// Finds the method with the name.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'static Clock, D::Error> {
    let name = String::deserialize(deserializer)?;
    Clock::find_named(&name).ok_or_else(|| D::Error::custom(format!("there is no clock {name}")))
}
