//! `cyclescope replay`: a result again from its evidence.

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
            let text = format!("there is no study {study}");
            Err(Failure::usage(text, Some("replay it with the version that wrote it")))
        }),
        (true, Some(StudyCommand { measure_again: Some(measure), .. })) => {
            measure(common, &args.dir, &container, output)
        }
        (true, _) => {
            let text = format!("the evidence of {study} can't be measured again this way");
            Err(Failure::usage(text, Some("its manifest.json names the command that repeats it")))
        }
    }
}

/// Options that would change nothing.
fn refuse_options(common: &CommonArgs) -> Result<(), Failure> {
    match common.first_measuring_option() {
        Some(name) => {
            let text = format!("{name} needs --measure: computing a number again takes no options");
            Err(Failure::usage(text, Some("add --measure, or leave it out")))
        }
        None => Ok(()),
    }
}
