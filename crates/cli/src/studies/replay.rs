//! `cyclescope replay`: recomputes a result from its evidence, or measures it again.

use crate::args::{CommonArgs, ReplayArgs};
use crate::output::{Failure, Output};
use crate::studies::commands::{STUDY_COMMANDS, StudyCommand};
use crate::studies::generic_study;
use cyclescope::result::container::EvidenceContainer;

/// Runs the command and returns the exit code.
pub fn run_replay(common: &CommonArgs, args: &ReplayArgs, output: &mut Output) -> Result<u8, Failure> {
    if !args.measure {
        refuse_options(common)?;
    }
    let container = EvidenceContainer::open(&args.dir)?;
    let study = container.manifest.origin.study.as_str();
    let command = STUDY_COMMANDS.iter().find(|command| command.name == study);
    match (args.measure, command) {
        (false, Some(command)) => (command.replay)(&container, output),
        (false, None) => generic_study::replay_generic_study(&container, output).unwrap_or_else(|| {
            let text = format!("unknown study {study}");
            Err(Failure::usage(text, Some("replay it with the version that wrote it")))
        }),
        (true, Some(StudyCommand { measure_again: Some(measure), .. })) => {
            measure(common, &args.dir, &container, output)
        }
        (true, _) => {
            let text = format!("replay --measure does not support {study}");
            Err(Failure::usage(text, Some("run the command in its manifest.json")))
        }
    }
}

/// Rejects options that have no effect.
fn refuse_options(common: &CommonArgs) -> Result<(), Failure> {
    match common.first_measuring_option() {
        Some(name) => {
            let text = format!("{name} has no effect without --measure");
            Err(Failure::usage(text, Some("add --measure, or leave it out")))
        }
        None => Ok(()),
    }
}
