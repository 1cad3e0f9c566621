//! Helpers that run the program and check its output.

use assert_cmd::Command;
use cyclescope::executor::Sample;
use cyclescope::result::container::{ContainerWriter, EvidenceContainer};
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Seconds of processor time after which the program counts as hung.
const HUNG: libc::rlim_t = 60;
/// The same for wall time, of which a busy machine needs more. It ends a program that waits
/// forever.
const WAITED: Duration = Duration::from_secs(900);

/// The program, not yet started.
pub fn cyclescope(arguments: &[&str]) -> Command {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_cyclescope"));
    command.args(arguments);
    let limit = || {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the structure outlives both calls.
        let set = unsafe {
            libc::getrlimit(libc::RLIMIT_CPU, &mut limit) == 0 && {
                limit.rlim_cur = limit.rlim_max.min(HUNG);
                libc::setrlimit(libc::RLIMIT_CPU, &limit) == 0
            }
        };
        if set { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: both may be called between fork and exec.
    unsafe { command.pre_exec(limit) };
    let mut command = Command::from_std(command);
    command.timeout(WAITED);
    command
}

/// The output and exit code of a command.
#[derive(Debug)]
pub struct Answer {
    /// The exit code; `None` if a signal ended the command.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// Runs a command to its end.
pub fn answer(command: &mut Command) -> Answer {
    let output = command.output().expect("the program runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    let answer = Answer { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) };
    // What the program says after a panic (`process/last_words.rs`).
    assert!(!answer.stderr.contains("a state that it does not expect"), "{answer:?}");
    answer
}

/// Lines of JSON.
pub fn parse_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The lines of a kind.
pub fn of_kind<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["kind"] == kind).collect()
}

/// Returns the single line that a command prints with `--json`.
pub fn json(arguments: &[&str], codes: &[i32]) -> Value {
    // Directly after the command, because after `--` it wouldn't be an option.
    let answer = answer(cyclescope(&arguments[..1]).arg("--json").args(&arguments[1..]));
    assert!(answer.code.is_some_and(|code| codes.contains(&code)), "{arguments:?}: {answer:?}");
    let lines: Vec<&str> = answer.stdout.lines().collect();
    assert_eq!(lines.len(), 1, "{arguments:?}: {answer:?}");
    let line: Value = serde_json::from_str(lines[0]).expect("JSON");
    assert_eq!(line["schema"], "cyclescope/1");
    line
}

/// A measurement, which may be too noisy on a busy machine.
pub fn measured(arguments: &[&str]) -> Value {
    let line = json(&[&["run"], arguments].concat(), &[0, 5]);
    assert_eq!(line["kind"], "run");
    line
}

/// The text and remedy of an error.
pub fn error_text(line: &Value) -> String {
    assert_eq!(line["kind"], "error", "{line}");
    format!("{}; {}", line["text"].as_str().expect("text"), line["remedy"].as_str().unwrap_or_default())
}

/// A failure of `run` with this exit code.
pub fn refused(arguments: &[&str], code: i32) -> Value {
    let line = json(&[&["run"], arguments].concat(), &[code]);
    assert_eq!((&line["kind"], &line["exit"]), (&"error".into(), &code.into()), "{arguments:?}");
    line
}

/// Number of measurements on a busy machine that may all be too noisy before the test gives up.
pub const ATTEMPTS: usize = 5;

/// Returns the first measurement that reaches the requested precision. If none does, reports that
/// the test skips what needs it.
#[track_caller]
pub fn number(arguments: &[&str]) -> Option<Value> {
    let measure = || answer(cyclescope(&["run", "--json"]).args(arguments));
    let found = (0..ATTEMPTS).map(|_| measure()).find(|answer| {
        assert!(matches!(answer.code, Some(0 | 5)), "{arguments:?}: {answer:?}");
        answer.code == Some(0)
    });
    let found = found.map(|answer| serde_json::from_str(&answer.stdout).expect("JSON"));
    if found.is_none() {
        cyclescope_skipped::report_left_out(format_args!("too noisy in {ATTEMPTS} measurements: {arguments:?}"));
    }
    found
}

/// Returns the first measurement that has a cost, at any precision. If none has one, reports that
/// the test skips what needs it.
#[track_caller]
pub fn first_with_cost(measure: impl FnMut() -> Value) -> Option<Value> {
    let found = std::iter::repeat_with(measure).take(ATTEMPTS).find(|line| line["cost"]["value"].is_number());
    if found.is_none() {
        cyclescope_skipped::report_left_out(format_args!("too noisy for a number in {ATTEMPTS} measurements"));
    }
    found
}

/// Returns the first answer of a machine that is not too busy for most of what is asked, or the last.
pub fn until_not_too_busy(measure: impl FnMut() -> Answer) -> Answer {
    measure_until(measure, |answer| answer.code != Some(5))
}

/// Returns the first answer that a quiet machine could give, or the last.
pub fn measure_until<T>(mut measure: impl FnMut() -> T, is_quiet: impl Fn(&T) -> bool) -> T {
    let mut last = measure();
    for _ in 1..ATTEMPTS {
        if is_quiet(&last) {
            break;
        }
        last = measure();
    }
    last
}

/// The value of a quantity, and half the width of its interval.
pub fn value(quantity: &Value) -> [f64; 2] {
    let [value, low, high] = ["value", "low", "high"].map(|part| quantity[part].as_f64().expect("a number"));
    [value, (high - low) / 2.0]
}

/// The value of a quantity. If the machine was too busy for one, reports that a part of the test is
/// skipped.
#[track_caller]
pub fn value_if_any(quantity: &Value) -> Option<f64> {
    let value = quantity["value"].as_f64();
    if value.is_none() {
        cyclescope_skipped::report_left_out("too noisy for a number");
    }
    value
}

/// Whether a tool is installed.
fn installed(tool: &str) -> bool {
    std::process::Command::new(tool).arg("--version").output().is_ok()
}

/// Whether a tool is installed. If not, reports that the test is skipped.
#[track_caller]
pub fn has(tool: &str) -> bool {
    let found = installed(tool);
    if !found {
        cyclescope_skipped::report_skipped(format_args!("{tool} is not installed"));
    }
    found
}

/// Whether a tool is installed. If not, reports that the test skips what needs it.
#[track_caller]
pub fn has_for_part(tool: &str) -> bool {
    let found = installed(tool);
    if !found {
        cyclescope_skipped::report_left_out(format_args!("{tool} is not installed"));
    }
    found
}

/// A command of some seconds, which is killed if a test fails.
pub struct Running(Child);

impl Running {
    /// Starts a command.
    pub fn start(arguments: &[&str]) -> Running {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_cyclescope"));
        command.args(arguments).stdout(Stdio::null()).stderr(Stdio::piped());
        Running(command.spawn().expect("the program runs"))
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits until a file has at least this number of lines.
    pub fn until(&mut self, path: &str, lines: usize) {
        // On a busy machine it takes minutes.
        let until = Instant::now() + WAITED;
        let has = || std::fs::read(path).is_ok_and(|text| text.iter().filter(|c| **c == b'\n').count() >= lines);
        while !has() {
            assert!(Instant::now() < until, "not within {WAITED:?}");
            assert_eq!(self.0.try_wait().expect("a child"), None, "it ended early");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Sends a signal. Returns how the command ended, and its standard error.
    pub fn signal(mut self, signal: i32) -> (std::process::ExitStatus, String) {
        // SAFETY: takes no pointers; the process is a child that hasn't been reaped.
        assert_eq!(unsafe { libc::kill(self.0.id() as i32, signal) }, 0);
        let status = self.0.wait().expect("a child");
        let said = self.0.stderr.take().map(|stderr| std::io::read_to_string(stderr).expect("text"));
        (status, said.unwrap_or_default())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A temporary folder.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Changes the facts or events of evidence, like a forger who also recomputes all digests.
pub fn forged(
    directory: &Path,
    facts: impl FnOnce(&mut Value),
    event: impl FnMut(u64, &mut Vec<Sample>),
    record: impl FnMut(&mut Value),
) {
    let container = EvidenceContainer::open(directory).expect("whole evidence");
    let other = directory.with_extension("forged");
    write_forged(&container, &other, facts, event, record);
    std::fs::remove_dir_all(directory).expect("a directory");
    std::fs::rename(other, directory).expect("a directory");
}

/// Writes changed evidence to another directory.
pub fn write_forged(
    container: &EvidenceContainer,
    to: &Path,
    facts: impl FnOnce(&mut Value),
    mut event: impl FnMut(u64, &mut Vec<Sample>),
    mut record: impl FnMut(&mut Value),
) {
    let mut changed = container.manifest.facts.clone();
    facts(&mut changed);
    let mut writer = ContainerWriter::create(to, container.manifest.origin.clone()).expect("a new directory");
    writer.set_facts(&changed).expect("plain data");
    writer.copy_batches(container).expect("whole evidence");
    let mut events = container.events().expect("events");
    let mut number = 0;
    while let Some((what, mut samples)) = events.take_event(usize::MAX).expect("an event") {
        event(number, &mut samples);
        writer.add_event(&what, &samples).expect("it can be written");
        number += 1;
    }
    for line in container.records().expect("records") {
        let mut line = line.expect("a record");
        record(&mut line);
        writer.add_record("forged", &line).expect("it can be written");
    }
    writer.finish().expect("it can be written");
}

/// Wall time for what takes some seconds on a quiet machine, and minutes beside other measurements on
/// the same CPU.
const PATIENCE: Duration = Duration::from_secs(300);

/// Waits until `found` returns something.
pub fn within_patience<T>(mut found: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < until, "not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until a process is gone, or is only waiting to be reaped by its new parent.
pub fn gone(process: i32) {
    within_patience(|| {
        let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let state = status.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
        matches!(state, None | Some(Some('Z' | 'X'))).then_some(())
    });
}
