//! Claims about the TSC itself, judged by the results about the machine.

use super::claim_judgement::{ClaimEvidence, ClaimFigure, ClaimJudgement, ClaimResult};
use cyclescope_core::machine::tsc_read::TscRead;
use cyclescope_core::machine::tsc_study::TscStudy;
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;

/// Share of readings that must be multiples of the step.
const NEARLY_ALL: f64 = 0.99;
/// Smallest relative difference between the core clock and the TSC that makes them different
/// clocks.
const OTHER_CLOCK_SHARE: f64 = 0.01;

fn require_tsc_study<'a>(seen: &ClaimEvidence<'a>) -> Result<&'a TscStudy, String> {
    let tsc = &seen.facts.tsc;
    tsc.known().ok_or_else(|| tsc.why().unwrap_or_default().to_string())
}

/// Judges whether differences of RDTSCP readings are multiples of one number larger than 1.
pub(super) fn judge_multiples(seen: &ClaimEvidence) -> ClaimResult {
    let step = require_tsc_study(seen)?.find_step(TscRead::Rdtscp).ok_or("the step of RDTSCP is not known")?;
    let figures = vec![
        ClaimFigure::new_exact("step", step.ticks, Unit::TscTicks),
        ClaimFigure::new_exact("share of differences that are multiples", step.on_lattice, Unit::Share),
    ];
    Ok(ClaimJudgement::from_figures(Some(step.ticks > 1.0 && step.on_lattice >= NEARLY_ALL), figures))
}

/// Judges whether the step stays the same when the core clock changes.
pub(super) fn judge_steady_step(seen: &ClaimEvidence) -> ClaimResult {
    let series = &seen.facts.series;
    let series = series.known().ok_or_else(|| series.why().unwrap_or_default().to_string())?;
    let steady = series.step.known().ok_or_else(|| series.step.why().unwrap_or_default().to_string())?;
    let mut figures = vec![
        ClaimFigure::new_exact("the core clock moved by", steady.moved, Unit::Share),
        ClaimFigure::new_exact("step", steady.ticks, Unit::TscTicks),
    ];
    figures.extend(["slow", "fast"].iter().zip(steady.on_lattice).map(|(clock, share)| {
        ClaimFigure::new_exact(format!("multiples of it at the {clock} clock"), share, Unit::Share)
    }));
    Ok(ClaimJudgement::from_figures(Some(steady.steady), figures))
}

/// Judges whether LFENCE waits for all instructions before it.
pub(super) fn judge_lfence(seen: &ClaimEvidence) -> ClaimResult {
    let lfence = require_tsc_study(seen)?.traps.lfence;
    let figures = vec![
        ClaimFigure::new_exact("a chain of multiplications", lfence.chain, Unit::TscTicks),
        ClaimFigure::new_exact("before LFENCE, RDTSC", lfence.fenced, Unit::TscTicks),
        ClaimFigure::new_exact("before RDTSC", lfence.bare, Unit::TscTicks),
    ];
    Ok(ClaimJudgement::from_figures(Some(lfence.waits), figures))
}

/// Judges whether the core clock and the TSC run at different rates.
pub(super) fn judge_asynchrony(seen: &ClaimEvidence) -> ClaimResult {
    let series = &seen.facts.series;
    let series = series.known().ok_or_else(|| series.why().unwrap_or_default().to_string())?;
    if series.unit != Unit::TscTicks {
        return Err("no method here reads the TSC".to_string());
    }
    let [low, value, high] = series.raw_per_cycle;
    let ratio = Interval { value, low, high };
    let figures = vec![
        ClaimFigure::new("TSC ticks per core cycle, minimum to maximum", ratio, Unit::Ratio),
        ClaimFigure::new_exact("smallest detectable change", series.least_change, Unit::Share),
    ];
    // The extremes move apart with the number of measurements. A change must exceed the noise of
    // the series.
    let holds = match (value - 1.0).abs() > series.least_change || series.has_changed() {
        true => Some(true),
        false => (series.least_change <= OTHER_CLOCK_SHARE).then_some(false),
    };
    Ok(ClaimJudgement::from_figures(holds, figures))
}

/// Judges whether RDTSCP returns the number of the CPU.
pub(super) fn judge_cpu_numbers(seen: &ClaimEvidence) -> ClaimResult {
    let synchrony = &seen.facts.synchrony;
    let synchrony = synchrony.known().ok_or_else(|| synchrony.why().unwrap_or_default().to_string())?;
    let numbers = synchrony.numbers.ok_or("there is no RDTSCP, or a CPU did not answer")?;
    let figures = vec![
        ClaimFigure::new_exact("CPUs", numbers.cpus as f64, Unit::Count),
        ClaimFigure::new_exact("CPUs with their own number", numbers.right as f64, Unit::Count),
    ];
    Ok(ClaimJudgement::from_figures(Some(numbers.right == numbers.cpus), figures))
}
