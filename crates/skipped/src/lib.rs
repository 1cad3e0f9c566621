//! How tests report that this machine cannot run them.
//!
//! The test harness knows passed, failed and ignored tests; the last are ignored on every machine.
//! A test that lacks a CPU feature, a tool or a permission would count as passed, and its output be
//! captured. Here it writes a line of fixed form past the capture; `.ci/run` counts these lines and
//! prints their reasons.

use std::fmt::Display;
use std::io::Write;
use std::panic::Location;

/// Reports that the calling test cannot run here, and why. The test then returns, and `.ci/run`
/// counts it as skipped.
#[track_caller]
pub fn report_skipped(reason: impl Display) {
    write_report("skipped", Location::caller(), &reason);
}

/// Reports that the calling test leaves out a part that cannot run here, and why. The test goes on
/// and counts as passed or failed; `.ci/run` prints the reason.
#[track_caller]
pub fn report_left_out(reason: impl Display) {
    write_report("left out", Location::caller(), &reason);
}

fn write_report(what: &str, from: &Location, reason: &dyn Display) {
    let program = std::env::current_exe().ok();
    let program = program.as_deref().and_then(|path| path.file_stem()).and_then(|name| name.to_str());
    let line = format_line(what, program, std::thread::current().name(), from, &reason.to_string());
    // `eprint!` is captured, a stream is not. A single write keeps lines of parallel tests apart.
    // If it fails, the test's result is the same.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Formats the line `[skipped] PROGRAM::TEST: REASON`. The harness names a thread after its test.
/// With a single thread it runs tests on the main one; the place in the source then replaces the
/// name.
fn format_line(what: &str, program: Option<&str>, thread: Option<&str>, from: &Location, reason: &str) -> String {
    // Cargo appends a dash and a checksum to a test program's name.
    let program = program.map_or("test", |name| name.rsplit_once('-').map_or(name, |(name, _)| name));
    let test = match thread {
        Some(name) if name != "main" => name.to_string(),
        _ => format!("{}:{}", from.file(), from.line()),
    };
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    // With a single thread the harness has written the test's name without a line end.
    format!("\n[{what}] {program}::{test}: {reason}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_the_test_or_the_place_that_calls() {
        let from = Location::caller();
        let place = format!("{}:{}", from.file(), from.line());
        let line = format_line("skipped", Some("cli-0123456789abcdef"), Some("run::nop"), from, "no\n  RDTSCP");
        assert_eq!(line, "\n[skipped] cli::run::nop: no RDTSCP\n");
        for thread in [Some("main"), None] {
            let line = format_line("left out", Some("cli-0123456789abcdef"), thread, from, "no RDTSCP");
            assert_eq!(line, format!("\n[left out] cli::{place}: no RDTSCP\n"));
        }
    }
}
