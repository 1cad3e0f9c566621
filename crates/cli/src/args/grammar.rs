//! The grammar of all commands.

use super::cli::Cli;
use super::generic::add_study_commands;
use clap::CommandFactory;
use cyclescope::study;

/// All commands. A negative number behind an option is its value, which the option then refuses by itself.
pub fn build_grammar() -> clap::Command {
    let negative = |argument: clap::Arg| match argument.is_positional() || !argument.get_action().takes_values() {
        true => argument,
        false => argument.allow_negative_numbers(true),
    };
    let command = add_study_commands(Cli::command(), study::ALL).mut_args(negative);
    command.mut_subcommands(|command| command.mut_args(negative))
}
