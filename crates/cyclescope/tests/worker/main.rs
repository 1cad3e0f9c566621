//! The user-mode executor on this machine: it measures, and it survives every snippet.

mod support;

use cyclescope::error::RunError;
use std::time::Duration;
use support::*;

#[test]
fn imul_takes_three_times_as_long_as_add() {
    let mut user = spawn();
    assert_measures(&mut user, "nothing");
}

#[test]
fn an_undefined_instruction_is_named_and_the_next_batch_runs() {
    let mut user = spawn();
    let error = run_once(&mut user, &[0x90, 0x0f, 0x0b], Duration::from_secs(10)).expect_err("ud2");
    let fault = user.last_fault().expect("a fault").clone();
    let RunError::Fault { signal, address, instruction } = error else { panic!("{error}") };
    assert_eq!((signal, address), ("SIGILL", fault.rip));
    assert_eq!(instruction.as_deref(), Some("ud2 at +0x1 in the snippet"));
    assert_measures(&mut user, "ud2");
}
