//! The cyclescope command line: parses arguments, runs the command, prints the result and returns the exit code.

mod ab;
mod again;
mod args;
mod assembler;
mod beside;
mod calling;
mod charset;
mod clocks;
mod commands;
mod compare;
mod compiler;
mod doctor;
mod driver;
mod elf;
mod evaluate;
mod evidence;
mod executor;
mod failure;
mod file;
mod follower;
mod function;
mod grammar;
mod instr;
mod interrupt;
mod isolated;
mod library;
mod look;
mod marker;
mod notes;
mod output;
mod page;
mod plain;
mod plots;
mod points;
mod progress;
mod region;
mod replay;
mod report;
mod repro;
mod resume;
mod returned;
mod run;
mod source;
mod stale;
mod table_file;
mod template;
mod terminal;
mod tool;
mod uarch;
mod wanted;

use args::{Cli, Command, Common};
use clap::FromArgMatches;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use cyclescope::study::{self, StudyInfo};
use failure::Failure;
use grammar::grammar;
use output::Output;
use plain::PlainArgs;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    interrupt::handle();
    let words = match template::with_first_value(std::env::args_os().collect()) {
        Ok(words) => words,
        Err(failure) => return ExitCode::from(failure.report(asks_for_json())),
    };
    let asked = match Asked::parse(words) {
        Ok(asked) => asked,
        Err(error) => return usage(&error),
    };
    let json = asked.common().json;
    if output::is_closed() {
        let remedy = "send it somewhere, as in `> result.txt`, or to /dev/null";
        let closed = Failure::internal("standard output is closed, so that no result can be printed");
        return ExitCode::from(closed.with_remedy(remedy).report(false));
    }
    let mut output = Output::new(json);
    let result = dispatch(&asked, &mut output).and_then(|code| output.finish().map(|()| code));
    match result {
        Ok(code) => ExitCode::from(code),
        Err(failure) => ExitCode::from(failure.report(json)),
    }
}

/// What was asked for.
enum Asked {
    /// A command with options of its own, or none.
    Own(Box<Cli>),
    /// A study that takes names only.
    Plain(Box<(StudyInfo, Common, PlainArgs)>),
}

impl Asked {
    fn parse(words: Vec<OsString>) -> Result<Asked, clap::Error> {
        let matches = grammar().try_get_matches_from(words)?;
        match plain::chosen(&matches, study::ALL)? {
            Some(chosen) => Ok(Asked::Plain(Box::new(chosen))),
            None => Ok(Asked::Own(Box::new(Cli::from_arg_matches(&matches)?))),
        }
    }

    fn common(&self) -> &Common {
        match self {
            Asked::Own(cli) => &cli.common,
            Asked::Plain(chosen) => &chosen.1,
        }
    }
}

fn dispatch(asked: &Asked, output: &mut Output) -> Result<u8, Failure> {
    let common = asked.common();
    if common.clock.iter().any(|name| name == "list") {
        return clocks::list(common, output);
    }
    let offer = common.offer();
    if common.force && !offer.takes_force {
        let takers = cyclescope::executor::ALL.iter().filter(|offer| offer.takes_force);
        let takers: Vec<&str> = takers.map(|offer| offer.name).collect();
        let remedy = format!("leave it out, or add --executor {}", takers.join(" or "));
        return Err(Failure::usage(format!("--force has no effect in {}", offer.place), Some(&remedy)));
    }
    if let Some(why) = alone(asked) {
        return Err(Failure::usage(why, Some("leave --beside and --beside-cpu out")));
    }
    let command = match asked {
        Asked::Own(cli) => &cli.command,
        Asked::Plain(chosen) => {
            let (info, common, args) = &**chosen;
            return plain::plain(info, common, args, output);
        }
    };
    match command {
        None => Err(Failure::usage(
            "no command was given",
            Some("cyclescope run 'mulsd xmm0, xmm1', or cyclescope --help"),
        )),
        Some(Command::Doctor) => doctor::doctor(common, output),
        Some(Command::Run(args)) if args.points.is_given() => points::points(common, args, output),
        Some(Command::Run(args)) => run::run(common, args, output),
        Some(Command::Evaluate(args)) => evaluate::evaluate(common, args, output),
        Some(Command::Instr(args)) => instr::instr(common, args, output),
        Some(Command::Marker(args)) => marker::marker(common, args, output),
        Some(Command::Clock(args)) => clocks::clock(common, args, output),
        Some(Command::Compare(args)) => compare::compare(common, args, output),
        Some(Command::Replay(args)) => replay::replay(common, args, output),
        Some(Command::Ab(args)) => ab::ab(common, args, output),
    }
}

