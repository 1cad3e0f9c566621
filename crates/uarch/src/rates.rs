//! Rates per core cycle, from the cost of independent steps; or that cost itself, if each step
//! waits for the one before.
//!
//! A rate needs two different programs that agree. It is the larger of their rates: other limits
//! may slow one down (background load, the place of its code, other ports that it uses), but
//! nothing exceeds the core's rate. If one program is faster than all others there is no number,
//! except for instructions that some cores pack. A cost is the smaller of two, for the same reason.

use super::cost::{CostPoint, MeasureCosts};
use super::cpu_resources::CpuResources;
use super::record::{RateRecord, UarchRecord};
use super::shared_figures::{CostPass, measure_settled_costs};
use super::spec::{ProgramFamily, ProgramVariant, RatesSpec, TestRow, TestSpec};
use super::verdict::{TestVerdict, VerdictKind};
use cyclescope_core::error::RunError;
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;
use cyclescope_measure::result::record::Quantity;
use std::fmt::Display;

/// The least tolerance for equal numbers, in items per cycle or core cycles. The test's share
/// applies if it is larger.
const MIN_TOLERANCE: f64 = 0.05;

/// From this tolerance on, a test uses memory that background load uses too.
const SHARED_TOLERANCE: f64 = 0.1;
/// The largest relative width of a result whose programs agree only within their layouts.
const WIDE_MOST: f64 = 0.3;

/// Share by which steps of a full rate may be slower than the fastest.
const FULL_RATE_SHARE: f64 = 0.1;

/// If a rate depends on the place of the code, the smallest one must be at least this share of the
/// largest. Below that, background load may have slowed it down.
const VARIES_MOST: f64 = 0.5;

/// The name of a program, and its rate or cost.
type MeasuredRate<N = String> = (N, Interval);

/// Measures each row's programs that this CPU can run within this memory, and judges them.
pub(super) fn run_rates(
    core: &mut dyn MeasureCosts,
    test: &'static TestSpec,
    rates: &'static RatesSpec,
    cpu: &CpuResources,
) -> Result<Vec<UarchRecord>, RunError> {
    let mut records = Vec::new();
    for row in rates.rows {
        let variants: Vec<&ProgramVariant> = row.runnable_variants(cpu.has).collect();
        let done = if rates.has_room(row, cpu.memory) {
            measure_row(core, row, rates.unit, &variants, cpu.passes_of(test, row))?
        } else {
            Err("there is not so much memory".to_string())
        };
        let verdict = match &done {
            _ if variants.is_empty() => TestVerdict::new(VerdictKind::None, "this CPU has no such instructions"),
            Err(why) => TestVerdict::new(VerdictKind::Unclear, why.clone()),
            Ok(done) => judge_rates(done, variants.len(), rates, row.varies_by_place),
        };
        let mut record = UarchRecord::new(test, row.record_key(test.name), verdict, rates.unit);
        let each = done.into_iter().flatten();
        let of_one = |(name, rate)| RateRecord { name, n: row.n, rate: Quantity::new(rate, rates.unit) };
        record.rates = each.map(of_one).collect();
        record.told = cpu.describe_times(test, row).filter(|_| record.verdict == VerdictKind::Found);
        records.push(record);
    }
    if let Some(end) = rates.full_rate_end {
        let verdict = judge_rate_end(rates, &records);
        let record = UarchRecord::new(test, format!("{}.{}", test.name, end.name), verdict, end.unit);
        records.push(UarchRecord { definition: end.definition.into(), ..record });
    }
    Ok(records)
}

