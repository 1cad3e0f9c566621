//! The tables of an evaluation, 80 columns wide.

use super::method_table::{self, MethodTable};
use crate::output::Failure;
use crate::output::page::{TextPage, new_table, print_note, print_table};
use cyclescope::caveat::Caveat;
use cyclescope::clock::Clock;
use cyclescope::executor::DEFAULT_OFFER;
use cyclescope::statistics::median;
use cyclescope::study::evaluate::MethodCandidate;
use cyclescope::study::evaluate::contamination::{ContaminationFault, FAULTS, PromiseVerdict};
use cyclescope::study::evaluate::criteria::variance_in_steps;
use cyclescope::study::evaluate::ergodic_verdict::ErgodicVerdict;
use cyclescope::study::evaluate::evaluation::{Evaluation, MethodEvaluation};
use cyclescope::study::evaluate::plan::RefusedMethod;
use cyclescope::study::evaluate::published::PUBLISHED_PAIRS;
use cyclescope::study::evaluate::resolution::{AdjacentLengths, StaircaseBody};
use cyclescope::study::evaluate::sampled_method::SampledMethod;
use cyclescope::unit::Unit;

/// Formats a figure in at most seven characters.
pub fn format_short(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "-".to_string(),
        0.0 => "0".to_string(),
        size if size >= 999_999.5 => format!("{value:.1e}"),
        size if size >= 1000.0 || (value.fract() == 0.0 && size >= 1.0) => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.005 => format!("{value:.2}"),
        _ => "0.00".to_string(),
    }
}

pub fn format_integer(value: u128) -> String {
    if value < 1_000_000 { value.to_string() } else { format_short(value as f64) }
}

/// Formats a figure in at most five characters.
pub fn format_tight(value: f64) -> String {
    match value.abs() {
        size if size >= 9.95e9 => format!("{value:.0e}"),
        size if size >= 99_999.5 => format!("{value:.1e}"),
        _ => format_short(value),
    }
}

/// A verdict in a word that fits its column.
fn ergodic_word(verdict: ErgodicVerdict) -> String {
    let word = match verdict {
        ErgodicVerdict::Yes => "yes",
        ErgodicVerdict::No => "no",
        ErgodicVerdict::NotComparable => "too few",
        ErgodicVerdict::DependsOnShare => "depends",
    };
    word.to_string()
}

/// Prints each method's samples: the distribution and the paper's totals.
pub fn print_samples(page: &mut TextPage, evaluation: &Evaluation, not_run: &[RefusedMethod]) -> Result<(), Failure> {
    let methods: Vec<&SampledMethod<'static>> =
        evaluation.methods.iter().filter_map(|found| found.method.as_ref()).collect();
    print_sample_tables(page, &methods)?;
    for found in evaluation.methods.iter().filter(|found| found.method.is_none()) {
        let name = found.candidate;
        print_note(page, &format!("{name} gave no valid reading: each end was before its start"))?;
    }
    for text in method_table::explain_not_run(&measured_candidates(evaluation), not_run) {
        print_note(page, &text)?;
    }
    print_trimmed(page, &methods)
}

/// The methods that were measured.
fn measured_candidates(evaluation: &Evaluation) -> Vec<MethodCandidate> {
    evaluation.methods.iter().map(|found| found.candidate).collect()
}

/// A method's name, with its unit if that isn't TSC ticks.
fn method_name(method: &SampledMethod) -> String {
    let unit = match method.tested.clock.counts {
        Unit::Nanos => " (ns)",
        Unit::CoreCycles => " (cycles)",
        _ => "",
    };
    format!("{}{unit}", method.tested.clock.name)
}

