//! Tests with a simulated cargo that `.ci/test` repeats failed tests of programs that measure, and no others.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// A test program that fails at its first so many runs, and then runs what it is asked for.
fn write_program(folder: &Path, name: &str, failures: usize) -> String {
    let path = folder.join(format!("{name}-1"));
    let text = format!(
        "#!/bin/sh\necho run \"$@\" >>'{0}.runs'\n[ \"$(wc -l <'{0}.runs')\" -gt {failures} ] && exit 0\n\
         printf 'failures:\\n\\n---- one::fails stdout ----\\n\\nfailures:\\n    one::fails\\n\\n'\nexit 101\n",
        path.display()
    );
    write_executable(&path, &text);
    format!(
        r#"{{"reason":"compiler-artifact","package_id":"path+file://{}#0.1.0","target":{{"kind":["test"],"name":"{name}"}},"profile":{{"test":true}},"executable":"{}","fresh":true}}"#,
        folder.display(),
        path.display()
    )
}

fn write_executable(path: &Path, text: &str) {
    std::fs::write(path, text).expect("a file");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("a file");
}

/// Runs `.ci/test` on two programs that fail at first so many times: one that measures, and another one.
fn run_tests(case: &str, measuring: usize, other: usize) -> (Output, String) {
    let folder = std::env::temp_dir().join(format!("cyclescope-repeat-{case}-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder");
    let built = [("cli", measuring), ("other", other)].map(|(name, failures)| write_program(&folder, name, failures));
    std::fs::write(folder.join("built"), built.join("\n") + "\n").expect("a file");
    let cargo = folder.join("cargo");
    write_executable(&cargo, &format!("#!/bin/sh\ncat '{}/built'\n", folder.display()));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.ci/test");
    let output = Command::new(script).arg("true").env("CARGO", &cargo).output().expect("a shell");
    let runs = std::fs::read_to_string(folder.join("cli-1.runs")).expect("a file");
    std::fs::remove_dir_all(&folder).expect("a folder");
    (output, runs)
}

#[test]
fn a_failed_measurement_is_repeated_once_and_named() {
    let (output, runs) = run_tests("passes", 1, 0);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("\n[repeated] cli::one::fails: failed at first, passed when repeated\n"), "{text}");
    assert_eq!(runs, "run\nrun --exact one::fails\n");
    let (output, runs) = run_tests("fails", 2, 0);
    assert_eq!((output.status.code(), runs.lines().count()), (Some(1), 2), "{output:?}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("[repeated]"), "{output:?}");
}

#[test]
fn other_programs_are_not_repeated() {
    let (output, _) = run_tests("other", 0, 1);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}
