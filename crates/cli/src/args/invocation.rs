//! What a command line asks for.

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

/// What was asked for.
pub enum Invocation {
    /// A command with options of its own, or none.
    Own(Box<Cli>),
    /// A study that takes names only.
    Generic(Box<(StudyInfo, CommonArgs, GenericArgs)>),
}

impl Invocation {
    /// Parses the words of a command line.
    pub fn parse(words: Vec<OsString>) -> Result<Invocation, CommandRefusal> {
        let words = template::fill_first_value(words)?;
        let matches = build_grammar().try_get_matches_from(words)?;
        match parse_generic_study(&matches, study::ALL)? {
            Some(chosen) => Ok(Invocation::Generic(Box::new(chosen))),
            None => Ok(Invocation::Own(Box::new(Cli::from_arg_matches(&matches)?))),
        }
    }

    /// The options of every command.
    pub fn common(&self) -> &CommonArgs {
        match self {
            Invocation::Own(cli) => &cli.common,
            Invocation::Generic(chosen) => &chosen.1,
        }
    }

    /// Fails where options of every command have no effect on this one.
    pub fn require_effect(&self) -> Result<(), Failure> {
        let common = self.common();
        let offer = common.offer();
        if common.force && !offer.takes_force {
            let takers = cyclescope::executor::EXECUTOR_OFFERS.iter().filter(|offer| offer.takes_force);
            let takers: Vec<&str> = takers.map(|offer| offer.name).collect();
            let remedy = format!("leave it out, or add --executor {}", takers.join(" or "));
            return Err(Failure::usage(format!("--force has no effect in {}", offer.place), Some(&remedy)));
        }
        match explain_load_conflict(self) {
            Some(why) => Err(Failure::usage(why, Some("leave --beside and --beside-cpu out"))),
            None => Ok(()),
        }
    }
}

/// Why nothing may run beside what was asked for, where something is to.
fn explain_load_conflict(asked: &Invocation) -> Option<&'static str> {
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
        Invocation::Generic(chosen) => {
            let (_, _, args) = &**chosen;
            (args.out.is_some() || args.resume.is_some(), args.list)
        }
        Invocation::Own(cli) => match &cli.command {
            Some(CliCommand::Instr(args)) => (args.out.is_some() || args.resume.is_some(), false),
            Some(CliCommand::Run(args)) => (args.points.out.is_some() || args.points.resume.is_some(), false),
            Some(CliCommand::Evaluate(_) | CliCommand::Marker(_)) => (false, false),
            // The last three name the option themselves.
            None | Some(CliCommand::Compare(_) | CliCommand::Replay(_) | CliCommand::Ab(_)) => (false, false),
            Some(CliCommand::Doctor | CliCommand::Clock(_)) => (false, true),
        },
    };
    match (nothing, kept) {
        (true, _) => Some(NOTHING),
        (_, true) => Some(KEPT),
        _ => None,
    }
}
