//! Signals at random moments, to every process of a command: nothing hangs, nothing lives on, no
//! line is broken, and every result file resumes.
//!
//! It takes minutes: `cargo test --profile tests -p cyclescope-cli --test cli -- --ignored signals`.
//! `CYCLESCOPE_SIGNALS` sets the number of signals, `CYCLESCOPE_FUZZ_SEED` the seed.
//! Run it alone: for another run on its CPU, a command waits longer than a hang may take here.

use crate::support::{folder, has};
use cyclescope::random::Random;
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Longest time from a signal to the end, beyond that of a command that gets none.
const HANG: Duration = Duration::from_secs(10);
/// Time in which processes end after the command.
const GRACE: Duration = Duration::from_secs(5);
/// The first fifth of the signals comes this early, in microseconds.
const EARLY_US: usize = 5_000;

/// Whether a process exists and is no zombie.
fn lives(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// The children of a process.
fn children_of(pid: i32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split(' ').filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>()).collect()
}

/// A process and all of its descendants.
fn family_of(pid: i32) -> Vec<i32> {
    let mut family = vec![pid];
    let mut next = 0;
    while let Some(member) = family.get(next).copied() {
        family.extend(children_of(member));
        next += 1;
    }
    family
}

fn send(pid: i32, signal: i32) {
    // SAFETY: takes no pointers; the process was a descendant of this one a moment ago.
    unsafe { libc::kill(pid, signal) };
}

/// Waits for a child within this time.
fn wait_within(child: &mut Child, time: Duration) -> Option<ExitStatus> {
    let until = Instant::now() + time;
    loop {
        match child.try_wait().expect("a child") {
            None if Instant::now() < until => std::thread::sleep(Duration::from_millis(2)),
            ended => return ended,
        }
    }
}

/// A command that gets signals.
struct Target {
    words: Vec<String>,
    /// Its result file.
    out: Option<String>,
    /// How long it takes without a signal.
    usual: Duration,
}

impl Target {
    fn new(words: &[&str], out: Option<&str>) -> Target {
        let words = words.iter().map(|word| word.to_string()).collect();
        Target { words, out: out.map(str::to_string), usual: Duration::ZERO }
    }

    /// Starts it; its lines go to a file.
    fn start(&self, option: &str, lines: &Path) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cyclescope"));
        command.arg("--json").args(&self.words);
        if let Some(out) = &self.out {
            command.args([option, out]);
        }
        let lines = File::create(lines).expect("a file");
        command.stdin(Stdio::null()).stdout(lines).stderr(Stdio::null()).process_group(0);
        command.spawn().expect("the program runs")
    }

    /// Sends a signal to one of its processes. Returns what went wrong.
    fn disturb(&self, random: &mut Random, early: bool, lines: &Path) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut child = self.start("--out", lines);
        let parent = child.id() as i32;
        let most = if early { EARLY_US } else { self.usual.as_micros() as usize };
        std::thread::sleep(Duration::from_micros(random.below(most) as u64));
        let signal = [libc::SIGSTOP, libc::SIGKILL, libc::SIGTERM][random.below(3)];
        let family = family_of(parent);
        let victim = family[random.below(family.len())];
        let name = fs::read_to_string(format!("/proc/{victim}/comm")).unwrap_or_default();
        let what = format!("{:?}: {signal} to {} of {} ({})", self.words, victim, family.len(), name.trim_end());
        send(victim, signal);
        if victim == parent && signal == libc::SIGSTOP {
            // Whoever stops the program itself lets it go on.
            std::thread::sleep(Duration::from_millis(300));
            send(parent, libc::SIGCONT);
        }
        if wait_within(&mut child, self.usual + HANG).is_none() {
            wrong.push(format!("{what}: it hangs"));
            family_of(parent).into_iter().for_each(|member| send(member, libc::SIGKILL));
            child.wait().expect("a child");
        }
        // Orphans become children of this process.
        let own = std::process::id() as i32;
        let until = Instant::now() + GRACE;
        let left = || children_of(own).into_iter().filter(|pid| lives(*pid)).collect::<Vec<i32>>();
        while !left().is_empty() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        for pid in left() {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            wrong.push(format!("{what}: it leaves {}", stat.split(" 0 ").next().unwrap_or_default()));
            send(pid, libc::SIGKILL);
        }
        // SAFETY: takes no pointer that is not null. All children of this process are reaped here.
        while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {}
        let text = fs::read_to_string(lines).expect("text");
        let whole = |line: &str| line.ends_with('\n') && serde_json::from_str::<Value>(line).is_ok();
        wrong.extend(text.split_inclusive('\n').filter(|line| !whole(line)).map(|line| format!("{what}: {line}")));
        wrong.extend(self.resume(lines).map(|why| format!("{what}: {why}")));
        wrong
    }

    /// Resumes the result file, if there is one, and removes it. Returns what went wrong.
    fn resume(&self, lines: &Path) -> Option<String> {
        let out = self.out.as_ref().filter(|out| Path::new(out).exists())?;
        let mut child = self.start("--resume", lines);
        let status = wait_within(&mut child, self.usual + HANG);
        if status.is_none() {
            send(child.id() as i32, libc::SIGKILL);
            child.wait().expect("a child");
        }
        fs::remove_file(out).expect("it is there");
        let resumed = status.is_some_and(|status| matches!(status.code(), Some(0 | 5)));
        (!resumed).then(|| format!("it does not resume: {status:?}, {}", fs::read_to_string(lines).unwrap_or_default()))
    }
}

#[test]
#[ignore = "takes minutes"]
fn signals_leave_nothing_behind() {
    if !has("cc") {
        return;
    }
    // SAFETY: takes no pointers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    let number =
        |name: &str, otherwise| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise);
    let (count, seed) = (number("CYCLESCOPE_SIGNALS", 100), number("CYCLESCOPE_FUZZ_SEED", 1));
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_string();
    fs::write(path("code.c"), "int f(void) { return 21; }\n").expect("a file");
    let (survey, sweep, code) = (path("survey"), path("sweep"), path("code.c"));
    let mut targets = [
        Target::new(&["run", "--quick", "imul rax, rax"], None),
        Target::new(&["run", "--quick", "--c", &code], None),
        Target::new(&["ab", "--quick", "--budget", "0.3", "sh -c 'sleep 0.01; true'", "true"], None),
        Target::new(&["instr", "add r64, r64", "imul r64, r64", "--quick"], Some(&survey)),
        Target::new(&["run", "--quick", "--sweep", "N=1..4", "add rax, {N}"], Some(&sweep)),
    ];
    let lines = folder.path().join("lines");
    for target in &mut targets {
        for _ in 0..3 {
            let begun = Instant::now();
            let status = target.start("--out", &lines).wait().expect("a child");
            assert!(matches!(status.code(), Some(0 | 5)), "{:?}: {status}", target.words);
            target.usual = target.usual.max(begun.elapsed());
            target.out.as_ref().map(fs::remove_file).transpose().expect("it is there");
        }
    }
    let mut random = Random::new(seed);
    let mut wrong = Vec::new();
    for signal in 0..count {
        let target = &targets[random.below(targets.len())];
        let found = target.disturb(&mut random, 5 * signal < count, &lines);
        // It takes long, and may be ended.
        found.iter().for_each(|what| eprintln!("signal {signal}: {what}"));
        wrong.extend(found);
    }
    println!("{count} signals, {} findings", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
