//! The report: figures of each region.

use crate::calibration::{BEYOND, Calibration};
use crate::histogram::Histogram;
use crate::nested_overhead::NestedOverhead;
use crate::pair::Pair;
use crate::region_figures::RegionFigures;
use crate::thread::{self, Method};
use crate::unit::CoreCycles;
use core::fmt;
use std::string::{String, ToString};
use std::sync::atomic::Ordering;
use std::vec::Vec;

/// Standard deviations on each side of the mean in 95 % of a normal distribution.
const NORMAL: f64 = 1.96;
/// Executions far beyond this share of all are disturbed. Half would be too few: the executions of a
/// recursive region take as many times longer as there are levels.
const USUAL: f64 = 0.75;
/// With fewer executions the distribution is unknown.
const FEW: u64 = 100;
/// With this number of executions in which none is timed, their mean is the total. Their deviation is
/// known to an eighth.
const ENOUGH_ALONE: u64 = 30;
/// Cycles of an untimed execution: some fifteen instructions, by four a cycle. Code around hides most.
const UNTIMED: f64 = 4.0;
/// A caveat is reported above this share of the executions.
const SOME: f64 = 0.05;
/// An execution of fewer steps of the clock is too short for it.
const STEPS: f64 = 20.0;

/// A number with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The number.
    pub value: CoreCycles,
    /// Ends of the interval. They cover the errors of the sample and of the ruler, the part of a
    /// pair that different code hides, and both for each execution of a region within.
    pub interval: [CoreCycles; 2],
}

impl Estimate {
    /// The same number less some cycles, by which `total` is less than it was. The interval keeps its
    /// ends, which allow for them, unless the number with the errors of the total is beyond.
    fn less(self, cycles: f64, total: &Estimate) -> Estimate {
        let value = CoreCycles(self.value.0 - cycles);
        let [low, high] = self.interval.map(|end| end.0);
        let [few, many] = total.interval.map(|end| end.0 - total.value.0);
        Estimate { value, interval: [low.min(value.0 + few), high.max(value.0 + many)].map(CoreCycles) }
    }
}

/// A region's figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Name of the region.
    pub name: String,
    /// Number of executions.
    pub count: u64,
    /// Cycles of an undisturbed execution, with the regions in it but without what timing them
    /// costs: the mean of executions that are not far beyond three quarters of all. If there are
    /// enough in which the others were not timed, of these.
    pub cycles: Estimate,
    /// The same outside the regions in it. Without any it equals `cycles`. Of regions that overlap,
    /// neither in the other, it is the lesser part.
    pub own: Estimate,
    /// Executions of regions that ended in an execution.
    pub within: f64,
    /// Mean of all executions.
    pub mean: CoreCycles,
    /// Cycles that 5, 25, 50, 75, 95 and 99 % of the executions do not exceed.
    pub quantiles: [CoreCycles; 6],
    /// Most cycles of one execution.
    pub most: CoreCycles,
    /// Executions that began on one CPU and ended on another: the difference of two TSCs is in their
    /// cycles. Known on processors with RDPID; elsewhere 0. The first one of a thread may have moved
    /// before it began.
    pub migrated: u64,
    /// Possible problems.
    pub caveats: Vec<Caveat>,
}

/// A possible problem of a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Caveat {
    /// There were few executions.
    FewExecutions,
    /// This share of the executions was far beyond the others: interrupts, other programs, or
    /// another kind of work.
    Beyond(f64),
    /// The core's clock changed by more than 1 % around this share of the executions.
    ClockMoved(f64),
    /// This number of executions ended on another CPU than they began on. Their cycles have the
    /// difference of two TSCs in them.
    Migrated(u64),
    /// The clock's step is this many core cycles, and an execution takes fewer than twenty steps.
    Coarse(f64),
    /// CPUID reports no TSC with a fixed rate on this CPU.
    NoFixedRate,
    /// The readings do not wait for the code.
    DoesNotWait,
    /// A multiplication does not take nearly a whole number of additions, so its latency is in doubt.
    RulersDisagree,
}

