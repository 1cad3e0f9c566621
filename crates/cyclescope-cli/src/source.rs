//! Where a snippet comes from: the command line, a file, standard input, machine code, another assembler.

use crate::args::RunArgs;
use crate::assembler;
use crate::failure::Failure;
use cyclescope::asm::{self, Listing};
use cyclescope::error::Unavailable;
use cyclescope::machine::Machine;
use cyclescope::record::ErrorRecord;
use cyclescope::snippet::Snippet;
use std::io::Read;
use std::path::Path;

/// More than this is no snippet, and would not fit the arena.
const MOST_BYTES: usize = 64 << 10;

/// The snippet that the arguments name, checked against the CPU's features.
pub fn snippet(args: &RunArgs, machine: &Machine) -> Result<Snippet, Failure> {
    let source = &args.source;
    let (listing, text) = if let Some(hex) = &source.hex {
        let bytes = asm::hex(hex).map_err(|error| Failure::snippet(&error, hex))?;
        let listing = Listing::from_bytes(&bytes);
        let text = listing.text();
        (listing, text)
    } else {
        let text = match (&source.snippet, &source.file) {
            (Some(dash), _) if dash == "-" => read_all("standard input", std::io::stdin())?,
            (Some(text), _) => text.clone(),
            (None, Some(path)) => read_file(path)?,
            (None, None) => {
                let remedy = "cyclescope run 'imul rax, rax', or --file, --hex; see cyclescope run --help";
                return Err(Failure::usage("there is no snippet to measure", Some(remedy)));
            }
        };
        (assemble(args, &text)?, text)
    };
    let init_text = args.init.clone().unwrap_or_default();
    let init = assemble(args, &init_text)?;
    let size = listing.bytes().len().max(init.bytes().len());
    if size > MOST_BYTES {
        return Err(Failure::usage(format!("{size} bytes of code are too many; at most {MOST_BYTES}"), None));
    }
    check_features(&listing, &text, machine)?;
    check_features(&init, &init_text, machine)?;
    let snippet = Snippet::new(listing.bytes().to_vec(), init.bytes().to_vec(), one_line(&text));
    if args.loop_count.is_some() && snippet.outline(false).uses_r15 {
        let remedy = "use another register, or leave --loop out";
        return Err(Failure::usage("the snippet uses R15, which counts the loop's iterations", Some(remedy)));
    }
    Ok(snippet)
}

fn assemble(args: &RunArgs, text: &str) -> Result<Listing, Failure> {
    match args.assembler {
        Some(assembler) => Ok(Listing::from_bytes(&assembler::assemble(assembler, text)?)),
        None => asm::parse(text).map_err(|error| Failure::snippet(&error, text)),
    }
}

/// Checks machine code against the CPU's features.
pub fn check(snippet: &Snippet, machine: &Machine) -> Result<(), Failure> {
    for code in [snippet.code(), snippet.init()] {
        let listing = Listing::from_bytes(code);
        check_features(&listing, &listing.text(), machine)?;
    }
    Ok(())
}

fn check_features(listing: &Listing, text: &str, machine: &Machine) -> Result<(), Failure> {
    for (index, instruction) in listing.instructions().iter().enumerate() {
        let Err(missing) = machine.features.require(asm::features(instruction)) else { continue };
        return Err(unavailable(&missing, listing, index, text));
    }
    Ok(())
}

/// An instruction that this CPU does not have, with its place.
fn unavailable(missing: &Unavailable, listing: &Listing, index: usize, text: &str) -> Failure {
    let mut record = ErrorRecord::from(missing);
    record.remedy.get_or_insert("measure it on a CPU that has it, or choose another instruction".to_string());
    if let Some(position) = listing.position(index) {
        record.line = Some(position.line);
        record.column = Some(position.column);
        record.excerpt = crate::failure::excerpt(text, position.line, position.column);
    }
    Failure::Error(Box::new(record))
}

fn one_line(text: &str) -> String {
    let statements: Vec<&str> =
        text.lines().map(|line| line.trim().trim_end_matches(';')).filter(|line| !line.is_empty()).collect();
    statements.join("; ")
}

fn read_file(path: &Path) -> Result<String, Failure> {
    let name = path.display().to_string();
    match std::fs::File::open(path) {
        Ok(file) => read_all(&name, file),
        Err(error) => Err(Failure::usage(format!("opening {name} failed: {error}"), None)),
    }
}

fn read_all(name: &str, stream: impl Read) -> Result<String, Failure> {
    let mut text = String::new();
    // One byte more than a snippet can have as text shows that there is too much.
    let most = 64 * MOST_BYTES as u64;
    match stream.take(most + 1).read_to_string(&mut text) {
        Ok(read) if read as u64 > most => {
            Err(Failure::usage(format!("{name} is too long for a snippet"), None))
        }
        Ok(_) => Ok(text),
        Err(error) => Err(Failure::usage(format!("reading {name} failed: {error}"), None)),
    }
}
