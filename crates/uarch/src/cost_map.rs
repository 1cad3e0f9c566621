//! What a program costs at each place. The number is the least cost; the record lists where it
//! costs more.

use super::cost::MeasureCosts;
use super::record::{PlaceRecord, UarchRecord};
use super::spec::{CostMapSpec, MapRow, ProgramFamily, TestSpec};
use super::verdict::{TestVerdict, VerdictKind};
use cyclescope_core::error::RunError;
use cyclescope_core::statistics::{Interval, median};
use cyclescope_core::unit::Unit;
use iced_x86::CpuidFeature;

/// The largest number of measurements of a place, until both programs agree.
const MAX_MEASUREMENTS: usize = 4;
/// Share of a row's places whose cost has to be known.
const MIN_KNOWN_SHARE: f64 = 0.8;

/// The cost at a place if two programs agree, and the least cost of both.
#[derive(Debug, Clone, Copy, PartialEq)]
struct MeasuredPlace {
    place: isize,
    cost: Option<f64>,
    lowest_costs: [f64; 2],
}

/// Measures each row that this CPU can run, and judges it.
pub(super) fn run_cost_map(
    core: &mut dyn MeasureCosts,
    test: &'static TestSpec,
    map: &'static CostMapSpec,
    has: &dyn Fn(&CpuidFeature) -> bool,
) -> Result<Vec<UarchRecord>, RunError> {
    let mut records = Vec::new();
    for row in map.rows {
        let what = format!("{}.{}", test.name, row.name);
        let record = |verdict| UarchRecord::new(test, what, verdict, Unit::CoreCycles);
        if !row.required_features.iter().all(has) {
            records.push(record(TestVerdict::new(VerdictKind::None, "this CPU has no such instructions")));
            continue;
        }
        let places = match measure_places(core, map, row) {
            Err(RunError::Unavailable(reason)) => {
                let why = format!("{}: {}", reason.what, reason.why);
                records.push(record(TestVerdict::new(VerdictKind::Unclear, why)));
                continue;
            }
            places => places?,
        };
        let mut record = record(judge_places(map, &places));
        record.places =
            places.into_iter().map(|MeasuredPlace { place, cost, .. }| PlaceRecord { place, cost }).collect();
        records.push(record);
    }
    Ok(records)
}

/// The cost at each place of a row.
fn measure_places(
    core: &mut dyn MeasureCosts,
    map: &CostMapSpec,
    row: &'static MapRow,
) -> Result<Vec<MeasuredPlace>, RunError> {
    let cost = |number| {
        let (cost, each) = measure_agreed_cost(core, map, &row.programs, number)?;
        Ok(MeasuredPlace { place: row.place_at(number), cost, lowest_costs: each })
    };
    (0..row.place_count).map(cost).collect()
}

/// The lower of two costs if they agree, and each program's least cost. Programs that differ are
/// measured again: background load can only raise a cost.
fn measure_agreed_cost(
    core: &mut dyn MeasureCosts,
    map: &CostMapSpec,
    families: &'static [ProgramFamily; 2],
    number: usize,
) -> Result<(Option<f64>, [f64; 2]), RunError> {
    let mut lowest = [f64::INFINITY; 2];
    for _ in 0..MAX_MEASUREMENTS {
        for (family, lowest) in families.iter().zip(&mut lowest) {
            *lowest = core.measure_cost(family, number)?.map_or(*lowest, |point| lowest.min(point.cost));
        }
        let [one, other] = lowest;
        if one.is_finite() && costs_agree(map, one, other) {
            return Ok((Some(one.min(other)), lowest));
        }
    }
    Ok((None, lowest))
}

fn costs_agree(map: &CostMapSpec, one: f64, other: f64) -> bool {
    (one - other).abs() <= map.tolerance.max(map.tolerance_share * one.max(other))
}

