//! Tests of workers and the programs that made them.

use crate::support::*;
use cyclescope_code::clock::Clock;
use cyclescope_code::program::ProgramRecipe;
use cyclescope_exec::Executor;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
#[ignore = "started and killed by another test"]
fn victim() {
    let _ = run_once(&mut spawn(), &[0xeb, 0xfe], Duration::from_secs(60));
}

fn workers_of(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

fn until(condition: impl Fn() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(20);
    while Instant::now() < end {
        if condition() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

/// Whether a process exists and is no zombie.
fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with(['Z', 'X']))
}

/// Kills a measuring program some time after its worker has appeared.
fn kill_after(wait: Duration) {
    let exe = std::env::current_exe().expect("this test");
    let mut victim = Command::new(exe)
        .args(["--ignored", "--exact", "lifetime::victim"])
        .stdout(Stdio::null())
        .spawn()
        .expect("the test starts itself");
    assert!(until(|| !workers_of(victim.id()).is_empty()), "no worker was started");
    let workers = workers_of(victim.id());
    std::thread::sleep(wait);
    assert!(workers.iter().all(|worker| lives(*worker)));
    victim.kill().expect("the victim is killed");
    victim.wait().expect("the victim is reaped");
    assert!(until(|| !workers.iter().any(|worker| lives(*worker))), "{workers:?} still run");
}

#[test]
fn a_killed_program_leaves_no_worker() {
    // While the worker sets itself up, and while it runs an endless loop.
    for wait in [0, 100] {
        kill_after(Duration::from_millis(wait));
    }
}

#[test]
fn workers_can_be_made_while_other_threads_allocate() {
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    drop(std::hint::black_box(vec![1u8; 100_000]));
                }
            });
        }
        let makers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let samples = run_once(&mut spawn(), &[0x90], Duration::from_secs(20));
                        assert_eq!(samples.map(|samples| samples.len()), Ok(1));
                    }
                })
            })
            .collect();
        let results: Vec<_> = makers.into_iter().map(|maker| maker.join()).collect();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(results.iter().all(|result| result.is_ok()));
    });
}

#[test]
fn the_systems_clock_can_be_read_in_the_sandbox() {
    let clock = Clock::find_named("clock-gettime").expect("the clock exists");
    let recipe = ProgramRecipe { snippet: &[0x90], copies: 1, ..ProgramRecipe::empty(clock) };
    let batch = batch(vec![recipe.build()], 100, Duration::from_secs(20));
    let samples = spawn().run(&batch).expect("the clock works");
    assert!(samples.iter().all(|sample| sample.end >= sample.start && sample.start > 0));
}
