//! `cyclescope run --sweep` and `run --from`: many points with one command.

mod expand;
mod plots;
mod prepared;
mod session;
mod tables;
mod words;

use crate::args::{Common, RunArgs};
use crate::input::target::Libraries;
use crate::output::report::Picture;
use crate::output::{Failure, Output};
use crate::session::driver::{Order, StudyView, drive};
use crate::session::evidence;
use crate::session::executor::{self, Code};
use crate::session::replay_study;
use crate::session::result_file::ResultFile;
use crate::session::resume::Resumed;
use crate::studies::run;
use cyclescope::error::Error;
use cyclescope::record::{ErrorRecord, exit};
use cyclescope::result::container::{Container, plain};
use cyclescope::study::TextTable;
use cyclescope::study::points::{Kept, PointsStudy, table};
use cyclescope::study::run::RunStudy;
use prepared::prepare;
use std::ffi::OsString;
#[cfg(test)]
use std::path::Path;

pub use cyclescope::study::points::NAME;

/// Runs the command and returns the exit code: a table that completes is done, unless no point has a number.
pub fn points(common: &Common, args: &RunArgs, output: &mut Output) -> Result<u8, Failure> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let words = words::without_results(&words);
    let (mut file, mut resumed, mut kept) = (None, None, Kept::default());
    if let Some(path) = &args.points.resume {
        let opened = ResultFile::resume(path, run::NAME, |content| session::resumed(path, content))?;
        (file, (resumed, kept)) = (Some(opened.0), opened.1);
    }
    let adopt = |resumed: &Resumed<_>| session::adopt(&resumed.session, common, args, &words);
    let adopted = resumed.as_ref().map(adopt).transpose()?;
    let (common, args, words) = match &adopted {
        Some((common, args, words)) => (common, args, words.as_slice()),
        None => (common, args, words.as_slice()),
    };
    let mut exports = args.points.exports.clone();
    let printed = exports.take_printed();
    if printed.is_some() && output.is_json() {
        return Err(Failure::usage("--csv - and --json print the same table", Some("leave one of them out")));
    }
    let view = Points { geometric: args.points.sweep.as_ref().is_some_and(|sweep| sweep.is_geometric) };
    exports.check()?;
    let seed = common.chosen_seed();
    let common = &Common { seed: Some(seed), ..common.clone() };
    let asked = expand::expanded(args, words)?;
    let mut libraries = Libraries::default();
    let (prepared, machine) = prepare(common, asked, &mut libraries)?;
    let command = words::with_choices(words, seed, machine.target_cpu());
    let session = session::session(command, seed, &prepared, &libraries)?;
    let facts = plain(&machine).map_err(evidence::unwritten)?;
    if let Some(resumed) = &resumed {
        resumed.require(&session, &facts, "in the same folder, on the same machine")?;
    }
    if let Some(path) = &args.points.out {
        file = Some(ResultFile::create(path, run::NAME, true)?);
    }
    if let (Some(file), Some(_)) = (&mut file, session::beyond_sandbox(&(common.clone(), args.clone()))) {
        file.resumes_with(&session.command.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let repro = shlex::try_join(session.command.iter().map(String::as_str)).unwrap_or_default();
    let order = Order { file, printed, exports, ..Order::new(common, &machine, &repro)? };
    libraries.with(common.json, |loaded| {
        let points = prepared.iter().map(|point| point.course(common, &machine, loaded));
        let points = points.collect::<Result<Vec<_>, Failure>>()?;
        let plans = || points.iter().filter_map(|(_, course)| Some(course.as_ref().ok()?.how()));
        let calls = plans().any(|plan| plan.memory.is_some());
        let code = if calls { Code::Functions } else { Code::Snippets };
        let open = executor::opening(common, &machine, plans().any(|plan| plan.clock.reads_counter()), code);
        let mut study = PointsStudy::new(session, points, facts, open, explained, kept);
        drive(&view, &mut study, order, output)
    })
}

/// The record of a failure that ended the run of a point.
fn explained(study: &RunStudy, error: Error) -> ErrorRecord {
    match run::failure(study, error) {
        Failure::Error(record) => *record,
        Failure::ClosedPipe => ErrorRecord::default(),
    }
}

/// How points look.
#[derive(Default)]
struct Points {
    /// Whether the values are those of a geometric sweep.
    geometric: bool,
}

impl StudyView for Points {
    type Study = PointsStudy;

    fn text(&self, study: &PointsStudy, output: &mut Output) -> Result<(), Failure> {
        tables::points(study, output)
    }

    fn table(&self, study: &PointsStudy) -> Option<TextTable> {
        Some(table(study.rows()))
    }

    fn pictures(&self, study: &PointsStudy, machine: &str) -> Vec<Picture> {
        plots::pictures(study, machine, self.geometric)
    }

    fn exit(&self, study: &PointsStudy) -> u8 {
        if study.rows().any(|row| row.number().is_some()) {
            return exit::DONE;
        }
        study.rows().map(|row| row.exit.unwrap_or(exit::NOISY)).min().unwrap_or(exit::DONE)
    }
}

/// Computes points again from their evidence.
pub fn replay(container: &Container, output: &mut Output) -> Result<u8, Failure> {
    replay_study::replay(&Points::default(), container, output)
}

/// What a file to resume says, and the command that it stands for.
#[cfg(test)]
pub fn resumed_points(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let (found, _) = session::resumed(path, content)?;
    let words: Vec<OsString> = ["cyclescope", "run"].map(OsString::from).into();
    let (common, args) = expand::parsed(words.clone())?;
    let Some(Resumed { session, .. }) = &found else { return Ok(()) };
    session::adopt(session, &common, &args, &words).map(drop)
}
