//! One finding about the machine, and how it should be taken.

use serde::Serialize;

/// How a finding should be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be, or a fact to know.
    Ok,
    /// Measurements work; this would make them better.
    Advice,
    /// Measurements are wrong or impossible because of this.
    Problem,
}

/// One finding about the machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// A short name, such as `governor`.
    pub name: &'static str,
    /// How it should be taken.
    pub state: State,
    /// What was found and what follows from it.
    pub text: String,
    /// A shell command that changes it, where there is one.
    pub remedy: Option<String>,
}

impl Finding {
    pub(super) fn ok(name: &'static str, text: impl Into<String>) -> Finding {
        Finding { name, state: State::Ok, text: text.into(), remedy: None }
    }

    pub(super) fn advice(name: &'static str, text: impl Into<String>) -> Finding {
        Finding { name, state: State::Advice, text: text.into(), remedy: None }
    }

    pub(super) fn problem(name: &'static str, text: impl Into<String>) -> Finding {
        Finding { name, state: State::Problem, text: text.into(), remedy: None }
    }

    pub(super) fn remedy(self, command: impl Into<String>) -> Finding {
        Finding { remedy: Some(command.into()), ..self }
    }
}
