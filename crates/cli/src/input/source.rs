//! Reads snippets from the command line, a file, standard input, machine code or another assembler.

use crate::args::template;
use crate::args::{AssemblySyntax, RunArgs};
use crate::input::assembler;
use crate::input::object_code::AssembledCode;
use crate::output::{Failure, print_warning};
use cyclescope::asm::{self, CodeMode, Listing, SnippetData};
use cyclescope::error::{BadSnippet, Unavailable};
use cyclescope::input::{self, InputDefect, InputKind};
use cyclescope::machine::Machine;
use cyclescope::pasted::{self, DroppedLine, PastedRegion, PastedText, RegionCode, has_att_registers};
use cyclescope::record::ErrorRecord;
use cyclescope::snippet::{Snippet, SnippetSetup};
use cyclescope::study::run::AdviceTexts;
use iced_x86::{Decoder, DecoderError, DecoderOptions};
use std::path::Path;

/// Longer text isn't a snippet, and its code wouldn't fit into the arena.
const SNIPPET_BYTES_MOST: usize = 64 << 10;

/// Replaces the argument `-` by the text of standard input.
pub fn read_stdin(args: &RunArgs) -> Result<RunArgs, Failure> {
    let mut args = args.clone();
    if args.source.snippet.as_deref() == Some("-") {
        let read = input::read_stream(std::io::stdin(), InputKind::Snippet);
        args.source.snippet = Some(end_lines(decode_text("standard input", read)?));
    }
    Ok(args)
}

/// Reads the text of the snippet, if the arguments name one.
pub fn read_snippet_text(args: &RunArgs) -> Result<Option<String>, Failure> {
    match (&args.source.snippet, &args.source.file) {
        (Some(text), _) => Ok(Some(text.clone())),
        (None, Some(path)) => Ok(Some(end_lines(read_file(path, InputKind::Snippet)?))),
        (None, None) => Ok(None),
    }
}