/// The figures of all regions.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The regions, in the order of their first execution.
    pub rows: Vec<Row>,
    /// Calibration of the timing method on this machine.
    pub calibration: Calibration,
    /// Mean cycles that an execution costs the program, with its share of the conversions to core
    /// cycles and of the ruler, but not of the calibration.
    pub execution: CoreCycles,
    /// Cycles that an execution adds to a region around it, which does not count them.
    pub nested: CoreCycles,
    /// Part of `execution` that the readings alone take: two, and a third one in a region.
    pub bare: CoreCycles,
    /// Executions that could not be kept. They ended while others were converted to core cycles or
    /// while a thread ended, or the clock went back.
    pub lost: u64,
}

/// Figures of all executions that have ended, on all threads.
pub fn report() -> Report {
    let kept = thread::all();
    let global = thread::global();
    let calibration = global.calibration;
    let overhead = thread::overhead();
    let nested = overhead.mean();
    let bare = global.bare.get().copied().unwrap_or_default();
    let executed = || kept.iter().filter(|kept| kept.timed() > 0);
    let executions = executed().map(RegionFigures::count).sum::<u64>().max(1);
    let timed = executed().map(RegionFigures::timed).sum::<u64>().max(1);
    let converting = global.converting.load(Ordering::Relaxed) as f64 * calibration.scale.cycles;
    let directly = executed().map(|kept| kept.direct).sum::<u64>().min(timed) as f64 / timed as f64;
    let taken = overhead.cost(directly).0 * timed as f64 / executions as f64;
    Report {
        rows: executed().map(|kept| Row::new(kept, &calibration, &overhead)).collect(),
        calibration,
        execution: CoreCycles(taken + converting / executions as f64),
        nested,
        bare: CoreCycles((2.0 + directly) * bare.0),
        lost: global.lost.load(Ordering::Relaxed),
    }
}

/// The mean of the usual executions, and their number.
struct UsualCycles {
    estimate: Estimate,
    count: u64,
}

impl UsualCycles {
    /// `added` is the mean of the cycles that were subtracted. `beside` are the cycles by which they
    /// may be too few and too many, and `spread` is the ruler's error as a share.
    fn new(cycles: &Histogram, step: f64, added: f64, beside: [f64; 2], spread: f64) -> UsualCycles {
        let most = cycles.quantile(USUAL).unwrap_or_default();
        let usual = cycles.below(BEYOND * (most + added) - added + 2.0 * step);
        let value = usual.mean;
        let sample = NORMAL * usual.deviation / (usual.count.max(1) as f64).sqrt();
        let ruler = (value + added).abs() * spread;
        let [few, many] = beside;
        let interval = [value - few - sample - ruler, value + many + sample + ruler].map(CoreCycles);
        UsualCycles { estimate: Estimate { value: CoreCycles(value), interval }, count: usual.count }
    }
}

