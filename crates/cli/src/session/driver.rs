//! Drives every study: measures, prints, keeps evidence and result files, draws pictures, and
//! replays evidence.
//!
//! A command turns its options into a study and provides a [`StudyView`]: the result as text,
//! tables and pictures, and its exit code. Everything else is here.

use crate::args::{CommonArgs, ExportArgs};
use crate::input::target::LoadedFunction;
use crate::output::exporter::Exporter;
use crate::output::report::{Picture, ResultReport, tabulate_lines};
use crate::output::{Failure, JSON_EXPORTER, Output, TEXT_EXPORTER, print_warning};
use crate::process::interrupt;
use crate::session::background_load::{self, BackgroundLoad, PlannedLoads};
use crate::session::evidence::{EvidenceDirectory, evidence_failure};
use crate::session::executor::warn_if_cpu_shared;
use crate::session::follower::{FollowResult, Follower, StudyFiles};
use crate::session::result_file::ResultFile;
use cyclescope::asm::CodeMode;
use cyclescope::error::Error;
use cyclescope::machine::Machine;
use cyclescope::record::exit;
use cyclescope::result::answers::MachineAnswers;
use cyclescope::result::container::EvidenceRecorder;
use cyclescope::study::{StopReason, Study, TextTable};
use serde_json::Value;
use std::rc::Rc;

/// How a command presents its study.
pub trait StudyView {
    /// The study.
    type Study: Study;

    /// Prints the result as text; only a part if the study ended early.
    fn print_text(&self, study: &Self::Study, output: &mut Output) -> Result<(), Failure>;

    /// All figures of the result as a table; `None` if the study's lines are the table.
    fn table(&self, _study: &Self::Study) -> Option<TextTable> {
        None
    }

    /// A short table for readers; `None` to use the full table.
    fn summary(&self, _study: &Self::Study) -> Option<TextTable> {
        None
    }

    /// Pictures of the result, labelled with this machine.
    fn pictures(&self, _study: &Self::Study, _machine: &str) -> Vec<Picture> {
        Vec::new()
    }

    /// Whether the text of the result has its caveats.
    fn prints_caveats(&self) -> bool {
        false
    }

    /// The exit code of the result.
    fn exit_code(&self, _study: &Self::Study) -> u8 {
        exit::DONE
    }

    /// Writes what follows a completed measurement.
    fn write_rest(&self, _study: &Self::Study, _output: &mut Output) -> Result<(), Failure> {
        Ok(())
    }

    /// Converts the error that ended the study to a failure.
    fn to_failure(&self, _study: &Self::Study, error: Error) -> Failure {
        error.into()
    }

    /// Prints the JSON lines that a replay adds to those of the study.
    fn print_replay_lines(&self, _study: &Self::Study, _output: &mut Output) -> Result<(), Failure> {
        Ok(())
    }
}

/// Where a study's results go.
pub struct StudyOrder<'a> {
    /// The measured machine.
    pub machine: &'a Machine,
    /// The command that repeats the study.
    pub repro: &'a str,
    /// Directory for evidence.
    pub place: Option<EvidenceDirectory<'a>>,
    /// The result file.
    pub file: Option<ResultFile>,
    /// Format to print instead of text.
    pub printed: Option<&'static dyn Exporter>,
    /// Files of other formats to write.
    pub exports: ExportArgs,
    /// Background load during the measurement.
    pub background_load: BackgroundLoad,
}

impl<'a> StudyOrder<'a> {
    /// Prints to standard output and, if requested, keeps evidence. The evidence directory is
    /// created here. `mode` is that of the measured code, and of background load that names none.
    pub fn new(
        common: &'a CommonArgs,
        mode: CodeMode,
        machine: &'a Machine,
        repro: &'a str,
    ) -> Result<StudyOrder<'a>, Failure> {
        let place = EvidenceDirectory::prepare(common)?;
        let background_load = BackgroundLoad::new(common, mode, machine)?;
        let (printed, exports) = (None, ExportArgs::default());
        Ok(StudyOrder { machine, repro, place, file: None, printed, exports, background_load })
    }
}