/// Ends the last line, so that a text of one line differs from an argument: `;` starts a comment
/// in files of NASM.
fn end_lines(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Builds the snippet that the arguments name, and detects the machine whose features it was
/// checked against. Errors in the snippet are reported before the machine is examined.
pub fn build_snippet(
    args: &RunArgs,
    machine: impl FnOnce() -> Result<Machine, Failure>,
) -> Result<(Snippet, Machine), Failure> {
    let code = match (&args.source.hex, read_snippet_text(args)?) {
        (Some(hex), _) => parse_machine_code(hex, args.code_mode.mode())?,
        (None, Some(text)) => read_code(args, text)?,
        (None, None) => {
            let remedy = "name one, as in cyclescope run 'mulsd xmm0, xmm1', or use --file, --hex, --c, --lib or --elf";
            return Err(Failure::usage("there is no snippet to measure", Some(remedy)));
        }
    };
    finish_snippet(args, code, machine)
}

fn parse_machine_code(hex: &str, mode: CodeMode) -> Result<SourceCode, Failure> {
    let bytes = asm::parse_hex(hex).map_err(|error| explain_unswept(Failure::from_snippet(&error, hex), hex))?;
    let parsed = ParsedCode::from_bytes(&bytes, mode)?;
    let shown = parsed.listing.text();
    Ok(SourceCode { parsed, source: hex.to_string(), shown, ..SourceCode::default() })
}

/// Code with the text that it comes from.
#[derive(Default)]
struct SourceCode {
    parsed: ParsedCode,
    /// The whole text, to which positions refer.
    source: String,
    /// The text that reports show.
    shown: String,
    /// Assembly that the text wants to run before, in Intel syntax.
    init: String,
    /// Constants and variables of the text.
    data: Option<SnippetData>,
    /// --init and --setup, if an external assembler has read them with the text.
    further: Option<[ParsedCode; 2]>,
}

/// Adds a hint if the text has a variable without a sweep.
fn explain_unswept(failure: Failure, text: &str) -> Failure {
    match template::find_variable(text) {
        Some(variable) => failure.with_remedy(&template::sweep_remedy(variable)),
        None => failure,
    }
}

/// Reads the code of a text, which must be one region.
fn read_code(args: &RunArgs, text: String) -> Result<SourceCode, Failure> {
    if let Some(assembler) = args.assembler {
        let [init, setup] = [&args.init, &args.call_with.setup].map(|text| text.as_deref().unwrap_or_default());
        let AssembledCode { codes, data } = assembler::run_assembler(assembler, args, [&text, init, setup])?;
        let [code, init, setup] = codes.map(|code| ParsedCode::from_bytes(&code, args.code_mode.mode()));
        let further = Some([init?, setup?]);
        return Ok(SourceCode {
            parsed: code?,
            shown: text.clone(),
            source: text,
            data,
            further,
            ..SourceCode::default()
        });
    }
    let mut found = read_text(args, &text)?;
    if let [_, second, ..] = &found.regions[..] {
        let count = found.regions.len();
        let message =
            format!("the text has {count} regions; the second, {}, begins in line {}", second.name, second.line);
        return Err(Failure::usage(message, Some("leave one, or measure all of them without --versus and --sweep")));
    }
    warn_of_dropped(&found);
    match found.regions.pop().map(|region| region.code) {
        Some(Ok(RegionCode { listing, text: shown, init, data, .. })) => {
            let parsed = ParsedCode { listing, has_places: true };
            Ok(SourceCode { parsed, source: text, shown, init, data, further: None })
        }
        Some(Err(error)) => Err(Failure::from_snippet(&error, &text)),
        None => Err(no_instructions()),
    }
}

/// The text of the snippet with its regions; `None` if it has fewer than two, or isn't read here.
pub fn read_regions(args: &RunArgs) -> Result<Option<(String, PastedText)>, Failure> {
    if args.assembler.is_some() || !args.versus.is_empty() || args.points.sweep.is_some() {
        return Ok(None);
    }
    let Some(text) = read_snippet_text(args)? else { return Ok(None) };
    let mut found = read_text(args, &text)?;
    if found.regions.len() < 2 {
        return Ok(None);
    }
    let has_data = found.regions.iter().flat_map(|region| &region.code).any(|code| code.data.is_some());
    if has_data && (args.init.is_some() || args.call_with.setup.is_some()) {
        let remedy = "leave one region, or measure them without --init and --setup";
        return Err(Failure::usage("a text with data and several regions has no --init and no --setup", Some(remedy)));
    }
    place_data(&mut found);
    Ok(Some((text, found)))
}

/// Places the data that each region uses.
fn place_data(found: &mut PastedText) {
    for region in &mut found.regions {
        if let Ok(code) = &mut region.code
            && let Err(error) = code.place_data()
        {
            region.code = Err(error);
        }
    }
}

/// What was made of the text that the options name.
pub fn read_shown(args: &RunArgs) -> Result<PastedText, Failure> {
    if args.assembler.is_none() && args.source.hex.is_none() {
        let text = read_snippet_text(args)?.unwrap_or_default();
        let mut found = read_text(args, &text)?;
        place_data(&mut found);
        return Ok(found);
    }
    let SourceCode { parsed, shown, data, .. } = match &args.source.hex {
        Some(hex) => parse_machine_code(hex, args.code_mode.mode())?,
        None => read_code(args, read_snippet_text(args)?.unwrap_or_default())?,
    };
    let code = RegionCode { listing: parsed.listing, text: shown, data, ..RegionCode::default() };
    let regions = vec![PastedRegion { name: String::new(), line: 1, code: Ok(code) }];
    let source = if args.source.hex.is_some() { "machine code" } else { "text for another assembler" };
    let mut found = PastedText { source, syntax: None, regions, dropped: Vec::new() };
    place_data(&mut found);
    Ok(found)
}

/// Reads a text in the syntax of the options.
pub fn read_text(args: &RunArgs, text: &str) -> Result<PastedText, Failure> {
    read_text_with_data(args, text, None)
}

/// Reads a text that may use labels of the snippet's data.
fn read_text_with_data(args: &RunArgs, text: &str, data: Option<&SnippetData>) -> Result<PastedText, Failure> {
    let syntax = args.syntax.map(|syntax| match syntax {
        AssemblySyntax::Intel => asm::InstructionSyntax::Intel,
        AssemblySyntax::Att => asm::InstructionSyntax::Att,
    });
    let mut found = pasted::read_for_mode(text, args.code_mode.mode(), syntax, data).map_err(|error| {
        explain_file(&error, text).unwrap_or_else(|| explain_unswept(Failure::from_snippet(&error, text), text))
    })?;
    distinguish_regions(&mut found.regions);
    Ok(found)
}

/// Numbers the regions that have no name, and those that share one.
fn distinguish_regions(regions: &mut [PastedRegion]) {
    if regions.len() < 2 {
        return;
    }
    regions.iter_mut().filter(|region| region.name.is_empty()).for_each(|region| region.name = "region".to_string());
    let names: Vec<String> = regions.iter().map(|region| region.name.clone()).collect();
    for (at, region) in regions.iter_mut().enumerate() {
        let [before, all] =
            [&names[..at], &names[..]].map(|names| names.iter().filter(|name| **name == region.name).count());
        if all > 1 {
            region.name = format!("{} {}", region.name, before + 1);
        }
    }
}

/// The failure for a text that is the name of a file.
fn explain_file(error: &BadSnippet, text: &str) -> Option<Failure> {
    const ENDINGS: [&str; 7] = ["s", "asm", "txt", "c", "o", "bin", "hex"];
    let name = text.trim();
    let path = Path::new(name);
    let has_ending =
        path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known)));
    if name.contains(char::is_whitespace) || error.line != 1 || !(has_ending || path.is_file()) {
        return None;
    }
    let remedy = format!("read it with --file {}", shlex::try_quote(name).ok()?);
    let what = if path.is_file() { "is a file" } else { "looks like the name of a file" };
    Some(Failure::usage(format!("`{name}` {what}, not assembly"), Some(&remedy)))
}