/// Why nothing may run beside what was asked for, where something is to.
fn alone(asked: &Asked) -> Option<&'static str> {
    const KEPT: &str = "a result file does not keep what ran beside; --json prints it";
    const NOTHING: &str = "nothing is measured that anything could run beside";
    let common = asked.common();
    if common.beside.is_empty() {
        let cpus = !common.beside_cpu.is_empty();
        return cpus.then_some("--beside-cpu names a CPU for which there is no --beside");
    }
    if common.beside_cpu.len() > common.beside.len() {
        return Some("--beside-cpu names a CPU for which there is no --beside");
    }
    let (kept, nothing) = match asked {
        Asked::Plain(chosen) => {
            let (_, _, args) = &**chosen;
            (args.out.is_some() || args.resume.is_some(), args.list)
        }
        Asked::Own(cli) => match &cli.command {
            Some(Command::Instr(args)) => (args.out.is_some() || args.resume.is_some(), false),
            Some(Command::Run(args)) => (args.points.out.is_some() || args.points.resume.is_some(), false),
            Some(Command::Evaluate(_) | Command::Marker(_)) => (false, false),
            // The last three name the option themselves.
            None | Some(Command::Compare(_) | Command::Replay(_) | Command::Ab(_)) => (false, false),
            Some(Command::Doctor | Command::Clock(_)) => (false, true),
        },
    };
    match (nothing, kept) {
        (true, _) => Some(NOTHING),
        (_, true) => Some(KEPT),
        _ => None,
    }
}

/// Whether JSON was asked for, by the text of arguments that could not be parsed.
fn asks_for_json() -> bool {
    std::env::args_os().any(|argument| argument == "--json")
}

/// What clap has to say: help and version are no errors.
fn usage(error: &clap::Error) -> ExitCode {
    let json = asks_for_json();
    // Other mistakes are named by clap, and a value may look like an option.
    let snippet = error.get(ContextKind::InvalidArg) == Some(&ContextValue::String("[SNIPPET]".to_string()));
    let misspelt = error.kind() == ErrorKind::UnknownArgument || snippet;
    if let Some(failure) = misspelt.then(unknown_option).flatten() {
        return ExitCode::from(failure.report(json));
    }
    if let Some(failure) = unswept(error) {
        return ExitCode::from(failure.report(json));
    }
    if error.use_stderr() && json {
        return ExitCode::from(usage_failure(&error.to_string()).report(true));
    }
    match error.print() {
        Ok(()) => ExitCode::from(error.exit_code() as u8),
        Err(error) => ExitCode::from(Failure::from(error).report(false)),
    }
}

/// Where a value of `run` has a variable in braces and no sweep names it.
fn unswept(error: &clap::Error) -> Option<Failure> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    template::unswept(text(ContextKind::InvalidArg)?, text(ContextKind::InvalidValue)?)
}

/// The first argument that looks like an option of the command and is none. The snippet of `run` may begin with a hyphen, so that clap
/// takes a misspelt option for it and complains of the snippet that follows.
fn unknown_option() -> Option<Failure> {
    let command = grammar();
    let given = || std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    let given = || given().take_while(|argument| argument != "--");
    let chosen = given().find_map(|argument| command.find_subcommand(argument));
    let arguments = chosen.into_iter().chain([&command]).flat_map(|command| command.get_arguments());
    let mut known: Vec<&str> = arguments.filter_map(|argument| argument.get_long()).collect();
    known.extend(["help", "version"]);
    let names = given().filter_map(|argument| argument.strip_prefix("--").map(str::to_string));
    let names = names.map(|name| name.split('=').next().unwrap_or_default().to_string());
    let unknown = names.into_iter().find(|name| {
        name.starts_with(|c: char| c.is_ascii_alphabetic()) && !known.contains(&name.as_str())
    })?;
    let nearest = cyclescope::asm::nearest(&unknown, known.iter().copied());
    let remedy = match nearest.first() {
        Some(nearest) => format!("did you mean --{nearest}? See --help"),
        None => "see --help".to_string(),
    };
    Some(Failure::usage(format!("there is no option --{unknown}"), Some(&remedy)))
}

/// The paragraphs of clap's message as a failure: the first says what is wrong, those before the usage what
/// would help.
fn usage_failure(message: &str) -> Failure {
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
