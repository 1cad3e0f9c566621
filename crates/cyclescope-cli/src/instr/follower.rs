//! Follows a survey: keeps rows, prints them, draws the bar.

use super::file::ResultFile;
use super::session::Session;
use crate::args::{Common, InstrArgs};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;
use crate::repro;
use cyclescope::caveat::Caveat;
use cyclescope::machine::Machine;
use cyclescope::result::container::{Evidence, Writer};
use cyclescope::study::instr::forms::subject::Subject;
use cyclescope::study::instr::rows::row::Row;
use cyclescope::study::instr::selection::full_name;
use cyclescope::study::instr::survey::{Event, Progress as Standing};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How much evidence a survey that is killed loses at most.
const CHECKPOINT: Duration = Duration::from_secs(5);

/// Whoever follows.
pub struct Follower<'a> {
    options: (&'a Common, &'a InstrArgs),
    session: &'a Session,
    file: Option<&'a mut ResultFile>,
    evidence: Option<&'a Evidence>,
    /// When the evidence was last made readable.
    checked: Instant,
    output: &'a mut Output,
    progress: Progress,
    /// Where each form's row belongs.
    places: HashMap<String, usize>,
    /// Whether the machine's cycles are not those of a core.
    emulated: bool,
    rows: Vec<Option<Row>>,
    complete: usize,
    /// What failed: it ends the survey.
    failure: Option<Failure>,
}

/// The name of a row's form.
fn name(row: &Row) -> String {
    format!("{} {}", row.code, row.operands).trim_end().to_string()
}

impl<'a> Follower<'a> {
    /// Begins.
    pub fn new(
        options: (&'a Common, &'a InstrArgs),
        (session, machine): (&'a Session, &Machine),
        subjects: &[Subject],
        (file, evidence): (Option<&'a mut ResultFile>, Option<&'a Rc<Evidence>>),
        output: &'a mut Output,
    ) -> Follower<'a> {
        let places =
            subjects.iter().enumerate().map(|(index, subject)| (full_name(subject), index)).collect();
        let rows = vec![None; subjects.len()];
        let progress = Progress::new("links");
        let emulated = machine.is_emulated();
        Follower {
            options,
            session,
            emulated,
            file,
            evidence: evidence.map(Rc::as_ref),
            checked: Instant::now(),
            output,
            progress,
            places,
            rows,
            complete: 0,
            failure: None,
        }
    }

    /// Takes the rows that a file has already, and returns which forms are known by them.
    pub fn known(&mut self, rows: Vec<Row>) -> Result<Vec<usize>, Failure> {
        let mut known = Vec::new();
        for row in rows {
            let Some(place) = self.places.get(&name(&row)).copied() else { continue };
            self.record(&row)?;
            self.put(place, row);
            known.push(place);
        }
        Ok(known)
    }

    /// The bar's start.
    pub fn begin(&self, standing: Standing) {
        self.progress.begin(standing.done as u64, standing.total as u64);
    }

    /// Takes an event. A failure ends the survey and is returned by [`Follower::finish`].
    pub fn take(&mut self, event: Event, standing: Standing) -> ControlFlow<()> {
        match self.act(event, standing) {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                self.failure = Some(failure);
                ControlFlow::Break(())
            }
        }
    }

    fn act(&mut self, event: Event, standing: Standing) -> Result<(), Failure> {
        match event {
            Event::Done(done) => {
                if let Some(file) = self.file.as_mut() {
                    file.keep(done, self.session)?;
                }
            }
            Event::Row(row) => {
                let mut row = *row;
                let name = name(&row);
                let (common, args) = self.options;
                row.repro = repro::instr_form(common, args, &name, self.session.seed);
                row.caveats.extend(self.emulated.then(Caveat::emulated));
                // First the file: what it has is not lost where standard output is closed.
                self.file.as_mut().map_or(Ok(()), |file| file.append("instr", &row))?;
                self.keep(&row);
                self.record(&row)?;
                if let Some(place) = self.places.get(&name).copied() {
                    self.put(place, row);
                }
            }
        }
        let (complete, forms) = (self.complete, self.rows.len());
        let passes = self.session.effort.passes;
        let times = if passes > 1 { format!(", each {passes} times") } else { String::new() };
        let message = format!("{complete} of {forms} forms complete{times}");
        self.progress.tell(standing.done as u64, standing.total as u64, message);
        Ok(())
    }

    /// Keeps a row as evidence.
    fn keep(&mut self, row: &Row) {
        let Some(evidence) = self.evidence else { return };
        evidence.keep(|writer| writer.record("instr", row));
        if self.checked.elapsed() >= CHECKPOINT {
            evidence.keep(Writer::checkpoint);
            self.checked = Instant::now();
        }
    }

    fn put(&mut self, place: usize, row: Row) {
        self.complete += usize::from(self.rows[place].is_none());
        self.rows[place] = Some(row);
    }

    fn record(&mut self, row: &Row) -> Result<(), Failure> {
        if !self.output.is_json() {
            return Ok(());
        }
        self.progress.aside(|| self.output.record("instr", row))
    }

    /// All rows in the order of the selection, or what failed.
    pub fn finish(self) -> Result<Vec<Row>, Failure> {
        self.progress.finish();
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok(self.rows.into_iter().flatten().collect()),
        }
    }
}