impl Row {
    fn new(kept: &RegionFigures, calibration: &Calibration, overhead: &NestedOverhead) -> Row {
        let RegionFigures { name, cycles: around, alone, moved, spread, .. } = kept;
        // Where the choice was made at all executions around others, those alone are a sample of all.
        let is_sampled = kept.inner_parents == 0;
        let is_alone = is_sampled && alone.count >= ENOUGH_ALONE || around.count == 0;
        let number = kept.timed() as f64;
        let executions_around = around.count.max(1) as f64;
        let [timed_within, direct] = [kept.within, kept.direct].map(|executions| executions as f64 / executions_around);
        let within_around = (kept.within + kept.untimed_within) as f64;
        let within = match is_sampled {
            true => (within_around + kept.within_alone as f64) / number,
            false => within_around / executions_around,
        };
        let step = calibration.step.0 * calibration.scale.cycles;
        let pair = calibration.pair.0;
        let [least, most] = calibration.between;
        let nested = overhead.mean().0;
        // By the code that a pair is around, and by the code around executions within.
        let [fewer, more] = [most.0 - pair, pair - least.0];
        let [less, greater] = overhead.by_code((calibration.empty.0 - pair).max(0.0));
        let varying = NORMAL * overhead.error();
        // Each reading of the ruler errs for all executions around it.
        let ruler = NORMAL * overhead.pair_deviation() * kept.together.sqrt() / number;
        let ends = |pairs: f64, executions: f64| {
            [(fewer, greater), (more, less)]
                .map(|(by_code, around)| ruler + pairs * by_code + executions * (around + varying))
        };
        let spread = spread / number;
        let modelled = UsualCycles::new(
            around,
            step,
            pair + timed_within * nested,
            ends(1.0 + timed_within, timed_within),
            spread,
        );
        let own = kept.own.as_ref().map(|own| {
            let around = direct * (nested - pair);
            // The part outside depends on the pair of each execution in it, too: fences make one take
            // longer than where it overlaps with the next one.
            UsualCycles::new(own, step, pair + around, ends(1.0 + direct, direct), spread).estimate
        });
        let model = modelled.estimate.value.0;
        let (cycles, usual) = match is_alone {
            true => {
                let [few, many] = ends(1.0, 0.0);
                let untimed = kept.within_alone as f64 / alone.count.max(1) as f64 * UNTIMED;
                let few = few + (calibration.empty.0 - pair).max(0.0) + untimed;
                (alone, UsualCycles::new(alone, step, pair, [few, many], spread))
            }
            false => (around, modelled),
        };
        let value = usual.estimate.value.0;
        // What the overhead here is more than in the programs is in the part outside, too.
        let has_both = is_alone && around.count > 0;
        let own = own.map(|own| if has_both { own.less(model - value, &usual.estimate) } else { own });
        let quantile = |share| cycles.quantile(share).unwrap_or_default();
        let beyond = 1.0 - usual.count as f64 / cycles.count.max(1) as f64;
        let moved = *moved as f64 / number;
        let caveats = [
            (kept.timed() < FEW, Caveat::FewExecutions),
            (beyond > SOME, Caveat::Beyond(beyond)),
            (moved > SOME, Caveat::ClockMoved(moved)),
            (kept.migrated > 0, Caveat::Migrated(kept.migrated)),
            (value < STEPS * step && calibration.step.0 > 1.0, Caveat::Coarse(step)),
        ];
        Row {
            name: name.clone(),
            count: kept.count(),
            cycles: usual.estimate,
            own: own.unwrap_or(usual.estimate),
            within,
            mean: CoreCycles(cycles.sum / cycles.count.max(1) as f64),
            quantiles: [0.05, 0.25, 0.5, 0.75, 0.95, 0.99].map(|share| CoreCycles(quantile(share))),
            most: CoreCycles(around.most.max(alone.most)),
            migrated: kept.migrated,
            caveats: those_that_hold(caveats).chain(Caveat::of_machine(calibration)).collect(),
        }
    }
}

impl Caveat {
    /// Problems of the machine that affect all figures.
    pub(crate) fn of_machine(calibration: &Calibration) -> impl Iterator<Item = Caveat> {
        those_that_hold([
            (Method::check().is_err(), Caveat::NoFixedRate),
            (!calibration.waits, Caveat::DoesNotWait),
            (!calibration.rulers_agree, Caveat::RulersDisagree),
        ])
    }
}

fn those_that_hold<const NUMBER: usize>(caveats: [(bool, Caveat); NUMBER]) -> impl Iterator<Item = Caveat> {
    caveats.into_iter().filter(|(holds, _)| *holds).map(|(_, caveat)| caveat)
}

impl fmt::Display for Caveat {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let percent = |share: &f64| 100.0 * share;
        match self {
            Caveat::FewExecutions => formatter.write_str("fewer than 100 executions"),
            Caveat::Beyond(share) => write!(formatter, "{:.0} % far beyond the others", percent(share)),
            Caveat::ClockMoved(share) => {
                write!(formatter, "the core clock changed around {:.0} %", percent(share))
            }
            Caveat::Migrated(1) => formatter.write_str("1 execution ended on another CPU than it began on"),
            Caveat::Migrated(number) => {
                write!(formatter, "{number} executions ended on another CPU than they began on")
            }
            Caveat::Coarse(step) => write!(formatter, "the clock moves by {step:.0} core cycles at a time"),
            Caveat::NoFixedRate => formatter.write_str("this CPU's TSC may not count at a fixed rate"),
            Caveat::DoesNotWait => formatter.write_str("readings do not wait for the code"),
            Caveat::RulersDisagree => formatter.write_str("the rulers disagree"),
        }
    }
}

/// Formats a number with its significant digits.
fn digits(cycles: CoreCycles) -> String {
    match cycles.0.abs() {
        ..1e4 => std::format!("{:.1}", cycles.0),
        ..1e6 => std::format!("{:.0}", cycles.0),
        ..1e10 => std::format!("{:.3e}", cycles.0),
        _ => std::format!("{:.2e}", cycles.0),
    }
}

