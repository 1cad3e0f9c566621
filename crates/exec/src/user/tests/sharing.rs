//! Which programs share a worker, and what a forger in one can affect.

use super::super::{UserExecutor, UserOptions};
use super::{assert_still_runs, one_worker, run, spawn, spawn_with, store_to};
use crate::Executor;
use cyclescope_core::error::RunError;
use cyclescope_worker::command::{FENCED_AT, FENCES};
use cyclescope_worker::view;

/// A snippet that keeps writing an answer and readings of its own.
fn forger(user: &UserExecutor) -> Vec<u8> {
    let status = user.regions.worker_address(view::STATUS_AT + FENCED_AT);
    let command = user.regions.worker_address(view::COMMAND_AT);
    // mov rax, status; mov rcx, command; mov dword [rax+4], DONE; again: mov edx, [rcx]; mov [rax],
    // edx; jmp again
    [
        &[0x48, 0xb8][..],
        &status.to_le_bytes(),
        &[0x48, 0xb9],
        &command.to_le_bytes(),
        &[0xc7, 0x40, 0x04, 1, 0, 0, 0, 0x8b, 0x11, 0x89, 0x10, 0xeb, 0xfa],
    ]
    .concat()
}

#[test]
fn a_damaged_fence_is_detected_behind_a_forged_answer() {
    let mut user = spawn();
    let forger = forger(&user);
    for (target, fence) in [(view::CONTEXT_AT, 0), (view::STATUS_AT + 504, 1), (view::SAMPLES_AT + 56, 2)] {
        let snippet = [store_to(user.regions.worker_address(target)), forger.clone()].concat();
        let result = run(&mut user, &snippet);
        assert_eq!(result, Err(RunError::DirtyCanary { fence: FENCES[fence] }), "{target:#x}");
        assert_still_runs(&mut user);
    }
}

#[test]
fn a_forged_result_affects_no_other_snippet() {
    let mut user = spawn();
    let forger = forger(&user);
    for _ in 0..20 {
        let result = run(&mut user, &forger);
        assert!(!matches!(result, Err(RunError::Hung { .. })), "it has answered: {result:?}");
        // It still runs, and would answer for the next code, such as code that faults.
        let result = run(&mut user, &[0x0f, 0x0b]);
        assert!(matches!(result, Err(RunError::Fault { signal: "SIGILL", .. })), "{result:?}");
        assert_still_runs(&mut user);
    }
}

#[test]
fn code_shares_a_worker_only_with_its_own_batch() {
    let mut user = spawn();
    let mut worker_after = |snippet: &[u8]| {
        run(&mut user, snippet).expect("it runs");
        user.worker_pid()
    };
    let first = worker_after(&[0x90]);
    assert_eq!(worker_after(&[0x90]), first, "the same code again");
    assert_ne!(worker_after(&[0x0f, 0x1f, 0x00]), first, "other code");
    let mut own = one_worker(false);
    let mut worker_after = |snippet: &[u8]| {
        run(&mut own, snippet).expect("it runs");
        own.worker_pid()
    };
    assert_eq!(worker_after(&[0x90]), worker_after(&[0x0f, 0x1f, 0x00]), "code of this program's own");
}

#[test]
fn programs_of_one_subject_share_a_worker_and_those_of_two_do_not() {
    let mut user = spawn_with(UserOptions { announced: true, ..UserOptions::default() });
    // mov qword ptr fs:[64], 1: a trace in the worker's own memory
    let leave = [0x64, 0x48, 0xc7, 0x04, 0x25, 64, 0, 0, 0, 1, 0, 0, 0];
    // cmp qword ptr fs:[64], 0; je +2; ud2
    let find = [0x64, 0x48, 0x83, 0x3c, 0x25, 64, 0, 0, 0, 0, 0x74, 0x02, 0x0f, 0x0b];
    for _ in 0..2 {
        user.begin_subject();
        assert_eq!(run(&mut user, &find).map(|samples| samples.len()), Ok(1));
        let worker = user.worker_pid();
        assert_eq!(run(&mut user, &leave).map(|samples| samples.len()), Ok(1));
        assert_eq!(user.worker_pid(), worker, "other code of the same subject");
    }
    // The trace is there until the next subject begins.
    assert!(matches!(run(&mut user, &find), Err(RunError::Fault { signal: "SIGILL", .. })));
    // Without an announcement, other code gets another worker.
    let mut user = spawn();
    run(&mut user, &leave).expect("it runs");
    user.begin_subject();
    assert_eq!(run(&mut user, &find).map(|samples| samples.len()), Ok(1));
}