/// The count of the last row before the first whose steps are slower than the fastest before them.
/// All rows up to that one have to be known.
fn judge_rate_end(rates: &RatesSpec, records: &[UarchRecord]) -> TestVerdict {
    let (mut fastest, mut last) = (0f64, None);
    for (row, record) in rates.rows.iter().zip(records) {
        let Some(rate) = record.value.value.filter(|_| record.verdict == VerdictKind::Found) else {
            return TestVerdict::new(VerdictKind::Unclear, format!("the rate of {} is not known", row.name));
        };
        let steps = rate / row.amount_per_step;
        if steps < (1.0 - FULL_RATE_SHARE) * fastest {
            let n: f64 = last.unwrap_or_default();
            let why = format!("{fastest:.2} per cycle up to there, and {steps:.2} at {}", row.n);
            let size = Some(Interval { value: n, low: n, high: n });
            return TestVerdict { size, ..TestVerdict::new(VerdictKind::Found, why) };
        }
        (fastest, last) = (fastest.max(steps), Some(row.n as f64));
    }
    TestVerdict::new(VerdictKind::None, format!("{fastest:.2} per cycle at all counts"))
}

/// The results of a row's programs, the fastest first; or why its memory is unavailable.
fn measure_row(
    core: &mut dyn MeasureCosts,
    row: &TestRow,
    unit: Unit,
    variants: &[&'static ProgramVariant],
    earlier: &[CostPass],
) -> Result<Result<Vec<MeasuredRate>, String>, RunError> {
    let families: Vec<&ProgramFamily> = variants.iter().map(|variant| &variant.family).collect();
    let points = match measure_settled_costs(core, &families, row.n, earlier) {
        Err(RunError::Unavailable(reason)) => return Ok(Err(format!("{}: {}", reason.what, reason.why))),
        points => points?,
    };
    // The cost must surely exceed zero, or noise is as large as a step.
    let sure = |point: Option<CostPoint>| point.filter(|point| point.low > 0.0);
    let each = families.iter().zip(points);
    let mut points: Vec<_> = each.filter_map(|(family, point)| Some((family.label(), sure(point)?))).collect();
    points.sort_by(|(_, one), (_, other)| one.cost.total_cmp(&other.cost));
    Ok(Ok(points.into_iter().map(|(name, point)| (name, rate_or_cost(&point, row.amount_per_step, unit))).collect()))
}

/// The rate of steps with `each` items, or the core cycles of one item.
fn rate_or_cost(point: &CostPoint, each: f64, unit: Unit) -> Interval {
    let CostPoint { cost, low, high, .. } = *point;
    let [value, low, high] = match unit {
        Unit::CoreCycles => [cost, low, high].map(|cost| cost / each),
        _ => [cost, high, low].map(|cost| each / cost),
    };
    Interval { value, low, high }
}

/// The result of the fastest two programs that agree. `done` is in descending order. If it `varies`
/// by place, the interval spans all programs and layouts.
fn judge_rates<N: Display>(done: &[MeasuredRate<N>], programs: usize, rates: &RatesSpec, varies: bool) -> TestVerdict {
    let agree = |pair: &&[MeasuredRate<N>]| {
        let [faster, slower] = [pair[0].1, pair[1].1];
        let most = faster.value.max(slower.value);
        let near = (faster.value - slower.value).abs() <= MIN_TOLERANCE.max(rates.tolerance_share * most);
        // Layouts with background load on memory differ by more than the programs.
        let meet = rates.tolerance_share >= SHARED_TOLERANCE && faster.low <= slower.high && slower.low <= faster.high;
        let narrow = faster.high.max(slower.high) - faster.low.min(slower.low) <= WIDE_MOST * most;
        near || meet && narrow
    };
    let tried = if rates.allow_outlier { done.len() } else { done.len().min(2) };
    // The disturbed program may be the fastest.
    let measured = &done[..if done.len() < programs { 0 } else { tried }];
    if let Some([(_, faster), (_, slower)]) = measured.windows(2).find(agree) {
        let size = Interval { low: slower.low.min(faster.low), high: slower.high.max(faster.high), ..*faster };
        return TestVerdict { size: Some(size), ..TestVerdict::new(VerdictKind::Found, describe_rates(done)) };
    }
    let edge = |field: fn(&Interval) -> f64| done.iter().map(move |(_, number)| field(number));
    let [low, high] =
        [edge(|number| number.low).fold(f64::INFINITY, f64::min), edge(|number| number.high).fold(0.0, f64::max)];
    if let Some((_, first)) = measured.first().filter(|_| varies && low >= VARIES_MOST * high) {
        let why = format!("it depends on the place of the code: {}", describe_rates(done));
        return TestVerdict {
            size: Some(Interval { low, high, ..*first }),
            ..TestVerdict::new(VerdictKind::Found, why)
        };
    }
    let why = match done.len() < programs {
        true => "other work disturbed all of a program's layouts".to_string(),
        false => format!("no two programs agree in the most: {}", describe_rates(done)),
    };
    TestVerdict::new(VerdictKind::Unclear, why)
}

fn describe_rates<N: Display>(done: &[MeasuredRate<N>]) -> String {
    done.iter().map(|(name, rate)| format!("{name} {:.2}", rate.value)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Experiment, StepLoop, TestedPart, straight_loop};
    use crate::test_list::TESTS;
    use iced_x86::{CpuidFeature, Decoder, DecoderOptions};

    fn nothing(_: usize) -> StepLoop {
        straight_loop(Vec::new(), 1)
    }

    const ROW: TestRow = TestRow {
        name: "64_bytes",
        n: 64,
        amount_per_step: 64.0,
        variants: &[
            ProgramVariant::new("one", nothing),
            ProgramVariant::new("two", nothing).requiring(&[CpuidFeature::AVX]),
            ProgramVariant::new("three", nothing).requiring(&[CpuidFeature::AVX]),
            ProgramVariant::new("old", nothing).excluding(CpuidFeature::AVX),
        ],
        required_features: &[],
        bounding_test: None,
        may_be_hidden: false,
        varies_by_place: false,
        uses_shared_memory: false,
    };
    const SIMULATED_RATES: RatesSpec = RatesSpec { bytes_per_n: 1, ..RatesSpec::new(Unit::BytesPerCycle, &[ROW]) };
    static SIMULATED: TestSpec = TestSpec {
        name: "simulated",
        answers: &[],
        about: "",
        definition: "",
        source: "",
        part: TestedPart::Memory,
        experiment: Experiment::Rates(SIMULATED_RATES),
    };

    /// A core on which a step of each program costs this much; NaN means that it can't be measured.
    struct Core(&'static [(&'static str, f64)]);

    impl MeasureCosts for Core {
        fn measure_cost(&mut self, family: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError> {
            let cost = self.0.iter().find(|(name, _)| *name == family.name).map_or(f64::NAN, |(_, cost)| *cost);
            let point = CostPoint { n, cost, low: 0.99 * cost, high: 1.01 * cost };
            Ok(Some(point).filter(|_| !cost.is_nan()))
        }
    }

    fn record(costs: &'static [(&'static str, f64)], avx: bool, memory: u64) -> UarchRecord {
        let Experiment::Rates(asked) = &SIMULATED.experiment else { panic!("it is one of rates") };
        let cpu = CpuResources { has: &|_| avx, memory, shared: None };
        run_rates(&mut Core(costs), &SIMULATED, asked, &cpu).unwrap().remove(0)
    }

    #[test]
    fn the_count_up_to_which_steps_are_as_fast_is_found() {
        let test = crate::test_list::find_test("fetch_rate");
        let Experiment::Rates(rates) = &test.experiment else { panic!("it is one of rates") };
        // Decoders that take this many instructions and bytes in a cycle.
        struct LimitedDecoders(f64, f64);
        impl MeasureCosts for LimitedDecoders {
            fn measure_cost(&mut self, _: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError> {
                let cost = (1.0 / self.0).max(n as f64 / self.1);
                Ok(Some(CostPoint { n, cost, low: 0.99 * cost, high: 1.01 * cost }))
            }
        }
        let cpu = CpuResources { has: &|_| true, memory: u64::MAX, shared: None };
        for (width, bytes, length) in
            [(4.0, 16.0, Some(4.0)), (6.0, 32.0, Some(5.0)), (4.0, 32.0, Some(8.0)), (1.0, 16.0, None)]
        {
            let records = run_rates(&mut LimitedDecoders(width, bytes), test, rates, &cpu).expect("all is simulated");
            let [.., longest, end] = &records[..] else { panic!("{} records", records.len()) };
            assert_eq!((end.what.as_str(), end.value.value), ("fetch_rate.full_length", length), "{}", end.why);
            assert!((longest.value.value.expect("a rate") - bytes.min(15.0 * width)).abs() < 0.01, "{}", longest.why);
        }
    }

    #[test]
    fn a_rate_is_the_largest_that_two_programs_reach() {
        let found = record(&[("one", 0.6), ("two", 0.5), ("three", 0.51)], true, 64);
        assert_eq!((found.verdict, found.value.value), (VerdictKind::Found, Some(128.0)));
        let [low, high] = [found.value.low.unwrap(), found.value.high.unwrap()];
        assert!((low - 64.0 / (0.51 * 1.01)).abs() < 1e-9 && (high - 128.0 / 0.99).abs() < 1e-9);
        let expected = ("simulated.64_bytes", "two 128.00, three 125.49, one 106.67");
        assert_eq!((found.what.as_str(), found.why.as_str()), expected);
        assert_eq!(found.rates.iter().map(|rate| (rate.name.as_str(), rate.n)).next(), Some(("two", 64)));
    }

    #[test]
    fn programs_that_differ_or_were_not_measured_prove_no_number() {
        for (costs, why) in [
            (&[("one", 0.25), ("two", 0.5), ("three", 0.51)][..], "no two programs agree"),
            (&[("one", 0.5), ("two", 0.55), ("three", 0.55)], "no two programs agree"),
            (&[("one", 0.5)], "disturbed"),
            (&[("one", 0.5), ("two", 0.5)], "disturbed"),
            (&[("one", 0.5), ("two", -0.001), ("three", 0.001)], "disturbed"),
        ] {
            let unclear = record(costs, true, 64);
            let judged = (unclear.verdict, unclear.value.value, unclear.why.contains(why));
            assert_eq!(judged, (VerdictKind::Unclear, None, true), "{}", unclear.why);
        }
        assert_eq!(record(&[("one", 0.5), ("two", 0.5)], true, 63).why, "there is not so much memory");
    }

    #[test]
    fn programs_agree_if_their_layouts_differ_by_more() {
        let rate = |value, low, high| Interval { value, low, high };
        let sizes = |done: &[MeasuredRate<&str>]| {
            judge_rates(done, done.len(), &RatesSpec { tolerance_share: 0.1, ..SIMULATED_RATES }, false).size
        };
        let found = sizes(&[("one", rate(6.0, 5.2, 6.3)), ("two", rate(5.3, 5.0, 5.6))]);
        assert_eq!(found, Some(rate(6.0, 5.0, 6.3)));
        assert_eq!(sizes(&[("one", rate(6.0, 5.8, 6.3)), ("two", rate(5.3, 5.0, 5.6))]), None);
        assert_eq!(sizes(&[("one", rate(6.0, 4.0, 6.3)), ("two", rate(5.0, 4.0, 5.6))]), None);
    }

    #[test]
    fn a_rate_that_depends_on_place_has_an_interval() {
        let rate = |value, low, high| Interval { value, low, high };
        let size = |second, varies| {
            let done = [("one", rate(3.0, 2.9, 3.0)), ("two", second)];
            judge_rates(&done, 2, &SIMULATED_RATES, varies).size
        };
        let second = rate(2.4, 2.1, 2.9);
        assert_eq!([size(second, true), size(second, false)], [Some(rate(3.0, 2.1, 3.0)), None]);
        assert_eq!(size(rate(1.6, 1.4, 2.9), true), None, "that may be other work");
    }

    #[test]
    fn one_program_may_be_faster_if_cores_pack_its_instructions() {
        let rate = |value| Interval { value, low: value, high: value };
        let done = [("packed", rate(12.0)), ("one", rate(6.0)), ("two", rate(5.9))];
        assert_eq!(
            judge_rates(&done, 3, &RatesSpec { allow_outlier: true, ..SIMULATED_RATES }, false)
                .size
                .map(|size| size.value),
            Some(6.0)
        );
        assert_eq!(judge_rates(&done, 3, &SIMULATED_RATES, false).size, None);
    }

    #[test]
    fn a_cost_is_the_smallest_on_which_two_programs_agree() {
        let rate = |value| Interval { value, low: 0.9 * value, high: 1.1 * value };
        let costs = RatesSpec { unit: Unit::CoreCycles, ..SIMULATED_RATES };
        let found = |costs_of: [f64; 3]| judge_rates(&costs_of.map(|cost| ("", rate(cost))), 3, &costs, false).size;
        let [agree, differ] = [found([5.0, 5.02, 7.0]), found([5.0, 6.0, 6.01])];
        let size = agree.expect("two agree");
        assert_eq!((size.value, size.low, differ), (5.0, 4.5, None));
        let point = CostPoint { n: 1, cost: 12.0, low: 11.0, high: 14.0 };
        let two = rate_or_cost(&point, 2.0, Unit::CoreCycles);
        assert_eq!([two.low, two.value, two.high], [5.5, 6.0, 7.0]);
        let rate = rate_or_cost(&point, 6.0, Unit::PerCycle);
        assert_eq!([rate.low, rate.value, rate.high], [6.0 / 14.0, 0.5, 6.0 / 11.0]);
    }

    #[test]
    fn a_row_needs_its_cpu_features() {
        let row = ROW.requiring(&[CpuidFeature::AVX512F]);
        assert_eq!([true, false].map(|has| row.runnable_variants(|_| has).count()), [3, 0]);
    }

    #[test]
    fn only_runnable_programs_are_measured() {
        let all = &[("one", 0.5), ("two", 0.25), ("three", 0.25), ("old", 0.5)];
        assert_eq!(record(all, true, 64).value.value, Some(256.0));
        assert_eq!(record(all, false, 64).value.value, Some(128.0));
    }

    #[test]
    fn every_row_has_two_programs_or_none_on_each_cpu() {
        for test in TESTS {
            for row in test.rows() {
                let numbers = [true, false].map(|has| row.runnable_variants(|_| has).count());
                assert!(numbers[0] >= 2 && numbers[1] != 1, "{}.{}: {numbers:?}", test.name, row.name);
                for variant in row.variants {
                    let steps = variant.family.program(row.n);
                    assert!(
                        steps.steps_per_iteration > 0 && !steps.body.is_empty(),
                        "{} {}",
                        test.name,
                        variant.family.label()
                    );
                }
            }
        }
    }

    #[test]
    fn every_program_names_the_features_that_it_needs() {
        use CpuidFeature as F;
        const EVERYWHERE: [CpuidFeature; 9] =
            [F::INTEL8086, F::INTEL386, F::INTEL486, F::X64, F::FPU, F::CMOV, F::MULTIBYTENOP, F::SSE, F::SSE2];
        let check = |name: &str, steps: StepLoop, needs: &[CpuidFeature]| {
            let all = [steps.init, steps.body, steps.following].concat();
            for instruction in &mut Decoder::new(64, &all, DecoderOptions::NONE) {
                let known = |feature: &&CpuidFeature| EVERYWHERE.iter().chain(needs).any(|one| one == *feature);
                let other = instruction.cpuid_features().iter().find(|feature| !known(feature));
                assert_eq!(other, None, "{name}: {instruction}");
            }
        };
        for test in TESTS {
            for row in test.rows() {
                for variant in row.variants {
                    for steps in std::iter::once(variant.family.program(row.n)).chain(variant.family.control(row.n)) {
                        let name = format!("{}.{}, {}", test.name, row.name, variant.family.label());
                        check(&name, steps, &[variant.required_features, row.required_features].concat());
                    }
                }
            }
            let Experiment::CostMap(map) = &test.experiment else { continue };
            for row in map.rows {
                for variant in &row.programs {
                    check(row.name, variant.program(0), row.required_features);
                }
            }
        }
    }
}
