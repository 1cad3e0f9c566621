//! Sources of a snippet: the command line, a file, standard input, machine code, another assembler.

use crate::args::template;
use crate::args::{RunArgs, Syntax};
use crate::input::assembler;
use crate::output::Failure;
use cyclescope::asm::{self, Listing};
use cyclescope::error::Unavailable;
use cyclescope::input::{self, Kind, Why};
use cyclescope::machine::Machine;
use cyclescope::record::ErrorRecord;
use cyclescope::snippet::Snippet;
use iced_x86::{Decoder, DecoderError, DecoderOptions};
use std::path::Path;

/// More than this is no snippet, and would not fit the arena.
const MOST_BYTES: usize = 64 << 10;

/// The text of a snippet, where it is not machine code.
pub struct Text {
    /// The text.
    pub text: String,
    /// Whether the snippet came from standard input.
    pub from_stdin: bool,
}

/// Reads the text of the snippet that the arguments name, if they name one.
pub fn read(args: &RunArgs) -> Result<Option<Text>, Failure> {
    let from_stdin = args.source.snippet.as_deref() == Some("-");
    let text = match (&args.source.snippet, &args.source.file) {
        _ if from_stdin => text_of("standard input", input::drain(std::io::stdin(), Kind::Snippet))?,
        (Some(text), _) => text.clone(),
        (None, Some(path)) => read_file(path, Kind::Snippet)?,
        (None, None) => return Ok(None),
    };
    Ok(Some(Text { text, from_stdin }))
}

/// The snippet that the arguments name, and the machine, whose features it was checked against. What is wrong
/// with the snippet itself is found before anything about the machine is asked.
pub fn snippet(
    args: &RunArgs,
    text: Option<&Text>,
    machine: impl FnOnce() -> Result<Machine, Failure>,
) -> Result<(Snippet, Machine), Failure> {
    let (code, text) = match (&args.source.hex, text) {
        (Some(hex), _) => machine_code(hex)?,
        (None, Some(Text { text, .. })) => assembled(args, text.clone())?,
        (None, None) => {
            let remedy =
                "cyclescope run 'mulsd xmm0, xmm1', or --file, --hex, --c, --lib; see cyclescope run --help";
            return Err(Failure::usage("there is no snippet to measure", Some(remedy)));
        }
    };
    finish(args, code, &text, machine)
}

/// The snippet to compare with: of the same kind as the one that is measured.
pub fn versus(args: &RunArgs, versus: &str, machine: &Machine) -> Result<Snippet, Failure> {
    let (code, text) = match (&args.source.hex, &args.source.file) {
        (Some(_), _) => machine_code(versus)?,
        (None, Some(_)) => assembled(args, read_file(Path::new(versus), Kind::Snippet)?)?,
        (None, None) => assembled(args, versus.to_string())?,
    };
    Ok(finish(args, code, &text, || Ok(machine.clone()))?.0)
}

fn machine_code(hex: &str) -> Result<(Code, String), Failure> {
    let bytes = asm::hex(hex).map_err(|error| unswept(Failure::snippet(&error, hex), hex))?;
    let code = Code::from_bytes(&bytes)?;
    let text = code.listing.text();
    Ok((code, text))
}

/// A failure of a text, which may be for a variable that no sweep names.
fn unswept(failure: Failure, text: &str) -> Failure {
    match template::variable_in(text) {
        Some(variable) => failure.with_remedy(&template::without_sweep(variable)),
        None => failure,
    }
}

fn assembled(args: &RunArgs, text: String) -> Result<(Code, String), Failure> {
    Ok((assemble(args, &text)?, text))
}

/// The snippet of this code with the init code, and the machine, whose features both were checked against.
fn finish(
    args: &RunArgs,
    code: Code,
    text: &str,
    machine: impl FnOnce() -> Result<Machine, Failure>,
) -> Result<(Snippet, Machine), Failure> {
    let init_text = args.init.as_deref().unwrap_or_default();
    let init = assemble(args, init_text)?;
    let (bytes, init_bytes) = (code.listing.bytes(), init.listing.bytes());
    if bytes.is_empty() {
        return Err(Failure::usage("the snippet has no instructions", Some("measure `nop`, for example")));
    }
    let size = bytes.len().max(init_bytes.len());
    if size > MOST_BYTES {
        return Err(Failure::usage(format!("{size} bytes of code are too many; at most {MOST_BYTES}"), None));
    }
    let snippet = Snippet::new(bytes.to_vec(), init_bytes.to_vec(), one_line(text));
    require_loop_register(args, &snippet)?;
    let machine = machine()?;
    code.check_features(text, &machine)?;
    init.check_features(init_text, &machine)?;
    Ok((snippet, machine))
}

