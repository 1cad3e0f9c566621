//! One driver for all studies: measures, prints, keeps evidence and result files, draws, and computes all of it again.
//!
//! A command turns its options into a study and has a [`StudyView`]: what the result is as text, as tables and as pictures,
//! and which exit code it means. Everything else is here.

use crate::args::{Common, ExportArgs};
use crate::output::exporter::Exporter;
use crate::output::report::{Picture, Report, table_of_lines};
use crate::output::{Failure, JSON, Output, TEXT, warn};
use crate::process::interrupt;
use crate::session::background_load::{self, BackgroundLoad};
use crate::session::evidence::{Place, unwritten};
use crate::session::executor::warn_of_neighbours;
use crate::session::follower::{Ended, Follower, Kept};
use crate::session::result_file::ResultFile;
use cyclescope::error::Error;
use cyclescope::machine::Machine;
use cyclescope::record::exit;
use cyclescope::result::answers::Answers;
use cyclescope::result::container::Evidence;
use cyclescope::study::{Stop, Study, TextTable};
use serde_json::Value;
use std::rc::Rc;

/// A command's functions for its study beyond the contract of all studies.
pub trait StudyView {
    /// The study.
    type Study: Study;

    /// Prints the result as text; of a study that ended early, a part of it.
    fn text(&self, study: &Self::Study, output: &mut Output) -> Result<(), Failure>;

    /// All figures of the result as a table; none where its lines are the table.
    fn table(&self, _study: &Self::Study) -> Option<TextTable> {
        None
    }

    /// A table of few columns, for people; none where it is the table of all figures.
    fn summary(&self, _study: &Self::Study) -> Option<TextTable> {
        None
    }

    /// Pictures of the result, made on this machine.
    fn pictures(&self, _study: &Self::Study, _machine: &str) -> Vec<Picture> {
        Vec::new()
    }

    /// The exit code of the result.
    fn exit(&self, _study: &Self::Study) -> u8 {
        exit::DONE
    }

    /// The failure for an error that ended the study.
    fn failure(&self, _study: &Self::Study, error: Error) -> Failure {
        error.into()
    }

    /// Prints the lines of JSON that a replay has behind those of the study.
    fn replayed(&self, _study: &Self::Study, _output: &mut Output) -> Result<(), Failure> {
        Ok(())
    }
}

/// Destinations of a study's results beside standard output.
pub struct Order<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The command that repeats it.
    pub repro: &'a str,
    /// Where evidence goes.
    pub place: Option<Place<'a>>,
    /// The result file.
    pub file: Option<ResultFile>,
    /// What is printed instead of text.
    pub printed: Option<&'static dyn Exporter>,
    /// Files of other formats.
    pub exports: ExportArgs,
    /// What runs on other CPUs meanwhile.
    pub beside: BackgroundLoad,
}

impl<'a> Order<'a> {
    /// To standard output and, where that was asked for, evidence, whose directory is made here.
    pub fn new(common: &'a Common, machine: &'a Machine, repro: &'a str) -> Result<Order<'a>, Failure> {
        let place = Place::prepare(common)?;
        let beside = BackgroundLoad::new(common, machine)?;
        let (printed, exports) = (None, ExportArgs::default());
        Ok(Order { machine, repro, place, file: None, printed, exports, beside })
    }
}

/// Measures and reports. Returns the exit code.
pub fn drive<V: StudyView>(
    view: &V,
    study: &mut V::Study,
    order: Order,
    output: &mut Output,
) -> Result<u8, Failure> {
    let Order { machine, repro, place, file, printed, exports, beside } = order;
    let printed = if output.is_json() { &JSON } else { printed.unwrap_or(&TEXT) };
    exports.prepare()?;
    let evidence = place.as_ref().map(|place| begin(place, study, repro, machine)).transpose()?;
    let answers = evidence.clone().map_or_else(Answers::live, Answers::kept);
    let (kept, wanted) =
        (Kept { evidence: evidence.clone(), place: place.as_ref(), file }, !exports.is_empty());
    let mut follower = Follower::new(output, printed, kept, wanted);
    let running = beside.start()?;
    let ended = study.measure(&answers, &mut follower);
    let beside = running.end();
    let Ended { unprinted, failure, lines } = follower.finish(ended.is_ok());
    if let Some(lock) = study.lock_state() {
        warn_of_neighbours(lock, machine.target_cpu());
    }
    // Of a study that ended early that is what was complete.
    let report = Viewed { view, study: &*study, machine: &machine.cpu.name(), lines: &lines };
    let drawn = exports.write(&report, true);
    if let (Err(_), Err(failure)) = (&ended, &beside) {
        // What ended the study is reported; this may be why.
        warn(failure.text());
    }
    match ended {
        Ok(()) => {}
        Err(Stop::Asked) => return Err(failure.unwrap_or(Failure::ClosedPipe)),
        Err(Stop::Failed(error)) => return Err(view.failure(study, error)),
    }
    interrupt::farewell(None);
    // One file that fails costs no other; the first failure is reported.
    let printed =
        unprinted.map_or_else(|| printed.print(&report, output).and_then(|()| output.finish()), Err);
    let exported = exports.write(&report, false);
    let kept = evidence.map_or(Ok(()), |evidence| evidence.finish().map_err(unwritten));
    let beside =
        beside.and_then(|records| background_load::print(&records, output).and_then(|()| output.finish()));
    exported.and(drawn).and(kept).and(printed).and(beside)?;
    Ok(view.exit(study))
}

fn begin(place: &Place, study: &impl Study, repro: &str, machine: &Machine) -> Result<Rc<Evidence>, Failure> {
    let evidence = place.begin(study.name(), repro, machine)?;
    let plan = study.plan().map_err(unwritten)?;
    evidence.keep(|writer| writer.set_facts(&plan));
    Ok(evidence)
}

/// A result of a study as exporters see it.
struct Viewed<'a, V: StudyView> {
    view: &'a V,
    study: &'a V::Study,
    machine: &'a str,
    lines: &'a [Value],
}

impl<V: StudyView> Report for Viewed<'_, V> {
    fn text(&self, output: &mut Output) -> Result<(), Failure> {
        self.view.text(self.study, output)
    }

    fn table(&self) -> TextTable {
        self.view.table(self.study).unwrap_or_else(|| table_of_lines(self.lines))
    }

    fn summary(&self) -> TextTable {
        self.view.summary(self.study).unwrap_or_else(|| self.table())
    }

    fn pictures(&self) -> Vec<Picture> {
        self.view.pictures(self.study, self.machine)
    }
}
