//! One driver for all studies: measures, prints, keeps evidence and result files, draws, and computes all of it again.
//!
//! A command turns its options into a study and has a [`Front`]: how the result looks as text, what is drawn, which
//! exit code it means. Everything else is here.

use crate::args::Common;
use crate::output::Output;
use crate::output::failure::{Failure, warn};
use crate::output::plots::Plots;
use crate::process::interrupt;
use crate::session::background_load::{self, BackgroundLoad};
use crate::session::evidence::{Place, unwritten};
use crate::session::executor::warn_of_neighbours;
use crate::session::follower::{Ended, Follower};
use crate::session::result_file::ResultFile;
use cyclescope::error::Error;
use cyclescope::machine::Machine;
use cyclescope::record::exit;
use cyclescope::result::answers::Answers;
use cyclescope::result::container::Evidence;
use cyclescope::study::{Stop, Study};
use std::path::Path;
use std::rc::Rc;

/// A command's functions for its study beyond the contract of all studies.
pub trait Front {
    /// The study.
    type Study: Study;

    /// Prints the result as text; of a study that ended early, a part of it.
    fn text(&self, study: &Self::Study, output: &mut Output) -> Result<(), Failure>;

    /// Draws the result.
    fn draw(&self, _study: &Self::Study, _plots: &mut Plots) -> Result<(), Failure> {
        Ok(())
    }

    /// Whether [`Front::export`] writes anything.
    fn exports(&self) -> bool {
        false
    }

    /// Writes further files, when everything is printed.
    fn export(&self, _study: &Self::Study) -> Result<(), Failure> {
        Ok(())
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
    /// The directory of graphs.
    pub plots: Option<&'a Path>,
    /// What runs on other CPUs meanwhile.
    pub beside: BackgroundLoad,
}

impl<'a> Order<'a> {
    /// To standard output and, where that was asked for, evidence, whose directory is made here.
    pub fn new(common: &'a Common, machine: &'a Machine, repro: &'a str) -> Result<Order<'a>, Failure> {
        let place = Place::prepare(common)?;
        let beside = BackgroundLoad::new(common, machine)?;
        Ok(Order { machine, repro, place, file: None, plots: None, beside })
    }
}

/// Measures and reports. Returns the exit code.
pub fn drive<F: Front>(
    front: &F,
    study: &mut F::Study,
    order: Order,
    output: &mut Output,
) -> Result<u8, Failure> {
    let Order { machine, repro, place, file, plots, beside } = order;
    let mut plots = plots.map(|directory| Plots::new(directory, &machine.cpu.name())).transpose()?;
    let evidence = place.as_ref().map(|place| begin(place, study, repro, machine)).transpose()?;
    let answers = evidence.clone().map_or_else(Answers::live, Answers::kept);
    let files = plots.is_some() || front.exports();
    let mut follower = Follower::new(output, evidence.clone(), place.as_ref(), file, files);
    let running = beside.start()?;
    let ended = study.measure(&answers, &mut follower);
    let beside = running.end();
    let Ended { unprinted, failure } = follower.finish(ended.is_ok());
    if let Some(lock) = study.lock_state() {
        warn_of_neighbours(lock, machine.target_cpu());
    }
    // Of a study that ended early that is what was complete.
    let drawn = plots.as_mut().map_or(Ok(()), |plots| front.draw(study, plots));
    if let (Err(_), Err(failure)) = (&ended, &beside) {
        // What ended the study is reported; this may be why.
        warn(failure.text());
    }
    match ended {
        Ok(()) => {}
        Err(Stop::Asked) => return Err(failure.unwrap_or(Failure::ClosedPipe)),
        Err(Stop::Failed(error)) => return Err(front.failure(study, error)),
    }
    interrupt::farewell(None);
    // One file that fails costs no other; the first failure is reported.
    let printed = unprinted.map_or_else(|| print(front, study, output), Err);
    let exported = front.export(study);
    let kept = evidence.map_or(Ok(()), |evidence| evidence.finish().map_err(unwritten));
    let beside =
        beside.and_then(|records| background_load::print(&records, output).and_then(|()| output.finish()));
    exported.and(drawn).and(kept).and(printed).and(beside)?;
    Ok(front.exit(study))
}

fn begin(place: &Place, study: &impl Study, repro: &str, machine: &Machine) -> Result<Rc<Evidence>, Failure> {
    let evidence = place.begin(study.name(), repro, machine)?;
    let plan = study.plan().map_err(unwritten)?;
    evidence.keep(|writer| writer.set_facts(&plan));
    Ok(evidence)
}

fn print<F: Front>(front: &F, study: &F::Study, output: &mut Output) -> Result<(), Failure> {
    if !output.is_json() {
        front.text(study, output)?;
    }
    output.finish()
}