/// Measures and reports. Returns the exit code. If the background load calls functions, all of this
/// happens in a process that has loaded them, and the study here stays as it was.
pub fn drive_study<V: StudyView>(
    view: &V,
    study: &mut V::Study,
    mut order: StudyOrder,
    output: &mut Output,
) -> Result<u8, Failure> {
    let background_load = std::mem::take(&mut order.background_load);
    background_load
        .load_and_run(output.is_json(), |planned, loaded| measure_study(view, study, order, (planned, loaded), output))
}

/// Measures and reports, with this background load and its loaded functions.
fn measure_study<V: StudyView>(
    view: &V,
    study: &mut V::Study,
    order: StudyOrder,
    (planned_loads, loaded): (PlannedLoads, &[LoadedFunction]),
    output: &mut Output,
) -> Result<u8, Failure> {
    let StudyOrder { machine, repro, place, file, printed, exports, .. } = order;
    let printed = if output.is_json() { &JSON_EXPORTER } else { printed.unwrap_or(&TEXT_EXPORTER) };
    exports.prepare_paths()?;
    let evidence = place.as_ref().map(|place| begin_evidence(place, study, repro, machine)).transpose()?;
    let answers = evidence.clone().map_or_else(MachineAnswers::live, MachineAnswers::recording_to);
    let (kept, wanted) = (StudyFiles { evidence: evidence.clone(), place: place.as_ref(), file }, !exports.is_empty());
    let mut follower = Follower::new(output, &answers, printed, kept, wanted);
    let running_load = planned_loads.start(loaded)?;
    let ended = study.measure(&answers, &mut follower);
    let loads = running_load.stop();
    let FollowResult { unprinted, failure, lines } = follower.finish(ended.is_ok());
    if let Some(lock) = study.lock_state() {
        warn_if_cpu_shared(lock, machine.target_cpu());
    }
    if let Some(caveat) = answers.find_caveat().filter(|_| !view.prints_caveats()) {
        print_warning(&caveat.text);
    }
    // A study that ended early reports its completed part.
    let report = StudyReport { view, study: &*study, machine: &machine.cpu.name(), lines: &lines };
    let drawn = exports.write_files(&report, true);
    if let (Err(_), Err(failure)) = (&ended, &loads) {
        // The study's own failure is reported; this one may explain it.
        print_warning(failure.text());
    }
    match ended {
        Ok(()) => {}
        Err(StopReason::Requested) => return Err(failure.unwrap_or(Failure::ClosedPipe)),
        Err(StopReason::Failed(error)) => return Err(view.to_failure(study, error)),
    }
    interrupt::set_interrupt_text(None);
    // A file that fails doesn't affect the others; the first failure is reported.
    let printed = unprinted.map_or_else(|| printed.print_report(&report, output).and_then(|()| output.flush()), Err);
    let exported = exports.write_files(&report, false);
    let kept = evidence.map_or(Ok(()), |evidence| evidence.finish().map_err(evidence_failure));
    let loads = loads.and_then(|records| background_load::print_loads(&records, output).and_then(|()| output.flush()));
    exported.and(drawn).and(kept).and(printed).and(loads)?;
    view.write_rest(study, output)?;
    Ok(view.exit_code(study))
}

fn begin_evidence(
    place: &EvidenceDirectory,
    study: &impl Study,
    repro: &str,
    machine: &Machine,
) -> Result<Rc<EvidenceRecorder>, Failure> {
    let evidence = place.begin_evidence(study.name(), repro, machine)?;
    let plan = study.plan().map_err(evidence_failure)?;
    evidence.write_with(|writer| writer.set_facts(&plan));
    Ok(evidence)
}

/// A study's result as exporters see it.
struct StudyReport<'a, V: StudyView> {
    view: &'a V,
    study: &'a V::Study,
    machine: &'a str,
    lines: &'a [Value],
}

impl<V: StudyView> ResultReport for StudyReport<'_, V> {
    fn print_text(&self, output: &mut Output) -> Result<(), Failure> {
        self.view.print_text(self.study, output)
    }

    fn table(&self) -> TextTable {
        self.view.table(self.study).unwrap_or_else(|| tabulate_lines(self.lines))
    }

    fn summary(&self) -> TextTable {
        self.view.summary(self.study).unwrap_or_else(|| self.table())
    }

    fn pictures(&self) -> Vec<Picture> {
        self.view.pictures(self.study, self.machine)
    }
}
