//! Assembly of one region, with the line numbers of the whole text.

use super::dialect::CodeDialect;
use crate::asm::{Listing, SnippetData};
use cyclescope_core::error::BadSnippet;

/// Lines of a region, each with its number in the whole text, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct PlacedText {
    lines: Vec<(u32, String)>,
}

impl PlacedText {
    /// The line of this number, which is empty at first.
    pub(super) fn line_mut(&mut self, number: u32) -> &mut String {
        let index = match self.lines.binary_search_by_key(&number, |(number, _)| *number) {
            Ok(index) => index,
            Err(index) => {
                self.lines.insert(index, (number, String::new()));
                index
            }
        };
        &mut self.lines[index].1
    }

    /// The text without blanks around lines and without empty lines.
    pub(super) fn to_clean_text(&self) -> String {
        let lines = self.lines.iter().map(|(_, line)| line.trim()).filter(|line| !line.is_empty());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Assembles the lines. Positions are those of the whole text.
    pub(super) fn assemble(&self, dialect: CodeDialect) -> Result<Listing, BadSnippet> {
        self.assemble_with_data(dialect, &SnippetData { mode: dialect.mode, ..SnippetData::default() })
    }

    /// Assembles lines that may use labels of this data.
    pub(super) fn assemble_with_data(&self, dialect: CodeDialect, data: &SnippetData) -> Result<Listing, BadSnippet> {
        let text: Vec<&str> = self.lines.iter().map(|(_, line)| line.as_str()).collect();
        let text = text.join("\n");
        let parsed = dialect.assemble_with_data(&text, data);
        let number = |line: u32| self.lines.get(line.saturating_sub(1) as usize).map_or(line, |(number, _)| *number);
        match parsed {
            Ok(listing) => Ok(listing.map_lines(number)),
            Err(error) => Err(BadSnippet { line: number(error.line), ..error }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_of_the_whole_text() {
        let mut text = PlacedText::default();
        text.line_mut(7).push_str("  nop");
        text.line_mut(3).push_str("add rax, rbx");
        let listing = text.assemble(CodeDialect::default()).expect("assembly");
        let lines: Vec<u32> = (0..2).filter_map(|index| Some(listing.position(index)?.line)).collect();
        assert_eq!((lines, text.to_clean_text()), (vec![3, 7], "add rax, rbx\nnop".to_string()));
        text.line_mut(9).push_str("nopp");
        assert_eq!(text.assemble(CodeDialect::default()).map(|_| ()).map_err(|error| error.line), Err(9));
    }
}
