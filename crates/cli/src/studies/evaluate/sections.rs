//! The text sections of an evaluation: the machine's clocks, the documents' claims, and the
//! verdict.

use crate::output::page::TextPage;
use crate::output::{Failure, Output};
use crate::studies::doctor::sections as doctor;
use cyclescope::caveat::Caveat;
use cyclescope::executor::ExecutorOffer;
use cyclescope::machine::core_series::CoreSeries;
use cyclescope::machine::fact::Fact;
use cyclescope::machine::step_at_clocks::StepAtClocks;
use cyclescope::machine::synchrony::{CpuComparison, TscSynchrony};
use cyclescope::study::evaluate::EvaluateStudy;
use cyclescope::study::evaluate::claims::DocumentClaim;
use cyclescope::study::evaluate::evaluation::Evaluation;
use cyclescope::study::evaluate::timing_facts::TimingFacts;
use cyclescope::study::evaluate::verdict::{EvaluationVerdict, RecommendedMethod};

/// Prints the machine and its clocks.
pub fn print_machine(page: &mut TextPage, evaluation: &Evaluation, study: &EvaluateStudy) -> Result<(), Failure> {
    let (facts, around) = (&evaluation.facts, &study.around);
    let names: Vec<&str> = evaluation.verdicts.iter().map(|verdict| verdict.executor).collect();
    let executors = if names.len() > 1 { "executors" } else { "executor" };
    page.begin_section("Machine")?;
    page.print_row("processor", &around.cpu_model)?;
    let text = format!("{}, {executors} {}, seed {}", around.cpu, names.join(" and "), around.seed);
    page.print_row("CPU", &text)?;
    if !study.plan.mode.is_default() {
        page.print_row("methods", &format!("in {}-bit code", study.plan.mode.bits()))?;
    }
    if facts.emulated {
        page.print_painted_row("caveat", &Caveat::emulated_machine().text, Output::yellow)?;
    }
    let TimingFacts { told, lfence, tsc, phases, .. } = facts;
    doctor::print_tsc(page, &doctor::TscSection { facts: told, lfence, study: tsc, phases })?;
    page.begin_section("Core clock over time, and other CPUs")?;
    page.print_fact("core clock", &facts.series, describe_series)?;
    if let Some(series) = facts.series.known() {
        match &series.step {
            Fact::Known(step) => page.print_row("TSC step", &describe_step_at_clocks(step))?,
            Fact::Unknown(why) => {
                page.print_row("TSC step", &format!("can't determine whether it depends on the core clock: {why}"))?
            }
        }
    }
    match &facts.synchrony {
        Fact::Unknown(why) => page.print_unknown("TSCs of CPUs", why),
        Fact::Known(found) => print_synchrony(page, found),
    }
}

fn describe_series(series: &CoreSeries) -> String {
    let rate = match series.megahertz {
        Some([low, middle, high]) => format!("{low:.0} to {high:.0} MHz, mostly {middle:.0}"),
        None => {
            let [low, middle, high] = series.raw_per_cycle;
            format!("{low:.4} to {high:.4} units of the method's clock per core cycle, mostly {middle:.4}")
        }
    };
    let changes = match series.change_count {
        0 => "no change seen".to_string(),
        1 => "one change seen".to_string(),
        count => format!("{count} changes seen"),
    };
    format!("{rate}; {changes} in {:.2} s, {} readings", series.seconds, series.looks)
}

/// Describes whether the TSC's step depends on the core clock.
fn describe_step_at_clocks(step: &StepAtClocks) -> String {
    let StepAtClocks { moved, ticks, on_lattice: [slow, fast], durations, steady } = step;
    let verdict = if *steady { "does not depend on the core clock" } else { "depends on the core clock" };
    format!(
        "{verdict}, which changed by {:.1} %: multiples of {ticks} ticks are {:.1} % of {} durations at its slowest \
         and {:.1} % of {} at its fastest",
        100.0 * moved,
        100.0 * slow,
        durations[0],
        100.0 * fast,
        durations[1]
    )
}

fn print_synchrony(page: &mut TextPage, found: &TscSynchrony) -> Result<(), Failure> {
    for pair in &found.pairs {
        page.print_row(&format!("TSC of CPU {}", pair.cpu), &describe_tsc_pair(pair))?;
    }
    if !found.untested.is_empty() {
        page.print_row("not tested", &cyclescope::machine::topology::format_cpu_list(&found.untested))?;
    }
    Ok(())
}

