//! How much more room code takes in a structure: the largest number of its instructions that run as
//! fast as few, and that number of other code.
//!
//! The end is searched by halving: few instructions are fast, and the most are slow, or else the
//! core shows no end. The ratio of both ends is the room. Two pairs of programs have to agree. A
//! structure that holds windows of code is full in part, so the room is that of the measured
//! mixture, and not of one instruction.

use super::cost::{MeasureCosts, measure_median_costs};
use super::record::UarchRecord;
use super::spec::{ProgramFamily, RoomRow, RoomsSpec, TestSpec};
use super::verdict::{TestVerdict, VerdictKind};
use cyclescope_core::error::RunError;
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;

/// Share by which equal rooms may differ.
const SAME_SHARE: f64 = 0.04;
/// Share by which code of the same speed may differ.
const SAME_SPEED: f64 = 0.1;

/// Why a program has no end.
type NoEnd = String;

/// Measures the ends of each row's programs, and compares them.
pub(super) fn run_rooms(
    core: &mut dyn MeasureCosts,
    test: &'static TestSpec,
    rooms: &'static RoomsSpec,
) -> Result<Vec<UarchRecord>, RunError> {
    let mut records = Vec::new();
    for row in rooms.rows {
        let mut verdict = measure_room(core, rooms, row)?;
        // A search goes astray where a measurement was disturbed.
        if verdict.kind == VerdictKind::Unclear {
            verdict = measure_room(core, rooms, row)?;
        }
        records.push(UarchRecord::new(test, format!("{}.{}", test.name, row.name), verdict, Unit::Ratio));
    }
    Ok(records)
}

fn measure_room(
    core: &mut dyn MeasureCosts,
    rooms: &RoomsSpec,
    row: &'static RoomRow,
) -> Result<TestVerdict, RunError> {
    let mut found = Vec::new();
    for (large, small) in row.large.iter().zip(&row.small) {
        let mut ends = Vec::new();
        for family in [large, small] {
            match find_end(core, rooms, family)? {
                Ok(end) => ends.push(end as f64),
                Err(why) => return Ok(TestVerdict::new(VerdictKind::Unclear, format!("{}: {why}", family.label()))),
            }
        }
        found.push((large.label(), ends[1] / ends[0], [ends[0], ends[1]]));
    }
    Ok(judge_room(&found, rooms.count_step as f64))
}

/// The largest number of instructions that are fast.
fn find_end(
    core: &mut dyn MeasureCosts,
    rooms: &RoomsSpec,
    family: &'static ProgramFamily,
) -> Result<Result<usize, NoEnd>, RunError> {
    let median_cost = |core: &mut dyn MeasureCosts, n: usize| -> Result<Option<f64>, RunError> {
        Ok(measure_median_costs(core, &[family], n)?[0].map(|point| point.cost))
    };
    let disturbed = || Ok(Err("other work disturbed all of its layouts".to_string()));
    let step = rooms.count_step;
    let [mut fast, mut slow] = rooms.count_range.map(|n| n / step);
    let (Some(least), Some(most)) = (median_cost(core, fast * step)?, median_cost(core, slow * step)?) else {
        return disturbed();
    };
    if most < rooms.min_ratio * least {
        let why = format!("{least:.2} core cycles a step at {}, and {most:.2} at {}", fast * step, slow * step);
        return Ok(Err(format!("it shows no end: {why}")));
    }
    let limit = (least + most) / 2.0;
    let mut fast_cost = least;
    while slow - fast > 1 {
        let middle = (slow + fast) / 2;
        let Some(cost) = core.measure_cost(family, middle * step)?.map(|point| point.cost) else { return disturbed() };
        if cost < limit {
            (fast, fast_cost) = (middle, cost);
        } else {
            slow = middle;
        }
    }
    // Fast code is as fast as the shortest. Otherwise the rise is no end of one structure.
    if fast_cost > (1.0 + SAME_SPEED) * least {
        return Ok(Err(format!(
            "its cost rises gradually: {least:.2} to {fast_cost:.2} core cycles a step at {}",
            fast * step
        )));
    }
    Ok(Ok(fast * step))
}

