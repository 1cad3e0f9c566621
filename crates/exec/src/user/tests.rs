//! Snippets that know the addresses of the harness, and what the caller must detect.

use super::frozen_group::FrozenGroup;
use super::{UserExecutor, UserOptions, chunk, setup};
use crate::{Batch, DEFAULT_DELAY, Executor, Layout, PlacedProgram, ProgramCall, Sample};
use cyclescope_code::clock::Clock;
use cyclescope_code::context::{AREA_REGISTERS, FloatElement, ProgramContext};
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_code::program::{Program, ProgramRecipe};
use cyclescope_core::error::{FaultCause, RunError};
use cyclescope_core::machine::Machine;
use cyclescope_core::machine::features::allows_fsgsbase;
use cyclescope_events::EventCode;
use cyclescope_worker::command::{FENCED_AT, FENCES};
use cyclescope_worker::view;
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

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

/// Runs one snippet, then another in the same worker.
fn run_after(first: &[u8], second: &[u8]) -> Result<Vec<Sample>, RunError> {
    let mut user = one_worker(false);
    run(&mut user, first).expect("the first snippet ends");
    run(&mut user, second)
}

#[track_caller]
fn assert_cleared(dirty: &[u8], detect: &[u8]) {
    let seen = run(&mut spawn(), &[dirty, detect].concat());
    assert!(matches!(seen, Err(RunError::Fault { signal: "SIGILL", .. })), "not seen: {seen:?}");
    assert_eq!(run_after(dirty, detect).map(|samples| samples.len()), Ok(1));
}

#[test]
fn flags_do_not_outlive_a_call() {
    for flag in [1u32 << 18, 1 << 14, 1 << 10] {
        let flag = flag.to_le_bytes();
        // pushfq; or dword [rsp], flag; popfq
        let dirty = [&[0x9c, 0x81, 0x0c, 0x24][..], &flag, &[0x9d]].concat();
        // pushfq; pop rax; test eax, flag; jz +2; ud2
        let detect = [&[0x9c, 0x58, 0xa9][..], &flag, &[0x74, 0x02, 0x0f, 0x0b]].concat();
        assert_cleared(&dirty, &detect);
    }
}

#[test]
fn segment_bases_do_not_outlive_a_call() {
    if !allows_fsgsbase() {
        cyclescope_skipped::report_skipped("user code cannot set segment bases here");
        return;
    }
    for (write, read) in [(0xd0, 0xc0), (0xd8, 0xc8)] {
        // mov eax, 0x12345678; wrfsbase rax (or wrgsbase)
        let dirty = [0xb8, 0x78, 0x56, 0x34, 0x12, 0xf3, 0x48, 0x0f, 0xae, write];
        // rdfsbase rax (or rdgsbase); cmp eax, 0x12345678; jne +2; ud2
        let detect = [0xf3, 0x48, 0x0f, 0xae, read, 0x3d, 0x78, 0x56, 0x34, 0x12, 0x75, 0x02, 0x0f, 0x0b];
        assert_cleared(&dirty, &detect);
    }
}

