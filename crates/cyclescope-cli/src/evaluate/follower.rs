//! Follows an evaluation: prints what is complete, keeps evidence, draws.

use super::evidence::Evidence;
use super::{rows, sections, tables};
use crate::failure::{Failure, warn};
use crate::output::Output;
use crate::page::Page;
use crate::plots::Plots;
use crate::progress::Progress;
use cyclescope::machine::Machine;
use cyclescope::study::evaluate::Candidate;
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
        let failure = None;
        Follower { machine, around, series, not_run, evidence, plots, output, progress, failure }
    }

    /// Takes an event. A failure ends the evaluation and is returned by [`Follower::finish`].
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
            Event::Doing { what, candidate, share } => {
                let named = |of: Candidate| format!("{what}: {}", rows::named(of));
                let message = candidate.map_or(what.to_string(), named);
                self.progress.tell((share * PARTS as f64) as u64, PARTS, message);
                Ok(())
            }
            Event::Facts(facts) => self.facts(facts),
            Event::Contamination(candidate, rows) => self.contaminated(candidate, rows),
            Event::Resolution(candidate, resolution) => {
                self.draw(|plots| plots.resolution(candidate, resolution));
                self.record("evaluate.resolution", &ResolutionRecord::new(candidate.executor, resolution))
            }
            Event::Claims(claims) => {
                for claim in claims {
                    self.record("evaluate.claim", claim)?;
                }
                for not in self.not_run {
                    let rows = contamination::not_run(&not.candidate.clock.promises, &not.why.why);
                    self.contaminated(not.candidate, &rows)?;
                }
                Ok(())
            }
            Event::Sampling(subject, shape, program) => {
                self.keep(|evidence| evidence.begin(subject.candidate(), shape, program));
                Ok(())
            }
            Event::Ensemble(candidate, number, ensemble, readings) => {
                self.keep(|evidence| evidence.readings(readings));
                if self.series {
                    self.record("evaluate.ensemble", &EnsembleRecord::new(candidate, number, ensemble))?;
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

    /// Writes evidence; after a failure it writes no more, and the evaluation continues.
    fn keep(&mut self, act: impl FnOnce(&mut Evidence) -> Result<(), Failure>) {
        if let Some(Err(failure)) = self.evidence.as_mut().map(act) {
            self.evidence = None;
            self.progress.aside(|| warn("evidence is no longer written; the evaluation continues"));
            self.failure.get_or_insert(failure);
        }
    }

    /// The same for graphs.
    fn draw(&mut self, act: impl FnOnce(&mut Plots) -> Result<(), Failure>) {
        if let Some(Err(failure)) = self.plots.as_mut().map(|plots| act(plots)) {
            self.plots = None;
            self.progress.aside(|| warn("no more graphs are drawn; the evaluation continues"));
            self.failure.get_or_insert(failure);
        }
    }

    /// Keeps a line of JSON, and prints it where JSON is wanted.
    fn record<T: serde::Serialize>(&mut self, kind: &'static str, record: &T) -> Result<(), Failure> {
        self.keep(|evidence| evidence.record(kind, record));
        if !self.output.is_json() {
            return Ok(());
        }
        self.progress.aside(|| self.output.record(kind, record))
    }

    fn contaminated(&mut self, candidate: Candidate, rows: &[Contamination]) -> Result<(), Failure> {
        for row in rows {
            self.record("evaluate.contamination", &ContaminationRecord::new(candidate, row))?;
        }
        Ok(())
    }

    fn facts(&mut self, facts: &Facts) -> Result<(), Failure> {
        self.record("machine", self.machine)?;
        self.record("evaluate.tsc", &FactsRecord::new(facts))
    }

    /// Prints what is left to print, and says what failed.
    pub fn finish(mut self, evaluation: Option<Evaluation>) -> Result<(), Failure> {
        self.progress.finish();
        if let Some(evaluation) = evaluation {
            self.print(&evaluation)?;
            self.output.finish()?;
            if let Some(evidence) = self.evidence.take()
                && let Err(failure) = evidence.finish()
            {
                self.failure.get_or_insert(failure);
            }
        }
        self.failure.map_or(Ok(()), Err)
    }

    fn print(&mut self, evaluation: &Evaluation) -> Result<(), Failure> {
        evaluation.verdicts.iter().try_for_each(|verdict| self.record("evaluate.verdict", verdict))?;
        if self.output.is_json() {
            return Ok(());
        }
        let mut page = Page::new(self.output);
        sections::machine(&mut page, self.machine, evaluation, self.around)?;
        tables::samples(&mut page, evaluation, self.not_run)?;
        tables::published(&mut page, evaluation)?;
        tables::resolution(&mut page, evaluation)?;
        tables::contamination(&mut page, evaluation, self.not_run)?;
        sections::claims(&mut page, &evaluation.claims)?;
        sections::verdicts(&mut page, evaluation)?;
        if let Some(plots) = &self.plots {
            page.row("graphs", &format!("{} in the directory of --plots", plots.drawn()))?;
        }
        Ok(())
    }
}
