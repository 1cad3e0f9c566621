//! Options of studies whose only arguments are the names of their subjects.

use super::common::CommonArgs;
use super::counters::EventArgs;
use super::exports::ExportArgs;
use clap::{ArgMatches, Args, FromArgMatches};
use cyclescope::study::StudyInfo;
use std::path::PathBuf;

/// Options of a study without a command of its own.
#[derive(Debug, Clone, Args, serde::Serialize)]
pub struct GenericArgs {
    /// Names of the tests to run [default: all that --list shows]
    #[arg(value_name = "NAME")]
    pub subjects: Vec<String>,
    /// List what can be measured, and measure nothing; `uarch --list agner` lists A. Fog's test
    /// scripts and the test that replaces each
    #[arg(long)]
    #[serde(skip)]
    pub list: bool,
    /// Print every number [default: a datasheet if most tests ran]
    #[arg(long, conflicts_with = "list")]
    #[serde(skip)]
    pub all: bool,
    /// Print every number, and why others are missing
    #[arg(long, conflicts_with = "list")]
    #[serde(skip)]
    pub why: bool,
    /// Write the machine's facts and each completed result to a new JSON-lines file
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub out: Option<PathBuf>,
    /// Resume an interrupted --out file; its options apply, and any given here must match them
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "list"])]
    #[serde(skip)]
    pub resume: Option<PathBuf>,
    #[command(flatten)]
    #[serde(flatten)]
    pub events: EventArgs,
    /// Picture files to write, for studies that draw some.
    #[command(flatten)]
    #[serde(skip)]
    pub exports: ExportArgs,
}

/// Adds a command for each study without a command of its own.
pub fn add_study_commands(command: clap::Command, studies: &[StudyInfo]) -> clap::Command {
    let plain = studies.iter().filter(|study| study.generic.is_some());
    plain.fold(command, |command, study| {
        let own = GenericArgs::augment_args(clap::Command::new(study.name));
        command.subcommand(own.about(format!("Measure {}", study.about)))
    })
}

/// The chosen study and its options.
pub fn parse_generic_study(
    matches: &ArgMatches,
    studies: &[StudyInfo],
) -> Result<Option<(StudyInfo, CommonArgs, GenericArgs)>, clap::Error> {
    let Some((name, options)) = matches.subcommand() else { return Ok(None) };
    let Some(study) = studies.iter().find(|study| study.name == name && study.generic.is_some()) else {
        return Ok(None);
    };
    let (common, args) = (CommonArgs::from_arg_matches(options)?, GenericArgs::from_arg_matches(options)?);
    Ok(Some((*study, common, args)))
}
