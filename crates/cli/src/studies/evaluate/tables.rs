//! The tables of an evaluation, 80 columns wide.

use super::rows::{self, Rows};
use crate::output::Failure;
use crate::output::page::{Page, note, print, table};
use cyclescope::caveat::Caveat;
use cyclescope::clock::Clock;
use cyclescope::executor::DEFAULT;
use cyclescope::statistics::median;
use cyclescope::study::evaluate::Candidate;
use cyclescope::study::evaluate::contamination::{FAULTS, Fault, Verdict};
use cyclescope::study::evaluate::criteria::in_steps;
use cyclescope::study::evaluate::ergodic::Ergodic;
use cyclescope::study::evaluate::evaluation::{Evaluated, Evaluation};
use cyclescope::study::evaluate::method::Method;
use cyclescope::study::evaluate::plan::NotRun;
use cyclescope::study::evaluate::published::PUBLISHED;
use cyclescope::study::evaluate::resolution::{Body, Neighbours};
use cyclescope::unit::Unit;

/// A figure in at most seven characters.
pub fn short(value: f64) -> String {
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

pub fn whole(value: u128) -> String {
    if value < 1_000_000 { value.to_string() } else { short(value as f64) }
}

/// A figure in at most five characters.
pub fn tight(value: f64) -> String {
    match value.abs() {
        size if size >= 9.95e9 => format!("{value:.0e}"),
        size if size >= 99_999.5 => format!("{value:.1e}"),
        _ => short(value),
    }
}

/// A verdict in a word that fits a column.
fn word(verdict: Ergodic) -> String {
    let word = match verdict {
        Ergodic::Yes => "yes",
        Ergodic::No => "no",
        Ergodic::NotComparable => "too few",
        Ergodic::DependsOnShare => "depends",
    };
    word.to_string()
}

/// What each method's samples are: the distribution and the paper's totals.
pub fn samples(page: &mut Page, evaluation: &Evaluation, not_run: &[NotRun]) -> Result<(), Failure> {
    let methods: Vec<&Method<'static>> =
        evaluation.methods.iter().filter_map(|found| found.method.as_ref()).collect();
    of_samples(page, &methods)?;
    for found in evaluation.methods.iter().filter(|found| found.method.is_none()) {
        let name = found.candidate;
        note(page, &format!("{name} gave no valid reading: its ends were before its starts"))?;
    }
    for text in rows::not_run(&candidates(evaluation), not_run) {
        note(page, &text)?;
    }
    of_trimmed(page, &methods)
}

/// What was measured.
fn candidates(evaluation: &Evaluation) -> Vec<Candidate> {
    evaluation.methods.iter().map(|found| found.candidate).collect()
}

/// A method's name, marked where it does not count TSC ticks.
fn name(method: &Method) -> String {
    let unit = match method.tested.clock.counts {
        Unit::Nanos => " (ns)",
        Unit::CoreCycles => " (cycles)",
        _ => "",
    };
    format!("{}{unit}", method.tested.clock.name)
}

/// The distributions and the paper's totals of some methods.
pub fn of_samples(page: &mut Page, methods: &[&Method<'static>]) -> Result<(), Failure> {
    page.section("Empty pairs of readings, in TSC ticks")?;
    let mut distribution = Rows::new(&["method", "min", "mode", "p50", "mean", "p99", "max dev", "step"]);
    for method in methods {
        let figures = [
            tight(method.totals.overhead_min as f64),
            tight(method.mode() as f64),
            tight(method.quantile(0.5) as f64),
            tight(method.mean()),
            tight(method.quantile(0.99) as f64),
            tight(method.totals.max_deviation as f64),
            short(method.tested.step),
        ];
        distribution.add(method.tested.candidate(), name(method), figures);
    }
    distribution.print(page)?;
    page.section("The paper's criteria: variance, of variances and of minima must be 0")?;
    let mut totals =
        Rows::new(&["method", "variance", "of var.", "of min.", "spurious", "steps²", "ergodic"]);
    let integer = |value: Option<u128>| value.map_or("-".to_string(), whole);
    for method in methods {
        let figures = &method.totals;
        let figures = [
            whole(figures.total_variance),
            integer(figures.variance_of_variances),
            integer(figures.variance_of_minima),
            figures.spurious_minima.to_string(),
            short(in_steps(figures.total_variance_exact.value(), method.tested.step)),
            word(method.ergodic()),
        ];
        totals.add(method.tested.candidate(), name(method), figures);
    }
    totals.print(page)?;
    note(
        page,
        "Integers as the paper's program has them; --json has the exact fractions and the reasons. In steps² 0.25 is \
         perfect: a clock that only counts in steps has it. A constant minimum may only mean that the step hides \
         what varies. Too few: samples that can't be compared with the paper's, for chance alone makes variances that \
         differ.",
    )?;
    // Of a few methods there is room for the reasons.
    let few = |method: &Method| method.ergodic() == Ergodic::NotComparable;
    for method in methods.iter().filter(|method| methods.len() <= REASONS_MOST || few(method)) {
        note(page, &format!("{}: {}.", method.tested.candidate(), method.ergodic_why()))?;
    }
    let chances = methods.iter().filter(|method| !few(method)).filter_map(|method| method.chance());
    if let Some(most) = chances.reduce(f64::max) {
        note(
            page,
            &format!("Of the others chance alone makes a variance of variances of {most:.2} or less."),
        )?;
    }
    scaled(page, methods)
}

/// Methods whose reasons are printed, at most.
const REASONS_MOST: usize = 4;

/// Which methods have fewer samples than asked for.
fn scaled(page: &mut Page, methods: &[&Method<'static>]) -> Result<(), Failure> {
    for method in methods {
        let taken = method.sampled.ensembles.len() as u64 * u64::from(method.sampled.shape.size.samples);
        if taken < method.asked.total() {
            let (ensembles, samples) = (method.sampled.ensembles.len(), method.sampled.shape.size.samples);
            let text = format!(
                "{}: {ensembles} x {samples} samples for lack of time, not {} x {}.",
                method.tested.candidate(),
                method.asked.ensembles,
                method.asked.samples
            );
            note(page, &text)?;
        }
    }
    Ok(())
}

/// The place of what would be in core cycles, where the machine is emulated.
fn left_out(page: &mut Page) -> Result<(), Failure> {
    note(page, &format!("Left out: {}.", Caveat::emulated().text))
}

/// What remains without interrupts and changes of frequency.
pub fn of_trimmed(page: &mut Page, methods: &[&Method<'static>]) -> Result<(), Failure> {
    page.section("Without interrupts and changes of frequency, in core cycles")?;
    if methods.iter().any(|method| method.tested.emulated) {
        return left_out(page);
    }
    let heading = ["method", "overhead", "spread", "steps²", "dropped", "ergodic"];
    let mut trimmed = Rows::new(&heading);
    for method in methods {
        let overhead = match method.overhead {
            Some(overhead) => format!("{:.1} ± {:.1}", overhead.value, overhead.half_width()),
            None => method.trimmed.map_or("-".to_string(), |summary| format!("{:.1}", summary.overhead)),
        };
        let figures = method.trimmed.map(|summary| {
            [
                format!("± {:.2}", summary.overhead_spread),
                short(in_steps(summary.variance, method.tested.step)),
                format!("{:.1} %", 100.0 * summary.dropped_share),
                word(summary.ergodic),
            ]
        });
        let figures = figures.unwrap_or(std::array::from_fn(|_| "-".to_string()));
        let figures: Vec<String> = [overhead].into_iter().chain(figures).collect();
        trimmed.add(method.tested.candidate(), name(method), figures);
    }
    trimmed.print(page)?;
    note(
        page,
        "overhead: of an empty pair, over many layouts. spread: its standard deviation between ensembles. steps²: the \
         variance of one reading. dropped: samples 4 steps or more above the minimum around them. ergodic: spread \
         below one step, variances alike, most samples kept. Depends: on how many have to remain.",
    )?;
    for method in methods.iter().filter(|method| method.ergodic_trimmed() != Some(Ergodic::Yes)) {
        if let Some(summary) = &method.trimmed {
            let name = method.tested.candidate();
            note(page, &format!("{name}: {}.", summary.why(method.tested.step)))?;
        }
    }
    Ok(())
}

/// Published rows beside ours.
pub fn published(page: &mut Page, evaluation: &Evaluation) -> Result<(), Failure> {
    page.section("Published rows and ours, in TSC ticks")?;
    let heading = ["method", "where", "min", "variance", "steps²", "of var.", "of min.", "step"];
    let mut rows = table(&heading);
    let integer = |value: Option<u128>| value.map_or("-".to_string(), whole);
    for row in PUBLISHED {
        rows.add_row([
            row.method.to_string(),
            row.short.to_string(),
            row.overhead_min.to_string(),
            short(row.total_variance),
            short(in_steps(row.total_variance, row.step)),
            integer(row.variance_of_variances.map(u128::from)),
            integer(row.variance_of_minima.map(u128::from)),
            short(row.step),
        ]);
        for verdict in &evaluation.verdicts {
            let executor = verdict.executor;
            let ours = |found: &&Evaluated| {
                (found.candidate.clock.name, found.candidate.executor) == (row.method, executor)
            };
            let ours = evaluation.methods.iter().find(ours).and_then(|found| found.method.as_ref());
            let place = if executor == DEFAULT.name { "here" } else { rows::place(executor) };
            let mut cells = vec![String::new(), place.to_string()];
            cells.extend(ours.map_or_else(|| vec!["not run".to_string()], published_figures));
            rows.add_row(cells);
        }
    }
    print(page, &rows)?;
    note(
        page,
        "The paper's machine had interrupts, frequency scaling and hyper-threading off, and its TSC stepped by 4: its \
         variances of 2 and 3 are steps, too.",
    )
}

/// The columns of the published rows, of one of ours.
fn published_figures(method: &Method) -> Vec<String> {
    let integer = |value: Option<u128>| value.map_or("-".to_string(), whole);
    vec![
        method.totals.overhead_min.to_string(),
        whole(method.totals.total_variance),
        short(in_steps(method.totals.total_variance_exact.value(), method.tested.step)),
        integer(method.totals.variance_of_variances),
        integer(method.totals.variance_of_minima),
        short(method.tested.step),
    ]
}

/// What each method resolves.
pub fn resolution(page: &mut Page, evaluation: &Evaluation) -> Result<(), Failure> {
    page.section("Resolution: a body that grows from 0 to 999")?;
    let heading = ["method", "add", "loop", "change", "spurious", "apart", "1 by", "most tell"];
    let mut rows = Rows::new(&heading);
    for Evaluated { candidate, resolution, .. } in &evaluation.methods {
        let slope = |body: Body| {
            let slope = resolution.staircase(body).and_then(|stairs| stairs.slope);
            // More than a tenth is no slope to speak of.
            let known = slope.filter(|slope| slope.half_width() <= 0.1 * slope.value.abs());
            known.map_or("-".to_string(), |slope| format!("{:.3}", slope.value))
        };
        let adds = resolution.staircase(Body::Adds);
        let change = adds.and_then(|stairs| stairs.totals.smallest_change);
        let spurious = adds.map_or("-".to_string(), |stairs| stairs.totals.spurious_minima.to_string());
        let many = resolution.by_samples.first();
        let from = many.and_then(|many| many.one_cycle_from);
        let best =
            many.and_then(|many| many.rungs.iter().min_by(|a, b| a.interleaved.total_cmp(&b.interleaved)));
        let figures = [
            slope(Body::Adds),
            slope(Body::Iterations),
            change.map_or("-".to_string(), |change| change.to_string()),
            spurious,
            adds.and_then(|stairs| stairs.neighbours.as_ref()).map_or("-".to_string(), told_apart),
            from.map_or("-".to_string(), |readings| readings.to_string()),
            best.map_or("-".to_string(), |rung| format!("{:.2} ({})", rung.interleaved, rung.readings)),
        ];
        rows.add(*candidate, candidate.clock.name.to_string(), figures);
    }
    rows.print(page)?;
    if evaluation.facts.emulated {
        note(page, &format!("-: {}.", Caveat::emulated().text))?;
    }
    note(
        page,
        "add, loop: core cycles of one more dependent add, and of one more iteration of the paper's loop. change: the \
         smallest by which the minimum grew, in raw units; spurious: how often it shrank. apart: neighbouring lengths \
         whose means, one add apart, are told apart at 95 %. 1 by: readings from which one core cycle is told apart in \
         turn. most tell: the smallest difference in core cycles that the most readings told apart.",
    )
}

/// The share of neighbouring lengths that are distinguished.
fn told_apart(neighbours: &Neighbours) -> String {
    format!("{:.0} %", 100.0 * neighbours.told_apart as f64 / neighbours.differences.max(1) as f64)
}

/// What neighbouring code does to each method.
pub fn contamination(page: &mut Page, evaluation: &Evaluation, not_run: &[NotRun]) -> Result<(), Failure> {
    page.section("Contamination by neighbouring code, in core cycles")?;
    if evaluation.facts.emulated {
        return left_out(page);
    }
    let mut rows = Rows::new(&["method", "leading", "early", "unfinished", "following", "stores"]);
    for found in &evaluation.methods {
        let mut cells = Vec::new();
        for fault in FAULTS {
            let row = found.contamination.iter().find(|row| row.fault == fault);
            cells.push(row.map_or("-".to_string(), |row| {
                row.cost.known().map_or("-".to_string(), |cost| marked(row.verdict, cost.value))
            }));
        }
        rows.add(found.candidate, found.candidate.clock.name.to_string(), cells);
    }
    rows.print(page)?;
    let ran = |clock: &Clock| evaluation.methods.iter().any(|found| found.candidate.clock.name == clock.name);
    for clock in not_run.iter().map(|not| not.candidate.clock) {
        if clock.needs_ring0() && !ran(clock) {
            note(page, &format!("{} was not run: it needs ring 0.", clock.name))?;
        }
    }
    let mut widths: Vec<f64> = evaluation
        .methods
        .iter()
        .flat_map(|found| &found.contamination)
        .filter(|row| row.fault != Fault::StoresNotDrained)
        .filter_map(|row| row.cost.known().map(|cost| cost.half_width()))
        .collect();
    let width = if widths.is_empty() { f64::NAN } else { median(&mut widths) };
    note(page, &format!("Half of the 99.9 % intervals are narrower than ± {width:.1}; --json has each."))?;
    note(
        page,
        "What a body seems to cost too much, or too little, beside leading code that is unfinished; because it began \
         before the start was read; because it was unfinished at the end; because of following code; because its \
         stores were not drained. Each side is tried against a fenced other side. Plain: the method promises that this \
         does not happen, and keeps it. *: no promise, and it happens. (): no promise, and it is not visible here. \
         !: broken, beside two kinds of neighbours. ?: it can't be told.",
    )
}

/// A contamination's cost, and whether the promise is kept.
fn marked(verdict: Verdict, cost: f64) -> String {
    let cost = short(cost);
    match verdict {
        Verdict::Kept => cost,
        Verdict::Visible => format!("{cost} *"),
        Verdict::NotVisible => format!("({cost})"),
        Verdict::Broken => format!("{cost} !"),
        Verdict::Unclear => format!("{cost} ?"),
        Verdict::NotRun => "not run".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        let figures = [0.0, 2.0, 0.5, 12.34, 123.4, 999_999.0, 5.7e10, 0.0001, -3.25, f64::NAN];
        let texts = ["0", "2", "0.50", "12.3", "123.4", "999999", "5.7e10", "0.00", "-3.25", "-"];
        assert_eq!(figures.map(short), texts);
        assert_eq!(whole(1_234_567), "1.2e6");
        let figures = [99_999.4, 99_999.6, 9.94e9, 9.96e9, 1.8e19, -1234.4];
        assert_eq!(figures.map(tight), ["99999", "1.0e5", "9.9e9", "1e10", "2e19", "-1234"]);
    }
}