#[test]
fn upper_vector_parts_do_not_outlive_a_call() {
    if !std::is_x86_feature_detected!("avx2") {
        cyclescope_skipped::report_skipped("no AVX2");
        return;
    }
    // vpcmpeqd ymm0, ymm0, ymm0
    let dirty = [0xc5, 0xfd, 0x76, 0xc0];
    // vextractf128 xmm1, ymm0, 1; vptest xmm1, xmm1; jz +2; ud2
    let detect = [0xc4, 0xe3, 0x7d, 0x19, 0xc1, 0x01, 0xc4, 0xe2, 0x79, 0x17, 0xc9, 0x74, 0x02, 0x0f, 0x0b];
    assert_cleared(&dirty, &detect);
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
fn code_runs_on_the_requested_cpu() {
    if !Machine::detect().features.has_rdtscp() {
        return cyclescope_skipped::report_skipped("no RDTSCP to ask the CPU's number by");
    }
    let allowed = rustix::thread::sched_getaffinity(None).expect("the affinity of this thread");
    for cpu in (0..1024).filter(|cpu| allowed.is_set(*cpu)).take(4) {
        // rdtscp; and ecx, 0xfff; cmp ecx, cpu; je +2; ud2: Linux keeps the number in TSC_AUX
        let snippet = [
            &[0x0f, 0x01, 0xf9, 0x81, 0xe1, 0xff, 0x0f, 0, 0, 0x81, 0xf9][..],
            &(cpu as u32).to_le_bytes(),
            &[0x74, 0x02, 0x0f, 0x0b],
        ]
        .concat();
        let mut user = UserExecutor::spawn(&UserOptions { cpu, ..UserOptions::default() }).expect("a worker");
        assert_eq!(run(&mut user, &snippet).map(|samples| samples.len()), Ok(1));
        let pid = user.worker.as_ref().expect("a worker").pid();
        let pid = rustix::process::Pid::from_raw(pid).expect("a process");
        let pinned = rustix::thread::sched_getaffinity(Some(pid)).expect("the worker's affinity");
        assert!(pinned.count() == 1 && pinned.is_set(cpu));
    }
}

#[test]
fn a_worker_keeps_no_files_and_ignores_ctrl_c() {
    keeps_no_files(false);
    keeps_no_files(true);
}

fn keeps_no_files(functions: bool) {
    let (read, write) = rustix::pipe::pipe().expect("a pipe");
    let user = one_worker(functions);
    drop(write);
    let mut end = [0];
    rustix::io::ioctl_fionbio(&read, true).expect("a read that does not wait");
    // Workers of other tests, forked meanwhile, have the pipe for a moment.
    let closed = (0..2000).any(|_| {
        std::thread::sleep(Duration::from_millis(1));
        rustix::io::read(&read, &mut end) == Ok(0)
    });
    assert!(closed, "the worker keeps the pipe open");
    let worker = user.worker.as_ref().expect("a worker");
    worker.send_signal(rustix::process::Signal::INT);
    std::thread::sleep(Duration::from_millis(20));
    assert!(!worker.has_ended());
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

/// A page of this process; [`unmap`] releases it.
fn page(flags: i32) -> u64 {
    // SAFETY: a new mapping touches no other memory.
    let page = unsafe {
        libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ | libc::PROT_WRITE, flags | libc::MAP_ANONYMOUS, -1, 0)
    };
    assert_ne!(page, libc::MAP_FAILED);
    page as u64
}

/// Releases a page that must still hold zeros.
fn unmap(page: u64) {
    // SAFETY: mapped by `page`, and unmapped once.
    unsafe {
        assert_eq!((page as *const u64).read_volatile(), 0);
        libc::munmap(page as *mut libc::c_void, 4096);
    }
}

#[test]
fn a_worker_has_no_memory_of_the_host_program() {
    let mut user = spawn();
    for flags in [libc::MAP_SHARED, libc::MAP_PRIVATE] {
        let page = page(flags);
        user.renew_process();
        // mov rax, page; mov rax, [rax]
        let load = [&[0x48, 0xb8][..], &page.to_le_bytes(), &[0x48, 0x8b, 0x00]].concat();
        let result = run(&mut user, &load);
        assert!(matches!(result, Err(RunError::Fault { address, .. }) if address == page), "{result:?}");
        unmap(page);
    }
}

#[test]
fn a_copy_of_the_host_program_shares_no_memory_with_it() {
    let mut user = one_worker(true);
    let (shared, private) = (page(libc::MAP_SHARED), page(libc::MAP_PRIVATE));
    // The worker existed before the mappings; the next one is made after them.
    user.renew_process();
    let result = run(&mut user, &store_to(shared));
    assert!(matches!(result, Err(RunError::Fault { address, .. }) if address == shared), "{result:?}");
    assert!(run(&mut user, &store_to(private)).is_ok());
    unmap(shared);
    unmap(private);
}

#[test]
fn functions_of_the_host_program_can_be_called() {
    // sub rsp, 8; mov rax, strtol; xor esi, esi; mov edx, 99; call rax; add rsp, 8: an invalid base
    // makes it set errno, which is thread-local
    let strtol = libc::strtol as *const () as u64;
    let snippet = [
        &[0x48, 0x83, 0xec, 0x08, 0x48, 0xb8][..],
        &strtol.to_le_bytes(),
        &[0x31, 0xf6, 0xba, 99, 0, 0, 0, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x08],
    ]
    .concat();
    assert_eq!(run(&mut one_worker(true), &snippet).map(|samples| samples.len()), Ok(1));
}

#[test]
fn every_layout_finds_fresh_memory() {
    let mut user = spawn();
    for element in [FloatElement::F64, FloatElement::F32, FloatElement::F64] {
        // mov rcx, pattern; cmp [rsi], rcx; je +2; ud2; mov qword [rsi], 0
        let snippet = [
            &[0x48, 0xb9][..],
            &element.to_word().to_le_bytes(),
            &[0x48, 0x39, 0x0e, 0x74, 0x02, 0x0f, 0x0b, 0x48, 0xc7, 0x06, 0, 0, 0, 0],
        ]
        .concat();
        let run = |user: &mut UserExecutor, rounds| {
            let mut batch = batch_of(once(&snippet), 4, rounds);
            batch.memory = ProgramMemory::standard(element, true);
            user.run(&batch)
        };
        assert_eq!(run(&mut user, 1).map(|samples| samples.len()), Ok(4));
        assert!(matches!(run(&mut user, 2), Err(RunError::Fault { signal: "SIGILL", .. })));
    }
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
fn area_registers_point_to_lines_that_do_not_alias() {
    let mut user = spawn();
    // Each register's address decides which instruction faults. The snippet checks nothing; the
    // test does.
    let chunk = &chunk::split_batch(&batch_of(once(&[0x90]), 1, 1)).expect("one chunk")[0];
    chunk.write_command(&batch_of(once(&[0x90]), 1, 1), 0, &mut user.regions, &user.areas, 1);
    let placed = user.regions.command_bytes_at(cyclescope_worker::command::LAYOUTS_AT);
    // SAFETY: a placed layout has just been written there.
    let placed = unsafe { *placed.cast::<cyclescope_worker::command::WorkerLayout>() };
    let addresses = AREA_REGISTERS.map(|register| placed.gpr[register]);
    for (index, address) in addresses.iter().enumerate() {
        assert_eq!(address % 64, 0);
        for other in &addresses[..index] {
            assert!((address % 4096).abs_diff(other % 4096) >= 64);
        }
    }
}

#[test]
fn overlapping_layouts_go_in_separate_commands() {
    let mut batch = batch_of(once(&[0x90]), 3, 1);
    let parts = |batch: &Batch| chunk::split_batch(batch).map(|chunks| chunks.len());
    assert_eq!(parts(&batch), Ok(1));
    batch.layouts[1].code[0].offset = batch.layouts[0].code[0].offset + 1;
    assert_eq!(parts(&batch), Ok(2));
    assert_eq!(spawn().run(&batch).map(|samples| samples.len()), Ok(3));
    for (places, commands) in [([0, 4096, 0], 1), ([4096, 0, 4095], 2), ([4096, 0, 4097], 2), ([0, 4096, 1], 2)] {
        for (layout, place) in batch.layouts.iter_mut().zip(places) {
            layout.code[0].offset = place;
        }
        assert_eq!(parts(&batch), Ok(commands), "{places:?}");
    }
    batch.layouts[1].code[0].offset = cyclescope_worker::view::ARENA_BYTES as u32 - 1;
    assert!(parts(&batch).is_err());
}

#[test]
fn a_worker_whose_thread_has_ended_is_replaced() {
    let mut user = std::thread::spawn(spawn).join().expect("the thread ends well");
    assert_still_runs(&mut user);
}

#[test]
fn a_worker_that_was_killed_is_replaced() {
    let mut user = spawn();
    user.worker.as_mut().map(super::process::WorkerProcess::kill_and_reap);
    assert_still_runs(&mut user);
}

#[test]
fn an_absent_cpu_is_an_error() {
    let doing = "pinning the worker to the CPU";
    let refused = |cpu| UserExecutor::spawn(&UserOptions { cpu, ..UserOptions::default() }).map(|_| ());
    // The system call reports it, except for a number that no call can express.
    let why = "the CPU is offline, or not among those that this process may use";
    assert_eq!(refused(1023), Err(RunError::from_harness(doing, why, "choose another one with --cpu")));
    assert_eq!(refused(5000), Err(RunError::from_harness(doing, "there is no CPU 5000", "see --cpu")));
}

#[test]
fn a_stopped_worker_is_distinguished_from_an_endless_loop() {
    let mut user = spawn();
    let pid = user.worker_pid().expect("there is one");
    let pause = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        // SAFETY: takes no pointers; the worker is this process's own and not reaped yet.
        unsafe { libc::kill(pid, libc::SIGSTOP) };
    });
    // jmp $; with a limit that it can't reach before it is stopped, however late that is.
    let endless = Batch { deadline: Duration::from_secs(1), ..batch_of(once(&[0xeb, 0xfe]), 1, 1) };
    let result = user.run(&endless);
    pause.join().expect("it only sends a signal");
    let message = result.expect_err("it does not end").to_string();
    assert!(message.contains("something stopped its process"), "{message}");
    assert_still_runs(&mut user);
}

