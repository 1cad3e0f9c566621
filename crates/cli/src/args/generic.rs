//! Options of studies that take nothing but the names of their subjects.

use super::common::CommonArgs;
use super::exports::ExportArgs;
use clap::{ArgMatches, Args, FromArgMatches};
use cyclescope::study::StudyInfo;
use std::path::PathBuf;

/// Options of a study that takes names only.
#[derive(Debug, Clone, Args, serde::Serialize)]
pub struct GenericArgs {
    /// What to measure [default: everything that --list shows]
    #[arg(value_name = "NAME")]
    pub subjects: Vec<String>,
    /// Measure nothing, and list what can be measured; `uarch --list agner` lists the scripts of A. Fog's suite with what answers each
    #[arg(long)]
    #[serde(skip)]
    pub list: bool,
    /// Write the machine's facts and each line of the result, as soon as it is complete, to a new file of JSON lines
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub out: Option<PathBuf>,
    /// Go on with a file that was interrupted; options that are given must match it, the others are read from it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "list"])]
    #[serde(skip)]
    pub resume: Option<PathBuf>,
    /// Pictures, of a study that has some.
    #[command(flatten)]
    #[serde(skip)]
    pub exports: ExportArgs,
}

/// A command line with a command for each of these studies that has no front of its own.
pub fn add_study_commands(command: clap::Command, studies: &[StudyInfo]) -> clap::Command {
    let plain = studies.iter().filter(|study| study.generic.is_some());
    plain.fold(command, |command, study| {
        let own = GenericArgs::augment_args(clap::Command::new(study.name));
        command.subcommand(own.about(study.about))
    })
}

/// The study that was chosen, and its options.
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
