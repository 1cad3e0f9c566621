//! `cyclescope replay`: a number again from its evidence.

use crate::args::{Common, ReplayArgs};
use crate::failure::Failure;
use crate::output::Output;
use cyclescope::evidence::{self, Replay};
use cyclescope::record::RunRecord;
use cyclescope::run::Facts;
use std::io;

/// Runs the command and returns the exit code.
pub fn replay(common: &Common, args: &ReplayArgs, output: &mut Output) -> Result<u8, Failure> {
    let replay = evidence::read(&args.dir).map_err(unreadable)?;
    if args.measure && args.dir.join(evidence::EMPTY_CALL).exists() {
        let remedy = "run the command in its run.json again";
        return Err(Failure::usage(
            "the evidence is of a library's function, which it does not hold",
            Some(remedy),
        ));
    }
    if args.measure {
        return crate::run::again(common, &replay, output);
    }
    let mut record = record(&replay);
    let same = replay.written["cost"]["value"].as_f64() == record.cost.value;
    let call = args.dir.join(evidence::EMPTY_CALL);
    if call.exists() {
        record =
            record.less_call(&self::record(&evidence::read(&call).map_err(unreadable)?), replay.plan.asked);
    }
    crate::run::print(&record, output)?;
    if !same {
        return Err(Failure::internal("the evidence gives another number than the one written beside it"));
    }
    Ok(crate::run::exit_code(&record))
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
