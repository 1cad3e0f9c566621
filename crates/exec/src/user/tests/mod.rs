//! Snippets that know the addresses of the harness, and what the caller must detect.

mod confinement;
mod interruptions;
mod memory;
mod processor_state;
mod sharing;

use super::{UserExecutor, UserOptions};
use crate::{Batch, DEFAULT_DELAY, Executor, Layout, PlacedProgram, ProgramCall, Sample};
use cyclescope_code::clock::Clock;
use cyclescope_code::context::{FloatElement, ProgramContext};
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_code::program::{Program, ProgramRecipe};
use cyclescope_core::error::{FaultCause, RunError};
use cyclescope_events::EventCode;
use cyclescope_worker::command::{FENCED_AT, FENCES};
use cyclescope_worker::view;
use std::mem::offset_of;
use std::time::Duration;

pub(super) fn spawn() -> UserExecutor {
    spawn_with(UserOptions::default())
}

/// An executor with these options, on the last allowed CPU.
fn spawn_with(options: UserOptions) -> UserExecutor {
    let allowed = rustix::thread::sched_getaffinity(None).expect("the affinity of this thread");
    let cpu = (0..1024).rev().find(|cpu| allowed.is_set(*cpu)).expect("some CPU");
    UserExecutor::spawn(&UserOptions { cpu, ..options }).expect("a worker")
}

/// An executor that runs code of any batch in one worker, in its own process or in a copy of this
/// one.
pub(super) fn one_worker(functions: bool) -> UserExecutor {
    spawn_with(UserOptions { functions, own_code: true, ..UserOptions::default() })
}

pub(super) fn once(snippet: &[u8]) -> Program {
    // It needs nothing but x86-64: LFENCE is part of SSE2.
    let clock = Clock::find_named("lfence-rdtsc-lfence").expect("the clock exists");
    ProgramRecipe { snippet, copies: 1, ..ProgramRecipe::empty(clock) }.build()
}

pub(super) fn batch_of(program: Program, layouts: usize, rounds: u32) -> Batch {
    let length = program.len().next_multiple_of(64) as u32;
    let layouts = (0..layouts as u32).map(|index| Layout {
        code: vec![PlacedProgram { program: 0, offset: index * length }],
        round: vec![ProgramCall { place: 0, loop_count: 1 }],
        data: vec![0; 5],
        seed: u64::from(index),
    });
    Batch {
        programs: vec![program],
        warm_up: 0,
        rounds,
        layouts: layouts.collect(),
        memory: ProgramMemory::standard(FloatElement::F64, true),
        delay: DEFAULT_DELAY,
        events: Vec::new(),
        deadline: Duration::from_secs(10),
    }
}

fn run(user: &mut UserExecutor, snippet: &[u8]) -> Result<Vec<Sample>, RunError> {
    user.run(&batch_of(once(snippet), 1, 1))
}

/// `mov rax, address; mov [rax], rax`
fn store_to(address: u64) -> Vec<u8> {
    [&[0x48, 0xb8][..], &address.to_le_bytes(), &[0x48, 0x89, 0x00]].concat()
}

#[track_caller]
pub(super) fn assert_still_runs(user: &mut UserExecutor) {
    let samples = run(user, &[0x90]).expect("a nop runs");
    assert!(samples[0].end > samples[0].start);
}

#[test]
fn a_store_to_each_fence_is_detected() {
    let mut user = spawn();
    let gpr = FENCED_AT + offset_of!(ProgramContext, gpr);
    let targets = [
        (view::CONTEXT_AT, 0),
        (view::CONTEXT_AT + 4088, 0),
        (view::STATUS_AT + 504, 1),
        (view::STATUS_AT + 4088, 1),
        (view::SAMPLES_AT + 56, 2),
        (view::SAMPLES_AT + 64 + 16, 2),
        (view::CONTEXT_AT + gpr + 8 * 9, 3),
    ];
    for (target, fence) in targets {
        let address = user.regions.worker_address(target);
        let result = run(&mut user, &store_to(address));
        assert_eq!(result, Err(RunError::DirtyCanary { fence: FENCES[fence] }), "{target:#x}");
        assert!(user.worker.is_none(), "the worker is replaced");
        assert_still_runs(&mut user);
    }
}

#[test]
fn a_fault_on_the_signal_stack_is_reported() {
    let mut user = spawn();
    // Too near to the end of the stack for another frame.
    let low = user.regions.worker_address(view::SIGNAL_STACK_AT) + 512;
    // mov rsp, low; ud2
    let snippet = [&[0x48, 0xbc][..], &low.to_le_bytes(), &[0x0f, 0x0b]].concat();
    let result = run(&mut user, &snippet);
    assert!(matches!(result, Err(RunError::Fault { signal: "SIGILL", .. })), "{result:?}");
}

#[test]
fn a_jump_past_the_end_reading_is_detected() {
    let mut user = spawn();
    let length = 5;
    let program = once(&[0x90; 5]);
    // mov rsp, [rip+…] is the first instruction after the clock's end.
    let exit = program.code()[program.body_range().end..].windows(3).position(|bytes| bytes == [0x48, 0x8b, 0x25]);
    let distance = program.body_range().end + exit.expect("an exit") - program.body_range().start - length;
    let jump = [&[0xe9][..], &(distance as u32).to_le_bytes()].concat();
    assert_eq!(run(&mut user, &jump), Err(RunError::DirtyCanary { fence: FENCES[4] }));
    assert_still_runs(&mut user);
}

