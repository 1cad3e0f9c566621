//! The commands that Windows lacks: each says what is missing.

use crate::output::Failure;
use cyclescope::error::Unavailable;

/// The failure of a command.
fn lack(command: &str, why: &str) -> Failure {
    Failure::from(Unavailable {
        what: format!("the command {command}"),
        why: why.to_string(),
        remedy: "run it on Linux".to_string(),
    })
}

pub mod ab {
    //! Two programs, which run in turns.

    use crate::args::{AbArgs, CommonArgs};
    use crate::output::{Failure, Output};

    /// Says what is missing.
    pub fn run_ab(_common: &CommonArgs, _args: &AbArgs, _output: &mut Output) -> Result<u8, Failure> {
        Err(super::lack("ab", "it needs the process groups and the processor times of Linux"))
    }
}

pub mod all {
    //! All commands in turn.

    use crate::args::{AllArgs, CommonArgs};
    use crate::output::{Failure, Output};

    /// Says what is missing.
    pub fn run_all(_common: &CommonArgs, _args: &AllArgs, _output: &mut Output) -> Result<u8, Failure> {
        Err(super::lack("all", "it runs this program for each step in a process group of Linux"))
    }
}

pub mod counters {
    //! Performance counters.

    use crate::args::{CommonArgs, CountersArgs};
    use crate::output::{Failure, Output};

    /// Says what is missing.
    pub fn run_counters(_common: &CommonArgs, _args: &CountersArgs, _output: &mut Output) -> Result<u8, Failure> {
        Err(super::lack("counters", "Windows lets programs count no events without a driver"))
    }
}

pub mod marker {
    //! Markers in code.

    use crate::args::{CommonArgs, MarkerArgs};
    use crate::output::{Failure, Output};
    use cyclescope::result::container::EvidenceContainer;

    /// The study's name.
    pub const NAME: &str = "marker";

    const WHY: &str = "its markers are sections of ELF files and patches of code that Linux maps twice";

    /// Says what is missing.
    pub fn run_marker(_common: &CommonArgs, _args: &MarkerArgs, _output: &mut Output) -> Result<u8, Failure> {
        Err(super::lack(NAME, WHY))
    }

    /// Says what is missing.
    pub fn replay_marker(_container: &EvidenceContainer, _output: &mut Output) -> Result<u8, Failure> {
        Err(super::lack(NAME, WHY))
    }
}