/// Prints distributions and the paper's totals of these methods.
pub fn print_sample_tables(page: &mut TextPage, methods: &[&SampledMethod<'static>]) -> Result<(), Failure> {
    page.begin_section("Empty pairs of readings, in TSC ticks")?;
    let mut distribution = MethodTable::new(&["method", "min", "mode", "p50", "mean", "p99", "max dev", "step"]);
    for method in methods {
        let figures = [
            format_tight(method.totals.overhead_min as f64),
            format_tight(method.mode() as f64),
            format_tight(method.quantile(0.5) as f64),
            format_tight(method.mean()),
            format_tight(method.quantile(0.99) as f64),
            format_tight(method.totals.max_deviation as f64),
            format_short(method.tested.step),
        ];
        distribution.add_row(method.tested.candidate(), method_name(method), figures);
    }
    distribution.print(page)?;
    page.begin_section("The paper's criteria: variance, of variances and of minima must be 0")?;
    let mut totals = MethodTable::new(&["method", "variance", "of var.", "of min.", "spurious", "steps²", "ergodic"]);
    let integer = |value: Option<u128>| value.map_or("-".to_string(), format_integer);
    for method in methods {
        let figures = &method.totals;
        let figures = [
            format_integer(figures.total_variance),
            integer(figures.variance_of_variances),
            integer(figures.variance_of_minima),
            figures.spurious_minima.to_string(),
            format_short(variance_in_steps(figures.total_variance_exact.to_f64(), method.tested.step)),
            ergodic_word(method.judge_ergodicity()),
        ];
        totals.add_row(method.tested.candidate(), method_name(method), figures);
    }
    totals.print(page)?;
    print_note(
        page,
        "Integers as in the paper's program; --json has the exact fractions and the reasons. In steps², 0.25 is ideal: \
         the value of a clock that only counts in steps. A constant minimum may only mean that the step hides \
         variation. Too few: too few samples to compare with the paper's, because chance alone makes variances differ.",
    )?;
    // With few methods, there is room for the reasons.
    let few = |method: &SampledMethod| method.judge_ergodicity() == ErgodicVerdict::NotComparable;
    for method in methods.iter().filter(|method| methods.len() <= REASONS_MOST || few(method)) {
        print_note(page, &format!("{}: {}.", method.tested.candidate(), method.explain_ergodicity()))?;
    }
    let chances = methods.iter().filter(|method| !few(method)).filter_map(|method| method.chance_variance());
    if let Some(most) = chances.reduce(f64::max) {
        print_note(page, &format!("For the others, chance alone makes a variance of variances of up to {most:.2}."))?;
    }
    note_fewer_samples(page, methods)
}

/// Reasons are printed only up to this number of methods.
const REASONS_MOST: usize = 4;

/// Notes the methods that have fewer samples than requested.
fn note_fewer_samples(page: &mut TextPage, methods: &[&SampledMethod<'static>]) -> Result<(), Failure> {
    for method in methods {
        let taken = method.sampled.ensembles.len() as u64 * u64::from(method.sampled.shape.size.samples);
        if taken < method.asked.total_samples() {
            let (ensembles, samples) = (method.sampled.ensembles.len(), method.sampled.shape.size.samples);
            let text = format!(
                "{}: only {ensembles} x {samples} samples instead of {} x {}, for lack of time.",
                method.tested.candidate(),
                method.asked.ensembles,
                method.asked.samples
            );
            print_note(page, &text)?;
        }
    }
    Ok(())
}

/// Notes that core cycles are left out on an emulated machine.
fn note_left_out(page: &mut TextPage) -> Result<(), Failure> {
    print_note(page, &format!("Left out: {}.", Caveat::emulated_machine().text))
}

/// Prints the figures without interrupts and frequency changes.
pub fn print_trimmed(page: &mut TextPage, methods: &[&SampledMethod<'static>]) -> Result<(), Failure> {
    page.begin_section("Without interrupts and frequency changes, in core cycles")?;
    if methods.iter().any(|method| method.tested.emulated) {
        return note_left_out(page);
    }
    let heading = ["method", "overhead", "spread", "steps²", "dropped", "ergodic"];
    let mut trimmed = MethodTable::new(&heading);
    for method in methods {
        let overhead = match method.overhead {
            Some(overhead) => format!("{:.1} ± {:.1}", overhead.value, overhead.half_width()),
            None => method.trimmed.map_or("-".to_string(), |summary| format!("{:.1}", summary.overhead)),
        };
        let figures = method.trimmed.map(|summary| {
            [
                format!("± {:.2}", summary.overhead_spread),
                format_short(variance_in_steps(summary.variance, method.tested.step)),
                format!("{:.1} %", 100.0 * summary.dropped_share),
                ergodic_word(summary.ergodic),
            ]
        });
        let figures = figures.unwrap_or(std::array::from_fn(|_| "-".to_string()));
        let figures: Vec<String> = [overhead].into_iter().chain(figures).collect();
        trimmed.add_row(method.tested.candidate(), method_name(method), figures);
    }
    trimmed.print(page)?;
    print_note(
        page,
        "overhead: cost of an empty pair over many layouts. spread: its standard deviation between ensembles. steps²: \
         the variance of one reading. dropped: samples 4 steps or more above the minimum around them. ergodic: spread \
         below one step, similar variances, most samples kept. Depends: on how many samples must remain.",
    )?;
    for method in methods.iter().filter(|method| method.trimmed_ergodicity() != Some(ErgodicVerdict::Yes)) {
        if let Some(summary) = &method.trimmed {
            let name = method.tested.candidate();
            print_note(page, &format!("{name}: {}.", summary.explain_verdict(method.tested.step)))?;
        }
    }
    Ok(())
}

/// Prints published rows next to ours.
pub fn print_published(page: &mut TextPage, evaluation: &Evaluation) -> Result<(), Failure> {
    page.begin_section("Published rows and ours, in TSC ticks")?;
    let heading = ["method", "where", "min", "variance", "steps²", "of var.", "of min.", "step"];
    let mut rows = new_table(&heading);
    let integer = |value: Option<u128>| value.map_or("-".to_string(), format_integer);
    for row in PUBLISHED_PAIRS {
        rows.add_row([
            row.method.to_string(),
            row.short.to_string(),
            row.overhead_min.to_string(),
            format_short(row.total_variance),
            format_short(variance_in_steps(row.total_variance, row.step)),
            integer(row.variance_of_variances.map(u128::from)),
            integer(row.variance_of_minima.map(u128::from)),
            format_short(row.step),
        ]);
        for verdict in &evaluation.verdicts {
            let executor = verdict.executor;
            let ours = |found: &&MethodEvaluation| {
                (found.candidate.clock.name, found.candidate.executor) == (row.method, executor)
            };
            let ours = evaluation.methods.iter().find(ours).and_then(|found| found.method.as_ref());
            let place = if executor == DEFAULT_OFFER.name { "here" } else { method_table::executor_place(executor) };
            let mut cells = vec![String::new(), place.to_string()];
            cells.extend(ours.map_or_else(|| vec!["not run".to_string()], published_figures));
            rows.add_row(cells);
        }
    }
    print_table(page, &rows)?;
    print_note(
        page,
        "The paper's machine had interrupts, frequency scaling and hyper-threading off. Its TSC had a step of 4, so \
         its variances of 2 and 3 also come from the step.",
    )
}

/// The columns of the published rows, for one of our methods.
fn published_figures(method: &SampledMethod) -> Vec<String> {
    let integer = |value: Option<u128>| value.map_or("-".to_string(), format_integer);
    vec![
        method.totals.overhead_min.to_string(),
        format_integer(method.totals.total_variance),
        format_short(variance_in_steps(method.totals.total_variance_exact.to_f64(), method.tested.step)),
        integer(method.totals.variance_of_variances),
        integer(method.totals.variance_of_minima),
        format_short(method.tested.step),
    ]
}

/// Prints the resolution of each method.
pub fn print_resolution(page: &mut TextPage, evaluation: &Evaluation) -> Result<(), Failure> {
    page.begin_section("Resolution: a body that grows from 0 to 999")?;
    let heading = ["method", "add", "loop", "change", "spurious", "apart", "1 by", "finest"];
    let mut rows = MethodTable::new(&heading);
    for MethodEvaluation { candidate, resolution, .. } in &evaluation.methods {
        let slope = |body: StaircaseBody| {
            let slope = resolution.staircase(body).and_then(|stairs| stairs.slope);
            // An error above a tenth leaves no usable slope.
            let known = slope.filter(|slope| slope.half_width() <= 0.1 * slope.value.abs());
            known.map_or("-".to_string(), |slope| format!("{:.3}", slope.value))
        };
        let adds = resolution.staircase(StaircaseBody::Adds);
        let change = adds.and_then(|stairs| stairs.totals.smallest_change);
        let spurious = adds.map_or("-".to_string(), |stairs| stairs.totals.spurious_minima.to_string());
        let many = resolution.by_samples.first();
        let from = many.and_then(|many| many.one_cycle_from);
        let best = many.and_then(|many| many.rungs.iter().min_by(|a, b| a.interleaved.total_cmp(&b.interleaved)));
        let figures = [
            slope(StaircaseBody::Adds),
            slope(StaircaseBody::Iterations),
            change.map_or("-".to_string(), |change| change.to_string()),
            spurious,
            adds.and_then(|stairs| stairs.neighbours.as_ref()).map_or("-".to_string(), share_told_apart),
            from.map_or("-".to_string(), |readings| readings.to_string()),
            best.map_or("-".to_string(), |rung| format!("{:.2} ({})", rung.interleaved, rung.readings)),
        ];
        rows.add_row(*candidate, candidate.clock.name.to_string(), figures);
    }
    rows.print(page)?;
    if evaluation.facts.emulated {
        print_note(page, &format!("-: {}.", Caveat::emulated_machine().text))?;
    }
    print_note(
        page,
        "add, loop: core cycles of one more dependent add, and of one more iteration of the paper's loop. change: the \
         smallest increase of the minimum, in raw units; spurious: how often it decreased. apart: share of lengths one \
         add apart whose means differ at 95 %. 1 by: alternating readings that resolve one core cycle. finest: the \
         smallest difference in core cycles resolved, and the readings that it took.",
    )
}

/// Formats the share of adjacent lengths that are distinguished.
fn share_told_apart(neighbours: &AdjacentLengths) -> String {
    format!("{:.0} %", 100.0 * neighbours.told_apart as f64 / neighbours.differences.max(1) as f64)
}

/// Prints how adjacent code affects each method.
pub fn print_contamination(
    page: &mut TextPage,
    evaluation: &Evaluation,
    not_run: &[RefusedMethod],
) -> Result<(), Failure> {
    page.begin_section("Contamination by adjacent code, in core cycles")?;
    if evaluation.facts.emulated {
        return note_left_out(page);
    }
    let mut rows = MethodTable::new(&["method", "leading", "early", "unfinished", "following", "stores"]);
    for found in &evaluation.methods {
        let mut cells = Vec::new();
        for fault in FAULTS {
            let row = found.contamination.iter().find(|row| row.fault == fault);
            cells.push(row.map_or("-".to_string(), |row| {
                row.cost.known().map_or("-".to_string(), |cost| mark_verdict(row.verdict, cost.value))
            }));
        }
        rows.add_row(found.candidate, found.candidate.clock.name.to_string(), cells);
    }
    rows.print(page)?;
    let ran = |clock: &Clock| evaluation.methods.iter().any(|found| found.candidate.clock.name == clock.name);
    for clock in not_run.iter().map(|not| not.candidate.clock) {
        if clock.needs_ring0() && !ran(clock) {
            print_note(page, &format!("{} was not run: it needs ring 0.", clock.name))?;
        }
    }
    let mut widths: Vec<f64> = evaluation
        .methods
        .iter()
        .flat_map(|found| &found.contamination)
        .filter(|row| row.fault != ContaminationFault::StoresNotDrained)
        .filter_map(|row| row.cost.known().map(|cost| cost.half_width()))
        .collect();
    let width = if widths.is_empty() { f64::NAN } else { median(&mut widths) };
    print_note(page, &format!("Half of the 99.9 % intervals are narrower than ± {width:.1}; --json has each."))?;
    print_note(
        page,
        "Error of a body's cost. leading: earlier code is unfinished. early: the body begins before the start is read. \
         unfinished: the body is unfinished at the end. following: later code runs early. stores: the body's stores \
         are not drained. Each side is tested with the other side fenced. Plain number: promised not to happen, and it \
         doesn't. *: no promise, and it happens. (): no promise, but not visible here. !: promise broken next to two \
         kinds of code. ?: undecided.",
    )
}

/// Formats the cost of a contamination, with a mark for the promise.
fn mark_verdict(verdict: PromiseVerdict, cost: f64) -> String {
    let cost = format_short(cost);
    match verdict {
        PromiseVerdict::Kept => cost,
        PromiseVerdict::Visible => format!("{cost} *"),
        PromiseVerdict::NotVisible => format!("({cost})"),
        PromiseVerdict::Broken => format!("{cost} !"),
        PromiseVerdict::Unclear => format!("{cost} ?"),
        PromiseVerdict::NotRun => "not run".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_fit_their_columns() {
        let figures = [0.0, 2.0, 0.5, 12.34, 123.4, 999_999.0, 5.7e10, 0.0001, -3.25, f64::NAN];
        let texts = ["0", "2", "0.50", "12.3", "123.4", "999999", "5.7e10", "0.00", "-3.25", "-"];
        assert_eq!(figures.map(format_short), texts);
        assert_eq!(format_integer(1_234_567), "1.2e6");
        let figures = [99_999.4, 99_999.6, 9.94e9, 9.96e9, 1.8e19, -1234.4];
        assert_eq!(figures.map(format_tight), ["99999", "1.0e5", "9.9e9", "1e10", "2e19", "-1234"]);
    }
}
