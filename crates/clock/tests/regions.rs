//! Regions in a program. Tests compare figures only with each other, so the machine does not
//! matter.
#![cfg(feature = "std")]

use cyclescope_clock::{Caveat, Region, Report, Row, hide, keep, report};
use std::hint::black_box;

/// The row of a region; other tests of this program add others.
fn row(report: &Report, name: &str) -> Row {
    report.rows.iter().find(|row| row.name == name).expect("it was executed").clone()
}

fn multiplications(number: usize, value: u64) -> u64 {
    let product = (0..number).fold(hide(value), |value, _| value.wrapping_mul(value));
    keep(product);
    product
}

#[test]
fn no_execution_is_lost_on_eight_threads() {
    const EACH: u64 = 1_250_000;
    static MANY: Region = Region::new("many");
    let threads: Vec<_> = (0..8)
        .map(|_| {
            std::thread::spawn(|| {
                for _ in 0..EACH {
                    let _timed = MANY.begin();
                }
            })
        })
        .collect();
    // While the threads run.
    while threads.iter().any(|thread| !thread.is_finished()) {
        let seen = report().rows.iter().find(|row| row.name == "many").map_or(0, |row| row.count);
        assert!(seen <= 8 * EACH, "{seen}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    threads.into_iter().for_each(|thread| thread.join().expect("it ended"));
    let all = report();
    assert_eq!((row(&all, "many").count, all.lost), (8 * EACH, 0));
}

#[test]
fn a_report_includes_ended_executions_of_a_running_thread() {
    static HERE: Region = Region::new("here");
    for _ in 0..10 {
        HERE.begin().end();
    }
    let seen = std::thread::spawn(|| row(&report(), "here")).join().expect("it ended");
    assert_eq!(seen.count, 10);
    assert!(seen.caveats.contains(&Caveat::FewExecutions));
    HERE.begin().end();
    assert_eq!(row(&report(), "here").count, 11);
}

#[test]
fn longer_code_takes_longer_by_its_extra_work() {
    static SHORT: Region = Region::new("short");
    static LONG: Region = Region::new("long");
    let mut value = 3;
    for _ in 0..50_000 {
        let timed = SHORT.begin();
        value = multiplications(100, value);
        timed.end();
        let timed = LONG.begin();
        value = multiplications(300, value);
        timed.end();
    }
    black_box(value);
    let all = report();
    let [short, long] = ["short", "long"].map(|name| row(&all, name).cycles.value.0);
    // The latency of a multiplication is a whole number of cycles on every known core.
    let each = (long - short) / 200.0;
    if !all.calibration.rulers_agree {
        return cyclescope_skipped::report_left_out("two rulers disagree here");
    }
    assert!((each - each.round()).abs() < 0.1 * each && each > 1.5, "{each}\n{all}");
}

#[test]
fn a_region_excludes_the_overhead_of_nested_regions() {
    static AROUND: Region = Region::new("around");
    static WITHIN: Region = Region::new("within");
    static ALONE: Region = Region::new("alone");
    let mut value = 3;
    for _ in 0..20_000 {
        {
            let _timed = ALONE.begin();
            value = (0..8).fold(value, |value, _| multiplications(50, value));
        }
        let _timed = AROUND.begin();
        for _ in 0..8 {
            let _timed = WITHIN.begin();
            value = multiplications(50, value);
        }
    }
    let all = report();
    let [alone, around] = ["alone", "around"].map(|name| row(&all, name));
    assert_eq!((row(&all, "within").count, around.count), (160_000, 20_000));
    // Eight regions cost as much as the code in them.
    let more = around.cycles.value.0 / alone.cycles.value.0 - 1.0;
    assert!(more.abs() < 0.2, "{more}\n{all}");
}

#[test]
fn regions_with_one_name_are_one_and_a_report_has_eighty_columns() {
    for number in 0..200 {
        let timed = Region::new("a name of more than twenty-two characters").begin();
        black_box(number);
        timed.end();
    }
    let all = report();
    assert_eq!(row(&all, "a name of more than twenty-two characters").count, 200);
    let text = all.to_string();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}
