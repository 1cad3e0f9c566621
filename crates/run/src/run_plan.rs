//! All inputs of a run, as evidence keeps them.

use super::setup_advice::AdviceTexts;
use super::subject::{RunSubject, SavedSubject};
use cyclescope_core::error::RunError;
use cyclescope_events::CounterRequest;
use cyclescope_measure::result::container::ContainerError;
use cyclescope_measure::result::record::{CallRecord, MixRecord, RegionRecord, SerializedBy};
use cyclescope_measure::{Plan, Precision};
use serde::{Deserialize, Deserializer, Serialize};

/// All inputs of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RunPlan {
    /// The plan of each measurement, with the precision at which it stops.
    pub(crate) plan: Plan,
    /// The precision that the result must reach, or it is too noisy:
    /// [`RunStudy::required_precision`](crate::study::RunStudy::required_precision).
    pub(crate) asked: Precision,
    /// The measured subject.
    pub(crate) subject: SavedSubject,
    /// The other subjects, compared in the same rounds.
    #[serde(default, deserialize_with = "read_subjects")]
    pub(crate) versus: Vec<SavedSubject>,
    /// The names of all subjects; empty if their code distinguishes them.
    #[serde(default)]
    pub(crate) names: Vec<String>,
    /// Whether the result includes the readings of one more layout.
    #[serde(default)]
    pub(crate) counts: bool,
    /// Events to count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) counters: Option<CounterRequest>,
    /// What each call of a function waits for.
    #[serde(default)]
    pub(crate) serialized: Option<SerializedBy>,
    /// Calls that wait for [`SerializedBy::counterpart_of`] instead. They are measured
    /// too if a call is short and nothing is compared.
    #[serde(default)]
    pub(crate) beside: Option<SavedSubject>,
    /// The name of the function that runs before each call.
    #[serde(default)]
    pub(crate) setup: Option<String>,
    /// The call of the function.
    #[serde(default)]
    pub(crate) call: Option<CallRecord>,
    /// Whether the snippet is measured both in a loop and as copies without one.
    #[serde(default)]
    pub(crate) both_figures: bool,
    /// The region of an executable that the subject runs.
    #[serde(default)]
    pub(crate) region: Option<RegionRecord>,
    /// The mix whose orders the subjects are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mix: Option<MixRecord>,
    /// The texts of the command that advice repeats.
    #[serde(default)]
    pub(crate) advice: Option<AdviceTexts>,
    pub(crate) cpu: u32,
    pub(crate) cpu_model: String,
    pub(crate) repro: String,
}

impl RunPlan {
    /// The measured subject, and those that it is compared with.
    ///
    /// # Errors
    ///
    /// If the plan does not contain valid code for them.
    pub(crate) fn subjects(&self) -> Result<Vec<RunSubject>, ContainerError> {
        [&self.subject].into_iter().chain(&self.versus).map(SavedSubject::to_subject).collect()
    }
}

/// Reads other subjects. Evidence of earlier versions has one or none.
fn read_subjects<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<SavedSubject>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum SavedSubjects {
        Several(Vec<SavedSubject>),
        One(Option<SavedSubject>),
    }
    Ok(match SavedSubjects::deserialize(from)? {
        SavedSubjects::Several(all) => all,
        SavedSubjects::One(one) => one.into_iter().collect(),
    })
}

/// The error of a plan without valid code.
pub(crate) fn missing_code_error(error: ContainerError) -> RunError {
    RunError::Replay { how: error.to_string() }
}