#[test]
fn commands_and_code_cannot_be_written() {
    let mut user = spawn();
    let in_worker =
        [view::COMMAND_AT, view::ARENA_AT + 4096, view::STACK_TOP].map(|at| user.regions.worker_address(at));
    let around = [user.areas.addresses()[0] - 8, user.areas.addresses()[4] + (1 << 20)];
    for address in in_worker.into_iter().chain(around) {
        let result = run(&mut user, &store_to(address));
        assert!(
            matches!(result, Err(RunError::Fault { signal: "SIGSEGV", address: at, .. }) if at == address),
            "{result:?}"
        );
        assert_still_runs(&mut user);
    }
}

#[test]
fn a_smashed_stack_of_the_harness_is_a_fault() {
    let mut user = spawn();
    let return_rsp = user.regions.worker_address(view::CONTEXT_AT + FENCED_AT + offset_of!(ProgramContext, return_rsp));
    // mov rax, return_rsp; mov rdi, [rax]; mov ecx, 16; rep stosq
    let smash =
        [&[0x48, 0xb8][..], &return_rsp.to_le_bytes(), &[0x48, 0x8b, 0x38, 0xb9, 16, 0, 0, 0, 0xf3, 0x48, 0xab]]
            .concat();
    let result = run(&mut user, &smash);
    assert!(matches!(result, Err(RunError::Fault { signal: "SIGSEGV", .. })), "{result:?}");
    assert_still_runs(&mut user);
}

#[test]
fn samples_come_in_the_order_in_which_they_were_taken() {
    let mut user = spawn();
    let mut batch = batch_of(once(&[0x90]), 5, 7);
    for layout in &mut batch.layouts {
        layout.round = vec![ProgramCall { place: 0, loop_count: 1 }; 3];
    }
    let samples = user.run(&batch).expect("nops run");
    assert_eq!(samples.len(), 5 * 7 * 3);
    assert!(samples.iter().all(|sample| sample.start < sample.end));
    assert!(samples.windows(2).all(|pair| pair[0].end < pair[1].start));
}

#[test]
fn forged_readings_are_implausible() {
    let mut user = spawn();
    let start = user.regions.worker_address(view::CONTEXT_AT + FENCED_AT + offset_of!(ProgramContext, start));
    // mov rax, start; mov rcx, [rax]; mov rdx, a number; sub rcx, rdx; mov [rax], rcx
    let earlier = |ticks: u64| {
        let load = [&[0x48, 0xb8][..], &start.to_le_bytes(), &[0x48, 0x8b, 0x08, 0x48, 0xba], &ticks.to_le_bytes()];
        [&load.concat()[..], &[0x48, 0x29, 0xd1, 0x48, 0x89, 0x08]].concat()
    };
    assert!(run(&mut user, &earlier(1)).is_ok());
    // 10¹² ticks take minutes.
    for ticks in [1_000_000_000_000, 1_000_000_000_000u64.wrapping_neg(), 1 << 63] {
        let result = run(&mut user, &earlier(ticks));
        assert!(matches!(result, Err(RunError::ImplausibleReadings { .. })), "{ticks}: {result:?}");
        assert_still_runs(&mut user);
    }
}

#[test]
fn a_store_to_its_own_instruction_is_no_branch() {
    let mut user = spawn();
    // mov [rip - 6], eax
    let cause = |snippet: &[u8], user: &mut UserExecutor| match run(user, snippet) {
        Err(RunError::Fault { cause, .. }) => cause,
        other => panic!("{other:?}"),
    };
    assert_eq!(cause(&[0x89, 0x05, 0xfa, 0xff, 0xff, 0xff], &mut user), FaultCause::CodeWrite);
    // xor eax, eax; jmp rax
    assert_eq!(cause(&[0x31, 0xc0, 0xff, 0xe0], &mut user), FaultCause::Fetch);
}

#[test]
fn events_of_the_kernel_are_counted_around_calls() {
    let kernel_event = |config| EventCode::new(1, config);
    // Task clock, page faults, dummy (Linux, `perf_event.h`, `enum perf_sw_ids`).
    let events = vec![kernel_event(1), kernel_event(2), kernel_event(9)];
    let mut user = spawn();
    match user.count_fitting(&events) {
        Ok(fitting) => assert_eq!(fitting, 3),
        Err(refusal) => return cyclescope_skipped::report_skipped(&refusal.why),
    }
    let nop = batch_of(once(&[0x90]), 2, 3);
    let counted = Batch { events: events.clone(), ..nop.clone() };
    let samples = user.run(&counted).expect("they count");
    assert_eq!(samples.len(), 2 * 3 * 3);
    let sum = |event: usize| {
        samples.iter().skip(event).step_by(3).map(|sample| sample.end.wrapping_sub(sample.start)).sum::<u64>()
    };
    assert!(sum(0) > 0 && sum(2) == 0, "{samples:?}");
    // The same worker times calls again, and a batch with other events gets another worker.
    let worker = user.worker_pid();
    assert_eq!(user.run(&nop).expect("it runs").len(), 2 * 3);
    assert_eq!(user.worker_pid(), worker);
    let other = Batch { events: events[..1].to_vec(), ..nop };
    assert_eq!(user.run(&other).expect("it counts").len(), 2 * 3);
    assert_ne!(user.worker_pid(), worker);
}

#[test]
fn more_events_than_count_together_are_refused() {
    let mut user = spawn();
    let events = vec![EventCode::new(1, 9); 9];
    let error = user.run(&Batch { events, ..batch_of(once(&[0x90]), 1, 1) }).expect_err("too many");
    assert!(error.is_harness_failure() || matches!(error, RunError::Unavailable(_)), "{error}");
    assert_still_runs(&mut user);
}
