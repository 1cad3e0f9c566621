//! One finding about the machine, and how serious it is.

use serde::Serialize;

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingState {
    /// As it should be, or for information.
    Ok,
    /// Measurements work; following the advice would improve them.
    Advice,
    /// Makes measurements wrong or impossible.
    Problem,
}

/// One finding about the machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MachineFinding {
    /// Short name, such as `governor`.
    pub name: &'static str,
    /// How serious it is.
    pub state: FindingState,
    /// What was found, and its consequence.
    pub text: String,
    /// Shell command that changes it, if there is one.
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
