//! Regions in a program. Tests compare figures only with each other, so the machine does not
//! matter.
#![cfg(feature = "std")]

use cyclescope_clock::{Caveat, CoreCycles, Estimate, Region, Report, Row, hide, keep, report};
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

/// Whether the intervals of two estimates have a number in common.
fn agree(one: &Estimate, other: &Estimate) -> bool {
    let [[low, high], [other_low, other_high]] = [one.interval, other.interval];
    low <= other_high && other_low <= high
}

/// Slow code around nested regions hides a part of their overhead.
#[test]
fn a_region_excludes_the_overhead_of_nested_regions_in_any_code() {
    static ALONE: Region = Region::new("alone");
    static AROUND: Region = Region::new("around");
    static WITHIN: Region = Region::new("within");
    static SLOW_ALONE: Region = Region::new("slow alone");
    static SLOW_AROUND: Region = Region::new("slow around");
    const NESTED: u64 = 8;
    let (number, mut value) = (5_000, 3);
    for _ in 0..number {
        for (slow, alone, around) in [(0, &ALONE, &AROUND), (100, &SLOW_ALONE, &SLOW_AROUND)] {
            let timed = alone.begin();
            for _ in 0..NESTED {
                value = multiplications(50, multiplications(slow, value));
            }
            timed.end();
            let timed = around.begin();
            for _ in 0..NESTED {
                value = multiplications(slow, value);
                let _timed = WITHIN.begin();
                value = multiplications(50, value);
            }
            timed.end();
        }
    }
    let all = report();
    assert_eq!((row(&all, "within").count, row(&all, "around").count), (2 * NESTED * number, number));
    // What remains of the overhead is the same in both: none of it overlaps with slow code. It was
    // 6 % of it that did (Zen 5).
    let rest = |around, alone| (row(&all, around).cycles.value.0 - row(&all, alone).cycles.value.0) / NESTED as f64;
    let overlap = (rest("around", "alone") - rest("slow around", "slow alone")).abs();
    assert!(overlap < 0.04 * all.nested.0, "{overlap}\n{all}");
    for (alone, around) in [("alone", "around"), ("slow alone", "slow around")] {
        let [alone, around] = [alone, around].map(|name| row(&all, name));
        assert_eq!((alone.within, around.within), (0.0, NESTED as f64));
        assert!(agree(&alone.cycles, &around.cycles), "{all}");
        // The interval says something.
        let [low, high] = around.cycles.interval;
        assert!(high.0 - low.0 < 0.5 * alone.cycles.value.0, "{all}");
    }
}

#[test]
fn a_region_consists_of_its_own_code_and_the_regions_in_it() {
    static OUTER: Region = Region::new("outer");
    static MIDDLE: Region = Region::new("middle");
    static INNER: Region = Region::new("inner");
    let mut value = 3;
    for _ in 0..10_000 {
        let _timed = OUTER.begin();
        value = multiplications(400, value);
        for _ in 0..2 {
            let _timed = MIDDLE.begin();
            value = multiplications(200, value);
            for _ in 0..3 {
                let _timed = INNER.begin();
                value = multiplications(100, value);
            }
        }
    }
    black_box(value);
    let all = report();
    let [outer, middle, inner] = ["outer", "middle", "inner"].map(|name| row(&all, name));
    assert_eq!((outer.within, middle.within, inner.within), (8.0, 3.0, 0.0));
    assert_eq!(inner.own, inner.cycles);
    let sum = |own: &Row, number: f64, within: &Row| own.own.value.0 + number * within.cycles.value.0;
    for (whole, parts) in [(&outer, sum(&outer, 2.0, &middle)), (&middle, sum(&middle, 3.0, &inner))] {
        assert!((parts / whole.cycles.value.0 - 1.0).abs() < 0.03, "{all}");
    }
    // Four times, twice and once the same code.
    assert!(agree_scaled(&outer.own, 4.0, &inner.own) && agree_scaled(&middle.own, 2.0, &inner.own), "{all}");
}

/// Whether an estimate agrees with a multiple of another one.
fn agree_scaled(one: &Estimate, times: f64, other: &Estimate) -> bool {
    let scaled = |cycles: CoreCycles| CoreCycles(times * cycles.0);
    agree(one, &Estimate { value: scaled(other.value), interval: other.interval.map(scaled) })
}

/// A fence in front of code that begins with a load adds the load's time, which overlaps otherwise:
/// 7 % of this code (Zen 5).
#[test]
fn the_total_around_short_regions_has_none_of_their_overhead() {
    static ALONE: Region = Region::new("hashes alone");
    static AROUND: Region = Region::new("hashes around");
    static WITHIN: Region = Region::new("hash within");
    const NESTED: u64 = 100;
    fn hash(value: u64) -> u64 {
        let bytes = black_box(b"sixteen letters.");
        let hash = bytes.iter().fold(value, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
        keep(hash);
        hash
    }
    let (number, mut value) = (3_000, 3);
    for _ in 0..number {
        let timed = ALONE.begin();
        value = (0..NESTED).fold(value, |value, _| hash(hide(value)));
        timed.end();
        let timed = AROUND.begin();
        value = (0..NESTED).fold(value, |value, _| {
            let _timed = WITHIN.begin();
            hash(hide(value))
        });
        timed.end();
    }
    black_box(value);
    let all = report();
    let [alone, around, within] = ["hashes alone", "hashes around", "hash within"].map(|name| row(&all, name));
    assert_eq!((around.count, within.count, around.within), (number, NESTED * number, NESTED as f64));
    let [alone, total] = [&alone, &around].map(|row| row.cycles.value.0);
    assert!((total / alone - 1.0).abs() < 0.03, "{all}");
    // A fence adds an unknown time to each inner execution, and the interval of `own` covers it.
    let outside = total - NESTED as f64 * within.cycles.value.0;
    let [low, high] = around.own.interval.map(|end| end.0);
    assert!(low <= outside && outside <= high, "{outside}: {all}");
}

#[test]
fn a_recursive_region_includes_its_inner_executions() {
    static RECURSIVE: Region = Region::new("recursive");
    const DEPTH: u32 = 4;
    fn recurse(depth: u32, value: u64) -> u64 {
        let _timed = RECURSIVE.begin();
        let value = multiplications(100, value);
        if depth > 1 { recurse(depth - 1, value) } else { value }
    }
    let value = (0..5_000).fold(3, |value, _| recurse(black_box(DEPTH), value));
    black_box(value);
    let all = report();
    let recursive = row(&all, "recursive");
    assert_eq!((recursive.count, recursive.within), (20_000, 1.5));
    // Executions take once to four times as long as the innermost one: on the average 2.5 times.
    assert!(agree_scaled(&recursive.cycles, 2.5, &recursive.own), "{all}");
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
