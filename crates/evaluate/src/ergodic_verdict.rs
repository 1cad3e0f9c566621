//! The answers to the question whether a method is ergodic.

use serde::Serialize;

/// Whether a method is ergodic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErgodicVerdict {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// The criterion can't be applied to so few samples.
    NotComparable,
    /// It is if one share of the samples is enough, and is not if another one is asked for.
    DependsOnShare,
}

impl ErgodicVerdict {
    /// Whether it is, where that can be told.
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
