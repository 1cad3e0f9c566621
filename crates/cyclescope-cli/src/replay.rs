//! `cyclescope replay`: a number again from its evidence.

use crate::args::{Common, ReplayArgs};
use crate::failure::Failure;
use crate::output::Output;
use cyclescope::evidence::{self, Replay};
use cyclescope::record::{RunRecord, exit};
use cyclescope::run::Facts;
use std::io;

/// Runs the command and returns the exit code.
pub fn replay(common: &Common, args: &ReplayArgs, output: &mut Output) -> Result<u8, Failure> {
    if !args.measure {
        refuse_options(common)?;
    }
    if crate::evaluate::is_evidence(&args.dir) {
        if args.measure {
            let remedy = "its records in evaluate.json name the command that repeats it";
            return Err(Failure::usage(
                "an evaluation can't be measured again from its evidence",
                Some(remedy),
            ));
        }
        return crate::evaluate::replay(&args.dir, output).map(|()| exit::DONE);
    }
    if crate::marker::is_evidence(&args.dir) {
        if args.measure {
            let remedy = "its records in marker.json name the command that repeats it";
            return Err(Failure::usage("markers can't be measured again from their evidence", Some(remedy)));
        }
        return crate::marker::replay(&args.dir, output).map(|()| exit::DONE);
    }
    let replay = evidence::read(&args.dir).map_err(unreadable)?;
    if args.measure && args.dir.join(evidence::EMPTY_CALL).exists() {
        let remedy = "run the command in its run.json again";
        return Err(Failure::usage(
            "the evidence is of a library's function, whose code it does not contain",
            Some(remedy),
        ));
    }
    if args.measure {
        return crate::run::again(common, &args.dir, &replay, output);
    }
    let mut record = record(&replay);
    let (computed, written) = (record.cost.value, replay.written["cost"]["value"].as_f64());
    let call = args.dir.join(evidence::EMPTY_CALL);
    if call.exists() {
        record =
            record.less_call(&self::record(&evidence::read(&call).map_err(unreadable)?), replay.plan.asked);
    }
    crate::run::print(&record, output)?;
    if computed != written {
        let text = |value: Option<f64>| value.map_or("no number".to_string(), |value| value.to_string());
        let (computed, written) = (text(computed), text(written));
        let remedy = "a file was changed, or another version wrote it; --measure measures again";
        return Err(Failure::internal(format!(
            "the evidence gives {computed} core cycles, the stored result has {written}"
        ))
        .with_remedy(remedy));
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

fn record(replay: &Replay) -> RunRecord {
    let plan = &replay.plan;
    let mut record = replay.run.record(&Facts {
        snippet: &replay.snippet,
        clock: replay.clock,
        confidence: plan.confidence,
        loop_count: plan.loop_count,
        cold: plan.cold,
        seed: plan.seed,
        executor: &plan.executor,
        cpu: plan.cpu,
        cpu_model: &plan.cpu_model,
    });
    record.repro = replay.written["repro"].as_str().unwrap_or_default().to_string();
    record
}

fn unreadable(error: io::Error) -> Failure {
    let remedy = "name a directory that a run with --evidence has finished writing";
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            Failure::usage(format!("there is no evidence: {error}"), Some(remedy))
        }
        io::ErrorKind::InvalidData => {
            Failure::usage(format!("the evidence is damaged: {error}"), Some(remedy))
        }
        _ => Failure::internal(format!("reading evidence failed: {error}")),
    }
}
