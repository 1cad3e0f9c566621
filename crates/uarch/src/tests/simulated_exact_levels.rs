//! Levels without noise. Single programs show something else.

use crate::cost::{CostPoint, MeasureCosts};
use crate::cost_spread::CostSpread;
use crate::level_curves::run_levels;
use crate::plateau::{LevelCriteria, find_levels};
use crate::record::UarchRecord;
use crate::spec::{Experiment, LevelsSpec, ProgramFamily, TestSpec};
use crate::test_list::TESTS;
use crate::verdict::VerdictKind;
use cyclescope_core::error::{RunError, Unavailable};
use cyclescope_core::random::Random;
use std::cell::RefCell;
use std::collections::BTreeMap;

fn named(name: &str) -> (&'static TestSpec, &'static LevelsSpec) {
    let test = *TESTS.iter().find(|test| test.name == name).expect("it is in the list");
    let Experiment::Levels(spec) = &test.experiment else { panic!("it is one of levels") };
    (test, spec)
}

fn caches() -> (&'static TestSpec, &'static LevelsSpec) {
    named("data_caches")
}

/// Costs without noise: three levels, and another one in some programs.
struct ExactLevels {
    /// The programs with another level, below the second level's cost.
    only: &'static [&'static str],
}

const EXACT: [(f64, f64); 3] = [(49152.0, 5.0), (2e6, 16.0), (1.2e7, 70.0)];

impl MeasureCosts for ExactLevels {
    fn measure_cost(&mut self, family: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError> {
        let occupied = if family.name.contains("beside") { 8192.0 } else { 0.0 };
        let count = n as f64 + occupied;
        let cost = EXACT.iter().find(|(size, _)| count <= *size).map_or(300.0, |(_, cost)| *cost);
        let dearer = cost == 16.0 && count > 3e5 && self.only.contains(&family.name);
        let cost = if dearer { 34.0 } else { cost };
        Ok(Some(CostPoint { n, cost, low: cost, high: cost }))
    }
}

fn exact(only: &'static [&'static str]) -> Vec<(String, VerdictKind, Option<f64>)> {
    let (test, spec) = caches();
    let records = run_levels(&mut ExactLevels { only }, test, spec, spec.count_range[1], &mut Random::new(5))
        .expect("it has costs");
    records.into_iter().map(|record| (record.what, record.verdict, record.value.value)).collect()
}