#[test]
fn a_frozen_worker_is_given_up() {
    let mut user = spawn();
    let pid = user.worker_pid().expect("there is one");
    let Some(group) = FrozenGroup::freeze(pid) else {
        return cyclescope_skipped::report_skipped("no freezer lets this process make a group");
    };
    let begun = std::time::Instant::now();
    let result = run(&mut user, &[0x90]);
    let took = begun.elapsed();
    let message = result.expect_err("it can't run").to_string();
    assert!(message.contains("its control group is frozen"), "{message}");
    // 3 seconds until it counts as stopped, and 5 until it is given up.
    assert!(took < Duration::from_secs(30), "{took:?}");
    assert_still_runs(&mut user);
    group.thaw_and_remove();
}

#[test]
fn a_snippet_that_sleeps_in_the_harness_hangs() {
    let mut user = spawn();
    let word = user.regions.worker_address(view::THREAD_AT);
    // xor r10d, r10d: without a time limit.
    let wait = [vec![0x45, 0x31, 0xd2], system_call(libc::SYS_futex, [word, libc::FUTEX_WAIT as u64, 0])].concat();
    assert!(matches!(run(&mut user, &wait), Err(RunError::Hung { .. })));
    assert_still_runs(&mut user);
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

/// A field of the worker's `/proc/PID/status`.
fn status_of(user: &UserExecutor, field: &str) -> String {
    let pid = user.worker_pid().expect("there is one");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("/proc");
    let value = |line: &str| Some(line.strip_prefix(field)?.strip_prefix(':')?.trim().to_string());
    status.lines().find_map(value).unwrap_or_else(|| panic!("no {field} in {status}"))
}

#[test]
fn a_worker_has_no_rights() {
    for functions in [false, true] {
        let user = one_worker(functions);
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(u64::from_str_radix(&status_of(&user, set), 16), Ok(0), "{set}");
        }
        assert_eq!(status_of(&user, "NoNewPrivs"), "1");
        // If memory runs out, it ends first.
        let pid = user.worker_pid().expect("there is one");
        let score = std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).expect("/proc");
        assert_eq!(score.trim(), "1000");
        assert_eq!(status_of(&user, "Seccomp"), "2");
        // SAFETY: takes no pointers.
        let root = unsafe { libc::geteuid() } == 0;
        let maps = std::fs::read_to_string("/proc/self/uid_map").expect("/proc");
        let everyone = maps.split_whitespace().nth(2).is_some_and(|count| count == "4294967295");
        if root && everyone {
            assert_eq!(status_of(&user, "Uid"), "65534\t65534\t65534\t65534");
            assert_eq!(status_of(&user, "Gid"), "65534\t65534\t65534\t65534");
            assert_eq!(status_of(&user, "Groups"), "");
        }
    }
}

