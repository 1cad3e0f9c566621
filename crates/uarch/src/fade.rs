//! How long a slow start lasts: the time of work since a rest at which work is no longer slow.
//!
//! The time is doubled until the extra cost is less than half of that right behind the rest, and the
//! last interval is halved a few times. A core whose work is not slow right behind a rest has no
//! such time, and is measured once. Two programs have to agree.

use super::cost::{MeasureCosts, measure_median_costs};
use super::record::UarchRecord;
use super::spec::{FadeRow, FadesSpec, ProgramFamily, TestSpec};
use super::verdict::{TestVerdict, VerdictKind};
use cyclescope_core::error::RunError;
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;
use iced_x86::CpuidFeature;

/// How often the last interval is halved.
const HALVINGS: usize = 3;
/// Share by which the times of two programs may differ.
const SAME_SHARE: f64 = 0.25;

/// Measures each kind of work that this CPU can do.
pub(super) fn run_fades(
    core: &mut dyn MeasureCosts,
    test: &'static TestSpec,
    fades: &'static FadesSpec,
    has: &dyn Fn(&CpuidFeature) -> bool,
) -> Result<Vec<UarchRecord>, RunError> {
    let of_row = |row: &'static FadeRow| {
        let verdict = match row.required_features.iter().all(has) {
            true => measure_fade(core, fades, row)?,
            false => TestVerdict::new(VerdictKind::None, "this CPU has no such instructions"),
        };
        Ok(UarchRecord::new(test, format!("{}.{}", test.name, row.name), verdict, Unit::CoreCycles))
    };
    fades.rows.iter().map(of_row).collect()
}

fn measure_fade(
    core: &mut dyn MeasureCosts,
    fades: &FadesSpec,
    row: &'static FadeRow,
) -> Result<TestVerdict, RunError> {
    let mut starts = Vec::new();
    for family in &row.programs {
        match core.measure_cost(family, 0)? {
            Some(point) => starts.push((family.label(), point.cost)),
            None => {
                return Ok(TestVerdict::new(VerdictKind::Unclear, "other work disturbed all of a program's layouts"));
            }
        }
    }
    let why = starts.iter().map(|(name, cost)| format!("{name} {cost:.1}")).collect::<Vec<_>>().join(", ");
    let slow = starts.iter().filter(|(_, cost)| *cost >= fades.tolerance).count();
    if slow == 0 {
        return Ok(TestVerdict::new(VerdictKind::None, format!("work behind a rest is not slow: {why}")));
    }
    if slow < starts.len() {
        return Ok(TestVerdict::new(VerdictKind::Unclear, format!("one program alone is slow behind a rest: {why}")));
    }
    let mut times = Vec::new();
    for (family, (name, start)) in row.programs.iter().zip(&starts) {
        match find_end(core, family, start / 2.0, fades.time_range)? {
            Some(time) => times.push((name, time)),
            None => {
                let most = fades.time_range[1];
                let why = format!("{name} is slow for more than {most} core cycles, or was disturbed");
                return Ok(TestVerdict::new(VerdictKind::Unclear, why));
            }
        }
    }
    Ok(judge_times(&times))
}

/// The time at which a program's extra cost falls below a limit: the last slow one and the first
/// one that is not.
fn find_end(
    core: &mut dyn MeasureCosts,
    family: &'static ProgramFamily,
    limit: f64,
    [least, most]: [usize; 2],
) -> Result<Option<[usize; 2]>, RunError> {
    let mut is_slow = |time: usize| -> Result<Option<bool>, RunError> {
        Ok(measure_median_costs(core, &[family], time)?[0].map(|point| point.cost > limit))
    };
    let [mut slow, mut fast] = [0, least];
    loop {
        match is_slow(fast)? {
            None => return Ok(None),
            Some(false) => break,
            Some(true) if fast >= most => return Ok(None),
            Some(true) => [slow, fast] = [fast, (2 * fast).min(most)],
        }
    }
    for _ in 0..HALVINGS {
        let middle = (slow + fast) / 2;
        match is_slow(middle)? {
            None => return Ok(None),
            Some(true) => slow = middle,
            Some(false) => fast = middle,
        }
    }
    Ok(Some([slow, fast]))
}