/// Most lines that a warning names.
const WARNED_LINES_MOST: usize = 8;

/// Warns of code that is left out, once for each reason, and of code that is encoded differently.
pub fn warn_of_dropped(found: &PastedText) {
    let mut reasons: Vec<(&str, Vec<&DroppedLine>)> = Vec::new();
    for dropped in found.dropped.iter().filter(|dropped| dropped.is_code) {
        match reasons.iter_mut().find(|(why, _)| *why == dropped.why) {
            Some((_, lines)) => lines.push(dropped),
            None => reasons.push((dropped.why, vec![dropped])),
        }
    }
    for (why, lines) in reasons {
        let numbers: Vec<String> =
            lines.iter().take(WARNED_LINES_MOST).map(|dropped| dropped.line.to_string()).collect();
        let more = if lines.len() > numbers.len() { " and more (see --show)" } else { "" };
        print_warning(&format!("not measured: `{}`, line {}{more}; {why}", lines[0].text, numbers.join(", ")));
    }
    let codes = found.regions.iter().filter_map(|region| region.code.as_ref().ok());
    if let Some(line) = codes.clone().find_map(|code| code.called_for) {
        print_warning(&format!(
            "the function returns in line {line} and later, so it is called, and the call and the return are measured too"
        ));
    }
    if let Some(line) = codes.flat_map(|code| code.reencoded.first()).next() {
        print_warning(&format!("line {line} is encoded differently than in the listing; paste the bytes too"));
    }
}

fn no_instructions() -> Failure {
    Failure::usage("the snippet has no instructions", Some("write at least one, such as `nop`"))
}

/// The texts of the options, as advice about the snippet repeats them.
pub fn read_advice_texts(args: &RunArgs) -> AdviceTexts {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let (init, setup) = (text(&args.init), text(&args.call_with.setup));
    let is_att = match args.syntax {
        Some(syntax) => syntax == AssemblySyntax::Att,
        None => [&text(&args.source.snippet), &init, &setup].into_iter().any(|text| has_att_registers(text)),
    };
    AdviceTexts { init, setup, is_att }
}

