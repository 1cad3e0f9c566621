//! The options that name files of a format, on each command that has some.

use crate::output::exporter::{ExportOption, Exporter};
use crate::output::report::ResultReport;
use crate::output::{EXPORTERS, Failure};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};
use std::path::{Path, PathBuf};

/// Files that were asked for.
#[derive(Debug, Clone, Default)]
pub struct ExportArgs(Vec<ExportFile>);

/// A file of a format.
#[derive(Debug, Clone)]
struct ExportFile {
    exporter: &'static dyn Exporter,
    path: PathBuf,
}

impl ExportArgs {
    /// Whether no file was asked for.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a file of one of these formats was asked for.
    pub fn has(&self, names: &[&str]) -> bool {
        self.0.iter().any(|file| names.contains(&file.exporter.name()))
    }

    /// Fails early where a file could not be written after hours.
    pub fn check_paths(&self) -> Result<(), Failure> {
        self.0.iter().try_for_each(|file| file.exporter.check_path(&file.path))
    }

    /// Makes what has to be there before anything is measured.
    pub fn prepare_paths(&self) -> Result<(), Failure> {
        self.0.iter().try_for_each(|file| file.exporter.prepare_path(&file.path))
    }

    /// Writes the files of a result: of one that ended early only those that take a part of it.
    pub fn write_files(&self, report: &dyn ResultReport, parts: bool) -> Result<(), Failure> {
        let files = self.0.iter().filter(|file| file.exporter.accepts_partial() == parts);
        files.into_iter().try_for_each(|file| file.exporter.write_report(report, &file.path))
    }

    /// Takes out the format whose file is `-`: it is printed instead.
    pub fn take_printed(&mut self) -> Option<&'static dyn Exporter> {
        let is_printed = |file: &ExportFile| file.exporter.replaces_text() && file.path == Path::new("-");
        let printed = self.0.iter().position(is_printed)?;
        Some(self.0.remove(printed).exporter)
    }
}

impl Args for ExportArgs {
    fn augment_args(command: Command) -> Command {
        EXPORTERS.iter().fold(command, |command, exporter| {
            let Some(option) = exporter.command_option(command.get_name()) else { return command };
            let ExportOption { value, help, conflicts } = option;
            let arg = Arg::new(exporter.name()).long(exporter.name());
            let arg = arg.value_name(value).value_parser(value_parser!(PathBuf)).help(help);
            command.arg(arg.conflicts_with_all(conflicts))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        ExportArgs::augment_args(command)
    }
}

impl FromArgMatches for ExportArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ExportArgs, clap::Error> {
        let file = |exporter: &&'static dyn Exporter| {
            // A command has not all of the options.
            let path = matches.try_get_one::<PathBuf>(exporter.name()).ok()??;
            Some(ExportFile { exporter: *exporter, path: path.clone() })
        };
        Ok(ExportArgs(EXPORTERS.iter().filter_map(file).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = ExportArgs::from_arg_matches(matches)?;
        Ok(())
    }
}