#[test]
fn a_worker_may_open_and_start_nothing() {
    for functions in [false, true] {
        let user = one_worker(functions);
        let process = format!("/proc/{}", user.worker_pid().expect("there is one"));
        let limits = std::fs::read_to_string(format!("{process}/limits")).expect("/proc");
        for name in ["Max open files", "Max processes"] {
            let values = limits.lines().find_map(|line| line.strip_prefix(name)).expect("a limit");
            assert_eq!(values.split_whitespace().take(2).collect::<Vec<_>>(), ["0", "0"], "{name}");
        }
        // As another user, this process may not look.
        if let Ok(files) = std::fs::read_dir(format!("{process}/fd")) {
            assert_eq!(files.count(), 0, "open files");
        }
    }
}

#[test]
fn a_worker_cannot_be_traced() {
    use std::os::unix::fs::MetadataExt;
    for functions in [false, true] {
        let user = one_worker(functions);
        let process = format!("/proc/{}", user.worker_pid().expect("there is one"));
        // The files of a process that its user may not trace belong to root (proc(5)).
        assert_eq!(std::fs::metadata(format!("{process}/mem")).expect("/proc").uid(), 0);
    }
}

/// `mov eax, number; mov rdi, …; mov rsi, …; mov rdx, …; mov rcx, CALL_AT; call rcx`
fn system_call(number: i64, arguments: [u64; 3]) -> Vec<u8> {
    let load = |prefix: [u8; 2], value: u64| [&prefix[..], &value.to_le_bytes()].concat();
    let [first, second, third] = arguments;
    [
        load([0x48, 0xb8], number as u64),
        load([0x48, 0xbf], first),
        load([0x48, 0xbe], second),
        load([0x48, 0xba], third),
        load([0x48, 0xb9], view::CALL_AT),
        vec![0xff, 0xd1],
    ]
    .concat()
}

