//! Follows an evaluation: prints what is complete, keeps evidence, draws.

use super::evidence::Evidence;
use super::plots::Plots;
use super::{sections, tables};
use crate::failure::{Failure, warn};
use crate::output::Output;
use crate::page::Page;
use crate::progress::Progress;
use cyclescope::machine::Machine;
use cyclescope::study::evaluate::contamination::{self, Contamination};
use cyclescope::study::evaluate::evaluation::{Evaluation, Event, Facts};
use cyclescope::study::evaluate::plan::NotRun;
use cyclescope::study::evaluate::record::{
    ContaminationRecord, EnsembleRecord, EvaluateRecord, FactsRecord, ResolutionRecord, Surroundings,
};
use std::ops::ControlFlow;

/// Parts of the bar.
const PARTS: u64 = 1000;

/// Whoever follows.
pub struct Follower<'a> {
    machine: &'a Machine,
    around: &'a Surroundings,
    series: bool,
    not_run: &'a [NotRun],
    evidence: Option<Evidence>,
    plots: Option<&'a mut Plots>,
    output: &'a mut Output,
    progress: Progress,
    /// Rows of the methods so far, for the table.
    contamination: Vec<(&'static str, Vec<Contamination>)>,
    /// What failed: it ends the evaluation, unless it was evidence or graphs only, which then end.
    failure: Option<Failure>,
}

impl<'a> Follower<'a> {
    /// Begins.
    pub fn new(
        machine: &'a Machine,
        around: &'a Surroundings,
        (series, not_run): (bool, &'a [NotRun]),
        evidence: Option<Evidence>,
        plots: Option<&'a mut Plots>,
        output: &'a mut Output,
    ) -> Follower<'a> {
        let progress = Progress::new("");
        let contamination = Vec::new();
        let failure = None;
        Follower {
            machine,
            around,
            series,
            not_run,
            evidence,
            plots,
            output,
            progress,
            contamination,
            failure,
        }
    }

    /// Takes an event. A failure ends the evaluation and is told by [`Follower::finish`].
    pub fn take(&mut self, event: Event) -> ControlFlow<()> {
        match self.act(event) {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                self.failure = Some(failure);
                ControlFlow::Break(())
            }
        }
    }

    fn act(&mut self, event: Event) -> Result<(), Failure> {
        match event {
            Event::Doing { what, clock, share } => {
                let message = clock.map_or(what.to_string(), |clock| format!("{what}: {clock}"));
                self.progress.tell((share * PARTS as f64) as u64, PARTS, message);
                Ok(())
            }
            Event::Facts(facts) => self.facts(facts),
            Event::Contamination(clock, rows) => {
                self.contamination.push((clock.name, rows.to_vec()));
                self.contaminated(clock.name, rows)
            }
            Event::Resolution(resolution) => {
                self.draw(|plots| plots.resolution(resolution));
                self.record("evaluate.resolution", &ResolutionRecord::new(resolution, self.around.executor))
            }
            Event::Claims(claims) => {
                for claim in claims {
                    self.record("evaluate.claim", claim)?;
                }
                for not in self.not_run {
                    let rows = contamination::not_run(&not.clock.promises, &not.why.why);
                    self.contaminated(not.clock.name, &rows)?;
                }
                Ok(())
            }
            Event::Sampling(subject, shape, program) => {
                self.keep(|evidence| evidence.begin(subject.clock.name, shape, program));
                Ok(())
            }
            Event::Ensemble(clock, number, ensemble, readings) => {
                self.keep(|evidence| evidence.readings(readings));
                if self.series {
                    self.record("evaluate.ensemble", &EnsembleRecord::new(clock.name, number, ensemble))?;
                }
                Ok(())
            }
            Event::Method(method) => {
                self.draw(|plots| plots.method(method));
                let record = EvaluateRecord::new(method, self.around);
                self.record("evaluate", &record)?;
                self.keep(|evidence| evidence.end(method, &record));
                Ok(())
            }
        }
    }

    /// Keeps evidence; where that fails there is no more of it, and the result goes on.
    fn keep(&mut self, act: impl FnOnce(&mut Evidence) -> Result<(), Failure>) {
        if let Some(Err(failure)) = self.evidence.as_mut().map(act) {
            self.evidence = None;
            self.progress.aside(|| warn("evidence is no longer kept; the evaluation goes on"));
            self.failure.get_or_insert(failure);
        }
    }

    /// The same for graphs.
    fn draw(&mut self, act: impl FnOnce(&mut Plots) -> Result<(), Failure>) {
        if let Some(Err(failure)) = self.plots.as_mut().map(|plots| act(plots)) {
            self.plots = None;
            self.progress.aside(|| warn("no more graphs are drawn; the evaluation goes on"));
            self.failure.get_or_insert(failure);
        }
    }

    /// Prints a line of JSON, where JSON is wanted.
    fn record<T: serde::Serialize>(&mut self, kind: &'static str, record: &T) -> Result<(), Failure> {
        if !self.output.is_json() {
            return Ok(());
        }
        self.progress.aside(|| self.output.record(kind, record))
    }

    fn contaminated(&mut self, clock: &'static str, rows: &[Contamination]) -> Result<(), Failure> {
        for row in rows {
            let record = ContaminationRecord::new(clock, self.around.executor, row);
            self.record("evaluate.contamination", &record)?;
        }
        Ok(())
    }

    fn facts(&mut self, facts: &Facts) -> Result<(), Failure> {
        if self.output.is_json() {
            self.record("machine", self.machine)?;
            return self.record("evaluate.tsc", &FactsRecord::new(facts));
        }
        Ok(())
    }

    /// Prints what is left to print, and says what failed.
    pub fn finish(mut self, evaluation: Option<Evaluation>) -> Result<(), Failure> {
        self.progress.finish();
        if let Some(evaluation) = evaluation {
            self.print(&evaluation)?;
            self.output.finish()?;
        }
        self.failure.map_or(Ok(()), Err)
    }

    fn print(&mut self, evaluation: &Evaluation) -> Result<(), Failure> {
        if self.output.is_json() {
            return self.output.record("evaluate.verdict", &evaluation.verdict);
        }
        let mut page = Page::new(self.output);
        sections::machine(&mut page, self.machine, &evaluation.facts, self.around)?;
        tables::samples(&mut page, evaluation, self.not_run)?;
        tables::published(&mut page, evaluation)?;
        tables::resolution(&mut page, evaluation)?;
        tables::contamination(&mut page, evaluation, self.not_run)?;
        sections::claims(&mut page, &evaluation.claims)?;
        sections::verdict(&mut page, evaluation)?;
        if let Some(plots) = &self.plots {
            page.row("graphs", &format!("{} in the directory of --plots", plots.drawn()))?;
        }
        Ok(())
    }
}
