//! `cyclescope run --show`: prints what was made of a text, and measures nothing.

use crate::args::RunArgs;
use crate::input::source;
use crate::output::terminal::escape_controls;
use crate::output::{Failure, Output};
use cyclescope::asm::{Listing, format_instruction, to_hex};
use cyclescope::pasted::{DroppedLine, PastedRegion, PastedText, RegionCode};
use cyclescope::record::exit;
use iced_x86::{Decoder, DecoderOptions};
use serde::Serialize;

/// Characters of the column with bytes.
const BYTES_WIDTH: usize = 24;

/// What was made of a text, as a JSON line.
#[derive(Serialize)]
struct ShownText {
    source: &'static str,
    dialect: &'static str,
    regions: Vec<ShownRegion>,
    dropped: Vec<ShownDrop>,
}

/// A region with its instructions, or the reason why it has none.
#[derive(Serialize)]
struct ShownRegion {
    name: String,
    line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    init: Option<String>,
    instructions: Vec<ShownInstruction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<ShownRefusal>,
}

#[derive(Serialize)]
struct ShownInstruction {
    address: String,
    bytes: String,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize)]
struct ShownRefusal {
    line: u32,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

#[derive(Serialize)]
struct ShownDrop {
    line: u32,
    text: String,
    why: &'static str,
}

/// Prints what was made of the text that the options name, and returns the exit code.
pub fn show_text(args: &RunArgs, output: &mut Output) -> Result<u8, Failure> {
    let shown = describe_text(source::read_shown(args)?);
    if output.is_json() {
        output.write_record("text", &shown)?;
    } else {
        print_text(&shown, output)?;
    }
    let is_refused = shown.regions.iter().all(|region| region.refused.is_some());
    Ok(if is_refused { exit::USAGE } else { exit::DONE })
}

fn describe_text(found: PastedText) -> ShownText {
    ShownText {
        source: found.source,
        dialect: found.dialect(),
        regions: found.regions.into_iter().map(describe_region).collect(),
        dropped: found.dropped.into_iter().map(describe_drop).collect(),
    }
}

fn describe_drop(DroppedLine { line, text, why, .. }: DroppedLine) -> ShownDrop {
    ShownDrop { line, text, why }
}

fn describe_region(PastedRegion { name, line, code }: PastedRegion) -> ShownRegion {
    match code {
        Ok(RegionCode { listing, init, address, .. }) => ShownRegion {
            name,
            line,
            init: Some(init).filter(|init| !init.is_empty()),
            instructions: describe_instructions(&listing, address.unwrap_or(0)),
            refused: None,
        },
        Err(error) => ShownRegion {
            name,
            line,
            init: None,
            instructions: Vec::new(),
            refused: Some(ShownRefusal { line: error.line, text: error.message, remedy: error.expected }),
        },
    }
}

fn describe_instructions(listing: &Listing, address: u64) -> Vec<ShownInstruction> {
    let describe = |(index, instruction): (usize, &iced_x86::Instruction)| {
        let start = instruction.ip() as usize;
        let bytes = &listing.bytes()[start..(start + instruction.len()).min(listing.bytes().len())];
        let here = address.wrapping_add(start as u64);
        // Targets of branches are addresses of the text, too.
        let placed = Decoder::with_ip(listing.mode().bits(), bytes, here, DecoderOptions::NONE).decode();
        ShownInstruction {
            address: format!("{here:#x}"),
            bytes: to_hex(bytes),
            text: format_instruction(&placed),
            line: listing.position(index).map(|at| at.line),
        }
    };
    listing.instructions().iter().enumerate().map(describe).collect()
}

fn print_text(shown: &ShownText, output: &mut Output) -> Result<(), Failure> {
    output.write_line(format!("{}, {}", shown.source, shown.dialect))?;
    for region in &shown.regions {
        output.write_line("")?;
        if !region.name.is_empty() {
            output.write_line(format!("{}, line {}", escape_controls(&region.name), region.line))?;
        }
        if let Some(refused) = &region.refused {
            output.write_line(format!("  not measured: line {}: {}", refused.line, escape_controls(&refused.text)))?;
            if let Some(remedy) = &refused.remedy {
                output.write_line(format!("  help: {}", escape_controls(remedy)))?;
            }
        }
        for line in region.init.iter().flat_map(|init| init.lines()) {
            output.write_line(format!("  before: {line}"))?;
        }
        for ShownInstruction { address, bytes, text, .. } in &region.instructions {
            output.write_line(format!("  {address:>8}  {bytes:<BYTES_WIDTH$}  {text}"))?;
        }
    }
    if !shown.dropped.is_empty() {
        output.write_line("")?;
        output.write_line("left out")?;
    }
    for ShownDrop { line, text, why } in &shown.dropped {
        output.write_line(format!("  line {line}: {} ({why})", escape_controls(text)))?;
    }
    Ok(())
}
