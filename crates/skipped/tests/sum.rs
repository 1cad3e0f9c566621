//! Tests `.ci/sum` with a simulated log.

use std::process::Command;

/// Output of a harness with several threads, and of one with a single thread, whose lines break
/// off.
const LOG: &str = "\
     Ran worker-7e28d7b1d13cd907' in 3 s, 2 s of processor time
running 5 tests
test figures::figures ... ignored, prints absolute times

[skipped] worker::faults::pku: no protection keys

[left out] worker::faults::all: the CPU lacks the feature: FS base
test faults::all ... ok
test faults::pku ... ok
test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s
test machine::tsc::reads ... 
[skipped] cyclescope::src/machine/tsc.rs:94: no RDTSCP

[skipped] cyclescope::src/machine/tsc.rs:94: no RDTSCP
ok
     Ran cli-0d9775e4958c2e82' in 3 s, 2 s of processor time
failures:

---- figures::one stdout ----
failures:
    figures::one
    figures::two
    figures::three

test result: FAILED. 7 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
[failed] instr-1: not ok 2 - instr runs in ring 0
[repeated] cli::figures::one: failed at first, passed when repeated
test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 4 filtered out; finished in 0.01s
[repeated] cli::figures::two: failed twice
[failed] cli --exact figures::two
";

#[test]
fn a_test_that_was_not_run_counts_as_skipped_with_its_reason() {
    let folder = std::env::temp_dir().join(format!("cyclescope-sum-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder");
    let log = folder.join("log");
    std::fs::write(&log, LOG).expect("a file");
    let sum = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.ci/sum");
    let output = Command::new(sum).arg(&log).output().expect("a shell");
    std::fs::remove_dir_all(&folder).expect("a folder");
    let output_text = String::from_utf8(output.stdout).expect("text");
    let lines: Vec<&str> = output_text.lines().collect();
    assert!(output.status.success(), "{output_text}");
    // Ten ended as passed, two of them without running; a third was ignored.
    assert_eq!(lines.last(), Some(&"8 passed, 2 failed, 3 skipped, 2 repeated"), "{output_text}");
    for reason in [
        "[ignored] figures::figures: prints absolute times",
        "[skipped] worker::faults::pku: no protection keys",
        "[left out] worker::faults::all: the CPU lacks the feature: FS base",
        "[skipped] cyclescope::src/machine/tsc.rs:94: no RDTSCP",
        "[failed] cli::figures::three",
        "[failed] cli --exact figures::two",
        "[failed] instr-1: not ok 2 - instr runs in ring 0",
        "[repeated] cli::figures::one: failed at first, passed when repeated",
        "[repeated] cli::figures::two: failed twice",
    ] {
        assert_eq!(lines.iter().filter(|line| **line == reason).count(), 1, "{output_text}");
    }
    // Repeated tests have lines of their own.
    assert_eq!(lines.iter().filter(|line| line.starts_with("[failed]")).count(), 3, "{output_text}");
}
