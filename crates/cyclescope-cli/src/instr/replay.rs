//! Takes the course of a survey again over its recorded readings.

use super::tables;
use crate::failure::{Failure, warn};
use crate::output::Output;
use cyclescope::caveat::Caveat;
use cyclescope::error::RunError;
use cyclescope::record::exit;
use cyclescope::result::container::{Container, Lines, plain};
use cyclescope::result::replaying::Replaying;
use cyclescope::study::instr::evidence::{SurveyFacts, begin};
use cyclescope::study::instr::rows::row::Row;
use cyclescope::study::instr::survey::{Event, Known};
use std::ops::ControlFlow;

/// Computes all rows again, prints them, and fails where they are not what was printed then. Of a survey that was ended
/// early these are the rows that were complete.
pub fn replay(container: &Container, output: &mut Output) -> Result<u8, Failure> {
    let facts: SurveyFacts = container.facts()?;
    let (features, subjects) = (facts.features(), facts.subjects()?);
    let mut executor = Replaying::of(container, facts.executor.clone())?;
    let survey = begin(&mut executor, &facts, &features, subjects)?;
    let mut again = Again {
        written: container.records()?,
        rows: Vec::new(),
        differing: Vec::new(),
        failure: None,
        emulated: facts.emulated,
        finished: container.manifest.finished,
    };
    let result = survey.run(&mut executor, Known::default(), &mut |event, _| again.take(event, output));
    if let Some(failure) = again.failure {
        return Err(failure);
    }
    let finished = container.manifest.finished;
    match result {
        // The rows so far are what was complete when the survey was ended.
        Err(RunError::Replay { .. }) if !finished && executor.is_exhausted() => {
            let forms = survey.subjects.len();
            warn(&format!("the survey was not finished: {} of {forms} forms are complete", again.rows.len()));
        }
        result => result?,
    }
    let left = again.written.by_ref().filter(|line| line.as_ref().is_ok_and(|line| line["kind"] == "instr"));
    if finished && left.count() > 0 {
        again.differing.push("further rows are there".to_string());
    }
    if !output.is_json() {
        tables::rows(&again.rows.iter().collect::<Vec<_>>(), output)?;
    }
    output.finish()?;
    if again.differing.is_empty() {
        return Ok(exit::DONE);
    }
    let text = format!("the readings give other rows than those beside them: {}", again.differing.join(", "));
    Err(Failure::internal(text).with_remedy("a file was changed, or another version wrote it"))
}

/// The rows so far.
struct Again {
    /// The lines that were printed then.
    written: Lines,
    rows: Vec<Row>,
    /// Forms whose rows are not those of then.
    differing: Vec<String>,
    failure: Option<Failure>,
    emulated: bool,
    /// Whether the survey came to its end.
    finished: bool,
}

impl Again {
    fn take(&mut self, event: Event, output: &mut Output) -> ControlFlow<()> {
        let Event::Row(row) = event else { return ControlFlow::Continue(()) };
        match self.row(*row, output) {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                self.failure = Some(failure);
                ControlFlow::Break(())
            }
        }
    }

    fn row(&mut self, mut row: Row, output: &mut Output) -> Result<(), Failure> {
        let written = match self.written.next() {
            Some(written) => written?,
            // It was measured after the last row that was kept.
            None if !self.finished => return Ok(()),
            None => {
                self.differing.push(format!("{} {}, which is not there", row.code, row.operands));
                return Ok(());
            }
        };
        row.repro = written["repro"].as_str().unwrap_or_default().to_string();
        row.caveats.extend(self.emulated.then(Caveat::emulated));
        let now = plain(&row).expect("rows are plain data");
        let fields = now.as_object().expect("a row is an object");
        if fields.iter().any(|(name, value)| written.get(name.as_str()) != Some(value)) {
            self.differing.push(format!("{} {}", row.code, row.operands).trim_end().to_string());
        }
        if output.is_json() {
            output.record("instr", &row)?;
        }
        self.rows.push(row);
        Ok(())
    }
}
