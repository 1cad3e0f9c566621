//! The studies: questions that take many measurements. To add one, write a crate and add a line to
//! [`ALL`].

use crate::error::RunError;
use crate::result::answers::MachineAnswers;
use crate::result::container::EvidenceContainer;

pub use cyclescope_ab as ab;
pub use cyclescope_evaluate as evaluate;
pub use cyclescope_instr as instr;
#[cfg(unix)]
pub use cyclescope_marker as marker;
pub use cyclescope_measure::study::{
    GenericHead, GenericSession, GenericStudy, RecordRole, ResultRecord, ResumableSession, StopReason, Study,
    StudyFollower, StudyInfo, StudyProgress, StudySelection, SuiteCatalog, SuiteQuestion, TextColumn, TextTable,
    describe_processor_changes,
};
pub use cyclescope_ports as ports;
pub use cyclescope_run::{points, study as run};
pub use cyclescope_uarch as uarch;

/// All studies of this system, by name: the markers are those of Linux.
pub const ALL: &[StudyInfo] = &[
    evaluate::INFO,
    instr::INFO,
    #[cfg(unix)]
    marker::INFO,
    points::INFO,
    ports::INFO,
    run::INFO,
    uarch::INFO,
];

/// Finds a study by its name.
pub fn find_study(name: &str) -> Option<&'static StudyInfo> {
    ALL.iter().find(|study| study.name == name)
}

/// Recomputes the lines of a result from its evidence, for any study.
///
/// # Errors
///
/// [`StopReason::Failed`] if the evidence is damaged, ends before the result is complete, or holds
/// something that the study neither built nor asked for.
pub fn replay_evidence(container: &EvidenceContainer) -> Result<Vec<ResultRecord>, StopReason> {
    let damaged = |how: String| StopReason::from(RunError::Replay { how });
    let name = &container.manifest.origin.study;
    let study = find_study(name).ok_or_else(|| damaged(format!("there is no study {name}")))?;
    let mut study = (study.restore)(container).map_err(|error| damaged(error.to_string()))?;
    let answers = MachineAnswers::from_container(container).map_err(|error| damaged(error.to_string()))?;
    let mut records = Vec::new();
    study.measure(&answers, &mut records)?;
    match answers.find_differences().first() {
        Some(difference) => Err(damaged(difference.to_string())),
        None => Ok(records),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn studies_have_distinct_names_and_are_found_by_them() {
        assert!(ALL.is_sorted_by(|one, other| one.name < other.name));
        for study in ALL {
            assert_eq!(find_study(study.name).map(|found| found.about), Some(study.about));
        }
        assert!(find_study("nowhere").is_none());
    }
}
