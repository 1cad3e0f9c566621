//! Footnotes of a table.

use crate::output::failure::Failure;
use crate::output::page::{Page, note};
use crate::output::words::one_line;

/// Footnotes, each text once.
#[derive(Default)]
pub struct Notes(Vec<String>);

impl Notes {
    /// The mark of a text.
    pub fn mark(&mut self, text: &str) -> String {
        format!("[{}]", self.number(text))
    }

    /// The mark of several texts.
    pub fn marks<'a>(&mut self, texts: impl Iterator<Item = &'a str>) -> String {
        let mut numbers: Vec<usize> = texts.map(|text| self.number(text)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
        if numbers.is_empty() { String::new() } else { format!("[{}]", numbers.join(",")) }
    }

    fn number(&mut self, text: &str) -> usize {
        let known = self.0.iter().position(|known| known == text);
        let index = known.unwrap_or_else(|| {
            self.0.push(text.to_string());
            self.0.len() - 1
        });
        index + 1
    }

    /// Prints the first of them, at most `most`, and where the others are.
    pub fn print(&self, page: &mut Page, most: usize, others: &str) -> Result<(), Failure> {
        for (index, text) in self.0.iter().enumerate().take(most) {
            note(page, &format!("[{}] {}", index + 1, one_line(text)))?;
        }
        if self.0.len() > most {
            note(page, &format!("{} more: {others}.", self.0.len() - most))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_footnotes_are_one() {
        let mut notes = Notes::default();
        assert_eq!(["a", "b", "a"].map(|text| notes.mark(text)), ["[1]", "[2]", "[1]"]);
        assert_eq!(notes.marks(["c", "a", "c"].into_iter()), "[1,3]");
        assert_eq!(notes.marks([].into_iter()), "");
    }
}
