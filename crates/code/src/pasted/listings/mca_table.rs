//! Output of llvm-mca: the instructions in its first table.
//!
//! ```text
//! [1]    [2]    [3]    [4]    [5]    [6]    Instructions:
//!  1      3     1.00                        imulq  %rbx, %rax
//! ```

use crate::pasted::listing_line::{CodeLine, ListingFormat, ListingLine};

pub(super) const FORMAT: ListingFormat = ListingFormat { name: "llvm-mca", read: read_lines };

/// Heading of the column with the instructions.
const HEADING: &str = "Instructions:";

fn read_lines<'a>(lines: &[&'a str]) -> Vec<ListingLine<'a>> {
    if !lines.iter().any(|line| is_heading(line)) {
        return vec![ListingLine::Unknown; lines.len()];
    }
    let mut column = None;
    // Each region has several tables with the same instructions.
    let mut is_read = false;
    let mut found = Vec::with_capacity(lines.len());
    for line in lines {
        found.push(match (line.find(HEADING), column) {
            (Some(at), _) if is_heading(line) => {
                column = (!is_read).then_some(at);
                is_read = true;
                ListingLine::Frame
            }
            (_, Some(at)) if !line.trim().is_empty() => match line.get(at..).map(str::trim) {
                Some(text) if !text.is_empty() => ListingLine::Code(CodeLine { text, ..CodeLine::default() }),
                _ => ListingLine::Unknown,
            },
            _ => {
                column = None;
                match line.trim().split_once("Code Region") {
                    Some((_, name)) => {
                        is_read = false;
                        ListingLine::Header { name: name.trim_start_matches([' ', '-']) }
                    }
                    None => ListingLine::Frame,
                }
            }
        });
    }
    found
}

fn is_heading(line: &str) -> bool {
    line.starts_with('[') && line.trim_end().ends_with(HEADING)
}
