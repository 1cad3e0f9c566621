//! Finds the lines on which the records of a CSV file begin.

/// A cursor through a file, from record to record.
pub struct CsvLines<'a> {
    content: &'a [u8],
    offset: usize,
    line: u64,
}

impl<'a> CsvLines<'a> {
    /// Begins at the first line of a file.
    pub fn new(content: &'a [u8]) -> CsvLines<'a> {
        CsvLines { content, offset: 0, line: 1 }
    }

    /// The line of the record at the reader's offset. Offsets must not decrease. The reader reports
    /// the end of the previous record, so empty lines and comments may lie between.
    pub fn line_at(&mut self, position: &csv::Position) -> u64 {
        let end = usize::try_from(position.byte()).unwrap_or(usize::MAX).min(self.content.len());
        self.advance_to(end);
        while let Some(byte) = self.content.get(self.offset) {
            match byte {
                b'\r' | b'\n' => self.advance_to(self.offset + 1),
                b'#' => {
                    let rest = &self.content[self.offset..];
                    let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                    self.advance_to(self.offset + length);
                }
                _ => break,
            }
        }
        self.line
    }

    fn advance_to(&mut self, to: usize) {
        let passed = self.content.get(self.offset..to).unwrap_or_default();
        self.line += passed.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.offset = self.offset.max(to);
    }
}
