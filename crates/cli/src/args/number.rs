//! Numbers on the command line.

use cyclescope::measure::Precision;

/// The heading of options that change no snippet.
pub(super) const HOW: &str = "How to measure it";

/// A number above 0.
pub(super) fn number(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err("expected a number above 0".to_string()),
    }
}

/// A time in seconds, a day at most.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    let value = number(text)?;
    if value <= 86_400.0 { Ok(value) } else { Err("expected at most a day, 86400".to_string()) }
}

/// A half width, in core cycles or as a share.
pub(super) fn precision(text: &str) -> Result<Precision, String> {
    match text.strip_suffix('%') {
        Some(share) => Ok(Precision { cycles: 0.0, share: number(share)? / 100.0, cap: None }),
        None => Ok(Precision { cycles: number(text)?, share: 0.0, cap: None }),
    }
    .map_err(|error: String| format!("{error}, as in 0.01 (core cycles) or 0.5%"))
}

/// A confidence level.
pub(super) fn confidence(text: &str) -> Result<f64, String> {
    let value = match text.strip_suffix('%') {
        Some(percent) => number(percent)? / 100.0,
        None => number(text)?,
    };
    if (0.01..=0.9999).contains(&value) { Ok(value) } else { Err("expected 0.01 to 0.9999".to_string()) }
}
