//! Text of `perf annotate --stdio`: objdump's lines after a percentage.
//!
//! ```text
//!    60.84 :   1187:   lea    (%rax,%rax,2),%rax
//! ```

use super::objdump;
use crate::pasted::listing_line::{ListingFormat, ListingLine};

pub(super) const FORMAT: ListingFormat =
    ListingFormat { name: "perf annotate", read: |lines| lines.iter().map(|line| parse_line(line)).collect() };

fn parse_line(line: &str) -> ListingLine<'_> {
    let trimmed = line.trim();
    if trimmed.is_empty() || trimmed.starts_with("Percent") || trimmed.starts_with("-----") {
        return ListingLine::Frame;
    }
    let Some(rest) = skip_percentage(trimmed) else { return ListingLine::Unknown };
    match objdump::parse_line(rest) {
        // Other lines have the number of a source line first.
        ListingLine::Unknown => {
            let unnumbered = rest.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
            match objdump::parse_line(unnumbered) {
                found @ (ListingLine::Header { .. } | ListingLine::Frame) => found,
                _ => ListingLine::Unknown,
            }
        }
        found => found,
    }
}

/// Skips `60.84 :`; there may be several numbers, or none.
fn skip_percentage(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '%' | ' '));
    [":", "\u{2502}", "|"].iter().find_map(|bar| rest.strip_prefix(bar))
}