fn describe_tsc_pair(pair: &CpuComparison) -> String {
    let Some(comparison) = pair.comparison.known() else {
        return format!("unknown: {}", pair.comparison.why().unwrap_or_default());
    };
    let offset = match comparison.offset_ticks.known() {
        Some(offset) => format!("ahead by {:.0} to {:.0} ticks", offset.low, offset.high),
        None => format!("the offset moved: {}", comparison.offset_ticks.why().unwrap_or_default()),
    };
    let drift = match comparison.drift_ppm.known() {
        Some(drift) => format!("drift {:.2} to {:.2} ppm", drift.low, drift.high),
        None => comparison.drift_ppm.why().unwrap_or_default().to_string(),
    };
    let order = match comparison.backwards.exchanges {
        0 => format!("never backwards in {} exchanges", comparison.exchanges),
        count => format!(
            "backwards in {count} of {} exchanges, by up to {} ticks",
            comparison.exchanges, comparison.backwards.most_ticks
        ),
    };
    format!("{offset} (hard bound); {drift}; {order}")
}

/// Prints what the documents claim, and what this machine shows.
pub fn print_claims(page: &mut TextPage, claims: &[DocumentClaim]) -> Result<(), Failure> {
    page.begin_section("What the documents claim")?;
    for claim in claims {
        page.print_row(claim.verdict(), &format!("\"{}\" [{}]", claim.quote, claim.source))?;
        if claim.ours {
            page.print_row("", &format!("Our reading: {}.", claim.text))?;
        }
        page.print_row("", &claim.why)?;
    }
    let count = |verdict: &str| claims.iter().filter(|claim| claim.verdict() == verdict).count();
    let [holds, not, open] = ["holds", "does not hold", "can't be decided"].map(count);
    page.print_row(
        "in all",
        &format!("{holds} hold here, {not} do not, {open} can't be decided; --json has each criterion"),
    )
}

/// Prints which method to use with each executor.
pub fn print_verdicts(page: &mut TextPage, evaluation: &Evaluation) -> Result<(), Failure> {
    let several = evaluation.verdicts.len() > 1;
    for verdict in &evaluation.verdicts {
        match ExecutorOffer::find_by_name(verdict.executor).filter(|_| several) {
            Some(offer) => page.begin_section(&format!("Verdict for {}", offer.place))?,
            None => page.begin_section("Verdict")?,
        }
        self::print_verdict(page, verdict)?;
    }
    Ok(())
}

fn print_verdict(page: &mut TextPage, verdict: &EvaluationVerdict) -> Result<(), Failure> {
    let why = verdict.caveats.first().map_or("no method is suitable here", |caveat| &caveat.text);
    for (label, recommended) in [("short code", &verdict.short_code), ("long code", &verdict.long_code)] {
        match recommended {
            Some(recommended) => self::print_recommended(page, label, recommended)?,
            None => page.print_unknown(label, why)?,
        }
    }
    for finding in &verdict.findings {
        page.print_painted_row("finding", finding, Output::yellow)?;
    }
    Ok(())
}

fn print_recommended(page: &mut TextPage, label: &str, method: &RecommendedMethod) -> Result<(), Failure> {
    let name = page.output.bold(method.clock);
    page.output.write_line(format!("  {label:<18}{name}"))?;
    page.print_row("", &format!("{}.", method.why))?;
    if !method.not_told.is_empty() {
        let faults: Vec<&str> = method.not_told.iter().map(|fault| fault.describe()).collect();
        page.print_row("", &format!("Promised, but not confirmed here: {}.", faults.join(", ")))?;
    }
    if let (Some(value), Some(high)) = (method.overhead.value, method.overhead.high) {
        page.print_row("", &format!("Subtract {value:.1} ± {:.1} core cycles.", high - value))?;
    }
    let [five, one] = method.shortest_once;
    page.print_row(
        "",
        &format!(
            "One reading has a standard deviation of {:.2} core cycles: 5 % for code of {five:.0} cycles, 1 % for \
             {one:.0}.",
            method.reading_deviation
        ),
    )?;
    if let Some(many) = method.shortest_many.filter(|many| many.readings > 1) {
        let [five, one] = many.shortest;
        page.print_row(
            "",
            &format!(
                "{} alternating readings of two codes resolve {:.2} cycles at 95 %: 5 % of a difference of {five:.1} \
                 cycles, 1 % of {one:.0}.",
                many.readings, many.difference
            ),
        )?;
    }
    Ok(())
}