fn judge_times(times: &[(&String, [usize; 2])]) -> TestVerdict {
    let why =
        times.iter().map(|(name, [slow, fast])| format!("{name} {slow} to {fast}")).collect::<Vec<_>>().join(", ");
    let ends = |place: usize| times.iter().map(move |(_, time)| time[place] as f64);
    let [low, high] = [ends(0).fold(f64::INFINITY, f64::min), ends(1).fold(0.0, f64::max)];
    let middles: Vec<f64> = times.iter().map(|(_, [slow, fast])| (slow + fast) as f64 / 2.0).collect();
    let (least, most) =
        middles.iter().fold((f64::INFINITY, 0f64), |(least, most), time| (least.min(*time), most.max(*time)));
    let meet = ends(0).fold(0.0, f64::max) <= ends(1).fold(f64::INFINITY, f64::min);
    if !meet && most - least > SAME_SHARE * most {
        return TestVerdict::new(VerdictKind::Unclear, format!("no two programs agree: {why}"));
    }
    let size = Some(Interval { value: (least + most) / 2.0, low, high });
    TestVerdict { size, ..TestVerdict::new(VerdictKind::Found, why) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::CostPoint;
    use crate::spec::Experiment;
    use crate::test_list::find_test;

    /// A core whose units are slow for this time, by program, and how much slower.
    struct WakingUnits {
        times: [usize; 2],
        extra: f64,
        measured: usize,
    }

    impl MeasureCosts for WakingUnits {
        fn measure_cost(&mut self, family: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError> {
            let program = fades().1.rows[0].programs.iter().position(|own| std::ptr::eq(own, family));
            self.measured += 1;
            let slow = n < self.times[program.unwrap_or(1)];
            let cost = if slow { self.extra } else { 0.1 };
            Ok(Some(CostPoint { n, cost, low: cost, high: cost }))
        }
    }

    fn fades() -> (&'static TestSpec, &'static FadesSpec) {
        let test = find_test("wake_up_time");
        let Experiment::Fades(fades) = &test.experiment else { unreachable!("it is one of slow starts") };
        (test, fades)
    }

    fn first(times: [usize; 2], extra: f64) -> (UarchRecord, usize) {
        let (test, fades) = fades();
        let mut core = WakingUnits { times, extra, measured: 0 };
        let records = run_fades(&mut core, test, fades, &|feature| *feature != CpuidFeature::AVX512F);
        (records.expect("it has costs").remove(0), core.measured)
    }

    #[test]
    fn the_time_of_a_slow_start_is_found() {
        for planted in [900, 5_000, 42_000, 60_000, 200_000] {
            let (record, _) = first([planted; 2], 60.0);
            let [value, low, high] =
                [record.value.value, record.value.low, record.value.high].map(|number| number.expect("it was found"));
            assert!(low <= planted as f64 && planted as f64 <= high, "{planted}: {low} to {high}");
            assert!((value / planted as f64 - 1.0).abs() < 0.2, "{value}, not {planted}");
        }
    }

    #[test]
    fn units_that_do_not_rest_have_no_time_and_take_few_measurements() {
        let (record, measured) = first([42_000; 2], 1.0);
        assert_eq!((record.verdict, record.value.value), (VerdictKind::None, None), "{}", record.why);
        assert!(measured <= 4, "{measured}");
    }

    #[test]
    fn programs_that_differ_or_stay_slow_have_no_time() {
        for times in [[5_000, 42_000], [usize::MAX; 2]] {
            let (record, _) = first(times, 60.0);
            assert_eq!((record.verdict, record.value.value), (VerdictKind::Unclear, None), "{}", record.why);
        }
    }
}
