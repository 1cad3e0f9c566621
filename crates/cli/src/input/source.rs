//! Reads snippets from the command line, a file, standard input, machine code or another assembler.

use crate::args::template;
use crate::args::{AssemblySyntax, RunArgs};
use crate::input::assembler;
use crate::output::Failure;
use cyclescope::asm::{self, Listing};
use cyclescope::error::Unavailable;
use cyclescope::input::{self, InputDefect, InputKind};
use cyclescope::machine::Machine;
use cyclescope::record::ErrorRecord;
use cyclescope::snippet::{Snippet, SnippetSetup};
use iced_x86::{Decoder, DecoderError, DecoderOptions};
use std::path::Path;

/// Longer text isn't a snippet, and its code wouldn't fit into the arena.
const SNIPPET_BYTES_MOST: usize = 64 << 10;

/// The text of a snippet that isn't machine code.
pub struct SnippetText {
    /// The assembly.
    pub text: String,
    /// Whether the snippet came from standard input.
    pub from_stdin: bool,
}

/// Whether the snippet comes from standard input.
pub fn is_from_stdin(args: &RunArgs) -> bool {
    args.source.snippet.as_deref() == Some("-")
}

/// Reads the text of the snippet, if the arguments name one.
pub fn read_snippet_text(args: &RunArgs) -> Result<Option<SnippetText>, Failure> {
    let from_stdin = is_from_stdin(args);
    let text = match (&args.source.snippet, &args.source.file) {
        _ if from_stdin => decode_text("standard input", input::read_stream(std::io::stdin(), InputKind::Snippet))?,
        (Some(text), _) => text.clone(),
        (None, Some(path)) => read_file(path, InputKind::Snippet)?,
        (None, None) => return Ok(None),
    };
    Ok(Some(SnippetText { text, from_stdin }))
}

/// Builds the snippet that the arguments name, and detects the machine whose features it was
/// checked against. Errors in the snippet are reported before the machine is examined.
pub fn build_snippet(
    args: &RunArgs,
    text: Option<&SnippetText>,
    machine: impl FnOnce() -> Result<Machine, Failure>,
) -> Result<(Snippet, Machine), Failure> {
    let (code, text) = match (&args.source.hex, text) {
        (Some(hex), _) => parse_machine_code(hex)?,
        (None, Some(SnippetText { text, .. })) => assemble_text(args, text.clone())?,
        (None, None) => {
            let remedy = "name one, as in cyclescope run 'mulsd xmm0, xmm1', or use --file, --hex, --c, --lib or --elf";
            return Err(Failure::usage("there is no snippet to measure", Some(remedy)));
        }
    };
    finish_snippet(args, code, &text, machine)
}

fn parse_machine_code(hex: &str) -> Result<(ParsedCode, String), Failure> {
    let bytes = asm::parse_hex(hex).map_err(|error| explain_unswept(Failure::from_snippet(&error, hex), hex))?;
    let code = ParsedCode::from_bytes(&bytes)?;
    let text = code.listing.text();
    Ok((code, text))
}

/// Adds a hint if the text has a variable without a sweep.
fn explain_unswept(failure: Failure, text: &str) -> Failure {
    match template::find_variable(text) {
        Some(variable) => failure.with_remedy(&template::sweep_remedy(variable)),
        None => failure,
    }
}

fn assemble_text(args: &RunArgs, text: String) -> Result<(ParsedCode, String), Failure> {
    Ok((parse_code(args, &text)?, text))
}

/// Combines code and init code into a snippet, and checks both against the machine's features.
fn finish_snippet(
    args: &RunArgs,
    code: ParsedCode,
    text: &str,
    machine: impl FnOnce() -> Result<Machine, Failure>,
) -> Result<(Snippet, Machine), Failure> {
    let init_text = args.init.as_deref().unwrap_or_default();
    let init = parse_code(args, init_text)?;
    let setup_text = args.call_with.setup.as_deref().unwrap_or_default();
    let setup = parse_code(args, setup_text)?;
    let [bytes, init_bytes, setup_bytes] = [&code, &init, &setup].map(|code| code.listing.bytes());
    if bytes.is_empty() {
        return Err(Failure::usage("the snippet has no instructions", Some("write at least one, such as `nop`")));
    }
    let size = bytes.len().max(init_bytes.len()).max(setup_bytes.len());
    if size > SNIPPET_BYTES_MOST {
        return Err(Failure::usage(
            format!("the snippet has {size} bytes of code, more than {SNIPPET_BYTES_MOST}"),
            None,
        ));
    }
    if !setup_text.is_empty() && !args.cold.is_empty() {
        let remedy = "leave one of them out: --init runs before the state becomes cold";
        return Err(Failure::usage("--setup would warm what --cold makes cold", Some(remedy)));
    }
    let before_copies = SnippetSetup { code: setup_bytes.to_vec(), text: join_statements(setup_text) };
    let snippet = Snippet::new(bytes.to_vec(), init_bytes.to_vec(), join_statements(text));
    let snippet = snippet.with_setup(Some(before_copies));
    require_loop(args, &snippet.join_setup())?;
    let machine = machine()?;
    code.check_features(text, &machine)?;
    init.check_features(init_text, &machine)?;
    setup.check_features(setup_text, &machine)?;
    Ok((snippet, machine))
}

