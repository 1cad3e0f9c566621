//! The possible answers to whether a method is ergodic.

use serde::Serialize;

/// Whether a method is ergodic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErgodicVerdict {
    /// Ergodic.
    Yes,
    /// Not ergodic.
    No,
    /// The criterion does not apply to this few samples.
    NotComparable,
    /// Ergodic at one required share of samples, not ergodic at another.
    DependsOnShare,
}

impl ErgodicVerdict {
    /// Whether it is ergodic; `None` if undecided.
    pub fn is_ergodic(self) -> Option<bool> {
        match self {
            ErgodicVerdict::Yes => Some(true),
            ErgodicVerdict::No => Some(false),
            ErgodicVerdict::NotComparable | ErgodicVerdict::DependsOnShare => None,
        }
    }
}

impl From<bool> for ErgodicVerdict {
    fn from(ergodic: bool) -> ErgodicVerdict {
        if ergodic { ErgodicVerdict::Yes } else { ErgodicVerdict::No }
    }
}
