//! Tests that a program which ends by `exit` keeps its report.
#![cfg(all(feature = "std", unix))]

use cyclescope_clock::{Region, report_at_end};
use std::process::{Command, Output};

static WORK: Region = Region::new("work");

/// Runs this test alone as a program that ends in this way.
fn run(ending: &str, samples: &str) -> Output {
    let program = std::env::current_exe().expect("a path");
    Command::new(program)
        .args(["--exact", "a_program_that_exits_keeps_its_report", "--nocapture", "--test-threads=1"])
        .env("ENDING", ending)
        .env("CYCLESCOPE_AB", samples)
        .output()
        .expect("it runs")
}

#[test]
fn a_program_that_exits_keeps_its_report() {
    if let Ok(ending) = std::env::var("ENDING") {
        let report = report_at_end();
        let timed = WORK.begin();
        (0..100_000).for_each(|number| _ = std::hint::black_box(number));
        drop(timed);
        if ending == "return" {
            drop(report);
        }
        std::process::exit(0);
    }
    for ending in ["exit", "return"] {
        let printed = String::from_utf8_lossy(&run(ending, "").stderr).into_owned();
        assert_eq!(printed.lines().filter(|line| line.starts_with("work ")).count(), 1, "{ending}: {printed}");
        let samples = std::env::temp_dir().join(format!("cyclescope-{ending}-{}", std::process::id()));
        std::fs::write(&samples, "").expect("a file");
        run(ending, samples.to_str().expect("text"));
        let written = std::fs::read_to_string(&samples).expect("a file");
        std::fs::remove_file(&samples).expect("it can be removed");
        assert_eq!(written.matches(r#"{"name":"work","iterations":1,"#).count(), 1, "{ending}: {written}");
        assert!(written.starts_with('\n'), "{ending}: {written}");
    }
}
