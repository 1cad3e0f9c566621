//! Reads what people paste: dumps of disassemblers and debuggers, compiler output, marked regions,
//! machine code in hexadecimal, and plain assembly.
//!
//! A reader recognizes its source, takes the code out of the text, and says what it left out. If
//! the text has addresses or bytes, they must agree with the instructions. A text with two possible
//! meanings is an error that names both.
//!
//! [`read_pasted`] writes records as lines, and removes what mail, web pages and editors put around
//! a text. Then it tries the readers in a fixed order: dumps of bytes, machine code in hexadecimal, listings, texts without
//! code that are refused by name, and assembly. A new format of listings is a file in
//! `listings/` and a line in its list.
//!
//! Limits: code of one mode, which the caller knows. Relocations and calls to other functions are refused, and data that the text
//! does not show.

mod assembly_lines;
mod assembly_reader;
mod byte_dump;
mod decorations;
mod dialect;
mod directives;
mod exegesis;
mod foreign_text;
mod functions;
mod hex_text;
mod inline_assembly;
mod instruction_text;
mod line_marks;
mod listed_assembly;
mod listing_line;
mod listing_reader;
mod listings;
mod machine_code;
mod markers;
mod markup;
mod other_machine;
mod pasted_text;
mod place_labels;
mod placed_text;
mod records;
mod runtime_text;
mod semicolons;
mod text_words;

use decorations::PlainText;
use dialect::CodeDialect;
pub use dialect::has_att_registers;
pub use directives::check_external_text;
pub use pasted_text::{DroppedLine, PastedRegion, PastedText, RegionCode};

use crate::asm::{CodeMode, InstructionSyntax, SnippetData};
use cyclescope_core::error::BadSnippet;

/// Reads a text. `syntax` is the syntax of its instructions, if known.
///
/// # Errors
///
/// Fails if the text isn't understood, or has two meanings. An error in one of several regions is
/// in that region.
pub fn read_pasted(text: &str, syntax: Option<InstructionSyntax>) -> Result<PastedText, BadSnippet> {
    read_for_mode(text, CodeMode::Bits64, syntax, None)
}

/// Reads a text with code of a mode, which may use labels of data that belong to another text.
///
/// # Errors
///
/// As for [`read_pasted`]; also if the text has data of its own.
pub fn read_for_mode(
    text: &str,
    mode: CodeMode,
    syntax: Option<InstructionSyntax>,
    data: Option<&SnippetData>,
) -> Result<PastedText, BadSnippet> {
    let mut found = read_plain(text, CodeDialect { mode, syntax }, data).map_err(add_remedy)?;
    if let [PastedRegion { code: Err(error), .. }] = &found.regions[..] {
        return Err(add_remedy(error.clone()));
    }
    for region in &mut found.regions {
        if let Err(error) = &mut region.code {
            *error = add_remedy(error.clone());
        }
    }
    Ok(found)
}

/// An error with what helps in any text, if it has no remedy.
fn add_remedy(error: BadSnippet) -> BadSnippet {
    let remedy = || Some("paste the instructions alone, and start other lines with `#`".to_string());
    BadSnippet { expected: error.expected.clone().or_else(remedy), ..error }
}

fn read_plain(text: &str, dialect: CodeDialect, data: Option<&SnippetData>) -> Result<PastedText, BadSnippet> {
    text_words::require_lines(text.lines().count())?;
    let Some(records) = records::read_records(text) else { return read_lines(text, dialect, data) };
    match read_lines(&records.text, dialect, data) {
        Ok(found) => Ok(found.map_lines(|line| records.line_of(line))),
        Err(error) => Err(BadSnippet { line: records.line_of(error.line), column: 1, ..error }),
    }
}

/// Reads a text whose lines are those of a person or a program.
fn read_lines(text: &str, dialect: CodeDialect, data: Option<&SnippetData>) -> Result<PastedText, BadSnippet> {
    let PlainText { text, dropped } = decorations::strip_decorations(text)?;
    let mut found = read_code(&text, dialect, data)?;
    require_instructions(&text, &found)?;
    found.dropped.extend(dropped);
    found.dropped.sort_by_key(|dropped| dropped.line);
    Ok(found)
}

/// Reads a text without decorations.
fn read_code(text: &str, dialect: CodeDialect, data: Option<&SnippetData>) -> Result<PastedText, BadSnippet> {
    let plain = runtime_text::translate_runtime_text(text);
    let lines: Vec<&str> = plain.lines().collect();
    let inline = inline_assembly::read_inline_assembly(&lines)?;
    let plain = inline.unwrap_or(plain);
    let lines: Vec<&str> = plain.lines().collect();
    other_machine::refuse_other_machine(&lines, dialect.mode)?;
    if let Some(found) = byte_dump::read_byte_dump(&lines, dialect.mode)? {
        return Ok(found);
    }
    let uncommented = text_words::blank_block_comments(&plain);
    if let Some(found) = hex_text::read_hex_text(&uncommented.lines().collect::<Vec<_>>(), dialect.mode)? {
        return Ok(found);
    }
    if let Some(found) = listing_reader::read_listing(&lines, dialect)? {
        return Ok(found);
    }
    foreign_text::refuse_foreign_text(&lines, dialect.mode)?;
    let plain = text_words::unwrap_labels(&plain);
    assembly_reader::read_assembly(&plain, dialect, data)
}

/// Fails if a text that isn't empty has no instruction: nothing would be measured.
fn require_instructions(text: &str, found: &PastedText) -> Result<(), BadSnippet> {
    let is_empty =
        |region: &PastedRegion| region.code.as_ref().is_ok_and(|code| code.listing.instructions().is_empty());
    if text.trim().is_empty() || !found.regions.iter().all(is_empty) {
        return Ok(());
    }
    let remedy = "paste lines with instructions, without marks of a comment in front of them";
    Err(text_words::line_start(1).error_expecting("this text has no instructions", remedy))
}
