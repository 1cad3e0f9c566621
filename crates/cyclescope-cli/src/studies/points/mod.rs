//! `cyclescope run --sweep` and `run --from`: many points with one command.

mod expand;
mod plots;
mod prepared;
mod session;
mod tables;
mod words;

use crate::args::{Common, RunArgs};
use crate::input::target::Libraries;
use crate::output::Output;
use crate::output::failure::Failure;
use crate::output::plots::Plots;
use crate::output::table_file::{export_to, writable};
use crate::session::driver::{Front, Order, drive};
use crate::session::evidence;
use crate::session::executor::{self, Code};
use crate::session::replay_study;
use crate::session::result_file::ResultFile;
use crate::studies::run;
use cyclescope::error::Error;
use cyclescope::record::{ErrorRecord, exit};
use cyclescope::result::container::{Container, plain};
use cyclescope::study::points::{PointsStudy, csv};
use cyclescope::study::run::RunStudy;
use prepared::prepare;
use session::Resumed;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use cyclescope::study::points::NAME;

/// Runs the command and returns the exit code: a table that completes is done, unless no point has a number.
pub fn points(common: &Common, args: &RunArgs, output: &mut Output) -> Result<u8, Failure> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let words = words::without_results(&words);
    let (mut file, mut resumed) = (None, Resumed::default());
    if let Some(path) = &args.points.resume {
        let (opened, found) = ResultFile::resume(path, run::NAME, |content| session::resumed(path, content))?;
        (file, resumed) = (Some(opened), found);
    }
    let adopted =
        resumed.session.as_ref().map(|session| session::adopt(session, common, args, &words)).transpose()?;
    let (common, args, words) = match &adopted {
        Some((common, args, words)) => (common, args, words.as_slice()),
        None => (common, args, words.as_slice()),
    };
    let is_printed = args.points.csv.as_deref() == Some(Path::new("-"));
    if is_printed && output.is_json() {
        return Err(Failure::usage("--csv - and --json print the same table", Some("leave one of them out")));
    }
    let front = Points {
        csv: args.points.csv.clone(),
        is_printed,
        geometric: args.points.sweep.as_ref().is_some_and(|sweep| sweep.is_geometric),
    };
    args.points.csv.iter().filter(|_| !is_printed).try_for_each(|path| writable(path))?;
    let seed = common.chosen_seed();
    let common = &Common { seed: Some(seed), ..common.clone() };
    let asked = expand::expanded(args, words)?;
    let mut libraries = Libraries::default();
    let (prepared, machine) = prepare(common, asked, &mut libraries)?;
    let command = words::with_choices(words, seed, machine.target_cpu());
    let session = session::session(command, seed, &prepared, &libraries)?;
    let facts = plain(&machine).map_err(evidence::unwritten)?;
    if let Some(path) = &args.points.resume {
        session::require(&resumed, &session, &facts, path)?;
    }
    if let Some(path) = &args.points.out {
        file = Some(ResultFile::create(path, run::NAME, true)?);
    }
    if let (Some(file), Some(_)) = (&mut file, session::beyond_sandbox(&(common.clone(), args.clone()))) {
        file.resumes_with(&session.command.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let repro = shlex::try_join(session.command.iter().map(String::as_str)).unwrap_or_default();
    let order = Order { file, plots: args.points.plots.as_deref(), ..Order::new(common, &machine, &repro)? };
    let kept = resumed.kept;
    libraries.with(common.json, |loaded| {
        let points = prepared.iter().map(|point| point.course(common, &machine, loaded));
        let points = points.collect::<Result<Vec<_>, Failure>>()?;
        let plans = || points.iter().filter_map(|(_, course)| Some(course.as_ref().ok()?.how()));
        let calls = plans().any(|plan| plan.memory.is_some());
        let code = if calls { Code::Functions } else { Code::Snippets };
        let open = executor::opening(common, &machine, plans().any(|plan| plan.clock.reads_counter()), code);
        let mut study = PointsStudy::new(session, points, facts, open, explained, kept);
        drive(&front, &mut study, order, output)
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
    csv: Option<PathBuf>,
    /// Whether the table is printed as CSV.
    is_printed: bool,
    /// Whether the values are those of a geometric sweep.
    geometric: bool,
}

impl Front for Points {
    type Study = PointsStudy;

    fn text(&self, study: &PointsStudy, output: &mut Output) -> Result<(), Failure> {
        if !self.is_printed {
            return tables::points(study, output);
        }
        let mut bytes = Vec::new();
        csv(study.rows(), &mut bytes)?;
        String::from_utf8_lossy(&bytes).lines().try_for_each(|line| output.line(line))
    }

    fn draw(&self, study: &PointsStudy, plots: &mut Plots) -> Result<(), Failure> {
        plots::draw(plots, study, self.geometric)
    }

    fn exports(&self) -> bool {
        self.csv.is_some() && !self.is_printed
    }

    fn export(&self, study: &PointsStudy) -> Result<(), Failure> {
        let path = self.csv.as_deref().filter(|_| !self.is_printed);
        export_to(path, |out| csv(study.rows(), out))
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
    replay_study::again(&Points::default(), container, output)
}

/// What a file to resume says, and the command that it stands for.
#[cfg(test)]
pub fn resumed_points(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let found = session::resumed(path, content)?;
    let words: Vec<OsString> = ["cyclescope", "run"].map(OsString::from).into();
    let (common, args) = expand::parsed(words.clone())?;
    let Some(session) = &found.session else { return Ok(()) };
    session::adopt(session, &common, &args, &words).map(drop)
}
