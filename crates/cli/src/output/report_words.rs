//! Formats quantities, counts and texts for a report.

use super::terminal::escape_controls;
use cyclescope::record::Quantity;

/// Puts a text on one line, so that it fits into a table cell.
pub fn to_one_line(text: &str) -> String {
    escape_controls(text).replace(['\n', '\t'], " ")
}

/// Shortens a text to at most `width` characters.
pub fn shorten_text(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_string();
    }
    let end = escape_controls("…");
    let start: String = text.chars().take(width - end.chars().count()).collect();
    start + &end
}

/// Distance from a value to the farther end of its interval; infinite if an end is unknown.
pub fn interval_reach(quantity: &Quantity) -> f64 {
    match (quantity.value, quantity.low, quantity.high) {
        (Some(value), Some(low), Some(high)) => (high - value).max(value - low),
        _ => f64::INFINITY,
    }
}

/// Formats a value and the reach of its interval, in at most 13 characters below a hundred
/// thousand.
pub fn format_quantity(quantity: &Quantity) -> String {
    let Some(value) = quantity.value else { return "-".to_string() };
    let decimals = match value.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    match interval_reach(quantity) {
        reach if reach.is_finite() => format!("{value:.decimals$} ± {reach:.decimals$}"),
        _ => format!("{value:.decimals$} ± ?"),
    }
}

/// Formats a count with its noun.
pub fn format_count(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_fit_their_column() {
        use cyclescope::statistics::Interval;
        use cyclescope::unit::Unit;
        let text =
            |value, reach| format_quantity(&Quantity::new(Interval::with_margin(value, reach), Unit::CoreCycles));
        assert_eq!([text(0.25, 0.001), text(99.994, 0.012)], ["0.250 ± 0.001", "99.99 ± 0.01"]);
        assert_eq!([text(123.44, 5.0), text(45678.4, 1234.0)], ["123.4 ± 5.0", "45678 ± 1234"]);
        assert_eq!(text(2.0, f64::INFINITY), "2.000 ± ?");
    }

    #[test]
    fn texts_are_shortened_to_a_width() {
        assert_eq!((shorten_text("abcdef", 6), shorten_text("abcdefg", 6)), ("abcdef".into(), "abcde…".into()));
    }
}
