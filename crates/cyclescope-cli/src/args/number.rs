//! Numbers on the command line.

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
