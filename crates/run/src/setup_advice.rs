//! Advice to use `--setup` for a snippet that has a setup already.

use cyclescope_core::error::{Error, RunError};

/// The option in advice, up to its value.
const OPTION: &str = "--setup '";

/// Adds the given setup to the one that advice names. The advised code comes first, since it sets
/// what the given one may use.
pub(super) fn add_given_setup(advice: &str, setup: &str) -> String {
    let end = advice.find(OPTION).and_then(|at| {
        let start = at + OPTION.len();
        advice[start..].find('\'').map(|length| start + length)
    });
    match end {
        Some(end) if !setup.is_empty() => format!("{}; {setup}{}", &advice[..end], &advice[end..]),
        _ => advice.to_string(),
    }
}

/// Does the same for the remedy of an error.
pub(super) fn add_given_setup_to_error(error: Error, setup: &str) -> Error {
    match error {
        Error::Run(RunError::Unsteady { error, state, remedy }) => {
            Error::Run(RunError::Unsteady { error, state, remedy: add_given_setup(&remedy, setup) })
        }
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advised_setup_keeps_the_given_one() {
        let advice = "restore it with --init 'mov r8, rbp' --setup 'mov ecx, 4096', or not";
        let expected = "restore it with --init 'mov r8, rbp' --setup 'mov ecx, 4096; mov rsi, rbp', or not";
        assert_eq!(add_given_setup(advice, "mov rsi, rbp"), expected);
        assert_eq!(add_given_setup(advice, ""), advice);
        assert_eq!(add_given_setup("load them again", "nop"), "load them again");
    }
}
