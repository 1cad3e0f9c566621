//! Code of background load: assembly, or what the words of a `cyclescope run` name.

use crate::args::{RunArgs, parse_run_words};
use crate::input::call_parameters::CallParameters;
use crate::input::source::{self, parse_checked};
use crate::input::target::{FunctionLibraries, LoadTarget};
use crate::output::Failure;
use cyclescope::asm::CodeMode;
use cyclescope::machine::Machine;
use cyclescope::snippet::Snippet;
use serde_json::Value;
use std::ffi::OsString;

/// Words that begin a command as background load. No assembly begins with them.
pub const RUN_WORDS: &str = "run ";

/// Code of a load.
pub enum LoadCode {
    /// A snippet.
    Snippet(Snippet),
    /// A call of the function of the library with this number, in a mode.
    Call(usize, Box<CallParameters>, CodeMode),
}

impl LoadCode {
    /// The mode that it runs in.
    pub fn mode(&self) -> CodeMode {
        match self {
            LoadCode::Snippet(snippet) => snippet.mode(),
            LoadCode::Call(_, _, mode) => *mode,
        }
    }
}

/// Reads code that can run in a loop on this machine: of `mode`, unless it names another one.
/// Libraries with its functions are added; `seed` determines random contents of their buffers.
pub fn read_load_code(
    text: &str,
    mode: CodeMode,
    machine: &Machine,
    libraries: &mut FunctionLibraries,
    seed: u64,
) -> Result<LoadCode, Failure> {
    let code = match text.trim_start().strip_prefix(RUN_WORDS) {
        Some(words) => read_run_code(words, mode, machine, libraries, seed)?,
        None => {
            let code = parse_checked(text, mode, machine)?.bytes().to_vec();
            LoadCode::Snippet(Snippet::new(code, Vec::new(), text).with_mode(mode))
        }
    };
    if let LoadCode::Snippet(snippet) = &code {
        require_loop(snippet)?;
    }
    Ok(code)
}

/// Fails if a snippet can't run in a loop.
fn require_loop(snippet: &Snippet) -> Result<(), Failure> {
    if snippet.code().is_empty() {
        let remedy = "name one that has, such as `nop`";
        return Err(Failure::usage("the snippet of --beside has no instructions", Some(remedy)));
    }
    // Without a plan this register counts.
    let counter = snippet.mode().choose(["R15", "EBP"]);
    if let Err(obstacle) = snippet.loop_plan_with_moves()
        && snippet.outline(false).uses_counter
    {
        let text = format!("the snippet of --beside uses {counter}, which must count its loop, because {obstacle}");
        return Err(Failure::usage(text, Some(&format!("use another register than {counter}"))));
    }
    Ok(())
}

/// Options of `run` that say what code is, by their fields.
const CODE_OPTIONS: [&str; 22] = [
    "snippet",
    "file",
    "hex",
    "c",
    "lib",
    "elf",
    "init",
    "bits",
    "syntax",
    "assembler",
    "define",
    "include",
    "include_dir",
    "call",
    "cflags",
    "cc",
    "setup",
    "serialize",
    "values",
    "buffer",
    "contents",
    "stack",
];

/// Reads the code that the words of a `cyclescope run` name: a snippet, a region of C code, or a call.
fn read_run_code(
    words: &str,
    mode: CodeMode,
    machine: &Machine,
    libraries: &mut FunctionLibraries,
    seed: u64,
) -> Result<LoadCode, Failure> {
    let remedy = "write it as in --beside 'run --file load.s', or name assembly alone";
    let words = shlex::split(words).ok_or_else(|| Failure::usage("--beside has an unclosed quote", Some(remedy)))?;
    let words = ["cyclescope", RUN_WORDS.trim_end()].into_iter().map(String::from).chain(words);
    let (common, mut args) =
        parse_run_words(words.map(OsString::from).collect()).map_err(|failure| failure.with_subject("in --beside"))?;
    let refused = |option: &str| {
        let text = format!("the code of --beside takes no {option}");
        Failure::usage(text, Some("leave it out: --beside names what runs, and this command how it is measured"))
    };
    if let Some(option) = common.first_measuring_option() {
        return Err(refused(option));
    }
    let own =
        [("--write-elf", args.write_elf.is_some()), ("--show", args.show), ("--sweep and --out", args.has_points())];
    if let Some((option, _)) = own.iter().find(|(_, is_given)| *is_given) {
        return Err(refused(option));
    }
    let Ok(Value::Object(fields)) = serde_json::to_value(&args) else { return Err(refused("options")) };
    let is_given = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(all) => !all.is_empty(),
        _ => true,
    };
    if let Some((field, _)) =
        fields.iter().find(|(name, value)| is_given(value) && !CODE_OPTIONS.contains(&name.as_str()))
    {
        return Err(refused(&format!("--{}", field.replace('_', "-"))));
    }
    args.code_mode.bits.get_or_insert(mode);
    let args = require_no_stdin(&args)?;
    match libraries.find_load(args, seed)? {
        None => Ok(LoadCode::Snippet(source::build_snippet(args, || Ok(machine.clone()))?.0.join_setup())),
        Some(LoadTarget::Region(region)) => {
            source::check_machine_code(&region, machine)?;
            Ok(LoadCode::Snippet(region))
        }
        Some(LoadTarget::Call(library, calling)) => Ok(LoadCode::Call(library, calling, args.code_mode.mode())),
    }
}

/// Fails if the code is to come from standard input, which the measured code may need.
fn require_no_stdin(args: &RunArgs) -> Result<&RunArgs, Failure> {
    match args.source.snippet.as_deref() {
        Some("-") => Err(Failure::usage("--beside reads no standard input", Some("name a file with --file"))),
        _ => Ok(args),
    }
}
