//! One finding about the machine, and how it should be taken.

use serde::Serialize;

/// How a finding should be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingState {
    /// As it should be, or a fact to know.
    Ok,
    /// Measurements work; this would make them better.
    Advice,
    /// Measurements are wrong or impossible because of this.
    Problem,
}

/// One finding about the machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MachineFinding {
    /// A short name, such as `governor`.
    pub name: &'static str,
    /// How it should be taken.
    pub state: FindingState,
    /// What was found and what follows from it.
    pub text: String,
    /// A shell command that changes it, where there is one.
    pub remedy: Option<String>,
}

impl MachineFinding {
    pub(super) fn ok(name: &'static str, text: impl Into<String>) -> MachineFinding {
        MachineFinding { name, state: FindingState::Ok, text: text.into(), remedy: None }
    }

    pub(super) fn advice(name: &'static str, text: impl Into<String>) -> MachineFinding {
        MachineFinding { name, state: FindingState::Advice, text: text.into(), remedy: None }
    }

    pub(super) fn problem(name: &'static str, text: impl Into<String>) -> MachineFinding {
        MachineFinding { name, state: FindingState::Problem, text: text.into(), remedy: None }
    }

    pub(super) fn with_remedy(self, command: impl Into<String>) -> MachineFinding {
        MachineFinding { remedy: Some(command.into()), ..self }
    }
}
