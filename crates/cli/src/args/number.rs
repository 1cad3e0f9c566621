//! Parsers of numbers on the command line.

use cyclescope::measure::Precision;

/// Help heading of options that change how a snippet is measured.
pub(super) const MEASURING_HEADING: &str = "How to measure";

/// Parses a number above 0.
pub(super) fn parse_positive(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err("expected a number above 0".to_string()),
    }
}

/// Parses a time in seconds, at most a day.
pub(super) fn parse_seconds(text: &str) -> Result<f64, String> {
    let value = parse_positive(text)?;
    if value <= 86_400.0 { Ok(value) } else { Err("expected at most 86400 seconds (a day)".to_string()) }
}

/// Parses a half width in core cycles or as a share.
pub(super) fn parse_precision(text: &str) -> Result<Precision, String> {
    match text.strip_suffix('%') {
        Some(share) => Ok(Precision { cycles: 0.0, share: parse_positive(share)? / 100.0, cap: None }),
        None => Ok(Precision { cycles: parse_positive(text)?, share: 0.0, cap: None }),
    }
    .map_err(|error: String| format!("{error}, as in 0.01 (core cycles) or 0.5%"))
}

/// Parses a confidence level.
pub(super) fn parse_confidence(text: &str) -> Result<f64, String> {
    let value = match text.strip_suffix('%') {
        Some(percent) => parse_positive(percent)? / 100.0,
        None => parse_positive(text)?,
    };
    if (0.01..=0.9999).contains(&value) { Ok(value) } else { Err("expected 0.01 to 0.9999, such as 0.95".to_string()) }
}
