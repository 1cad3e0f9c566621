//! Formats costs and snippets for the report and the ranking.

use crate::output::WIDTH;
use cyclescope::record::Quantity;

/// Maximum number of characters of a snippet that are shown.
const SNIPPET_WIDTH: usize = 4 * WIDTH;

/// The start of a snippet that is too long to show.
pub fn shorten_snippet(snippet: &str) -> String {
    if snippet.chars().count() <= SNIPPET_WIDTH {
        return snippet.to_string();
    }
    let start: String = snippet.chars().take(SNIPPET_WIDTH - 10).collect();
    format!("{start} [...]")
}

/// Formats a cost in core cycles with its interval.
pub fn format_cycles(cost: &Quantity) -> String {
    format_interval(cost).map_or("no interval".to_string(), |cost| format!("{cost} core cycles"))
}

/// Formats a value with as many digits as its interval supports; `None` without an interval.
pub fn format_interval(quantity: &Quantity) -> Option<String> {
    let (value, low, high) = (quantity.value?, quantity.low?, quantity.high?);
    // A cost can't be negative, so its interval begins at zero.
    let half = if low == 0.0 { high - value } else { (high - low) / 2.0 };
    // One digit more than the interval's first, but at least two.
    let digits = if half > 0.0 { (1.0 - half.log10().floor()).clamp(2.0, 6.0) as usize } else { 4 };
    Some(format!("{value:.digits$} ± {half:.digits$}"))
}