#[test]
fn only_the_system_calls_of_the_harness_are_allowed() {
    const HWPOISON: i32 = 100;
    let mut user = spawn();
    let page = user.regions.worker_address(view::THREAD_AT);
    let word = user.regions.worker_address(view::STATUS_AT + 64);
    let wake = system_call(libc::SYS_futex, [word, libc::FUTEX_WAKE as u64, 1]);
    let drop = system_call(libc::SYS_madvise, [page, 4096, libc::MADV_DONTNEED as u64]);
    let read = |clock: i32| system_call(libc::SYS_clock_gettime, [clock as u64, page, 0]);
    for call in [wake, drop, read(libc::CLOCK_MONOTONIC), read(libc::CLOCK_THREAD_CPUTIME_ID)] {
        assert_eq!(run(&mut user, &call).map(|samples| samples.len()), Ok(1));
    }
    let futex = |operation: i32| system_call(libc::SYS_futex, [word, operation as u64, 1]);
    let advice = |advice: i32| system_call(libc::SYS_madvise, [page, 4096, advice as u64]);
    let refused = [
        futex(libc::FUTEX_LOCK_PI),
        futex(libc::FUTEX_REQUEUE),
        futex(libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG),
        advice(HWPOISON),
        advice(HWPOISON + 1),
        advice(libc::MADV_REMOVE),
        advice(libc::MADV_DOFORK),
        read(libc::CLOCK_REALTIME),
        system_call(libc::SYS_mmap, [0, 4096, libc::PROT_READ as u64]),
    ];
    for call in refused {
        let result = run(&mut user, &call);
        assert!(matches!(result, Err(RunError::Fault { signal: "SIGSYS", .. })), "{result:?}");
        assert_still_runs(&mut user);
    }
}

#[test]
fn fs_points_to_what_compilers_expect() {
    // mov rax, fs:[0]; mov rcx, fs:[0x28]; cmp [rax], rax; je +2; ud2
    let guard = [0x64, 0x48, 0x8b, 0x0c, 0x25, 0x28, 0, 0, 0];
    let own = [0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0];
    let snippet = [&guard[..], &own, &[0x48, 0x39, 0x00, 0x74, 0x02, 0x0f, 0x0b]].concat();
    for functions in [false, true] {
        assert_eq!(run(&mut one_worker(functions), &snippet).map(|samples| samples.len()), Ok(1));
    }
}