/// Combines code and init code into a snippet, and checks both against the machine's features.
fn finish_snippet(
    args: &RunArgs,
    code: SourceCode,
    machine: impl FnOnce() -> Result<Machine, Failure>,
) -> Result<(Snippet, Machine), Failure> {
    let SourceCode { parsed: mut code, source, shown, init: own_init, data, further } = code;
    let init_text = args.init.as_deref().unwrap_or_default();
    let setup_text = args.call_with.setup.as_deref().unwrap_or_default();
    let [mut init, mut setup] = match further {
        Some(further) => further,
        None => [parse_code(args, init_text, data.as_ref())?, parse_code(args, setup_text, data.as_ref())?],
    };
    let mut own_init = asm::parse_for_mode(&own_init, args.code_mode.mode(), None)
        .map_err(|error| Failure::from_snippet(&error, &own_init))?;
    let mut listings = [&mut code.listing, &mut init.listing, &mut setup.listing, &mut own_init];
    let data_init = match &data {
        Some(data) => data.place(&mut listings).map_err(|error| Failure::from_snippet(&error, &source))?,
        None => Vec::new(),
    };
    let [bytes, setup_bytes] = [&code, &setup].map(|code| code.listing.bytes());
    let init_bytes = &[&data_init, own_init.bytes(), init.listing.bytes()].concat();
    if bytes.is_empty() {
        return Err(no_instructions());
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
    let snippet = Snippet::new(bytes.to_vec(), init_bytes.clone(), join_statements(&shown));
    let snippet = snippet.with_mode(args.code_mode.mode()).with_setup(Some(before_copies));
    require_loop(args, &snippet.join_setup())?;
    let machine = machine()?;
    code.check_features(&source, &machine)?;
    // The position is in a text that the user has not written.
    ParsedCode { listing: own_init, has_places: false }.check_features("", &machine)?;
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

/// Parses the instructions of a text in a mode, and fails if this machine lacks one.
pub fn parse_checked(text: &str, mode: CodeMode, machine: &Machine) -> Result<Listing, Failure> {
    let listing = asm::parse_for_mode(text, mode, None).map_err(|error| Failure::from_snippet(&error, text))?;
    let code = ParsedCode { listing, has_places: true };
    code.check_features(text, machine)?;
    Ok(code.listing)
}

/// Parsed code, and whether its instructions have positions in a text.
#[derive(Default)]
struct ParsedCode {
    listing: Listing,
    has_places: bool,
}

/// Parses init code or a setup, which may use labels of the snippet's data. With machine code as
/// snippet, an external assembler reads them alone.
fn parse_code(args: &RunArgs, text: &str, data: Option<&SnippetData>) -> Result<ParsedCode, Failure> {
    if text.trim().is_empty() {
        return Ok(ParsedCode::default());
    }
    if let Some(assembler) = args.assembler {
        let AssembledCode { codes: [code, ..], data } = assembler::run_assembler(assembler, args, [text, "", ""])?;
        return if data.is_some() {
            Err(refuse_own_data())
        } else {
            ParsedCode::from_bytes(&code, args.code_mode.mode())
        };
    }
    let mut found = read_text_with_data(args, text, data)?;
    if found.regions.len() > 1 {
        let message = format!("the text of --init or --setup has {} regions", found.regions.len());
        return Err(Failure::usage(message, Some("leave one")));
    }
    warn_of_dropped(&found);
    let code = found.regions.pop().map_or(Ok(RegionCode::default()), |region| region.code);
    let RegionCode { listing, data, .. } = code.map_err(|error| Failure::from_snippet(&error, text))?;
    if data.is_some() { Err(refuse_own_data()) } else { Ok(ParsedCode { listing, has_places: true }) }
}

fn refuse_own_data() -> Failure {
    Failure::usage("--init and --setup have no data of their own", Some("write it in the text of the snippet"))
}

/// Checks machine code against the CPU's features.
pub fn check_machine_code(snippet: &Snippet, machine: &Machine) -> Result<(), Failure> {
    let setup = snippet.setup().map_or(&[][..], |setup| &setup.code);
    for code in [snippet.code(), snippet.init(), setup] {
        ParsedCode::from_bytes(code, snippet.mode())?.check_features("", machine)?;
    }
    Ok(())
}

impl ParsedCode {
    /// Parses machine code. Unknown bytes are left to the CPU, but an instruction must not extend
    /// beyond the snippet.
    fn from_bytes(bytes: &[u8], mode: CodeMode) -> Result<ParsedCode, Failure> {
        let mut decoder = Decoder::new(mode.bits(), bytes, DecoderOptions::NONE);
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
        Ok(ParsedCode { listing: Listing::from_code(bytes, mode), has_places: false })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::grammar::build_grammar;
    use crate::args::{Cli, CliCommand};
    use clap::FromArgMatches;
    use cyclescope::machine::fact::Fact;
    use cyclescope::machine::features::{CpuFeatures, SystemSupport};
    use cyclescope::record::exit;

    #[test]
    fn init_code_of_a_pasted_text_needs_features_of_the_cpu() {
        let mut machine = Machine::detect();
        // The system enables no wide registers.
        let lfence = Fact::unknown("it is not asked");
        machine.features = CpuFeatures::from_leaves(&machine.cpuid, &machine.cpu, SystemSupport::default(), lfence);
        let words = ["cyclescope", "run", "# LLVM-EXEGESIS-DEFREG ZMM3 1f80\nnop"];
        let cli = Cli::from_arg_matches(&build_grammar().get_matches_from(words)).expect("the options exist");
        let Some(CliCommand::Run(args)) = cli.command else { panic!("it is `run`") };
        let Err(Failure::Error(record)) = build_snippet(&args, || Ok(machine)) else { panic!("it needs AVX-512") };
        assert_eq!(record.exit, exit::UNAVAILABLE, "{record:?}");
        assert!(record.text.contains("avx512"), "{record:?}");
        assert!(record.instruction.as_ref().is_some_and(|text| text.contains("zmm3")), "{record:?}");
    }
}
