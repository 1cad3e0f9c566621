//! The value of an option, or text with a variable that `--versus` replaces by a word.

use super::template::{BoundVariable, find_variable, unswept_failure};
use crate::output::Failure;

/// Parses an option's text.
pub type ValueParser<T> = fn(&str) -> Result<T, String>;

/// The value of an option, if its text has no variable.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(untagged)]
pub enum TemplateValue<T> {
    /// The value.
    Value(T),
    /// Text with a variable in braces.
    Template(String),
}

impl<T> TemplateValue<T> {
    /// Reads a text, which `parse` reads if it has no variable.
    pub fn read(text: &str, parse: ValueParser<T>) -> Result<TemplateValue<T>, String> {
        match find_variable(text) {
            Some(_) => Ok(TemplateValue::Template(text.to_string())),
            None => parse(text).map(TemplateValue::Value),
        }
    }

    /// Inserts a word and parses the result. Returns whether the text had the variable.
    pub fn fill(&mut self, bound: BoundVariable, option: &str, parse: ValueParser<T>) -> Result<bool, Failure> {
        let TemplateValue::Template(template) = self else { return Ok(false) };
        let text = bound.fill_text(template)?.text;
        let value = parse(&text).map_err(|expected| {
            let text = format!("{option} '{text}' is invalid: {expected}");
            Failure::usage(text, Some("see cyclescope run --help"))
        })?;
        *self = TemplateValue::Value(value);
        Ok(true)
    }

    /// The value. Fails if the text has a variable without words.
    pub fn require(&self, option: &str) -> Result<&T, Failure> {
        match self {
            TemplateValue::Value(value) => Ok(value),
            TemplateValue::Template(text) => Err(unswept_failure(option, text)),
        }
    }
}
