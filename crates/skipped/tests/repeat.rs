//! Tests with a simulated cargo of what `.ci/test` does for programs that measure: all others give way to
//! them, and a failed test of theirs is repeated. So are failed parts of `frameworks/test`.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// A simulated test program.
#[derive(Clone, Copy)]
struct TestProgram {
    name: &'static str,
    /// Number of runs that fail before one passes.
    failures: usize,
    /// Number of tests that pass then.
    passed: usize,
}

/// The program of this name is among those that measure.
const MEASURING: TestProgram = TestProgram { name: "cli", failures: 0, passed: 1 };
const OTHER: TestProgram = TestProgram { name: "other", ..MEASURING };

/// Writes a program. Returns cargo's line about it.
fn write_program(folder: &Path, program: TestProgram) -> String {
    let TestProgram { name, failures, passed } = program;
    let path = folder.join(format!("{name}-1"));
    let text = format!(
        "#!/bin/sh\necho run \"$@\" >>'{0}.runs'\nif [ \"$(wc -l <'{0}.runs')\" -gt {failures} ]; then\n\
         echo 'test result: ok. {passed} passed; 0 failed'; exit 0\nfi\n\
         printf 'failures:\\n\\n---- one::fails stdout ----\\n\\nfailures:\\n    one::fails\\n\\n'\n\
         echo 'test result: FAILED. 0 passed; 1 failed;'; exit 101\n",
        path.display()
    );
    write_executable(&path, &text);
    let (folder, path) = (folder.display(), path.display());
    format!(r#"{{"reason":"compiler-artifact","package_id":"path+file://{folder}#0.1.0","target":{{"kind":["test"],"#)
        + &format!(r#""name":"{name}"}},"profile":{{"test":true}},"executable":"{path}","fresh":true}}"#)
}

fn write_executable(path: &Path, text: &str) {
    std::fs::write(path, text).expect("a file");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("a file");
}

/// Runs `.ci/test` on a program that measures and another one. Returns its output, and the runs of the first.
fn run_tests(case: &str, programs: [TestProgram; 2]) -> (Output, String) {
    let folder = std::env::temp_dir().join(format!("cyclescope-repeat-{case}-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder");
    let built: String = programs.iter().map(|program| write_program(&folder, *program) + "\n").collect();
    let output = run_script(&folder, &built, "true");
    let runs = std::fs::read_to_string(folder.join("cli-1.runs")).expect("a file");
    std::fs::remove_dir_all(&folder).expect("a folder");
    (output, runs)
}

/// Runs `.ci/test` for a command, with a cargo that has built these programs, by its lines about them.
fn run_script(folder: &Path, built: &str, command: &str) -> Output {
    std::fs::write(folder.join("built"), built).expect("a file");
    let cargo = folder.join("cargo");
    write_executable(&cargo, &format!("#!/bin/sh\ncat '{}/built'\n", folder.display()));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.ci/test");
    // On all CPUs: this test may run on some.
    Command::new("taskset").args(["-c", "0-1023", script, command]).env("CARGO", &cargo).output().expect("taskset")
}

/// Requires that the run fails, and that it names these tests as repeated.
fn require_failure(output: &Output, repeated: &[&str]) {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    let named: Vec<&str> = text.lines().filter(|line| line.starts_with("[repeated]")).collect();
    assert_eq!(named, repeated, "{output:?}");
}

#[test]
fn other_programs_leave_the_last_cpu_to_those_that_measure() {
    let folder = std::env::temp_dir().join(format!("cyclescope-gives-way-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder");
    let seen = |name: &str| format!("{}/{name}.seen", folder.display());
    let note = "sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status";
    // The program that measures ends when a program beside it has run, or after 10 s.
    let waits = format!("for i in $(seq 100); do [ -e '{}' ] && break; sleep 0.1; done", seen("other"));
    let programs =
        [("cli", format!("{note} >'{}'; {waits}\n", seen("cli"))), ("other", format!("{note} >'{}'\n", seen("other")))];
    let mut built = String::new();
    for (name, script) in &programs {
        built += &(write_program(&folder, TestProgram { name, ..MEASURING }) + "\n");
        write_executable(&folder.join(format!("{name}-1")), &format!("#!/bin/sh\n{script}"));
    }
    let output = run_script(&folder, &built, "true");
    let [measuring, other] = programs.map(|(name, _)| std::fs::read_to_string(seen(name)).expect("a program that ran"));
    std::fs::remove_dir_all(&folder).expect("a folder");
    assert!(output.status.success(), "{output:?}");
    let last = |cpus: &str| cpus.trim().rsplit([',', '-']).next().and_then(|cpu| cpu.parse().ok()).expect("a CPU");
    let (last_of_all, last_of_other): (u32, u32) = (last(&measuring), last(&other));
    if !measuring.contains([',', '-']) {
        return cyclescope_skipped::report_skipped("needs two CPUs");
    }
    assert!(last_of_other < last_of_all, "{other} beside {measuring}");
}

#[test]
fn programs_that_could_not_be_run_are_a_failure() {
    let folder = std::env::temp_dir().join(format!("cyclescope-killed-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder");
    let built = write_program(&folder, MEASURING);
    // It ends the two processes of the script that run it.
    let killer = "#!/bin/sh\nkill -9 \"$(awk '{ print $4 }' /proc/$PPID/stat)\" $PPID\n";
    write_executable(&folder.join("cli-1"), killer);
    let output = run_script(&folder, &(built + "\n" + &write_program(&folder, OTHER) + "\n"), "true");
    std::fs::remove_dir_all(&folder).expect("a folder");
    assert!(!output.status.success(), "{output:?}");
}

#[test]
fn a_failed_measurement_is_repeated_once_and_named() {
    let (output, runs) = run_tests("passes", [TestProgram { failures: 1, ..MEASURING }, OTHER]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("\n[repeated] cli::one::fails: failed at first, passed when repeated\n"), "{text}");
    assert_eq!(runs, "run\nrun --exact one::fails\n");
    let (output, runs) = run_tests("fails", [TestProgram { failures: 2, ..MEASURING }, OTHER]);
    require_failure(&output, &["[repeated] cli::one::fails: failed twice"]);
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("\n[failed] cli --exact one::fails\n"), "{output:?}");
    assert_eq!(runs.lines().count(), 2);
}

#[test]
fn a_repetition_that_runs_nothing_is_a_failure() {
    let (output, _) = run_tests("nothing", [TestProgram { failures: 1, passed: 0, ..MEASURING }, OTHER]);
    require_failure(&output, &[]);
}

#[test]
fn other_programs_are_not_repeated() {
    let (output, _) = run_tests("other", [MEASURING, TestProgram { failures: 1, ..OTHER }]);
    require_failure(&output, &[]);
}

#[test]
fn a_failed_part_of_the_frameworks_is_repeated_alone() {
    let folder = std::env::temp_dir().join(format!("cyclescope-parts-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("frameworks")).expect("a folder");
    let command = folder.join("frameworks/test");
    let run = |failing: &str| {
        let text = format!(
            "#!/bin/sh\necho run \"$@\" >>'{0}/runs'\n\
             if [ $# -gt 0 ]; then echo 'test result: {failing}; 0 ignored; in frameworks/go'; exit 1; fi\n\
             echo 'test result: ok. 1 passed; 0 failed; 0 ignored; in frameworks/header, 3 s'\n\
             echo 'test result: FAILED. 0 passed; 1 failed; 0 ignored; in frameworks/go'; exit 1\n",
            folder.display()
        );
        let fails = failing.starts_with("FAILED");
        write_executable(&command, &if fails { text } else { text.replacen("exit 1; fi", "exit 0; fi", 1) });
        let built = write_program(&folder, MEASURING) + "\n" + &write_program(&folder, OTHER) + "\n";
        let output = run_script(&folder, &built, &command.display().to_string());
        let runs = std::fs::read_to_string(folder.join("runs")).expect("a file");
        std::fs::remove_file(folder.join("runs")).expect("a file");
        (output, runs)
    };
    let (passes, runs) = run("ok. 1 passed; 0 failed");
    let (fails, _) = run("FAILED. 0 passed; 1 failed");
    std::fs::remove_dir_all(&folder).expect("a folder");
    let text = String::from_utf8_lossy(&passes.stdout);
    assert!(passes.status.success(), "{passes:?}");
    assert!(text.contains("\n[repeated] frameworks::go: failed at first, passed when repeated\n"), "{text}");
    assert_eq!(runs, "run\nrun go\n");
    require_failure(&fails, &["[repeated] frameworks::go: failed twice"]);
}
