//! A state that the first copy uses up, and the judge that finds it.

use super::history::StateHistory;
use super::register_use::RegisterUse;
use cyclescope_code::asm::CodeMode;
use cyclescope_code::program::{WatchedSnippet, WatchedState};
use iced_x86::Register;

/// A state that the first copy uses up, so that later copies do other work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnsteadyState {
    /// The state, and how later copies differ from the first one.
    pub text: String,
    /// What the user can do about it.
    pub remedy: String,
    /// Whether the measured cost is of other work than the snippet's, so that it is no result.
    pub is_refused: bool,
    /// Whether it grows with each call of a function, so that further calls take ever longer.
    pub grows: bool,
}

impl UnsteadyState {
    pub(super) fn refuse(text: String, remedy: String) -> UnsteadyState {
        UnsteadyState { text, remedy, is_refused: true, grows: false }
    }

    /// The state of a function that is compared with one whose calls take ever longer.
    pub(crate) fn compared_with_growth() -> UnsteadyState {
        let text = "too few calls were timed, because those of another function grow with each call".to_string();
        UnsteadyState::refuse(text, "measure it alone".to_string())
    }
}

/// Compares the copies of a snippet.
pub(super) struct Judge<'a> {
    pub(super) watched: &'a WatchedSnippet,
    pub(super) usage: &'a RegisterUse,
    pub(super) histories: &'a [StateHistory],
    pub(super) init: &'a [u8],
}

impl<'a> Judge<'a> {
    pub(super) fn new(
        watched: &'a WatchedSnippet,
        usage: &'a RegisterUse,
        histories: &'a [StateHistory],
        init: &'a [u8],
    ) -> Judge<'a> {
        Judge { watched, usage, histories, init }
    }

    /// The name of a register in the snippet's mode. General registers have the whole width.
    pub(super) fn name_register(&self, register: Register) -> String {
        let is_wide = self.watched.mode() == CodeMode::Bits32 && register.is_gpr64();
        register_name(if is_wide { Register::EAX + register.number() as u32 } else { register })
    }

    pub(super) fn join_names(&self, registers: &[Register]) -> String {
        registers.iter().map(|register| self.name_register(*register)).collect::<Vec<String>>().join(" and ")
    }

    /// The value of a carried register before the first copy.
    pub(super) fn entry_value(&self, register: Register) -> Option<u64> {
        let history = self.histories.iter().find(|history| history.point.state == WatchedState::Entry(register))?;
        history.first().map(|reading| reading.words[0])
    }
}

pub(super) fn register_name(register: Register) -> String {
    format!("{register:?}").to_uppercase()
}
