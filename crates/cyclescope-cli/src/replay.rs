//! `cyclescope replay`: a result again from its evidence.

use crate::args::{Common, ReplayArgs};
use crate::failure::Failure;
use crate::output::Output;
use cyclescope::evidence::{self, Replay, ReplayError};
use cyclescope::record::exit;
use cyclescope::result::container::{Container, ContainerError};
use cyclescope::study::{evaluate, instr, marker};

/// Runs the command and returns the exit code.
pub fn replay(common: &Common, args: &ReplayArgs, output: &mut Output) -> Result<u8, Failure> {
    if !args.measure {
        refuse_options(common)?;
    }
    let container = Container::open(&args.dir)?;
    let study = container.manifest.origin.study.clone();
    if args.measure && study != evidence::STUDY {
        let text = format!("the evidence of {study} can't be measured again this way");
        return Err(Failure::usage(text, Some("its manifest.json names the command that repeats it")));
    }
    match study.as_str() {
        evidence::STUDY => run(common, args, Replay::new(container)?, output),
        evaluate::evidence::STUDY => crate::evaluate::replay(&container, output).map(|()| exit::DONE),
        instr::evidence::STUDY => crate::instr::replay(&container, output),
        marker::evidence::STUDY => crate::marker::replay(&container, output).map(|()| exit::DONE),
        _ => {
            let text = format!("there is no study {study}");
            Err(Failure::usage(text, Some("replay it with the version that wrote it")))
        }
    }
}

fn run(common: &Common, args: &ReplayArgs, replay: Replay, output: &mut Output) -> Result<u8, Failure> {
    if args.measure && replay.is_of_function() {
        let remedy = "run the command in its manifest.json again";
        return Err(Failure::usage(
            "the evidence is of a library's function, whose code it does not contain",
            Some(remedy),
        ));
    }
    if args.measure {
        return crate::run::again(common, &args.dir, &replay, output);
    }
    let record = replay.record()?;
    crate::run::print(&record, output)?;
    if let Some(field) = replay.difference(&record) {
        let computed = serde_json::to_value(record.cost.value).expect("a number is plain data");
        let written = &replay.written["cost"]["value"];
        let text = format!(
            "the evidence gives {computed} core cycles, the result beside it {written}; they differ in {field}"
        );
        let remedy = "a file was changed, or another version wrote it; --measure measures again";
        return Err(Failure::internal(text).with_remedy(remedy));
    }
    Ok(crate::run::exit_code(&record))
}

/// Options that would change nothing.
fn refuse_options(common: &Common) -> Result<(), Failure> {
    match common.measuring() {
        Some(name) => {
            let text = format!("{name} needs --measure: computing a number again takes no options");
            Err(Failure::usage(text, Some("add --measure, or leave it out")))
        }
        None => Ok(()),
    }
}

impl From<ContainerError> for Failure {
    fn from(error: ContainerError) -> Failure {
        let remedy = "name a directory that a command with --evidence has finished writing";
        match error {
            ContainerError::Unreadable { .. } => Failure::internal(error.to_string()),
            ContainerError::Foreign => {
                let remedy = "replay it with the version that wrote it, or measure again";
                Failure::usage(error.to_string(), Some(remedy))
            }
            _ => Failure::usage(error.to_string(), Some(remedy)),
        }
    }
}

impl From<ReplayError> for Failure {
    fn from(error: ReplayError) -> Failure {
        match error {
            ReplayError::Container(error) => error.into(),
            ReplayError::Run(error) => error.into(),
        }
    }
}
