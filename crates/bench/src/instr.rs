//! Tables of instructions: their duration, and whether two agree, also with a busy loop.

use crate::lab::{Lab, LoadCondition, SectionResult};
use cyclescope::asm::forms;
use cyclescope::run::RunRequest;
use cyclescope::study::instr::experiments::survey_effort::SurveyEffort;
use cyclescope::study::instr::forms::target_form::TargetForm;
use cyclescope::study::instr::rows::instr_row::InstrRow;
use cyclescope::study::instr::survey::{FormSurvey, SurveyEvent, SurveyState};
use cyclescope::study::instr::survey_settings::SurveySettings;
use cyclescope::study::instr::tables::compare::{QuantityKind, TableComparison, Tolerance, compare_results};
use cyclescope::study::instr::tables::summary::SurveySummary;
use std::ops::ControlFlow;
use std::time::Instant;

/// Time limits of a quick table of all forms, and of a full one.
const QUICK_SECONDS: f64 = 30.0;
const FULL_SECONDS: f64 = 300.0;
/// Largest shares of all forms that may fail, or be skipped although the CPU has them.
const FAILED_SHARE: f64 = 0.002;
const SKIPPED_SHARE: f64 = 0.01;
/// Smallest shares of equal values in two tables: both idle, and one with a busy loop on its CPU.
const SAME_SHARE: f64 = 0.99;
const SAME_SHARE_BUSY: f64 = 0.98;

/// Runs the section.
pub fn check_tables(lab: &mut Lab) -> SectionResult {
    let quick = measure_table(lab, "quick", SurveyEffort::QUICK, QUICK_SECONDS)?;
    let first = measure_table(lab, "default", SurveyEffort::FULL, FULL_SECONDS)?;
    let second = measure_table(lab, "default", SurveyEffort::FULL, FULL_SECONDS)?;
    let load_guard = lab.start_load(LoadCondition::Busy)?;
    // The loop takes half of the time.
    let busy = measure_table(lab, "default, with a busy loop", SurveyEffort::FULL, 2.0 * FULL_SECONDS)?;
    drop(load_guard);
    let agrees = |rows: &[InstrRow]| compare_results(&first, rows, Tolerance::RESULTS);
    demand_agreement(lab, "two default tables agree", &agrees(&second), Some(SAME_SHARE));
    demand_agreement(lab, "one with a busy loop agrees", &agrees(&busy), Some(SAME_SHARE_BUSY));
    demand_agreement(lab, "a quick table agrees", &agrees(&quick), None);
    Ok(())
}

/// One table of all forms.
fn measure_table(lab: &mut Lab, name: &str, effort: SurveyEffort, limit: f64) -> SectionResult<Vec<InstrRow>> {
    let started = Instant::now();
    let plan = lab.make_plan(&RunRequest::default())?;
    let mut executor = lab.spawn_executor()?;
    let forms: Vec<TargetForm> = forms::all_forms().map(TargetForm::from).collect();
    let timing = lab.survey_timing(&mut executor, &plan)?;
    let settings = SurveySettings { effort, seed: plan.seed, confidence: plan.confidence };
    let survey = FormSurvey::new(timing, &mut executor, &lab.machine.features, forms, settings)?;
    let mut rows = Vec::new();
    survey.run(&mut executor, SurveyState::default(), &mut |event, _| {
        if let SurveyEvent::Row(row) = event {
            rows.push(*row);
        }
        ControlFlow::Continue(())
    })?;
    let seconds = started.elapsed().as_secs_f64();
    let all = SurveySummary::from_rows(&rows).all;
    println!(
        "{name}: {} forms measured, {} skipped, {} failed in {seconds:.0} s; {} exact, {} sum, {} upper",
        all.measured, all.skipped, all.failed, all.exact, all.sum, all.upper
    );
    let text = format!("a table takes at most {limit:.0} s, {name}");
    lab.record_demand(&text, Some(seconds <= limit), format!("{seconds:.1} s"));
    let had = |row: &&InstrRow| !matches!(row.reason.as_deref(), Some("unsupported" | "privileged"));
    let tried = rows.iter().filter(had).count();
    let reasons = rows.iter().filter(had).filter(|row| row.reason.is_some()).count() - all.failed as usize;
    for (what, count, most) in
        [("fail", all.failed as usize, FAILED_SHARE), ("are skipped though the CPU has them", reasons, SKIPPED_SHARE)]
    {
        let text = format!("at most {} % of the forms {what}, {name}", 100.0 * most);
        let figure = format!("{count} of {tried}");
        lab.record_demand(&text, Some(count as f64 <= most * tried as f64), figure);
    }
    Ok(rows)
}

/// Requires that this share of all values agrees; without a share it prints the figures only.
fn demand_agreement(lab: &mut Lab, text: &str, comparison: &TableComparison, least: Option<f64>) {
    let (mut same, mut all) = (0, 0);
    let mut parts = Vec::new();
    for tally in &comparison.quantities {
        let both = tally.agree + tally.differ;
        same += tally.agree;
        all += both;
        let name = match tally.kind {
            QuantityKind::LatencyExact => "exact latencies",
            QuantityKind::LatencySum => "sums",
            QuantityKind::LatencyUpper => "upper bounds",
            QuantityKind::Throughput => "throughput",
            QuantityKind::Slots => "slots",
        };
        let overlap = 100.0 * tally.overlap as f64 / tally.intervals.max(1) as f64;
        let share = 100.0 * tally.agree as f64 / both.max(1) as f64;
        parts.push(format!("{name} {share:.1} % (intervals {overlap:.1} %)"));
    }
    let share = same as f64 / f64::max(all as f64, 1.0);
    let figure = format!("{:.1} % of {all}: {}", 100.0 * share, parts.join(", "));
    println!("{text}: {figure}");
    let text = match least {
        Some(least) => format!("{text} in {:.0} % of the values", 100.0 * least),
        None => text.to_string(),
    };
    lab.record_demand(&text, least.map(|least| share >= least), figure);
}
