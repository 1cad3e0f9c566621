//! The measured commands, and what they answer where nothing is refused.

use crate::launcher::{LauncherTask, Outcome, launch};
use crate::verdict::ReferenceRun;
use cyclescope_skipped::report_left_out;
use std::fmt::Debug;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// A command that measures.
#[derive(Debug, Clone, Copy)]
pub struct MeasuredCommand {
    /// The command's arguments.
    arguments: &'static [&'static str],
    /// The program that it needs, if any.
    pub needs: Option<&'static str>,
}

/// A snippet, in a worker with an executable of its own.
pub const SNIPPET: MeasuredCommand =
    MeasuredCommand { arguments: &["run", "--quick", "--budget", "0.1", "imul rax, rax"], needs: None };
/// A function: a compiler, a process that loads the library, and workers that are its copies. Its
/// chain is much longer than what a core runs at once, so that a busy sibling hardly moves its cost.
pub const FUNCTION: MeasuredCommand = MeasuredCommand {
    arguments: &["run", "--quick", "--budget", "0.1", "--c", "f.c", "--arg", "a=1000"],
    needs: Some("cc"),
};
/// An instruction form: many programs in one worker.
pub const FORM: MeasuredCommand = MeasuredCommand { arguments: &["instr", "neg r32", "--quick"], needs: None };

/// A chain of multiplications.
const SOURCE: &str = "unsigned long f(unsigned long a) {\n    unsigned long x = 3;\n    \
    for (unsigned long i = 0; i < a; i++)\n        x = x * x + a;\n    return x;\n}\n";

/// Wall time after which a command of the reference counts as hung. A busy machine needs much of
/// it.
const REFERENCE_LIMIT: Duration = Duration::from_secs(300);

/// Runs of a reference on a busy machine that may all be too noisy.
const REFERENCE_ATTEMPTS: usize = 5;

/// Runs commands, each in a folder of its own.
pub struct CommandBench {
    root: TempDir,
    runs: AtomicUsize,
    /// The CPUs that this process may use, one for each thread that runs commands.
    cpus: Vec<usize>,
}

impl CommandBench {
    /// A bench on this machine.
    pub fn new() -> CommandBench {
        let set = rustix::thread::sched_getaffinity(None).expect("the set of this thread");
        let cpus: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect();
        let root = tempfile::tempdir().expect("a folder");
        CommandBench { root, runs: AtomicUsize::new(0), cpus: cpus.into_iter().rev().take(MOST_THREADS).collect() }
    }

    /// Runs a command on a CPU. `prepare` may change it, and gets its folder.
    pub fn run(
        &self,
        command: MeasuredCommand,
        cpu: usize,
        watch: LauncherTask,
        limit: Duration,
        prepare: impl FnOnce(&mut Command, &PathBuf),
    ) -> Outcome {
        let folder = self.root.path().join(self.runs.fetch_add(1, Ordering::Relaxed).to_string());
        std::fs::create_dir(&folder).expect("a new folder");
        std::fs::write(folder.join("f.c"), SOURCE).expect("a file");
        let mut started = Command::new(env!("CARGO_BIN_EXE_cyclescope"));
        started.args(command.arguments).args(["--json", "--cpu", &cpu.to_string()]);
        prepare(&mut started, &folder);
        let outcome = launch(started, &folder, watch, limit);
        // What is left of it is in the outcome.
        let _ = std::fs::remove_dir_all(&folder);
        outcome
    }

    /// Does a job for each item on a CPU, as many at once as there are CPUs. Returns what was wrong.
    pub fn try_all<T: Send + Copy + Debug>(
        &self,
        items: Vec<T>,
        job: impl Fn(T, usize) -> Result<(), String> + Sync,
    ) -> Vec<String> {
        let (left, wrong) = (Mutex::new(items.into_iter()), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for &cpu in &self.cpus {
                let (left, wrong, job) = (&left, &wrong, &job);
                scope.spawn(move || {
                    while let Some(next) = { left.lock().expect("no panic").next() } {
                        if let Err(why) = job(next, cpu) {
                            let text = format!("{next:?}: {why}");
                            // Long tests tell it at once.
                            eprintln!("{text}");
                            wrong.lock().expect("no panic").push(text);
                        }
                    }
                });
            }
        });
        wrong.into_inner().expect("no panic")
    }

    /// The CPU of a run that is alone.
    pub fn first_cpu(&self) -> usize {
        self.cpus[0]
    }

    /// A run of a command that counts its system calls: the first that is precise.
    pub fn reference(&self, command: MeasuredCommand) -> ReferenceRun {
        let run =
            || ReferenceRun::new(self.run(command, self.first_cpu(), LauncherTask::Count, REFERENCE_LIMIT, |_, _| {}));
        let first = run();
        if first.is_precise() {
            return first;
        }
        let precise = (1..REFERENCE_ATTEMPTS).map(|_| run()).find(ReferenceRun::is_precise);
        precise.unwrap_or_else(|| {
            report_left_out(format_args!("too noisy in {REFERENCE_ATTEMPTS} measurements: {:?}", command.arguments));
            first
        })
    }
}

/// Commands that run at the same time, each on its own CPU.
const MOST_THREADS: usize = 4;
