//! The session: what two parts of one survey must have in common. The first line of a result file
//! records it.

use super::experiments::filler_curves::FillerCurves;
use super::experiments::link_costs::{LinkCosts, LinkEstimate};
use super::experiments::survey_effort::SurveyEffort;
use super::rows::program_trial::LinkCost;
use cyclescope_code::asm::CodeMode;
use cyclescope_events::CounterRequest;
pub use cyclescope_measure::study::{ResumableSession, list_differing_fields};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// The session fields in the first line of a result file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstrSession {
    /// The version of cyclescope.
    pub version: String,
    /// Seed of all orders and layouts.
    pub seed: u64,
    /// The mode of the code.
    #[serde(default, skip_serializing_if = "CodeMode::is_default")]
    pub bits: CodeMode,
    /// Whether --quick was given.
    pub quick: bool,
    /// The effort that results from it.
    pub effort: SurveyEffort,
    /// Confidence level of the intervals.
    pub confidence: f64,
    /// The timing method.
    pub clock: String,
    /// The executor that runs the code.
    pub executor: String,
    /// The CPU that the survey runs on.
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
    /// Number of selected forms.
    pub forms: usize,
    /// Events that are counted for each form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<CounterRequest>,
    /// A hash of the selected forms and the program version.
    pub identity: String,
}

/// The first line of a result file, of kind `machine`.
#[derive(Debug, Serialize)]
pub(super) struct InstrMachineLine<'a> {
    /// Facts about the machine.
    #[serde(flatten)]
    pub(super) machine: &'a Value,
    /// The session.
    pub(super) survey: &'a InstrSession,
    /// Costs of links in chains.
    pub(super) gauge: LinkCostsRecord,
}

/// Costs measured before the first form.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LinkCostsRecord {
    /// Core cycles per NOP.
    pub nop: Option<f64>,
    /// Cost of each link.
    pub links: Vec<LinkCost>,
    /// The scale for dispatch slots.
    #[serde(default)]
    pub fillers: FillerCurves,
}

impl LinkCostsRecord {
    /// Adopts the recorded costs: all rows of one file use the same ones.
    pub(super) fn apply_to(&self, link_costs: &mut LinkCosts, filler_curves: &mut FillerCurves) {
        if *filler_curves != FillerCurves::default() {
            filler_curves.clone_from(&self.fillers);
        }
        for LinkCost { name, cycles, certain, margin } in &self.links {
            if let Some(cycles) = *cycles {
                let margin = margin.unwrap_or_default();
                link_costs.adopt_cost(name, LinkEstimate { cycles, certain: *certain, margin });
            }
        }
    }

    /// Whether a machine may have these costs: none is negative, and more fillers take longer.
    pub fn is_possible(&self) -> bool {
        let costs = self.links.iter().flat_map(|link| [link.cycles, link.margin]).chain([self.nop]);
        costs.flatten().all(|cycles| cycles >= 0.0) && self.fillers.is_possible()
    }

    /// Records measured link costs and filler curves.
    pub(super) fn new(link_costs: &LinkCosts, filler_curves: &FillerCurves) -> LinkCostsRecord {
        let finite = |cycles: f64| cycles.is_finite().then_some(cycles);
        let links = link_costs.costs().map(|(name, cost)| LinkCost {
            name: name.to_string(),
            cycles: finite(cost.cycles),
            certain: cost.certain,
            margin: finite(cost.margin),
        });
        LinkCostsRecord { nop: finite(link_costs.nop_cycles()), links: links.collect(), fillers: filler_curves.clone() }
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
