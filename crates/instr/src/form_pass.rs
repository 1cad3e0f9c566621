//! How the measurement of one form in one pass ended.

use crate::experiments::program_reading::ProgramReading;
use serde::{Deserialize, Serialize};

/// How a form's measurement in one pass ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FormOutcome {
    /// The readings of each experiment.
    Measured(Vec<ProgramReading>),
    /// It was not tried, for this reason.
    Skipped(String),
    /// It faulted, hung or gave no figure.
    Failed(String),
}

impl FormOutcome {
    /// Whether an experiment has only readings with a busy sibling, or no experiment has any.
    pub(crate) fn is_disturbed(&self) -> bool {
        let FormOutcome::Measured(readings) = self else { return false };
        self.is_starved() || readings.iter().all(|reading| reading.cycles.is_empty())
    }

    /// Whether an experiment has only readings with a busy sibling, or no body of fillers has a reading.
    pub(crate) fn is_starved(&self) -> bool {
        let FormOutcome::Measured(readings) = self else { return false };
        readings.iter().any(|reading| {
            let shared = reading.cycles.is_empty() && !reading.shared.is_empty();
            let uncounted = !reading.slots.is_empty() && reading.slots.iter().all(|body| body.cycles.is_empty());
            shared || uncounted
        })
    }
}

/// One form in one pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FormPass {
    /// Index among the survey's forms.
    pub form: usize,
    /// The pass, from 0.
    pub pass: u32,
    /// How it ended.
    pub outcome: FormOutcome,
}

impl FormPass {
    /// Whether a survey may have measured it: no program takes negative time.
    pub(super) fn is_possible(&self) -> bool {
        let FormOutcome::Measured(readings) = &self.outcome else { return true };
        let figures = |reading: &ProgramReading| {
            let ProgramReading { cycles, rounds, shared, decoded, slots, .. } = reading;
            let bodies =
                slots.iter().flat_map(|body| [Some(&body.cycles), body.control.as_ref(), Some(&body.disturbed)]);
            let bodies = bodies.flatten();
            [cycles, rounds, shared, decoded].into_iter().chain(bodies).flatten().all(|cycles| *cycles >= 0.0)
        };
        readings.iter().all(figures)
    }
}

/// The readings of all measured passes.
pub(crate) fn collect_readings(outcomes: &[FormOutcome]) -> Vec<Vec<ProgramReading>> {
    let measured = |outcome: &FormOutcome| match outcome {
        FormOutcome::Measured(readings) => Some(readings.clone()),
        FormOutcome::Skipped(_) | FormOutcome::Failed(_) => None,
    };
    outcomes.iter().filter_map(measured).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_experiment_with_shared_readings_only_is_disturbed() {
        let alone = ProgramReading { cycles: vec![1.0], ..ProgramReading::default() };
        let shared = ProgramReading { shared: vec![2.0], ..ProgramReading::default() };
        let both = ProgramReading { shared: vec![2.0], ..alone.clone() };
        let disturbed = |readings: &[&ProgramReading]| {
            FormOutcome::Measured(readings.iter().map(|reading| (*reading).clone()).collect()).is_disturbed()
        };
        assert!(disturbed(&[&alone, &shared]) && disturbed(&[&ProgramReading::default()]));
        assert!(!disturbed(&[&both, &alone]) && !disturbed(&[&alone, &ProgramReading::default()]));
    }
}
