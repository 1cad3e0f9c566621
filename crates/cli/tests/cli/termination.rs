//! Early ends of a run, which must leave nothing behind.

use crate::support::{answer, cyclescope, folder, gone, has_for_part, within_patience};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// A started program, which is killed if a test fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn start(command: &mut Command) -> Running {
        Running(command.spawn().expect("the program runs"))
    }

    fn signal(&self, signal: i32) {
        // SAFETY: takes no pointers; the process is a child that hasn't been reaped.
        assert_eq!(unsafe { libc::kill(self.0.id() as i32, signal) }, 0);
    }

    /// The process number of the program's child, if it has one.
    fn worker(&self) -> Option<i32> {
        let children = format!("/proc/{0}/task/{0}/children", self.0.id());
        std::fs::read_to_string(&children).ok()?.split(' ').next()?.parse().ok()
    }

    /// Waits until the program has a child, and returns its process number.
    fn child(&self) -> i32 {
        within_patience(|| self.worker())
    }

    fn end(mut self) -> ExitStatus {
        within_patience(|| self.0.try_wait().expect("a child"))
    }
}

/// A run that lasts for seconds.
fn long_run() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cyclescope"));
    let plan = ["--samples", "4", "--layouts", "16", "--warm-up", "100000", "--loop", "100"];
    command.arg("run").args(plan).arg("imul rax, rax").stdout(Stdio::null()).stderr(Stdio::piped());
    hung_up(&mut command, libc::SIG_DFL);
    command
}

/// Starts a command with this handling of SIGHUP, whatever the tests' own is: they may run in the
/// background.
fn hung_up(command: &mut Command, does: libc::sighandler_t) {
    // SAFETY: `signal` may be called between fork and exec.
    unsafe {
        command.pre_exec(move || {
            libc::signal(libc::SIGHUP, does);
            Ok(())
        })
    };
}

#[test]
fn interrupt_ends_the_run_and_its_worker_with_130() {
    for wait in [0, 5, 50, 200] {
        let running = Running::start(&mut long_run());
        let worker = running.child();
        std::thread::sleep(Duration::from_millis(wait));
        running.signal(libc::SIGINT);
        assert_eq!(running.end().code(), Some(130));
        gone(worker);
    }
}

#[test]
fn other_signals_end_the_worker_too() {
    use std::os::unix::process::ExitStatusExt;
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGKILL] {
        let running = Running::start(&mut long_run());
        let worker = running.child();
        running.signal(signal);
        assert_eq!(running.end().signal(), Some(signal));
        gone(worker);
    }
}

#[test]
fn run_under_nohup_survives_a_hangup() {
    let mut command = long_run();
    hung_up(&mut command, libc::SIG_IGN);
    let running = Running::start(&mut command);
    let worker = running.child();
    running.signal(libc::SIGHUP);
    std::thread::sleep(Duration::from_millis(50));
    running.signal(libc::SIGINT);
    assert_eq!(running.end().code(), Some(130));
    gone(worker);
}

#[test]
fn killed_worker_is_reported_as_lost() {
    let mut running = Running::start(&mut long_run());
    std::thread::sleep(Duration::from_millis(200));
    // Each layout has its own worker. One that is killed between two layouts isn't missed.
    within_patience(|| {
        // SAFETY: takes no pointers; the worker wasn't reaped a moment ago.
        running.worker().map(|worker| unsafe { libc::kill(worker, libc::SIGKILL) });
        std::thread::sleep(Duration::from_millis(20));
        running.0.try_wait().expect("a child")
    });
    let stderr = running.0.stderr.take().expect("a pipe");
    assert_eq!(running.end().code(), Some(4));
    let said = std::io::read_to_string(stderr).expect("text");
    assert!(said.contains("SIGKILL"), "{said}");
}