/// Formats the report as a table of 80 columns.
impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        writeln!(formatter, "region (core cycles)          count   cycles  95 % interval      median      p95")?;
        for row in &self.rows {
            let [low, high] = row.cycles.interval.map(digits);
            let [_, _, median, _, p95, _] = row.quantiles.map(digits);
            let interval = std::format!("{low} to {high}");
            // A long name has its own line.
            let name = row.name.to_string();
            let short = name.chars().count() <= 20;
            if !short {
                writeln!(formatter, "{name}")?;
            }
            let name = if short { name } else { String::new() };
            let count = row.count;
            let value = digits(row.cycles.value);
            writeln!(formatter, "{name:<20} {count:>12} {value:>8}  {interval:<18} {median:>8} {p95:>8}")?;
            if row.within > 0.0 {
                let Estimate { value: own, interval: [low, high] } = row.own;
                let [own, low, high] = [own, low, high].map(digits);
                let within = digits(CoreCycles(row.within));
                writeln!(formatter, "    self {own} ({low} to {high}), outside {within} regions in it")?;
            }
            for caveat in &row.caveats {
                writeln!(formatter, "    {caveat}")?;
            }
        }
        let Calibration { pair, between: [low, high], .. } = self.calibration;
        let [pair, low, high] = [pair, low, high].map(digits);
        let [execution, nested, bare] = [self.execution, self.nested, self.bare].map(digits);
        writeln!(formatter, "Without the {pair} of the two readings ({low} to {high} by the code).")?;
        writeln!(formatter, "A region includes those in it, without the {nested} that timing each takes there.")?;
        writeln!(formatter, "An execution costs the program {execution}; the readings alone are {bare}.")?;
        if self.lost > 0 {
            writeln!(formatter, "{} executions could not be kept.", self.lost)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nested_overhead::{PRACTICES, PracticeReading, PracticeReadings};

    #[test]
    fn an_interval_covers_the_error_of_the_readings_of_the_ruler() {
        const EXECUTIONS: f64 = 1000.0;
        let calibration = Calibration::measure::<Method>();
        let mut overhead = NestedOverhead::default();
        for pair in [70.0, 80.0] {
            let reading = PracticeReading { cost: CoreCycles(220.0), overhead: CoreCycles(180.0) };
            let readings = PracticeReadings { nested: [reading; PRACTICES], outermost: CoreCycles(150.0) };
            overhead.add(readings, CoreCycles(pair));
        }
        let width = |readings: f64| {
            let mut kept = RegionFigures { together: EXECUTIONS * EXECUTIONS / readings, ..RegionFigures::default() };
            (0..EXECUTIONS as u32).for_each(|_| kept.cycles.add(150.0));
            let [low, high] = Row::new(&kept, &calibration, &overhead).cycles.interval;
            high.0 - low.0
        };
        // The standard deviation of a reading is five cycles.
        let wider = width(1.0) - width(100.0);
        assert!((wider - 2.0 * NORMAL * 5.0 * 0.9).abs() < 0.01, "{wider}");
    }

    #[test]
    fn executions_on_all_levels_of_a_recursion_are_usual() {
        let mut cycles = Histogram::default();
        (0..1000).for_each(|number| cycles.add(f64::from(100 * (1 + number % 4))));
        // An interrupt.
        cycles.add(10_000.0);
        let usual = UsualCycles::new(&cycles, 1.0, 0.0, [0.0; 2], 0.0);
        assert_eq!(usual.count, 1000);
        assert!((usual.estimate.value.0 - 250.0).abs() < 1.0, "{:?}", usual.estimate);
    }

    #[test]
    fn a_table_has_eighty_columns_for_any_numbers() {
        let calibration = Calibration::measure::<Method>();
        let row = |cycles: f64| {
            let mut kept = RegionFigures { name: "a_region_of_20_chars".into(), ..RegionFigures::default() };
            (0..200).for_each(|number| kept.cycles.add(cycles + f64::from(number)));
            kept.own = Some(kept.cycles.clone());
            kept.within = 1_234_567;
            Row::new(&kept, &calibration, &NestedOverhead::default())
        };
        let rows: Vec<Row> = [-40.0, 9_900.0, 999_800.0, 1.23e6, 3.4e9, 8e12].map(row).into();
        let [execution, nested, bare] = [99.0, 77.0, 9.0].map(CoreCycles);
        let report = Report { rows, calibration, execution, nested, bare, lost: 1 };
        for line in report.to_string().lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