/// The least cost and all other costs, each with its places.
fn judge_places(map: &CostMapSpec, places: &[MeasuredPlace]) -> TestVerdict {
    let mut costs: Vec<(f64, isize)> = places.iter().filter_map(|place| Some((place.cost?, place.place))).collect();
    costs.sort_by(|one, other| one.0.total_cmp(&other.0));
    let groups: Vec<&[(f64, isize)]> = costs.chunk_by(|one, other| costs_agree(map, one.0, other.0)).collect();
    let middle = |group: &[(f64, isize)]| median(&mut group.iter().map(|(cost, _)| *cost).collect::<Vec<_>>());
    let step = places.get(1).map_or(1, |second| second.place - places[0].place);
    let describe = |group: &&[(f64, isize)]| {
        format!(
            "{:.1} at {}",
            middle(group).max(0.0),
            list_places(group.iter().map(|(_, place)| *place).collect(), step)
        )
    };
    let mut why: Vec<String> = groups.iter().map(describe).collect();
    // A place that costs more in both programs is no least cost: there a core may match the load
    // with the wrong store and start over.
    let least = costs.first().map_or(f64::INFINITY, |(cost, _)| *cost);
    let dearer = |cost: f64| cost.is_finite() && cost > least && !costs_agree(map, least, cost);
    let (more, unknown): (Vec<&MeasuredPlace>, Vec<&MeasuredPlace>) = places
        .iter()
        .filter(|place| place.cost.is_none())
        .partition(|place| place.lowest_costs.into_iter().all(dearer));
    let at = |places: &[&MeasuredPlace]| list_places(places.iter().map(|place| place.place).collect(), step);
    if !more.is_empty() {
        let each = || more.iter().flat_map(|place| place.lowest_costs);
        let [low, high] = [each().fold(f64::INFINITY, f64::min), each().fold(0.0, f64::max)];
        why.push(format!("{low:.1} to {high:.1}, by program, at {}", at(&more)));
    }
    if !unknown.is_empty() {
        why.push(format!("no two programs agree at {}", at(&unknown)));
    }
    let enough = (costs.len() + more.len()) as f64 >= MIN_KNOWN_SHARE * places.len() as f64;
    let kind = if enough { VerdictKind::Found } else { VerdictKind::Unclear };
    let least = groups.first().filter(|_| enough).map(|group| Interval {
        value: middle(group),
        low: group[0].0,
        high: group[group.len() - 1].0,
    });
    TestVerdict { size: least, ..TestVerdict::new(kind, why.join("; ")) }
}

