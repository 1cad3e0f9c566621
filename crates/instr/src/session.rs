//! What two parts of one survey must have in common, as the first line of a result file has it.

use super::experiments::link_costs::{LinkCosts, LinkEstimate};
use super::experiments::survey_effort::SurveyEffort;
use super::rows::explanation::LinkCost;
pub use cyclescope_measure::study::{ResumableSession, list_differing_fields};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// The part of the first line that is about the survey.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstrSession {
    /// The version of the program.
    pub version: String,
    /// The seed.
    pub seed: u64,
    /// Whether --quick was given.
    pub quick: bool,
    /// What that means.
    pub effort: SurveyEffort,
    /// Level of the intervals.
    pub confidence: f64,
    /// The timing method.
    pub clock: String,
    /// Where the code runs.
    pub executor: String,
    /// The CPU to measure on.
    pub cpu: u32,
    /// The selection: globs, mnemonics, CPUID features, all, and a list.
    pub filters: Vec<String>,
    /// See `filters`.
    pub mnemonic: Vec<String>,
    /// See `filters`.
    pub isa: Vec<String>,
    /// See `filters`.
    pub all: bool,
    /// See `filters`.
    pub from: Option<PathBuf>,
    /// How many forms that makes.
    pub forms: usize,
    /// A number that another selection, list or version hardly has.
    pub identity: String,
}

/// The first line of a result file, kind `machine`.
#[derive(Debug, Serialize)]
pub(super) struct InstrMachineLine<'a> {
    /// Facts of the machine.
    #[serde(flatten)]
    pub(super) machine: &'a Value,
    /// What is measured, and how.
    pub(super) survey: &'a InstrSession,
    /// What links in chains cost.
    pub(super) gauge: LinkCostsRecord,
}

/// What was measured before all forms.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LinkCostsRecord {
    /// Core cycles of a NOP.
    pub nop: Option<f64>,
    /// What links cost.
    pub links: Vec<LinkCost>,
}

impl LinkCostsRecord {
    /// Makes a gauge the same: the rows of one file follow one convention.
    pub(super) fn apply_to(&self, gauge: &mut LinkCosts) {
        for LinkCost { name, cycles, certain, margin } in &self.links {
            if let Some(cycles) = *cycles {
                let margin = margin.unwrap_or_default();
                gauge.adopt_cost(name, LinkEstimate { cycles, certain: *certain, margin });
            }
        }
    }

    /// As the gauge has it.
    pub(super) fn new(gauge: &LinkCosts) -> LinkCostsRecord {
        let finite = |cycles: f64| cycles.is_finite().then_some(cycles);
        let links = gauge.costs().map(|(name, cost)| LinkCost {
            name: name.to_string(),
            cycles: finite(cost.cycles),
            certain: cost.certain,
            margin: finite(cost.margin),
        });
        LinkCostsRecord { nop: finite(gauge.nop_cycles()), links: links.collect() }
    }
}

impl ResumableSession for InstrSession {
    const FIELD: &'static str = "survey";

    fn describe_changes(&self, now: &InstrSession) -> Vec<String> {
        list_differing_fields(self, now, &["identity", "forms"])
    }

    fn describe_other_subjects(&self, now: &InstrSession) -> Option<String> {
        let text = || format!("it has {} forms, which differ from the {} selected now", self.forms, now.forms);
        (self.identity != now.identity).then(text)
    }
}