#[test]
fn the_kernel_writes_nothing_for_the_c_library_in_a_copy() {
    let Some(offset) = setup::rseq_offset() else {
        return cyclescope_skipped::report_skipped("the C library registers nothing with rseq");
    };
    // mov eax, fs:[offset + 4] (`cpu_id`, the CPU's number while registered); inc eax; jz +2; ud2
    let at = (offset as i32 + 4).to_le_bytes();
    let snippet = [&[0x64, 0x8b, 0x04, 0x25][..], &at, &[0xff, 0xc0, 0x74, 0x02, 0x0f, 0x0b]].concat();
    assert_eq!(run(&mut one_worker(true), &snippet).map(|samples| samples.len()), Ok(1));
}

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

#[test]
fn a_worker_that_is_moved_to_another_cpu_returns_no_readings() {
    let allowed = rustix::thread::sched_getaffinity(None).expect("the affinity of this thread");
    let cpus: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    let [first, second, ..] = cpus[..] else { return cyclescope_skipped::report_skipped("there is one CPU") };
    let mut user = one_worker(false);
    let batch = batch_of(once(&[0x90]), 1, 100_000);
    user.run(&batch).expect("a worker that stays where it is");
    let pid = rustix::process::Pid::from_raw(user.worker.as_ref().expect("it runs").pid()).expect("a number");
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            for cpu in [first, second].into_iter().cycle() {
                let mut set = rustix::thread::CpuSet::new();
                set.set(cpu);
                // The worker ends with its first error.
                if is_over.load(std::sync::atomic::Ordering::Relaxed)
                    || rustix::thread::sched_setaffinity(Some(pid), &set).is_err()
                {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let error = (0..200).find_map(|_| user.run(&batch).err());
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        error
    });
    match error {
        Some(RunError::Machinery { why, .. }) => assert!(why.contains("another CPU"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert_still_runs(&mut user);
}

/// A thread that uses a CPU until it is dropped, or for ten seconds.
struct BusyThread {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl BusyThread {
    fn start_on(cpu: usize) -> BusyThread {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut own = rustix::thread::CpuSet::new();
            own.set(cpu);
            rustix::thread::sched_setaffinity(None, &own).expect("an allowed CPU");
            let until = Instant::now() + Duration::from_secs(10);
            while !seen.load(Ordering::Relaxed) && Instant::now() < until {
                std::hint::spin_loop();
            }
        });
        BusyThread { stop, thread: Some(thread) }
    }
}

impl Drop for BusyThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().into_iter().for_each(|thread| thread.join().expect("it ends"));
    }
}

#[test]
fn long_calls_beside_another_program_have_no_duration() {
    let mut user = spawn();
    let clock = Clock::find_named("lfence-rdtsc-lfence").expect("the clock exists");
    // Chains of a hundred `imul rax, rax`, some 60 ms a call.
    let imul = [0x48, 0x0f, 0xaf, 0xc0];
    let program = ProgramRecipe::with_loop(clock, &imul, 100).build();
    let mut batch = batch_of(program, 1, 4);
    batch.layouts[0].round[0].loop_count = 800_000;
    let interrupted = |samples: &[Sample]| samples.iter().filter(|sample| sample.end < sample.start).count();
    let busy = BusyThread::start_on(user.options.cpu);
    let beside = user.run(&batch).expect("it runs");
    drop(busy);
    assert!(interrupted(&beside) > 0, "{beside:?}");
    assert!(beside.iter().all(|sample| sample.whole_duration() > 1 << 20), "{beside:?}");
    // Short calls are left to filters of outliers.
    batch.layouts[0].round[0].loop_count = 1;
    let mut calm = || (0..40).any(|_| interrupted(&user.run(&batch).expect("it runs")) == 0);
    assert!(calm());
}
