//! Markers: the duration of surveys, whether three agree, and the cost of a loop without a marker
//! over itself.

use crate::lab::{Lab, LoadCondition, SectionResult};
use cyclescope::executor::user::UserOptions;
use cyclescope::measure::measure_cost;
use cyclescope::run::RunRequest;
use cyclescope::study::ResultRecord;
use cyclescope::study::marker::compiled_design::{CompiledDesign, ProbeSet};
use cyclescope::study::marker::source::context;
use cyclescope::study::marker::source::design::Enabling;
use cyclescope::study::marker::survey::{PROOF_LOOPS, VisitPlan, survey_cases};
use cyclescope::study::marker::user::UserBench;
use cyclescope::study::marker::visit_ledger::{CaseFinding, case_aim};
use std::time::Instant;

/// Time limits of a survey of the two usual loops, a quick one, and one of all loops.
const SURVEY_SECONDS: f64 = 60.0;
const QUICK_SECONDS: f64 = 10.0;
const ALL_SECONDS: f64 = 300.0;
/// Number of control surveys: the loop less itself.
const CONTROLS: u64 = 40;
/// The smallest share of control surveys whose interval contains 0. Ranks 4 and 13 of 16 contain a
/// median in 97.9 %; three standard deviations of 80 such trials are subtracted.
const HOLDS_ZERO: f64 = 0.93;

/// Runs the section.
pub fn check_markers(lab: &mut Lab) -> SectionResult {
    check_control(lab)?;
    let usual = || context::ALL.iter().filter(|context| context.usual).map(|context| context.name);
    let usual: Vec<&str> = usual().collect();
    let all: Vec<&str> = context::ALL.iter().map(|context| context.name).collect();
    survey_markers(lab, "quick", &usual, QUICK_SECONDS, VisitPlan::quick)?;
    let mut three = Vec::new();
    for name in ["default, first", "default, second", "default, third"] {
        three.push(survey_markers(lab, name, &usual, SURVEY_SECONDS, VisitPlan::new)?);
    }
    demand_same_ranks(lab, "three surveys rank alike", &three);
    let load_guard = lab.start_load(LoadCondition::Busy)?;
    let busy = survey_markers(lab, "default, with a busy loop", &usual, 2.0 * SURVEY_SECONDS, VisitPlan::new)?;
    drop(load_guard);
    demand_same_ranks(lab, "one with a busy loop ranks as the first", &[three.swap_remove(0), busy]);
    let longer = |latency, seed| VisitPlan::new(latency, seed).for_contexts(context::ALL.len());
    survey_markers(lab, "all loops", &all, ALL_SECONDS, longer)?;
    Ok(())
}

/// The input of a survey: the latency of `imul`.
fn find_imul_latency(lab: &mut Lab) -> SectionResult<(f64, cyclescope::measure::Plan)> {
    let plan = lab.make_plan(&RunRequest::default())?;
    let latency = match plan.imul_latency {
        Some(latency) => latency,
        None => {
            let nop = lab.assemble_snippet("nop", "")?.ok_or("no CPU lacks a NOP")?;
            measure_cost(&mut lab.spawn_executor()?, &nop, &plan)?.acquisition.shape.imul_latency
        }
    };
    Ok((latency, plan))
}

fn open_bench(
    lab: &mut Lab,
    designs: &[CompiledDesign],
    contexts: &[&str],
    seed: u64,
) -> SectionResult<(UserBench, f64)> {
    let (latency, plan) = find_imul_latency(lab)?;
    let cpu = lab.machine.target.as_ref().map_or(0, |target| target.cpu as usize);
    let options = UserOptions { cpu, own_code: true, ..UserOptions::default() };
    let caches = &lab.machine.topology.caches;
    let (bench, skipped) =
        UserBench::new(&options, plan.clock, plan.step, (designs, ProbeSet::read_built()), contexts, caches, seed)?;
    for (case, why) in skipped {
        println!("skipped: {} {} in {}: {why}", case.design.name, case.state.name, case.context);
    }
    Ok((bench, latency))
}