/// Fails if a loop is asked for that the snippet can't have.
pub fn require_loop(args: &RunArgs, snippet: &Snippet) -> Result<(), Failure> {
    match snippet.loop_plan_with_moves() {
        Err(obstacle) if args.loop_count.is_some() => {
            Err(Failure::usage(format!("{obstacle}, so it has no loop"), Some("leave --loop out")))
        }
        _ => Ok(()),
    }
}

/// Parses the instructions of a text, and fails if this machine lacks one.
pub fn parse_checked(text: &str, machine: &Machine) -> Result<Listing, Failure> {
    let listing = asm::parse_assembly(text).map_err(|error| Failure::from_snippet(&error, text))?;
    let code = ParsedCode { listing, has_places: true };
    code.check_features(text, machine)?;
    Ok(code.listing)
}

/// Parsed code, and whether its instructions have positions in a text.
struct ParsedCode {
    listing: Listing,
    has_places: bool,
}

fn parse_code(args: &RunArgs, text: &str) -> Result<ParsedCode, Failure> {
    match args.assembler {
        Some(_) if text.trim().is_empty() => ParsedCode::from_bytes(&[]),
        Some(assembler) => ParsedCode::from_bytes(&assembler::run_assembler(assembler, text)?),
        None => {
            let parsed = match args.syntax {
                None => asm::parse_assembly(text),
                Some(AssemblySyntax::Intel) => asm::parse_with_syntax(text, asm::InstructionSyntax::Intel),
                Some(AssemblySyntax::Att) => asm::parse_with_syntax(text, asm::InstructionSyntax::Att),
            };
            let listing = parsed.map_err(|error| explain_unswept(Failure::from_snippet(&error, text), text))?;
            Ok(ParsedCode { listing, has_places: true })
        }
    }
}

/// Checks machine code against the CPU's features.
pub fn check_machine_code(snippet: &Snippet, machine: &Machine) -> Result<(), Failure> {
    let setup = snippet.setup().map_or(&[][..], |setup| &setup.code);
    for code in [snippet.code(), snippet.init(), setup] {
        ParsedCode::from_bytes(code)?.check_features("", machine)?;
    }
    Ok(())
}

impl ParsedCode {
    /// Parses machine code. Unknown bytes are left to the CPU, but an instruction must not extend
    /// beyond the snippet.
    fn from_bytes(bytes: &[u8]) -> Result<ParsedCode, Failure> {
        let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
        while decoder.can_decode() {
            let start = decoder.position();
            let _ = decoder.decode();
            if decoder.last_error() == DecoderError::NoMoreBytes {
                let text = format!(
                    "the last instruction, {} at +{start:#x}, is not complete",
                    cyclescope::asm::to_hex(&bytes[start..])
                );
                return Err(Failure::usage(text, Some("add the missing bytes")));
            }
        }
        Ok(ParsedCode { listing: Listing::from_bytes(bytes), has_places: false })
    }

    fn check_features(&self, text: &str, machine: &Machine) -> Result<(), Failure> {
        for (index, instruction) in self.listing.instructions().iter().enumerate() {
            let Err(missing) = machine.features.require(asm::required_features(instruction)) else {
                continue;
            };
            return Err(self.explain_unavailable(&missing, index, text));
        }
        Ok(())
    }

    /// The failure for an instruction that this CPU lacks, with its position.
    fn explain_unavailable(&self, missing: &Unavailable, index: usize, text: &str) -> Failure {
        let mut record = ErrorRecord::from(missing);
        let remedy = "measure it on a CPU that has it, or choose another instruction";
        record.remedy.get_or_insert(remedy.to_string());
        let lines = self.listing.text();
        record.instruction = lines.lines().nth(index).map(str::to_string);
        match self.listing.position(index).filter(|_| self.has_places) {
            Some(position) => {
                record.line = Some(position.line);
                record.column = Some(position.column);
                record.excerpt = crate::output::failure::excerpt_line(text, position.line, position.column);
            }
            None => record.excerpt = record.instruction.clone(),
        }
        Failure::Error(Box::new(record))
    }
}

fn join_statements(text: &str) -> String {
    let statements: Vec<&str> =
        text.lines().map(|line| line.trim().trim_end_matches(';')).filter(|line| !line.is_empty()).collect();
    statements.join("; ")
}

/// Reads the text of a file with a snippet or a list of snippets.
pub fn read_file(path: &Path, kind: InputKind) -> Result<String, Failure> {
    let remedy = match kind {
        InputKind::List => "name a regular file with one snippet per line, or with the columns of a list",
        _ => "name an existing regular file that you may read; to pass assembly itself, leave out --file",
    };
    match input::read_input(path, kind) {
        Ok(bytes) => decode_text(&path.display().to_string(), Ok(bytes)),
        Err(bad) => Err(Failure::from_input(&bad, remedy)),
    }
}

fn decode_text(name: &str, read: Result<Vec<u8>, InputDefect>) -> Result<String, Failure> {
    let bytes = read.map_err(|why| Failure::usage(format!("{name} can't be read: {why}"), None))?;
    // A byte order mark, which some editors write first.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    String::from_utf8(bytes.to_vec()).map_err(|error| {
        let remedy = "save it as UTF-8 text, or pass machine code with --hex";
        Failure::usage(format!("{name} can't be read: {error}"), Some(remedy))
    })
}
