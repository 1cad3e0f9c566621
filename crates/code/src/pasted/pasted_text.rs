//! What a reader made of a text.

use crate::asm::{InstructionSyntax, Listing, SnippetData, parse_for_mode};
use cyclescope_core::error::BadSnippet;

/// What a reader made of a text.
#[derive(Debug, Clone)]
pub struct PastedText {
    /// The program or format that the text comes from.
    pub source: &'static str,
    /// Syntax of the instructions; `None` for machine code, and for text that is the same in both.
    pub syntax: Option<InstructionSyntax>,
    /// The pieces of code to measure, each on its own.
    pub regions: Vec<PastedRegion>,
    /// Parts of the text that are not measured, by line.
    pub dropped: Vec<DroppedLine>,
}

/// A piece of code.
#[derive(Debug, Clone)]
pub struct PastedRegion {
    /// Name of the function or mark; empty if it has none.
    pub name: String,
    /// Its first line in the text, from 1.
    pub line: u32,
    /// Its code, or why it can't be measured.
    pub code: Result<RegionCode, BadSnippet>,
}

/// The code of a region.
#[derive(Debug, Clone, Default)]
pub struct RegionCode {
    /// Instructions, with their positions in the text.
    pub listing: Listing,
    /// Assembly without the parts that were dropped; for machine code the disassembly.
    pub text: String,
    /// Assembly that runs once before, in Intel syntax; empty if there is none.
    pub init: String,
    /// Constants and variables of the text. The listing has their addresses from
    /// [`DATA_BASE`](crate::asm::DATA_BASE).
    pub data: Option<SnippetData>,
    /// Address of the first instruction in the text, if it has addresses.
    pub address: Option<u64>,
    /// Line of the first return of a function with several, which the code calls; `None` for code
    /// without a call of its own.
    pub called_for: Option<u32>,
    /// Lines of instructions whose encoding here is longer or shorter than in the text.
    pub reencoded: Vec<u32>,
}

impl RegionCode {
    /// Places the data that its code uses, and adds the init code that writes it.
    ///
    /// # Errors
    ///
    /// As for [`SnippetData::place`].
    pub fn place_data(&mut self) -> Result<(), BadSnippet> {
        let Some(data) = self.data.take() else { return Ok(()) };
        let mode = self.listing.mode();
        let mut own = parse_for_mode(&self.init, mode, None)?;
        let init = Listing::from_code(&data.place(&mut [&mut self.listing, &mut own])?, mode);
        self.init =
            [init.text(), own.text()].iter().filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>().join("\n");
        Ok(())
    }
}

/// A part of the text that is not measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedLine {
    /// Its line in the text, from 1.
    pub line: u32,
    /// The text.
    pub text: String,
    /// Why it is not measured.
    pub why: &'static str,
    /// Whether it may be code, so that a user must hear of it.
    pub is_code: bool,
}

impl DroppedLine {
    /// Text that can't be code.
    pub(super) fn new_noise(line: u32, text: &str, why: &'static str) -> DroppedLine {
        DroppedLine { line, text: text.trim().to_string(), why, is_code: false }
    }

    /// Text that may be code.
    pub(super) fn new_code(line: u32, text: &str, why: &'static str) -> DroppedLine {
        DroppedLine { line, text: text.trim().to_string(), why, is_code: true }
    }
}

impl PastedText {
    /// Gives all lines other numbers.
    pub(super) fn map_lines(mut self, number: impl Fn(u32) -> u32) -> PastedText {
        for dropped in &mut self.dropped {
            dropped.line = number(dropped.line);
        }
        for region in &mut self.regions {
            region.line = number(region.line);
            match &mut region.code {
                Ok(code) => {
                    code.listing = std::mem::take(&mut code.listing).map_lines(&number);
                    code.called_for = code.called_for.map(&number);
                    code.reencoded.iter_mut().for_each(|line| *line = number(*line));
                }
                Err(error) => (error.line, error.column) = (number(error.line), 1),
            }
        }
        self
    }

    /// The name of the dialect.
    pub fn dialect(&self) -> &'static str {
        match self.syntax {
            Some(InstructionSyntax::Att) => "AT&T syntax",
            Some(InstructionSyntax::Intel) => "Intel syntax",
            None => "machine code",
        }
    }
}
