//! The table of commands that measure with a study and have options of their own.

use super::{evaluate, instr, marker, points, ports, run};
use crate::args::CommonArgs;
use crate::output::{Failure, Output};
use cyclescope::result::container::EvidenceContainer;
use std::path::Path;

/// A command that measures with a study and has options of its own.
pub struct StudyCommand {
    /// The study's name.
    pub name: &'static str,
    /// Recomputes a result from evidence; returns the exit code.
    pub replay: fn(&EvidenceContainer, &mut Output) -> Result<u8, Failure>,
    /// Measures again on this machine what evidence describes, if the command can.
    pub measure_again: Option<MeasureAgainFn>,
}

type MeasureAgainFn = fn(&CommonArgs, &Path, &EvidenceContainer, &mut Output) -> Result<u8, Failure>;

/// All commands that measure with a study, except generic ones such as `uarch`, which
/// `generic_study` runs from their [`StudyInfo`](cyclescope::study::StudyInfo) alone.
pub const STUDY_COMMANDS: &[StudyCommand] = &[
    StudyCommand { name: run::NAME, replay: run::replay_run, measure_again: Some(run::measure_again) },
    StudyCommand { name: evaluate::NAME, replay: evaluate::replay_evaluate, measure_again: None },
    StudyCommand { name: instr::NAME, replay: instr::replay_instr, measure_again: None },
    StudyCommand { name: marker::NAME, replay: marker::replay_marker, measure_again: None },
    StudyCommand { name: ports::NAME, replay: ports::replay_ports, measure_again: None },
    StudyCommand { name: points::NAME, replay: points::replay_points, measure_again: None },
];

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope::study::{self, StudyInfo};

    #[test]
    fn every_study_has_a_command() {
        for StudyInfo { name, generic: plain, .. } in study::ALL {
            let own = STUDY_COMMANDS.iter().filter(|command| command.name == *name).count();
            assert_eq!(own, usize::from(plain.is_none()), "{name}");
        }
        assert!(STUDY_COMMANDS.iter().all(|command| cyclescope::study::find_study(command.name).is_some()));
    }
}
