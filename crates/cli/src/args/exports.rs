//! Options that name output files: one option per file format that a command can write.

use crate::output::exporter::{ExportOption, Exporter};
use crate::output::report::ResultReport;
use crate::output::{EXPORTERS, Failure};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};
use std::path::{Path, PathBuf};

/// The requested output files.
#[derive(Debug, Clone, Default)]
pub struct ExportArgs(Vec<ExportFile>);

/// One output file and its format.
#[derive(Debug, Clone)]
struct ExportFile {
    exporter: &'static dyn Exporter,
    path: PathBuf,
}

impl ExportArgs {
    /// Whether the command line requests no file.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the command line requests a file in one of these formats.
    pub fn has(&self, names: &[&str]) -> bool {
        self.0.iter().any(|file| names.contains(&file.exporter.name()))
    }

    /// Checks early that each file can be written, so that a long measurement isn't lost.
    pub fn check_paths(&self) -> Result<(), Failure> {
        self.0.iter().try_for_each(|file| file.exporter.check_path(&file.path))
    }

    /// Creates the directories and files that must exist before the measurement.
    pub fn prepare_paths(&self) -> Result<(), Failure> {
        self.0.iter().try_for_each(|file| file.exporter.prepare_path(&file.path))
    }

    /// Writes the files of a result. An incomplete result only gets the files that accept one.
    pub fn write_files(&self, report: &dyn ResultReport, parts: bool) -> Result<(), Failure> {
        let files = self.0.iter().filter(|file| file.exporter.accepts_partial() == parts);
        files.into_iter().try_for_each(|file| file.exporter.write_report(report, &file.path))
    }

    /// Removes and returns the format whose file is `-`, which is printed instead.
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
            // Not every command has every option.
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
