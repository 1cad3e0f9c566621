//! Command lines that are not understood.

use super::grammar::build_grammar;
use super::template;
use crate::output::Failure;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Why a command line is not run: a mistake, or a request for help.
pub enum CommandRefusal {
    /// A mistake that was found before the options were parsed.
    Failure(Failure),
    /// What clap has to say: help and version are no errors.
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
    /// Prints it and returns the exit code.
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

/// The failure in this program's words; none where clap's own are printed.
fn describe_mistake(error: &clap::Error, json: bool) -> Option<Failure> {
    // Other mistakes are named by clap, and a value may look like an option.
    let snippet = error.get(ContextKind::InvalidArg) == Some(&ContextValue::String("[SNIPPET]".to_string()));
    let misspelt = error.kind() == ErrorKind::UnknownArgument || snippet;
    let known = misspelt.then(find_unknown_option).flatten().or_else(|| explain_unswept_option(error));
    let in_json = || (error.use_stderr() && json).then(|| from_clap_message(&error.to_string()));
    known.or_else(in_json)
}

/// Whether JSON was asked for, by the text of arguments that could not be parsed.
fn asks_for_json() -> bool {
    std::env::args_os().any(|argument| argument == "--json")
}

/// Where a value of `run` has a variable in braces and no sweep names it.
fn explain_unswept_option(error: &clap::Error) -> Option<Failure> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    template::unswept_failure(text(ContextKind::InvalidArg)?, text(ContextKind::InvalidValue)?)
}

/// The first argument that looks like an option of the command and is none. The snippet of `run` may begin with a hyphen, so that clap
/// takes a misspelt option for it and complains of the snippet that follows.
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
    Some(Failure::usage(format!("there is no option --{unknown}"), Some(&remedy)))
}

/// The paragraphs of clap's message as a failure: the first says what is wrong, those before the usage what
/// would help.
fn from_clap_message(message: &str) -> Failure {
    let told = message.split("\n\nUsage:").next().unwrap_or(message);
    let told = told.split("\n\nFor more information").next().unwrap_or(told).trim();
    let (text, more) = told.split_once("\n\n").unwrap_or((told, ""));
    let flat = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    let text = flat(text.trim_start_matches("error: "));
    let help = match flat(more).as_str() {
        "" => "see --help".to_string(),
        more => format!("{}; see --help", more.trim_start_matches("tip: ")),
    };
    Failure::usage(text, Some(&help))
}
