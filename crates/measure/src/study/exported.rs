//! Fields of CSV files.

use crate::result::record::Quantity;
use serde::Serialize;

/// The word that JSON has for one of a closed list.
pub fn word(of: impl Serialize) -> String {
    serde_json::to_value(of).ok().and_then(|word| word.as_str().map(str::to_string)).unwrap_or_default()
}

/// A value and the ends of its interval, to a ten-thousandth.
pub fn figures(quantity: Option<&Quantity>) -> [String; 3] {
    quantity.map_or([None; 3], |quantity| [quantity.value, quantity.low, quantity.high]).map(figure)
}

/// A number to a ten-thousandth; empty where there is none.
pub fn figure(number: Option<f64>) -> String {
    number.map_or(String::new(), |number| format!("{number:.4}"))
}