#[test]
fn an_end_of_one_program_alone_leaves_later_ends_without_a_number() {
    let all = exact(&[]);
    let keys = |found: &[(String, VerdictKind, Option<f64>)]| {
        found.iter().map(|(what, ..)| what.replace("data_caches.", "")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(keys(&all), "1.size 1.cost 2.size 2.cost 3.size 3.cost beyond.cost");
    assert!(all.iter().all(|(_, verdict, _)| *verdict == VerdictKind::Found), "{all:?}");
    for family in [&["each line"], &["page after page"]] {
        let with_extra = exact(family);
        assert_eq!(keys(&with_extra), "1.size 1.cost more.size beyond.cost", "{family:?}");
        assert_eq!(with_extra[..2], all[..2]);
        assert_eq!((with_extra[2].1, with_extra[2].2), (VerdictKind::Unclear, None));
    }
    assert_eq!(keys(&exact(&["each line", "page after page"])).matches("size").count(), 4);
}

/// Lines of one set cost more beyond its ways, and more again beyond the next cache's ways.
struct ExactSets;

impl MeasureCosts for ExactSets {
    fn measure_cost(&mut self, _: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError> {
        let cost = [(8, 0.0), (20, 11.0)].iter().find(|(variants, _)| n <= *variants).map_or(60.0, |(_, cost)| *cost);
        Ok(Some(CostPoint { n, cost, low: cost, high: cost }))
    }
}

/// A level whose cost rises over many counts.
struct SoftLevel;

impl MeasureCosts for SoftLevel {
    fn measure_cost(&mut self, _: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError> {
        let cost = 11.0 * ((n as f64 - 8.0) / 8.0).clamp(0.0, 1.0);
        Ok(Some(CostPoint { n, cost, low: cost, high: cost }))
    }
}

#[test]
fn a_test_of_one_structure_has_one_number_with_its_name() {
    let test = *TESTS.iter().find(|test| test.name == "l1d_ways").expect("it is in the list");
    let Experiment::Levels(spec) = &test.experiment else { panic!("it is one of levels") };
    let records =
        run_levels(&mut ExactSets, test, spec, spec.count_range[1], &mut Random::new(5)).expect("it has costs");
    let [record] = &records[..] else { panic!("{} records", records.len()) };
    assert_eq!((record.what.as_str(), record.verdict, record.value.value), ("l1d_ways", VerdictKind::Found, Some(8.0)));
    let soft = run_levels(&mut SoftLevel, test, spec, spec.count_range[1], &mut Random::new(5)).expect("it has costs");
    assert_eq!((soft[0].what.as_str(), soft[0].verdict), ("l1d_ways", VerdictKind::Unclear), "{}", soft[0].why);
    let flat = run_levels(&mut ExactLevels { only: &[] }, test, spec, spec.count_range[1], &mut Random::new(5));
    assert_eq!(flat.expect("it has costs")[0].verdict, VerdictKind::Unclear, "every core has ways");
}

/// A core with given costs, by the count and the program's index; infinite if there is no memory.
/// Its witness confirms the end.
struct GivenCosts<F>(&'static LevelsSpec, F);

impl<F: Fn(f64, usize) -> f64> MeasureCosts for GivenCosts<F> {
    fn measure_cost(&mut self, family: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError> {
        let place = self.0.programs.iter().position(|other| std::ptr::eq(other, family));
        let witness = self.0.witness.as_ref().filter(|_| place.is_none());
        let occupied = witness.map_or(0.0, |witness| witness.occupied as f64);
        let cost = (self.1)(n as f64 + occupied, place.unwrap_or_default());
        if cost.is_infinite() {
            let [what, why, remedy] = ["so much memory", "none is free", "end something"].map(str::to_string);
            return Err(RunError::Unavailable(Unavailable { what, why, remedy }));
        }
        Ok(Some(CostPoint { n, cost, low: cost, high: cost }))
    }

    fn measure_spread(&mut self, _: &ProgramFamily, _: usize) -> Result<Option<CostSpread>, RunError> {
        Ok(CostSpread::from_rounds(&[[8.0, 4.0]]))
    }
}

/// The records of a test on such a core, by their keys without the test's name.
fn records_of(name: &str, cost: impl Fn(f64, usize) -> f64) -> Vec<(String, UarchRecord)> {
    let (test, spec) = named(name);
    let mut core = GivenCosts(spec, cost);
    let records = run_levels(&mut core, test, spec, spec.count_range[1], &mut Random::new(5)).expect("it has costs");
    let key = |record: &UarchRecord| record.what.replace(name, "").trim_start_matches('.').to_string();
    records.into_iter().map(|record| (key(&record), record)).collect()
}

fn find_verdict<'a>(records: &'a [(String, UarchRecord)], key: &str) -> (VerdictKind, &'a str) {
    let found = records.iter().find(|(own, _)| own == key);
    found.map(|(_, record)| (record.verdict, record.why.as_str())).unwrap_or((VerdictKind::None, "no record"))
}

/// Costs of levels with these sizes, and the cost behind all of them.
fn stepped(n: f64, levels: &[(f64, f64)], behind: f64) -> f64 {
    levels.iter().find(|(size, _)| n <= *size).map_or(behind, |(_, cost)| *cost)
}

#[test]
fn a_cost_needs_two_programs_that_agree() {
    let cost = |n, family| {
        let first = if family == 0 { 5.0 } else { 9.0 };
        stepped(n, &[(49152.0, first), (2e6, 20.0)], 90.0)
    };
    let records = records_of("data_caches", cost);
    assert_eq!(find_verdict(&records, "1.size").0, VerdictKind::Found, "{records:?}");
    let (kind, why) = find_verdict(&records, "1.cost");
    assert!(kind == VerdictKind::Unclear && why.starts_with("programs differ"), "{why}");
    assert_eq!(find_verdict(&records, "2.cost").0, VerdictKind::Found);
}

#[test]
fn a_cost_spans_the_programs_that_agree() {
    let cost = |n, family| {
        let second = [20.0, 34.0, 23.0][family];
        stepped(n, &[(49152.0, 5.0), (2e6, second)], 90.0)
    };
    let records = records_of("data_caches", cost);
    let (_, found) = records.iter().find(|(key, _)| key == "2.cost").expect("it has a record");
    let value = found.value;
    assert_eq!([value.low, value.value, value.high], [Some(20.0), Some(20.0), Some(23.0)], "{}", found.why);
}

#[test]
fn a_plateau_that_programs_share_has_a_cost_whatever_its_end_is() {
    // In the other programs, the first level ends nearby, at another count: the next level begins
    // elsewhere.
    let cost = |n, family| {
        let first = if family == 0 { 49152.0 } else { 70_000.0 };
        stepped(n, &[(first, 5.0), (4e6, 20.0)], 90.0)
    };
    let records = records_of("data_caches", cost);
    let (kind, why) = find_verdict(&records, "2.cost");
    assert!(kind == VerdictKind::Found && why.contains("page after page 20.0"), "{kind:?} {why}");
    assert_eq!(find_verdict(&records, "2.size").0, VerdictKind::Found);
}

#[test]
fn ends_too_far_apart_leave_the_next_level_without_a_number() {
    let cost = |n, family| {
        let first = if family == 0 { 49152.0 } else { 300_000.0 };
        stepped(n, &[(first, 5.0), (4e6, 20.0)], 90.0)
    };
    let records = records_of("data_caches", cost);
    let (kind, why) = find_verdict(&records, "more.size");
    assert!(kind == VerdictKind::Unclear && why.contains("the number of the next level is not known"), "{why}");
    assert!(records.iter().all(|(key, record)| !key.ends_with("size") || record.verdict != VerdictKind::Found));
}

#[test]
fn a_last_end_of_the_second_program_alone_is_unclear() {
    let cost = |n, family| match family {
        1 => stepped(n, &[(49152.0, 5.0), (2e6, 20.0)], 90.0),
        _ => stepped(n, &[(49152.0, 5.0)], 20.0),
    };
    let records = records_of("data_caches", cost);
    assert_eq!(find_verdict(&records, "1.size").0, VerdictKind::Found);
    let (kind, why) = find_verdict(&records, "2.size");
    assert!(kind == VerdictKind::Unclear && why.starts_with("one program alone has an end"), "{why}");
}

#[test]
fn too_slow_a_rise_ends_no_level() {
    // The same in both programs: from 4000 jumps to four times as many.
    let rise = |n: f64| 4.0 + 21.0 * ((n / 4e3).log2() / 2.0).clamp(0.0, 1.0);
    let records = records_of("branch_targets", |n, _| if n <= 400.0 { 2.0 } else { rise(n) });
    let sizes: Vec<_> = records.iter().filter(|(key, _)| key.ends_with("size")).collect();
    let behind = sizes.iter().filter(|(key, _)| key != "1.size");
    assert!(behind.clone().all(|(_, record)| record.verdict != VerdictKind::Found), "{sizes:?}");
}

#[test]
fn a_single_structure_ends_at_one_count() {
    // Both rise from 20 lines on, but gradually.
    let records = records_of("l1d_ways", |n, _| 30.0 * ((n - 16.0) / 8.0).clamp(0.0, 1.0));
    let (kind, why) = find_verdict(&records, "");
    assert_eq!(kind, VerdictKind::Unclear, "{why}");
}

#[test]
fn a_rise_at_the_largest_count_leaves_the_level_unknown() {
    // Flat, then dearer with each count.
    let records = records_of("data_caches", |n, _| if n <= 6e7 { 5.0 } else { 5.0 + 12.0 * (n / 6e7).ln() });
    let (kind, why) = find_verdict(&records, "1.size");
    assert!(kind == VerdictKind::Unclear && why.starts_with("the cost still rises"), "{kind:?} {why}");
    // Behind a level that ends: page walks that miss more tables.
    let page_walks = |n: f64, _| match n {
        ..=49152.0 => 5.0,
        ..=6e7 => 20.0,
        _ => 20.0 + 60.0 * (n / 6e7).ln(),
    };
    let records = records_of("data_caches", page_walks);
    for key in ["2.size", "beyond.cost"] {
        let (kind, why) = find_verdict(&records, key);
        assert!(kind == VerdictKind::Unclear && why.starts_with("the cost still rises"), "{key} {kind:?} {why}");
    }
    let records = records_of("data_caches", |n, _| n);
    let (kind, why) = find_verdict(&records, "1.size");
    assert!(kind == VerdictKind::Unclear && why.contains("over no stretch"), "{why}");
}

#[test]
fn missing_memory_hides_no_smaller_level() {
    let records = records_of("data_caches", |n, _| match n {
        ..=49152.0 => 5.0,
        ..=1e6 => 16.0,
        _ => f64::INFINITY,
    });
    assert_eq!(find_verdict(&records, "1.size").0, VerdictKind::Found, "{records:?}");
}

#[test]
fn only_found_costs_have_a_spread() {
    let spread = |records: &[(String, UarchRecord)]| {
        let with = records.iter().filter(|(_, record)| record.measured.is_some());
        with.map(|(key, _)| key.clone()).collect::<Vec<_>>()
    };
    let cost = |n, family| {
        let first = if family == 0 { 5.0 } else { 9.0 };
        stepped(n, &[(49152.0, first), (2e6, 20.0)], 90.0)
    };
    assert_eq!(spread(&records_of("data_caches", cost)), ["2.cost", "beyond.cost"]);
    let translations = records_of("data_tlb", |n, _| stepped(n, &[(64.0, 0.0), (2000.0, 8.0)], 40.0));
    assert_eq!(spread(&translations), [""; 0], "{translations:?}");
}

#[test]
fn a_disturbed_control_makes_no_level_larger() {
    let times = RefCell::new(BTreeMap::<usize, usize>::new());
    let cost = |n: f64, family| {
        let mut times = times.borrow_mut();
        let times = times.entry(n as usize).or_default();
        *times += usize::from(family == 1);
        // In the second measurement, the control of one program took longer.
        let disturbed = family == 1 && *times == 2 && n <= 72.0;
        if disturbed { 0.0 } else { stepped(n, &[(64.0, 0.0), (2000.0, 8.0)], 40.0) }
    };
    let records = records_of("data_tlb", cost);
    let (_, first) = records.iter().find(|(key, _)| key == "1.size").expect("it has a record");
    assert_eq!((first.verdict, first.value.value), (VerdictKind::Found, Some(64.0)), "{}", first.why);
}

const RISES: LevelCriteria = LevelCriteria { min_rise: 3.0, min_ratio: 1.8, fills_randomly: true, ends_rising: true };

fn curve(counts: impl IntoIterator<Item = usize>, cost: impl Fn(usize) -> f64) -> Vec<CostPoint> {
    let point = |n: usize| CostPoint { n, cost: cost(n), low: cost(n), high: cost(n) };
    counts.into_iter().map(point).collect()
}

#[test]
fn small_rises_do_not_add_up_to_a_level() {
    let number = |[first, next, last]: [f64; 3]| {
        let cost = |n: usize| stepped(n as f64, &[(1e5, first), (1e6, next)], last);
        find_levels(&curve((12..25).flat_map(|bits| [1 << bits, 3 << (bits - 1)]), cost), RISES).len()
    };
    assert_eq!([[10.0, 14.0, 19.0], [10.0, 14.0, 30.0], [1.0, 3.0, 30.0]].map(number), [1, 2, 2]);
}

#[test]
fn two_counts_are_no_level() {
    let number = |counts: &[usize]| {
        let all = counts.iter().copied().chain([4000, 5000, 7000]);
        find_levels(&curve(all, |n| if n < 4000 { 5.0 } else { 50.0 }), RISES).len()
    };
    assert_eq!((number(&[1000, 2000]), number(&[1000, 1500, 2000])), (1, 2));
}

/// Two of three costs are a half too high or too low. Before the end, costs rise by less than this
/// noise.
#[test]
fn noise_at_the_begin_of_a_rise_widens_the_end() {
    let end = |begin: usize| {
        let cost = |n: usize| {
            let noise = [-0.5, 0.0, 0.5][n / 10 % 3];
            let cost = stepped(n as f64, &[(begin as f64, 10.0), (10_000.0, 11.7)], 60.0);
            if n <= begin { cost + noise } else { cost }
        };
        find_levels(&curve((500..2000).map(|step| 10 * step), cost), RISES)[0].upto.expect("it ends")
    };
    let near = end(9_900);
    assert_eq!((near.value, near.low), (10_000, 9_900), "{near:?}");
    assert_eq!(end(9_000).low, (10_000.0 / 1.03) as usize, "no more than noise may hide");
}
