//! Tables of OSACA, IACA and uiCA: ports in columns, and the instruction behind the last bar.
//!
//! ```text
//! |   1      |     | 0.5  0.5 | 0.5  0.5 |      | add rax, 0x8
//! ```

use crate::pasted::instruction_text::begins_with_instruction;
use crate::pasted::listing_line::{CodeLine, ListingFormat, ListingLine};

pub(super) const FORMAT: ListingFormat = ListingFormat { name: "table of ports", read: read_lines };

/// Words of the tables' headings.
const HEADINGS: [&str; 3] = ["Port pressure in cycles", "Ports pressure in cycles", "Port 0"];
/// Fewest columns of a table.
const BARS: usize = 4;
/// What OSACA writes in front of an instruction.
const FLAGS: [&str; 3] = ["X ", "* ", "P "];

fn read_lines<'a>(lines: &[&'a str]) -> Vec<ListingLine<'a>> {
    if !lines.iter().any(|line| HEADINGS.iter().any(|heading| line.contains(heading))) {
        return vec![ListingLine::Unknown; lines.len()];
    }
    // OSACA repeats instructions in the table of dependencies.
    let end = lines.iter().position(|line| line.contains("Loop-Carried Dependencies")).unwrap_or(lines.len());
    let (table, after) = lines.split_at(end);
    table.iter().map(|line| parse_line(line)).chain(after.iter().map(|_| ListingLine::Frame)).collect()
}

fn parse_line(line: &str) -> ListingLine<'_> {
    let is_bar = |c: char| matches!(c, '|' | '\u{2502}');
    if line.matches(is_bar).count() < BARS {
        return ListingLine::Frame;
    }
    let text = line.rsplit(is_bar).next().unwrap_or_default().trim();
    let text = FLAGS.iter().find_map(|flag| text.strip_prefix(flag)).unwrap_or(text).trim();
    // A label stays a statement of its own.
    match begins_with_instruction(text) || text.ends_with(':') && !text.contains(char::is_whitespace) {
        true => ListingLine::Code(CodeLine { text, ..CodeLine::default() }),
        false => ListingLine::Frame,
    }
}