#[test]
fn interrupted_compilers_and_assemblers_leave_no_files() {
    let folder = folder();
    let (temporary, file) = (folder.path().join("tmp"), folder.path().join("code.c"));
    std::fs::create_dir(&temporary).expect("a directory");
    // Both take seconds, because their input never ends.
    let endless = "#define A(x) B(x x) B(x x) B(x x)\n#define B(x) C(x x) C(x x) C(x x)\n\
                   #define C(x) D(x x) D(x x) D(x x)\n#define D(x) E(x x) E(x x) E(x x)\n\
                   #define E(x) F(x x) F(x x) F(x x)\n#define F(x) x x x x\n\
                   int n; void f(void *p) { A(n++; n--;) A(n++; n--;) }\n";
    std::fs::write(&file, endless).expect("a file");
    let macros = ".rept 1000000000; nop; .endr".to_string();
    let compile = ["--c", file.to_str().expect("text")];
    let assemble = ["--assembler", "as", &macros];
    for (tool, arguments) in [("cc", &compile[..]), ("as", &assemble[..])] {
        if !has_for_part(tool) {
            continue;
        }
        for signal in [libc::SIGINT, libc::SIGTERM] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_cyclescope"));
            command.arg("run").args(arguments).env("TMPDIR", &temporary);
            let running = Running::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
            let tool = running.child();
            std::thread::sleep(Duration::from_millis(50));
            running.signal(signal);
            let status = running.end();
            assert!(signal != libc::SIGINT || status.code() == Some(130), "{status}");
            gone(tool);
            let empty = || std::fs::read_dir(&temporary).expect("a folder").next().is_none().then_some(());
            within_patience(empty);
        }
    }
}

/// Stops a process of this program. Returns the program's error, which comes in seconds.
fn error_after_stop(command: &mut Command, find: impl Fn(&Running) -> Option<i32>) -> String {
    let mut running = Running::start(command.stdout(Stdio::null()).stderr(Stdio::piped()));
    let mut stopped = None;
    // A worker that is stopped between two layouts isn't missed; the next one is stopped then.
    let status = within_patience(|| {
        stopped = find(&running).or(stopped);
        // SAFETY: takes no pointers; the worker wasn't reaped a moment ago.
        stopped.map(|stopped| unsafe { libc::kill(stopped, libc::SIGSTOP) });
        std::thread::sleep(Duration::from_millis(100));
        running.0.try_wait().expect("a child")
    });
    let said = std::io::read_to_string(running.0.stderr.take().expect("a pipe")).expect("text");
    assert_eq!(status.code(), Some(1), "{said}");
    stopped.map(gone).expect("it was stopped");
    said
}

#[test]
fn stopped_processes_are_reported_and_ended() {
    let folder = folder();
    let file = folder.path().join("code.c");
    std::fs::write(&file, "void f(void *p) {}\n").expect("a file");
    let program = || {
        let mut ab = Command::new(env!("CARGO_BIN_EXE_cyclescope"));
        let program = error_after_stop(ab.args(["ab", "sleep 1000", "true"]), Running::worker);
        assert!(program.contains("something stopped `sleep 1000`"), "{program}");
    };
    let compiler = || {
        let mut run = Command::new(env!("CARGO_BIN_EXE_cyclescope"));
        run.args(["run", "--c"]).arg(&file).env("CC", "sh -c 'sleep 1000' --");
        let compiler = error_after_stop(&mut run, Running::worker);
        assert!(compiler.contains("something stopped sh"), "{compiler}");
    };
    // Beside those that measure: most of their time is patience with a stopped process.
    std::thread::scope(|scope| {
        scope.spawn(program);
        scope.spawn(compiler);
        let worker = error_after_stop(&mut long_run(), Running::worker);
        assert!(worker.contains("something stopped its process"), "{worker}");
        if !has_for_part("cc") {
            return;
        }
        let mut run = Command::new(env!("CARGO_BIN_EXE_cyclescope"));
        run.args(["run", "--budget", "600", "--interval", "0.00001", "--c"]).arg(&file);
        // The process that has loaded the library has a worker.
        let helper = |running: &Running| {
            let child = running.worker()?;
            let children = std::fs::read_to_string(format!("/proc/{child}/task/{child}/children")).ok()?;
            let runs_library = std::fs::read_to_string(format!("/proc/{child}/comm")).ok()?.starts_with("cyclescope");
            (runs_library && !children.is_empty()).then_some(child)
        };
        let helper = error_after_stop(&mut run, helper);
        assert!(helper.contains("something stopped the library's process"), "{helper}");
    });
}

