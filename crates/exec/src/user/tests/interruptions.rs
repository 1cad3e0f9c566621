//! Workers that end, stop, move or wait, and CPUs that others use.

use super::super::frozen_group::FrozenGroup;
use super::super::{UserExecutor, UserOptions};
use super::confinement::system_call;
use super::{assert_still_runs, batch_of, once, one_worker, run, spawn};
use crate::{Batch, Executor, Sample};
use cyclescope_code::clock::Clock;
use cyclescope_code::program::ProgramRecipe;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::Machine;
use cyclescope_worker::view;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

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
fn a_worker_whose_thread_has_ended_is_replaced() {
    let mut user = std::thread::spawn(spawn).join().expect("the thread ends well");
    assert_still_runs(&mut user);
}

#[test]
fn a_worker_that_was_killed_is_replaced() {
    let mut user = spawn();
    user.worker.as_mut().map(super::super::process::WorkerProcess::kill_and_reap);
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
