//! The plan of the study: everything that decides its course, except the machine's answers.

use crate::published_map::PublishedMap;
use crate::study_part::KnownSlots;
use cyclescope_code::asm::CodeMode;
use cyclescope_core::machine::Machine;
use cyclescope_core::machine::features::{CpuFeatures, SavedFeatures};
use cyclescope_instr::experiments::survey_effort::SurveyEffort;
use cyclescope_instr::forms::target_form::TargetForm;
use cyclescope_instr::mixes::mix_timer::MixEffort;
use cyclescope_instr::selection::{full_name, list_forms};
use cyclescope_measure::Plan;
use cyclescope_measure::result::container::ContainerError;
use cyclescope_measure::study::GenericSession;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Upper limit of orders, layouts and rounds in a plan.
const EFFORT_MOST: usize = 600;

/// What is asked about the forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PortsQuestion {
    /// The ports of each form.
    Forms,
    /// What the two forms share.
    Pair,
}

/// Everything that decides the course of the study.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PortsPlan {
    /// Clock, step, latency of `imul`, seed, and confidence level.
    pub plan: Plan,
    /// What is asked.
    pub question: PortsQuestion,
    /// Whether rows list the mixes that decided them.
    #[serde(default)]
    pub explain: bool,
    /// The text of a published map, whose names of ports are given beside those of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<String>,
    /// Slots that an earlier survey measured: only those of other forms are measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_slots: Option<KnownSlots>,
    /// How thoroughly mixes are timed.
    pub effort: MixEffort,
    /// How thoroughly the slots of forms are measured.
    pub slot_effort: SurveyEffort,
    /// The session, as the first line of a result file records it.
    pub session: GenericSession,
    /// The brand string of the CPU.
    pub cpu_model: String,
    /// Options that follow the form's name in the command that repeats its measurement.
    pub repro_options: String,
    features: SavedFeatures,
}

impl PortsPlan {
    /// Plans a study on this machine. The session's subjects are the full names of the forms.
    pub fn new(
        plan: Plan,
        question: PortsQuestion,
        session: GenericSession,
        repro_options: String,
        machine: &Machine,
    ) -> PortsPlan {
        // With fewer than three layouts, a time has hardly an interval.
        let quick = MixEffort { layouts: 3, ..MixEffort::QUICK };
        let effort = if session.quick { quick } else { MixEffort::FULL };
        let slot_effort = SurveyEffort::QUICK;
        let (cpu_model, features) = (machine.cpu.name(), (&machine.features).into());
        PortsPlan {
            plan,
            question,
            explain: false,
            names: None,
            known_slots: None,
            effort,
            slot_effort,
            session,
            cpu_model,
            repro_options,
            features,
        }
    }

    /// The same plan with the slots of an earlier survey on the same machine.
    pub fn with_known_slots(self, known_slots: Option<KnownSlots>) -> PortsPlan {
        PortsPlan { known_slots, ..self }
    }

    /// The same plan with a published map, whose text is sound.
    pub fn with_names(self, names: Option<String>) -> PortsPlan {
        PortsPlan { names, ..self }
    }

    /// The published map.
    pub(crate) fn published_map(&self) -> Option<PublishedMap> {
        self.names.as_deref().and_then(|text| PublishedMap::read(text).ok())
    }

    /// The same plan, whose rows list the mixes that decided them or not.
    pub fn explaining(self, explain: bool) -> PortsPlan {
        PortsPlan { explain, ..self }
    }

    /// The CPU's features.
    pub fn features(&self) -> CpuFeatures {
        CpuFeatures::from(&self.features)
    }

    /// Restores the forms. The plan may come from an untrusted file, so every field is checked.
    pub(crate) fn restore_forms(&self) -> Result<Vec<TargetForm>, ContainerError> {
        let MixEffort { orders, first_layouts, layouts, rounds, cycles, tries, .. } = self.effort;
        let SurveyEffort { passes, layouts: slot_layouts, rounds: slot_rounds, recipes, .. } = self.slot_effort;
        let counts = [
            orders,
            first_layouts,
            layouts,
            rounds as usize,
            passes as usize,
            slot_layouts,
            slot_rounds as usize,
            recipes,
        ];
        let good_cycles = [cycles, self.slot_effort.cycles].iter().all(|cycles| (1.0..1e9).contains(cycles));
        let good_counts = counts.iter().all(|count| (1..=EFFORT_MOST).contains(count)) && tries as usize <= EFFORT_MOST;
        if !good_counts || !good_cycles {
            return Err(ContainerError::damaged_fact("effort", "it is out of range"));
        }
        if let Some(field) = self.plan.find_unsound_field() {
            return Err(ContainerError::damaged_fact(&format!("plan.{field}"), "it is out of range"));
        }
        if self.names.as_deref().is_some_and(|text| PublishedMap::read(text).is_err()) {
            return Err(ContainerError::damaged_fact("names", "it is no published map"));
        }
        if self.known_slots.as_ref().is_some_and(|known| !(known.width.is_finite() && known.width > 0.0)) {
            return Err(ContainerError::damaged_fact("known_slots.width", "it is out of range"));
        }
        if self.question == PortsQuestion::Pair && self.session.subjects.len() != 2 {
            return Err(ContainerError::damaged_fact("session.subjects", "a pair has two forms"));
        }
        let known: HashMap<String, TargetForm> =
            list_forms(CodeMode::Bits64).into_iter().map(|target| (full_name(&target), target)).collect();
        let restored = |(index, name): (usize, &String)| {
            let damaged =
                || ContainerError::damaged_fact(&format!("session.subjects[{index}]"), "the form does not exist");
            known.get(name).cloned().ok_or_else(damaged)
        };
        self.session.subjects.iter().enumerate().map(restored).collect()
    }
}