#[test]
fn small_stack_is_an_error_with_a_remedy() {
    let program = env!("CARGO_BIN_EXE_cyclescope");
    let limited = |limit: &str| {
        let script = format!("ulimit {limit} && exec {program} run --quick nop");
        Command::new("sh").args(["-c", &script]).output().expect("a shell")
    };
    let output = limited("-s 80");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("ulimit -s 8192"), "{output:?}");
    let output = limited("-S -s 80");
    assert!(matches!(output.status.code(), Some(0 | 5)), "{output:?}");
}

#[test]
fn closed_pipe_is_not_an_error() {
    for arguments in [&["run", "--quick", "nop"][..], &["run", "--json", "nop"], &["--help"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cyclescope"));
        let mut running = Running::start(command.args(arguments).stdout(Stdio::piped()));
        drop(running.0.stdout.take());
        assert_eq!(running.end().code(), Some(0), "{arguments:?}");
    }
}

#[test]
fn full_disk_is_an_error() {
    for arguments in [&["run", "--quick", "nop"][..], &["run", "--quick", "--json", "nop"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cyclescope"));
        let full = File::options().write(true).open("/dev/full").expect("Linux has it");
        let output = command.args(arguments).stdout(full).output().expect("the program runs");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("No space left"), "{output:?}");
    }
}

#[test]
fn only_standard_output_must_be_open() {
    let program = env!("CARGO_BIN_EXE_cyclescope");
    let shell = |streams: &str| {
        let script = format!("{program} run --quick nop {streams}");
        Command::new("sh").args(["-c", &script]).output().expect("a shell")
    };
    for streams in ["<&- 2>&-", "<&- >/dev/null 2>&-", "<>/dev/null 1>&0"] {
        let output = shell(streams);
        assert!(matches!(output.status.code(), Some(0 | 5)), "{streams}: {output:?}");
    }
    // A result that can't be delivered is a failure.
    for streams in [">&-", "--json >&-", "<&- >&- 2>&-"] {
        let output = shell(streams);
        assert_eq!(output.status.code(), Some(1), "{streams}: {output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(streams.ends_with("2>&-") || said.contains("standard output is closed"), "{streams}: {said}");
    }
}

#[test]
fn empty_environment_is_sufficient() {
    let answer = answer(cyclescope(&["run", "--quick", "nop"]).env_clear());
    assert!(matches!(answer.code, Some(0 | 5)), "{answer:?}");
}

#[test]
fn missing_temporary_folder_is_reported() {
    let answer = answer(cyclescope(&["run", "--assembler", "as", "nop"]).env("TMPDIR", "/nowhere"));
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.stderr.contains("TMPDIR"), "{answer:?}");
}

#[test]
fn system_limits_are_reported_with_a_remedy() {
    for (limit, word) in [("-v 40000", "ulimit -v"), ("-n 5", "ulimit -n"), ("-f 4", "ulimit -f")] {
        let script = format!("ulimit {limit}; {} run --quick nop", env!("CARGO_BIN_EXE_cyclescope"));
        let output = Command::new("sh").args(["-c", &script]).output().expect("a shell");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{limit}: {said}");
        assert!(said.contains(word), "{limit}: {said}");
    }
    // The limit that the remedy names.
    let script = format!("ulimit -v 262144; {} run --quick nop", env!("CARGO_BIN_EXE_cyclescope"));
    let status = Command::new("sh").args(["-c", &script]).status().expect("a shell");
    assert!(matches!(status.code(), Some(0 | 5)), "{status}");
}

#[test]
fn two_runs_on_one_cpu_take_turns() {
    let runs = [(); 3].map(|()| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cyclescope"));
        Running::start(command.args(["run", "--quick", "imul rax, rax"]).stdout(Stdio::null()))
    });
    for run in runs {
        assert!(matches!(run.end().code(), Some(0 | 5)));
    }
    assert!(!Path::new("/cyclescope-cpu-0.lock").exists());
}
