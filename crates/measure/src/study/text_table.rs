//! Tables of text, for files of any format, and formatting of their fields.

use crate::result::record::Quantity;
use serde::Serialize;

/// The JSON word of an enum value.
pub fn json_word(value: impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|word| word.as_str().map(str::to_string)).unwrap_or_default()
}

/// Formats a value and the ends of its interval with four decimal places.
pub fn format_quantity(quantity: Option<&Quantity>) -> [String; 3] {
    quantity.map_or([None; 3], |quantity| [quantity.value, quantity.low, quantity.high]).map(format_figure)
}

/// Formats a number with four decimal places; empty without a number.
pub fn format_figure(number: Option<f64>) -> String {
    number.map_or(String::new(), |number| format!("{number:.4}"))
}

/// A table of text, for a file of any format.
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
    /// Whether it contains numbers, which are aligned to the right.
    pub is_number: bool,
}

impl TextTable {
    /// Creates a table without rows, whose columns have these headings.
    pub fn new<'a>(columns: impl IntoIterator<Item = &'a str>) -> TextTable {
        let column = |name: &str| TextColumn { name: name.to_string(), is_number: false };
        TextTable { columns: columns.into_iter().map(column).collect(), rows: Vec::new() }
    }
}
