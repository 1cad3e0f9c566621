//! Tables of texts, for files of any format, and their fields.

use crate::result::record::Quantity;
use serde::Serialize;

/// The word that JSON has for one of a closed list.
pub fn json_word(of: impl Serialize) -> String {
    serde_json::to_value(of).ok().and_then(|word| word.as_str().map(str::to_string)).unwrap_or_default()
}

/// A value and the ends of its interval, to a ten-thousandth.
pub fn format_quantity(quantity: Option<&Quantity>) -> [String; 3] {
    quantity.map_or([None; 3], |quantity| [quantity.value, quantity.low, quantity.high]).map(format_figure)
}

/// A number to a ten-thousandth; empty where there is none.
pub fn format_figure(number: Option<f64>) -> String {
    number.map_or(String::new(), |number| format!("{number:.4}"))
}

/// A table of texts, for a file of any format.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextTable {
    /// The columns.
    pub columns: Vec<TextColumn>,
    /// The rows, each with a text for each column.
    pub rows: Vec<Vec<String>>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextColumn {
    /// Its heading.
    pub name: String,
    /// Whether it has numbers, whose digits stand below each other.
    pub is_number: bool,
}

impl TextTable {
    /// A table without rows, whose columns have these headings.
    pub fn new<'a>(columns: impl IntoIterator<Item = &'a str>) -> TextTable {
        let column = |name: &str| TextColumn { name: name.to_string(), is_number: false };
        TextTable { columns: columns.into_iter().map(column).collect(), rows: Vec::new() }
    }
}
