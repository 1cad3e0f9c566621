//! The parsed command line: the command and its options.

use super::cli::{Cli, CliCommand};
use super::common::CommonArgs;
use super::generic::{GenericArgs, parse_generic_study};
use super::grammar::build_grammar;
use super::refusal::CommandRefusal;
use super::template;
use crate::output::Failure;
use clap::FromArgMatches;
use cyclescope::study::{self, StudyInfo};
use std::ffi::OsString;

/// A parsed command line.
pub enum Invocation {
    /// A command with options of its own, or no command.
    Own(Box<Cli>),
    /// A study whose only arguments are names.
    Generic(Box<(StudyInfo, CommonArgs, GenericArgs)>),
}

impl Invocation {
    /// Parses the words of a command line.
    pub fn parse(words: Vec<OsString>) -> Result<Invocation, CommandRefusal> {
        let words = template::fill_first_value(words)?;
        let words = template::brace_variant_variable(words);
        let matches = build_grammar().try_get_matches_from(words)?;
        match parse_generic_study(&matches, study::ALL)? {
            Some(chosen) => Ok(Invocation::Generic(Box::new(chosen))),
            None => Ok(Invocation::Own(Box::new(Cli::from_arg_matches(&matches)?))),
        }
    }

    /// The options that every command accepts.
    pub fn common(&self) -> &CommonArgs {
        match self {
            Invocation::Own(cli) => &cli.common,
            Invocation::Generic(chosen) => &chosen.1,
        }
    }

    /// Fails if a given common option has no effect on this command.
    pub fn require_effect(&self) -> Result<(), Failure> {
        let common = self.common();
        let offer = common.offer();
        if common.force && !offer.takes_force {
            let takers = cyclescope::executor::EXECUTOR_OFFERS.iter().filter(|offer| offer.takes_force);
            let takers: Vec<&str> = takers.map(|offer| offer.name).collect();
            let remedy = format!("leave it out, or add --executor {}", takers.join(" or "));
            return Err(Failure::usage(format!("--force has no effect in {}", offer.place), Some(&remedy)));
        }
        let is_run = matches!(self, Invocation::Own(cli) if matches!(cli.command, Some(CliCommand::Run(_))));
        if common.beside_shared && !is_run {
            let remedy = "leave --beside-shared out, or measure a snippet with run";
            return Err(Failure::usage("only the snippet of run can share memory with --beside", Some(remedy)));
        }
        match explain_load_conflict(self) {
            Some(why) => Err(Failure::usage(why, Some("leave out --beside and --beside-cpu"))),
            None => Ok(()),
        }
    }
}

/// Explains why the requested background load is impossible; `None` if it is possible or absent.
fn explain_load_conflict(invocation: &Invocation) -> Option<&'static str> {
    const KEPT: &str = "a result file can't record the background load of --beside; use --json to record it";
    const NOTHING: &str = "--beside has no effect: nothing is measured";
    let common = invocation.common();
    if common.beside.is_empty() {
        let cpus = !common.beside_cpu.is_empty();
        return cpus.then_some("more --beside-cpu than --beside options");
    }
    if common.beside_cpu.len() > common.beside.len() {
        return Some("more --beside-cpu than --beside options");
    }
    let (kept, nothing) = match invocation {
        Invocation::Generic(chosen) => {
            let (_, _, args) = &**chosen;
            (args.out.is_some() || args.resume.is_some(), args.list)
        }
        Invocation::Own(cli) => match &cli.command {
            Some(CliCommand::Instr(args)) => (args.out.is_some() || args.resume.is_some(), false),
            Some(CliCommand::Ports(args)) => (args.out.is_some() || args.resume.is_some(), false),
            Some(CliCommand::Run(args)) => (args.points.out.is_some() || args.points.resume.is_some(), false),
            Some(CliCommand::Evaluate(_) | CliCommand::Marker(_)) => (false, false),
            // These name the option in errors of their own.
            None
            | Some(
                CliCommand::Compare(_)
                | CliCommand::Replay(_)
                | CliCommand::Ab(_)
                | CliCommand::Report(_)
                | CliCommand::All(_),
            ) => (false, false),
            Some(CliCommand::Doctor | CliCommand::Clock(_) | CliCommand::Counters(_) | CliCommand::Manual(_)) => {
                (false, true)
            }
        },
    };
    match (nothing, kept) {
        (true, _) => Some(NOTHING),
        (_, true) => Some(KEPT),
        _ => None,
    }
}