/// A list of places as text: `-3 to -1, 5`.
fn list_places(mut places: Vec<isize>, step: isize) -> String {
    places.sort_unstable();
    let runs = places.chunk_by(|one, next| next - one == step);
    let text = |run: &[isize]| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first} to {last}"),
        [] => String::new(),
    };
    runs.map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::CostPoint;
    use crate::spec::{StepLoop, straight_loop};

    const MAP: CostMapSpec = CostMapSpec { rows: &[], tolerance: 0.3, tolerance_share: 0.06 };

    fn places(costs: &[Option<f64>]) -> Vec<MeasuredPlace> {
        costs
            .iter()
            .zip(-1..)
            .map(|(cost, place)| MeasuredPlace { place, cost: *cost, lowest_costs: [cost.unwrap_or(4.0), 26.0] })
            .collect()
    }

    #[test]
    fn the_least_cost_is_the_number_and_the_others_are_reported() {
        let found = judge_places(&MAP, &places(&[Some(18.0), Some(5.0), Some(5.1), Some(4.9), Some(18.5), Some(18.2)]));
        assert_eq!(found.why, "5.0 at 0 to 2; 18.2 at -1, 3 to 4");
        assert_eq!(found.size, Some(Interval { value: 5.0, low: 4.9, high: 5.1 }));
        let half = judge_places(&MAP, &places(&[None, Some(5.0), Some(5.0), None]));
        assert_eq!((half.kind, half.size), (VerdictKind::Unclear, None));
        assert_eq!(half.why, "5.0 at 0 to 1; no two programs agree at -1, 2");
        assert_eq!(judge_places(&MAP, &places(&[None])).size, None);
    }

    #[test]
    fn dear_places_do_not_hide_the_least_cost() {
        let mut all = places(&[Some(1.0), Some(19.0), None, None, None]);
        all[2].lowest_costs = [26.0, 42.0];
        all[3].lowest_costs = [25.0, 43.0];
        all[4].lowest_costs = [1.0, 30.0];
        let found = judge_places(&MAP, &all);
        assert_eq!((found.kind, found.size.map(|size| size.value)), (VerdictKind::Found, Some(1.0)));
        assert_eq!(found.why, "1.0 at -1; 19.0 at 0; 25.0 to 43.0, by program, at 1 to 2; no two programs agree at 3");
        all[3].lowest_costs = [f64::INFINITY, 43.0];
        assert_eq!(judge_places(&MAP, &all).kind, VerdictKind::Unclear, "one was never measured");
    }

    /// A core on which the second program costs more at odd places, and every third measurement is
    /// disturbed.
    struct Core(usize);

    impl MeasureCosts for Core {
        fn measure_cost(&mut self, family: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError> {
            self.0 += 1;
            let more = if family.name == "another" && n % 2 == 1 { 2.0 } else { 0.0 };
            let cost = 5.0 + more + if self.0.is_multiple_of(3) { 9.0 } else { 0.0 };
            Ok(Some(CostPoint { n, cost, low: cost, high: cost }))
        }
    }

    #[test]
    fn a_place_has_a_cost_if_both_programs_agree() {
        fn nothing(_: usize) -> StepLoop {
            straight_loop(Vec::new(), 1)
        }
        static WALKS: [ProgramFamily; 2] = [ProgramFamily::new("one", nothing), ProgramFamily::new("another", nothing)];
        let mut core = Core(0);
        let costs: Vec<Option<f64>> =
            (0..4).map(|number| measure_agreed_cost(&mut core, &MAP, &WALKS, number).unwrap().0).collect();
        assert_eq!(costs, [Some(5.0), None, Some(5.0), None]);
    }

    #[test]
    fn what_an_executor_lacks_is_the_reason_for_no_number() {
        use crate::spec::Experiment;
        use cyclescope_core::error::Unavailable;
        /// An executor without a library.
        struct LackingExecutor;
        impl MeasureCosts for LackingExecutor {
            fn measure_cost(&mut self, _: &ProgramFamily, _: usize) -> Result<Option<CostPoint>, RunError> {
                let text = |text: &str| text.to_string();
                let (what, why, remedy) = (text("the library"), text("it is not there"), text("go elsewhere"));
                Err(RunError::Unavailable(Unavailable { what, why, remedy }))
            }
        }
        let test = crate::test_list::find_test("library_copy_offsets");
        let Experiment::CostMap(asked) = &test.experiment else { panic!("it is a map") };
        let records = super::run_cost_map(&mut LackingExecutor, test, asked, &|_| true).expect("the study goes on");
        assert_eq!(records.len(), asked.rows.len());
        for record in records {
            assert_eq!((record.verdict, record.value.value), (VerdictKind::Unclear, None));
            assert!(record.why.contains("the library: it is not there"), "{}", record.why);
        }
    }

    #[test]
    fn rows_without_instructions_on_this_cpu_have_no_number() {
        use crate::spec::Experiment;
        use crate::test_list::TESTS;
        let mut needing = 0;
        for test in TESTS {
            let Experiment::CostMap(asked) = &test.experiment else { continue };
            let records = super::run_cost_map(&mut Core(0), test, asked, &|_| false).expect("all is simulated");
            for (row, record) in asked.rows.iter().zip(&records).filter(|(row, _)| !row.required_features.is_empty()) {
                assert_eq!((record.verdict, record.value.value), (VerdictKind::None, None), "{}", row.name);
                needing += 1;
            }
        }
        assert!(needing > 0);
    }
}
