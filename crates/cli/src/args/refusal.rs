//! Rejected command lines, and the messages for them.

use super::grammar::build_grammar;
use super::template;
use crate::output::Failure;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Why a command line isn't run: a mistake, or a request for help.
pub enum CommandRefusal {
    /// A mistake found before the options were parsed.
    Failure(Failure),
    /// Clap's message: a mistake, or the requested help or version.
    Parser(clap::Error),
}

impl From<Failure> for CommandRefusal {
    fn from(failure: Failure) -> CommandRefusal {
        CommandRefusal::Failure(failure)
    }
}

impl From<clap::Error> for CommandRefusal {
    fn from(error: clap::Error) -> CommandRefusal {
        CommandRefusal::Parser(error)
    }
}

impl CommandRefusal {
    /// Prints the message and returns the exit code.
    pub fn report(&self) -> u8 {
        let json = asks_for_json();
        match self {
            CommandRefusal::Failure(failure) => failure.report(json),
            CommandRefusal::Parser(error) => match describe_mistake(error, json) {
                Some(failure) => failure.report(json),
                None => print_clap_error(error),
            },
        }
    }
}

fn print_clap_error(error: &clap::Error) -> u8 {
    match error.print() {
        Ok(()) => error.exit_code() as u8,
        Err(error) => Failure::from(error).report(false),
    }
}

/// The failure in this program's words; `None` if clap's message is printed as it is.
fn describe_mistake(error: &clap::Error, json: bool) -> Option<Failure> {
    // Clap names other mistakes itself, and a value may look like an option.
    let snippet = error.get(ContextKind::InvalidArg) == Some(&ContextValue::String("[SNIPPET]".to_string()));
    let misspelt = error.kind() == ErrorKind::UnknownArgument || snippet;
    let known = misspelt.then(find_unknown_option).flatten().or_else(|| explain_unswept_option(error));
    let in_json = || (error.use_stderr() && json).then(|| from_clap_message(&error.to_string()));
    known.or_else(in_json)
}

/// Whether the arguments, which could not be parsed, contain `--json`.
fn asks_for_json() -> bool {
    std::env::args_os().any(|argument| argument == "--json")
}

/// Explains a value of `run` that has a variable in braces without a sweep.
fn explain_unswept_option(error: &clap::Error) -> Option<Failure> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (option, value) = (text(ContextKind::InvalidArg)?, text(ContextKind::InvalidValue)?);
    template::find_variable(value)?;
    Some(template::unswept_failure(option.split(' ').next().unwrap_or_default(), value))
}

/// Finds the first argument that looks like an option but isn't one of this command. The snippet of
/// `run` may begin with a hyphen, so clap takes a misspelt option for the snippet and complains
/// about the real one.
fn find_unknown_option() -> Option<Failure> {
    let command = build_grammar();
    let given = || std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    let given = || given().take_while(|argument| argument != "--");
    let chosen = given().find_map(|argument| command.find_subcommand(argument));
    let arguments = chosen.into_iter().chain([&command]).flat_map(|command| command.get_arguments());
    let mut known: Vec<&str> = arguments.filter_map(|argument| argument.get_long()).collect();
    known.extend(["help", "version"]);
    let names = given().filter_map(|argument| argument.strip_prefix("--").map(str::to_string));
    let names = names.map(|name| name.split('=').next().unwrap_or_default().to_string());
    let unknown = names
        .into_iter()
        .find(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()) && !known.contains(&name.as_str()))?;
    let nearest = cyclescope::asm::nearest_words(&unknown, known.iter().copied());
    let remedy = match nearest.first() {
        Some(nearest) => format!("did you mean --{nearest}? See --help"),
        None => "see --help".to_string(),
    };
    Some(Failure::usage(format!("unknown option --{unknown}"), Some(&remedy)))
}

/// Converts clap's message to a failure. Its first paragraph says what is wrong; the paragraphs
/// before the usage help.
fn from_clap_message(message: &str) -> Failure {
    let message_text = message.split("\n\nUsage:").next().unwrap_or(message);
    let message_text = message_text.split("\n\nFor more information").next().unwrap_or(message_text).trim();
    let (text, more) = message_text.split_once("\n\n").unwrap_or((message_text, ""));
    let flat = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    let text = flat(text.trim_start_matches("error: "));
    let help = match flat(more).as_str() {
        "" => "see --help".to_string(),
        more => format!("{}; see --help", more.trim_start_matches("tip: ")),
    };
    Failure::usage(text, Some(&help))
}
