//! The complete command line grammar.

use super::cli::Cli;
use super::generic::add_study_commands;
use clap::CommandFactory;
use cyclescope::study;

/// Builds the grammar of all commands. A negative number after an option is parsed as its value, so
/// that the option itself can reject it.
pub fn build_grammar() -> clap::Command {
    let negative = |argument: clap::Arg| match argument.is_positional() || !argument.get_action().takes_values() {
        true => argument,
        false => argument.allow_negative_numbers(true),
    };
    let command = add_study_commands(Cli::command(), study::ALL).mut_args(negative);
    command.mut_subcommands(|command| command.mut_args(negative))
}
