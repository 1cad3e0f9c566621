//! The commands that measure with a study, each by a line.

use super::{evaluate, instr, marker, points, run};
use crate::args::Common;
use crate::output::{Failure, Output};
use cyclescope::result::container::Container;
use std::path::Path;

/// A command that measures with a study.
pub struct StudyCommand {
    /// The study's name.
    pub name: &'static str,
    /// Computes a result again from evidence; returns the exit code.
    pub replay: fn(&Container, &mut Output) -> Result<u8, Failure>,
    /// Measures what evidence describes again, on this machine, where the command can.
    pub measure_again: Option<MeasureAgain>,
}

type MeasureAgain = fn(&Common, &Path, &Container, &mut Output) -> Result<u8, Failure>;

/// All of them.
pub const STUDIES: &[StudyCommand] = &[
    StudyCommand { name: run::NAME, replay: run::replay, measure_again: Some(run::again) },
    StudyCommand { name: evaluate::NAME, replay: evaluate::replay, measure_again: None },
    StudyCommand { name: instr::NAME, replay: instr::replay, measure_again: None },
    StudyCommand { name: marker::NAME, replay: marker::replay, measure_again: None },
    StudyCommand { name: points::NAME, replay: points::replay, measure_again: None },
];

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope::study::{self, StudyInfo};

    #[test]
    fn each_study_has_a_command() {
        for StudyInfo { name, plain, .. } in study::ALL {
            let own = STUDIES.iter().filter(|command| command.name == *name).count();
            assert_eq!(own, usize::from(plain.is_none()), "{name}");
        }
        assert!(STUDIES.iter().all(|command| cyclescope::study::named(command.name).is_some()));
    }
}