/// Compares the loop without a marker with a copy of itself, many times.
fn check_control(lab: &mut Lab) -> SectionResult {
    let designs: Vec<CompiledDesign> =
        CompiledDesign::list_built().into_iter().filter(|compiled| compiled.design.name == "none").collect();
    let (mut holds, mut all, mut placements, mut held) = (0, 0, 0, 0);
    for seed in 0..CONTROLS {
        let (mut bench, latency) = open_bench(lab, &designs, &["empty", "memcpy"], seed)?;
        for finding in survey_cases(&mut bench, &VisitPlan::new(latency, seed), &mut Vec::<ResultRecord>::new())? {
            holds += usize::from(finding.cost.is_some_and(|cost| cost.contains(0.0)));
            all += 1;
            for placement in finding.placements.iter().flatten() {
                held += usize::from(placement.cost.contains(0.0));
                placements += 1;
            }
        }
    }
    let figure = format!("{holds} of {all}; of single placements {held} of {placements}");
    println!("the loop less itself costs nothing: {figure}");
    let share = f64::from(holds as u32) / f64::from(all.max(1));
    let text = format!("intervals of the loop less itself contain 0, {:.0} %", 100.0 * HOLDS_ZERO);
    lab.record_demand(&text, Some(share >= HOLDS_ZERO), figure);
    Ok(())
}

/// One survey of all designs in all states.
fn survey_markers(
    lab: &mut Lab,
    name: &str,
    contexts: &[&str],
    limit: f64,
    plan: fn(f64, u64) -> VisitPlan,
) -> SectionResult<Vec<CaseFinding>> {
    let started = Instant::now();
    let seed = lab.options.seed;
    let (mut bench, latency) = open_bench(lab, &CompiledDesign::list_built(), contexts, seed)?;
    let findings = survey_cases(&mut bench, &plan(latency, seed), &mut Vec::<ResultRecord>::new())?;
    let seconds = started.elapsed().as_secs_f64();
    let text = format!("a survey of markers takes at most {limit:.0} s, {name}");
    lab.record_demand(&text, Some(seconds <= limit), format!("{seconds:.1} s"));
    let wrong = findings.iter().filter(|finding| {
        // For an indirect call, a dormant marker means a call of an empty function.
        let calls = finding.case.state.enabled || finding.case.design.enabling == Enabling::Probe;
        let expected = if calls { PROOF_LOOPS } else { 0 };
        finding.hits.is_some_and(|hits| hits != expected)
    });
    let wrong = wrong.count();
    lab.record_demand(
        &format!("dormant markers call nothing and enabled ones each time, {name}"),
        Some(wrong == 0),
        format!("{wrong} of {} do not", findings.len()),
    );
    println!("{name}: {} markers in {seconds:.1} s", findings.len());
    for context in contexts {
        let of = findings.iter().filter(|finding| finding.case.context == *context);
        let (mut reached, mut dormant, mut placements, mut dormants) = (0, 0, 0, 0);
        for finding in of {
            for placement in &finding.placements {
                let good = placement
                    .as_ref()
                    .is_some_and(|placement| placement.cost.half_width() <= case_aim(&finding.case, &placement.cost));
                reached += usize::from(good);
                placements += 1;
                if !finding.case.state.enabled {
                    dormant += usize::from(good);
                    dormants += 1;
                }
            }
        }
        let figure = format!("{reached} of {placements}; of dormant ones {dormant} of {dormants}");
        println!("  {context}: differences as narrow as asked for: {figure}");
        let text = format!("differences in the loop {context} are as narrow as asked for, {name}");
        let demanded = name.starts_with("default, ") && !name.contains("busy");
        lab.record_demand(&text, demanded.then_some(reached == placements), figure);
    }
    Ok(findings)
}

/// Requires that surveys rank all pairs of markers alike whose intervals don't overlap.
fn demand_same_ranks(lab: &mut Lab, text: &str, surveys: &[Vec<CaseFinding>]) {
    let count = surveys[0].len();
    let (mut same, mut all) = (0, 0);
    for (one, other) in (0..count).flat_map(|one| (0..one).map(move |other| (one, other))) {
        if surveys[0][one].case.context != surveys[0][other].case.context {
            continue;
        }
        let order = |findings: &Vec<CaseFinding>| {
            let (one, other) = (findings[one].cost?, findings[other].cost?);
            (one.high < other.low || other.high < one.low).then_some(one.value < other.value)
        };
        let orders: Vec<bool> = surveys.iter().filter_map(order).collect();
        if orders.len() > 1 {
            all += 1;
            same += usize::from(orders.windows(2).all(|pair| pair[0] == pair[1]));
        }
    }
    let figure = format!("{same} of {all} pairs");
    println!("{text}: {figure}");
    lab.record_demand(text, Some(same == all), figure);
}
