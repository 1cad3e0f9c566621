//! The words of a `cyclescope run` that is not the command itself.

use super::cli::{Cli, CliCommand};
use super::common::CommonArgs;
use super::grammar::build_grammar;
use super::run::RunArgs;
use super::template::brace_variant_variable;
use crate::output::Failure;
use clap::FromArgMatches;
use std::ffi::OsString;

/// Parses the options of `run` in the words of a command.
pub fn parse_run_words(words: Vec<OsString>) -> Result<(CommonArgs, RunArgs), Failure> {
    let matches = build_grammar().try_get_matches_from(brace_variant_variable(words));
    let cli = matches.and_then(|matches| Cli::from_arg_matches(&matches)).map_err(|error| {
        let text = error.to_string();
        let text = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ").to_string();
        Failure::usage(text, Some("see cyclescope run --help"))
    })?;
    match cli.command {
        Some(CliCommand::Run(args)) => Ok((cli.common, *args)),
        _ => Err(Failure::usage("the command is not a `cyclescope run`", None)),
    }
}
