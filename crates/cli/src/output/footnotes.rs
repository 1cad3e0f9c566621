//! Footnotes of a table.

use crate::output::failure::Failure;
use crate::output::page::{TextPage, print_note};
use crate::output::report_words::to_one_line;

/// Footnotes without duplicates.
#[derive(Default)]
pub struct Footnotes(Vec<String>);

impl Footnotes {
    /// Adds a text and returns its mark.
    pub fn add_mark(&mut self, text: &str) -> String {
        format!("[{}]", self.number_text(text))
    }

    /// Adds several texts and returns their mark.
    pub fn add_marks<'a>(&mut self, texts: impl Iterator<Item = &'a str>) -> String {
        let mut numbers: Vec<usize> = texts.map(|text| self.number_text(text)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
        if numbers.is_empty() { String::new() } else { format!("[{}]", numbers.join(",")) }
    }

    fn number_text(&mut self, text: &str) -> usize {
        let known = self.0.iter().position(|known| known == text);
        let index = known.unwrap_or_else(|| {
            self.0.push(text.to_string());
            self.0.len() - 1
        });
        index + 1
    }

    /// Prints at most `most` footnotes, then where to find the others.
    pub fn print_first(&self, page: &mut TextPage, most: usize, others: &str) -> Result<(), Failure> {
        for (index, text) in self.0.iter().enumerate().take(most) {
            print_note(page, &format!("[{}] {}", index + 1, to_one_line(text)))?;
        }
        if self.0.len() > most {
            print_note(page, &format!("{} more: {others}.", self.0.len() - most))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_footnotes_share_a_number() {
        let mut notes = Footnotes::default();
        assert_eq!(["a", "b", "a"].map(|text| notes.add_mark(text)), ["[1]", "[2]", "[1]"]);
        assert_eq!(notes.add_marks(["c", "a", "c"].into_iter()), "[1,3]");
        assert_eq!(notes.add_marks([].into_iter()), "");
    }
}