/// The room of the first code in units of the other's, of each pair of programs.
fn judge_room(found: &[(String, f64, [f64; 2])], step: f64) -> TestVerdict {
    let text = |(name, _, [own, other]): &(String, f64, [f64; 2])| {
        format!("{name} {own:.0} instructions, and {other:.0} of the other code")
    };
    let why = found.iter().map(text).collect::<Vec<_>>().join("; ");
    let ratios = || found.iter().map(|(_, ratio, _)| *ratio);
    let [least, most] = [ratios().fold(f64::INFINITY, f64::min), ratios().fold(0.0, f64::max)];
    if most - least > SAME_SHARE * most {
        return TestVerdict::new(VerdictKind::Unclear, format!("no two programs agree: {why}"));
    }
    if most < 1.0 - SAME_SHARE {
        return TestVerdict::new(VerdictKind::Unclear, format!("the other code takes more room: {why}"));
    }
    if most < 1.0 + SAME_SHARE {
        return TestVerdict::new(VerdictKind::None, format!("it takes no more room: {why}"));
    }
    // Each end lies between two measured numbers.
    let low = found.iter().map(|(_, _, [own, other])| other / (own + step)).fold(f64::INFINITY, f64::min);
    let high = found.iter().map(|(_, _, [own, other])| (other + step) / own).fold(0.0, f64::max);
    let size = Some(Interval { value: (least + most) / 2.0, low, high });
    TestVerdict { size, ..TestVerdict::new(VerdictKind::Found, why) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::CostPoint;
    use crate::spec::Experiment;
    use crate::test_list::find_test;

    /// A core whose cache holds this many instructions, by the row, the program of a pair, and
    /// whether they have long constants.
    struct SimulatedRoom<F>(F, f64);

    fn rows() -> (&'static TestSpec, &'static RoomsSpec) {
        let test = find_test("constant_room");
        let Experiment::Rooms(rooms) = &test.experiment else { unreachable!("it is one of rooms") };
        (test, rooms)
    }

    impl<F: Fn(usize, usize, bool) -> usize> MeasureCosts for SimulatedRoom<F> {
        fn measure_cost(&mut self, family: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError> {
            let place = |all: &[ProgramFamily; 2]| all.iter().position(|own| std::ptr::eq(own, family));
            let find = |(row, room): (usize, &RoomRow)| match (place(&room.large), place(&room.small)) {
                (Some(program), _) => Some((row, program, true)),
                (_, Some(program)) => Some((row, program, false)),
                _ => None,
            };
            let (row, program, large) = rows().1.rows.iter().enumerate().find_map(find).expect("it is a row's program");
            let cost = if n <= (self.0)(row, program, large) { 4.0 } else { 4.0 * self.1 };
            Ok(Some(CostPoint { n, cost, low: cost, high: cost }))
        }
    }

    fn rooms(cache: impl Fn(usize, usize, bool) -> usize, slower: f64) -> Vec<UarchRecord> {
        let (test, rooms) = rows();
        run_rooms(&mut SimulatedRoom(cache, slower), test, rooms).expect("it has costs")
    }

    #[test]
    fn the_room_of_constants_is_the_ratio_of_both_ends() {
        for (row, record) in rooms(|row, _, large| if large { 3000 + 400 * row } else { 6000 }, 2.0).iter().enumerate()
        {
            let planted = 6000.0 / (3000 + 400 * row) as f64;
            let [low, high] = [record.value.low, record.value.high].map(|edge| edge.expect("it was found"));
            assert!(low <= planted && planted <= high && high / low < 1.03, "{}: {low} to {high}", record.what);
        }
    }

    #[test]
    fn equal_ends_are_no_room_and_others_are_unclear() {
        let verdicts = |records: Vec<UarchRecord>| {
            let all: Vec<VerdictKind> = records.iter().map(|record| record.verdict).collect();
            assert!(all.iter().all(|kind| *kind == all[0]) && records.iter().all(|record| !record.why.is_empty()));
            all[0]
        };
        assert_eq!(verdicts(rooms(|_, _, _| 5000, 2.0)), VerdictKind::None);
        assert_eq!(verdicts(rooms(|_, _, large| if large { 3000 } else { 6000 }, 1.1)), VerdictKind::Unclear);
        assert_eq!(verdicts(rooms(|_, _, large| if large { 3000 } else { 20_000 }, 2.0)), VerdictKind::Unclear);
        assert_eq!(verdicts(rooms(|_, _, large| if large { 6000 } else { 3000 }, 2.0)), VerdictKind::Unclear);
        let differ = |_, program, large| if large { 3000 + 1000 * program } else { 6000 };
        assert_eq!(verdicts(rooms(differ, 2.0)), VerdictKind::Unclear);
    }
}
