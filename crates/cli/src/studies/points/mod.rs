//! `cyclescope run --sweep` and `run --from`: measures many points with one command.

mod command_words;
mod expand;
mod plots;
mod point_cells;
mod prepared_point;
mod ranking_table;
mod session;
mod tables;
mod trusted_options;

use crate::args::{CommonArgs, RunArgs};
use crate::input::target::FunctionLibraries;
use crate::output::report::Picture;
use crate::output::{Failure, Output};
use crate::session::driver::{StudyOrder, StudyView, drive_study};
use crate::session::evidence;
use crate::session::executor::{self, CodeOrigin};
use crate::session::replay_study;
use crate::session::result_file::ResultFile;
use crate::session::resume::ResumedFile;
use crate::studies::run;
use crate::studies::run::option_needs::{CommandSubject, require_needs};
use cyclescope::error::Error;
use cyclescope::record::{ErrorRecord, exit};
use cyclescope::result::container::{EvidenceContainer, to_json_value};
use cyclescope::study::TextTable;
use cyclescope::study::points::{PointsStudy, ResumedPoints, tabulate_points};
use cyclescope::study::run::RunStudy;
use prepared_point::prepare_points;
use std::ffi::OsString;
#[cfg(test)]
use std::path::Path;

pub use cyclescope::study::points::NAME;

/// Runs the command and returns the exit code. A completed table succeeds, unless no point has a
/// number.
pub fn run_points(common: &CommonArgs, args: &RunArgs, output: &mut Output) -> Result<u8, Failure> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let words = command_words::drop_result_options(&words);
    let (mut file, mut resumed, mut kept) = (None, None, ResumedPoints::default());
    if let Some(path) = &args.points.resume {
        let opened = ResultFile::resume(path, run::NAME, |content| session::read_resumed(path, content))?;
        (file, (resumed, kept)) = (Some(opened.0), opened.1);
    }
    let adopt = |resumed: &ResumedFile<_>| session::adopt_command(&resumed.session, common, args, &words);
    let adopted = resumed.as_ref().map(adopt).transpose()?;
    let (common, args, words) = match &adopted {
        Some((common, args, words)) => (common, args, words.as_slice()),
        None => (common, args, words.as_slice()),
    };
    let mut exports = args.points.exports.clone();
    let printed = exports.take_printed();
    if printed.is_some() && output.is_json() {
        return Err(Failure::usage("--csv - and --json both print the table", Some("leave out one of them")));
    }
    let view = PointsView { geometric: args.points.sweep.as_ref().is_some_and(|sweep| sweep.is_geometric) };
    exports.check_paths()?;
    let seed = common.chosen_seed();
    let common = &CommonArgs { seed: Some(seed), ..common.clone() };
    require_needs(common, args, CommandSubject { has_points: true, ..CommandSubject::default() })?;
    let asked = expand::expand_points(args, words)?;
    let mut libraries = FunctionLibraries::default();
    let (prepared, machine) = prepare_points(common, asked, &mut libraries)?;
    let command = command_words::add_random_choices(words, seed, machine.target_cpu());
    let session = session::build_session(command, seed, &prepared, &libraries)?;
    let facts = to_json_value(&machine).map_err(evidence::evidence_failure)?;
    if let Some(resumed) = &resumed {
        resumed.require_same_session(&session, &facts, "in the same folder, on the same machine")?;
    }
    if let Some(path) = &args.points.out {
        file = Some(ResultFile::create(path, run::NAME, true)?);
    }
    if let (Some(file), Some(_)) = (&mut file, trusted_options::find_trusted_option(&(common.clone(), args.clone()))) {
        file.set_resume_command(&session.command.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let repro = shlex::try_join(session.command.iter().map(String::as_str)).unwrap_or_default();
    let order =
        StudyOrder { file, printed, exports, ..StudyOrder::new(common, args.code_mode.mode(), &machine, &repro)? };
    libraries.load_and_run(common.json, |loaded| {
        let points = prepared.iter().map(|point| point.build_course(common, &machine, loaded));
        let points = points.collect::<Result<Vec<_>, Failure>>()?;
        let plans = || points.iter().filter_map(|(_, course)| Some(course.as_ref().ok()?.measurement_plan()));
        let calls = plans().any(|plan| plan.memory.is_some());
        let code = if calls { CodeOrigin::Functions } else { CodeOrigin::Snippets };
        let open = executor::executor_opener(common, &machine, plans().any(|plan| plan.clock.reads_counter()), code);
        let mut study = PointsStudy::new(session, points, facts, open, error_record, kept);
        drive_study(&view, &mut study, order, output)
    })
}

/// The error record of a failed point.
fn error_record(study: &RunStudy, error: Error) -> ErrorRecord {
    match run::explain_failure(study, error) {
        Failure::Error(record) => *record,
        Failure::ClosedPipe => ErrorRecord::default(),
    }
}

/// How points are presented.
#[derive(Default)]
struct PointsView {
    /// Whether the values come from a geometric sweep.
    geometric: bool,
}

impl StudyView for PointsView {
    type Study = PointsStudy;

    fn print_text(&self, study: &PointsStudy, output: &mut Output) -> Result<(), Failure> {
        tables::print_points(study, output)
    }

    fn table(&self, study: &PointsStudy) -> Option<TextTable> {
        Some(tabulate_points(study.rows()))
    }

    fn pictures(&self, study: &PointsStudy, machine: &str) -> Vec<Picture> {
        plots::draw_sweep(study, machine, self.geometric)
    }

    fn prints_caveats(&self) -> bool {
        true
    }

    fn exit_code(&self, study: &PointsStudy) -> u8 {
        if study.rows().any(|row| row.measured_cost().is_some()) {
            return exit::DONE;
        }
        study.rows().map(|row| row.exit.unwrap_or(exit::FELL_SHORT)).min().unwrap_or(exit::DONE)
    }
}

/// Recomputes points from their evidence.
pub fn replay_points(container: &EvidenceContainer, output: &mut Output) -> Result<u8, Failure> {
    replay_study::replay_study(&PointsView::default(), container, output)
}

/// Checks a file to resume and the command in it, for tests.
#[cfg(test)]
pub fn check_resumed_points(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let (found, _) = session::read_resumed(path, content)?;
    let words: Vec<OsString> = ["cyclescope", "run"].map(OsString::from).into();
    let (common, args) = crate::args::parse_run_words(words.clone())?;
    let Some(ResumedFile { session, .. }) = &found else { return Ok(()) };
    session::adopt_command(session, &common, &args, &words).map(drop)
}
