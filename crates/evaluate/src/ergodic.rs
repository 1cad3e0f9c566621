//! The answers to the question whether a method is ergodic.

use serde::Serialize;

/// Whether a method is ergodic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ergodic {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// The criterion can't be applied to so few samples.
    NotComparable,
    /// It is if one share of the samples is enough, and is not if another one is asked for.
    DependsOnShare,
}

impl Ergodic {
    /// Whether it is, where that can be told.
    pub fn told(self) -> Option<bool> {
        match self {
            Ergodic::Yes => Some(true),
            Ergodic::No => Some(false),
            Ergodic::NotComparable | Ergodic::DependsOnShare => None,
        }
    }
}

impl From<bool> for Ergodic {
    fn from(ergodic: bool) -> Ergodic {
        if ergodic { Ergodic::Yes } else { Ergodic::No }
    }
}
