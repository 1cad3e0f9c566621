//! Reads what people paste: dumps of disassemblers and debuggers, compiler output, marked regions,
//! machine code in hexadecimal, and plain assembly.
//!
//! A reader recognizes its source, takes the code out of the text, and says what it left out. If
//! the text has addresses or bytes, they must agree with the instructions. A text with two possible
//! meanings is an error that names both.
//!
//! [`read_pasted`] tries the readers in a fixed order: machine code in hexadecimal, listings,
//! texts without code that are refused by name, and assembly. A new format of listings is a file in
//! `listings/` and a line in its list.
//!
//! Limits: 64-bit code. Data, relocations and calls to other functions are refused.

mod assembly_lines;
mod assembly_reader;
mod dialect;
mod directives;
mod exegesis;
mod foreign_text;
mod functions;
mod hex_text;
mod listing_line;
mod listing_reader;
mod listings;
mod machine_code;
mod markers;
mod pasted_text;
mod placed_text;
mod semicolons;
mod text_words;

pub use dialect::has_att_registers;
pub use directives::check_external_text;
pub use pasted_text::{DroppedLine, PastedRegion, PastedText, RegionCode};

use crate::asm::InstructionSyntax;
use cyclescope_core::error::BadSnippet;

/// Reads a text. `syntax` is the syntax of its instructions, if known.
///
/// # Errors
///
/// Fails if the text isn't understood, or has two meanings. An error in one of several regions is
/// in that region.
pub fn read_pasted(text: &str, syntax: Option<InstructionSyntax>) -> Result<PastedText, BadSnippet> {
    let text = &text_words::blank_fences(text);
    let lines: Vec<&str> = text.lines().collect();
    text_words::require_lines(lines.len())?;
    foreign_text::refuse_other_machine(&lines)?;
    let found = match hex_text::read_hex_text(&lines)? {
        Some(found) => found,
        None => match listing_reader::read_listing(&lines, syntax)? {
            Some(found) => found,
            None => {
                foreign_text::refuse_foreign_text(&lines)?;
                assembly_reader::read_assembly(text, syntax)?
            }
        },
    };
    if let [PastedRegion { code: Err(error), .. }] = &found.regions[..] {
        return Err(error.clone());
    }
    Ok(found)
}