/// Fails where the snippet uses the register that counts a loop's iterations.
pub fn require_loop_register(args: &RunArgs, snippet: &Snippet) -> Result<(), Failure> {
    if args.loop_count.is_some() && snippet.outline(false).uses_r15 {
        let remedy = "use another register, or leave --loop out";
        return Err(Failure::usage("the snippet uses R15, which counts the loop's iterations", Some(remedy)));
    }
    Ok(())
}

/// The instructions of a text that this machine has.
pub fn checked(text: &str, machine: &Machine) -> Result<Listing, Failure> {
    let listing = asm::parse(text).map_err(|error| Failure::snippet(&error, text))?;
    let code = Code { listing, has_places: true };
    code.check_features(text, machine)?;
    Ok(code.listing)
}

/// Code, and whether its instructions have places in a text.
struct Code {
    listing: Listing,
    has_places: bool,
}

fn assemble(args: &RunArgs, text: &str) -> Result<Code, Failure> {
    match args.assembler {
        Some(_) if text.trim().is_empty() => Code::from_bytes(&[]),
        Some(assembler) => Code::from_bytes(&assembler::assemble(assembler, text)?),
        None => {
            let parsed = match args.syntax {
                None => asm::parse(text),
                Some(Syntax::Intel) => asm::parse_as(text, asm::Syntax::Intel),
                Some(Syntax::Att) => asm::parse_as(text, asm::Syntax::Att),
            };
            let listing = parsed.map_err(|error| unswept(Failure::snippet(&error, text), text))?;
            Ok(Code { listing, has_places: true })
        }
    }
}

/// Checks machine code against the CPU's features.
pub fn check(snippet: &Snippet, machine: &Machine) -> Result<(), Failure> {
    for code in [snippet.code(), snippet.init()] {
        Code::from_bytes(code)?.check_features("", machine)?;
    }
    Ok(())
}

impl Code {
    /// Machine code as it is. Bytes that nothing is known of are the CPU's to judge, but an instruction must
    /// not end in what follows the snippet.
    fn from_bytes(bytes: &[u8]) -> Result<Code, Failure> {
        let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
        while decoder.can_decode() {
            let start = decoder.position();
            let _ = decoder.decode();
            if decoder.last_error() == DecoderError::NoMoreBytes {
                let text = format!(
                    "the last instruction, {} at +{start:#x}, is not complete",
                    cyclescope::asm::to_hex(&bytes[start..])
                );
                return Err(Failure::usage(text, Some("add its missing bytes")));
            }
        }
        Ok(Code { listing: Listing::from_bytes(bytes), has_places: false })
    }

    fn check_features(&self, text: &str, machine: &Machine) -> Result<(), Failure> {
        for (index, instruction) in self.listing.instructions().iter().enumerate() {
            let Err(missing) = machine.features.require(asm::features(instruction)) else { continue };
            return Err(self.unavailable(&missing, index, text));
        }
        Ok(())
    }

    /// An instruction that this CPU does not have, with its place.
    fn unavailable(&self, missing: &Unavailable, index: usize, text: &str) -> Failure {
        let mut record = ErrorRecord::from(missing);
        let remedy = "measure it on a CPU that has it, or choose another instruction";
        record.remedy.get_or_insert(remedy.to_string());
        let lines = self.listing.text();
        record.instruction = lines.lines().nth(index).map(str::to_string);
        match self.listing.position(index).filter(|_| self.has_places) {
            Some(position) => {
                record.line = Some(position.line);
                record.column = Some(position.column);
                record.excerpt = crate::output::failure::excerpt(text, position.line, position.column);
            }
            None => record.excerpt = record.instruction.clone(),
        }
        Failure::Error(Box::new(record))
    }
}

fn one_line(text: &str) -> String {
    let statements: Vec<&str> =
        text.lines().map(|line| line.trim().trim_end_matches(';')).filter(|line| !line.is_empty()).collect();
    statements.join("; ")
}

/// The text of a file that holds a snippet, or a list of them.
pub fn read_file(path: &Path, kind: Kind) -> Result<String, Failure> {
    let remedy = match kind {
        Kind::List => "name a regular file with a snippet a line, or with the columns of a list",
        _ => "name a regular file that exists and that you may read; assembly itself needs no --file",
    };
    match input::read(path, kind) {
        Ok(bytes) => text_of(&path.display().to_string(), Ok(bytes)),
        Err(bad) => Err(Failure::input(&bad, remedy)),
    }
}

fn text_of(name: &str, read: Result<Vec<u8>, Why>) -> Result<String, Failure> {
    let bytes = read.map_err(|why| Failure::usage(format!("{name} can't be read: {why}"), None))?;
    // A byte order mark, which editors of other systems put first.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    String::from_utf8(bytes.to_vec()).map_err(|error| {
        let remedy = "save it as text in UTF-8; machine code goes to --hex";
        Failure::usage(format!("{name} can't be read: {error}"), Some(remedy))
    })
}
