//! The evaluation of timing methods: are its results reproducible, and how long does it take?
//!
//! It runs ten quick evaluations of all methods idle and ten with a busy loop on the same CPU.
//! Overhead, step, trimmed verdict, findings, claims and recommendations must not change. A method
//! that breaks its promise must be detected. With `--full` it also runs one evaluation with all of
//! the paper's samples.

use crate::lab::{Lab, LoadCondition, SectionResult};
use cyclescope::asm::CodeMode;
use cyclescope::clock::{self, Clock};
use cyclescope::executor::OpenOptions;
use cyclescope::executor::user::user_capabilities;
use cyclescope::random::Random;
use cyclescope::result::answers::MachineAnswers;
use cyclescope::study::evaluate::contamination::{
    Contamination, ContaminationFault, PromiseVerdict as Seen, measure_contamination,
};
use cyclescope::study::evaluate::ensemble_reader::SamplingSize;
use cyclescope::study::evaluate::ergodic_verdict::ErgodicVerdict;
use cyclescope::study::evaluate::evaluation::{Evaluation, MethodEvaluation};
use cyclescope::study::evaluate::plan::{self, EvaluatePlan, ExperimentTimes};
use cyclescope::study::evaluate::sampled_method::SampledMethod;
use cyclescope::study::evaluate::verdict::RecommendedMethod;
use cyclescope::study::evaluate::{EvaluateStudy, TestedClock};
use cyclescope::study::{StopReason, Study};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Evaluations in each condition.
const RUNS: usize = 10;
/// Time limits of a quick evaluation of everything, a full one, and a method's hundred million
/// samples.
const QUICK_SECONDS: f64 = 15.0;
const FULL_SECONDS: f64 = 90.0;
const METHOD_SECONDS: f64 = 20.0;
/// Overheads of two runs count as different beyond this many core cycles.
const SAME_CYCLES: f64 = 1.0;

/// Runs the section.
pub fn check_evaluation(lab: &mut Lab) -> SectionResult {
    let mut seen: BTreeMap<&'static str, MethodTally> = BTreeMap::new();
    let mut conclusions: [BTreeMap<&'static str, Vec<String>>; 2] = Default::default();
    for (load, conclusions) in LoadCondition::BOTH.into_iter().zip(&mut conclusions) {
        let load_guard = lab.start_load(load)?;
        let mut longest: f64 = 0.0;
        for _ in 0..RUNS {
            let started = Instant::now();
            let found = evaluate_once(
                lab,
                plan::SIZE_QUICK,
                plan::BUDGET_QUICK,
                plan::SLOW_METHOD_TIME_QUICK,
                ExperimentTimes::QUICK,
            )?;
            longest = longest.max(started.elapsed().as_secs_f64());
            for (what, text) in list_conclusions(&found) {
                conclusions.entry(what).or_default().push(text);
            }
            for method in found.methods.iter().filter_map(|evaluated| evaluated.method.as_ref()) {
                seen.entry(method.tested.clock.name).or_default().add(method);
            }
        }
        drop(load_guard);
        let text = format!("a quick evaluation of everything takes at most 15 s, {}", load.name());
        lab.record_demand(&text, Some(longest <= QUICK_SECONDS), format!("longest of {RUNS}: {longest:.1} s"));
    }
    for (load, conclusions) in LoadCondition::BOTH.into_iter().zip(&conclusions) {
        for (what, texts) in conclusions {
            demand_agreement(lab, &format!("{what} are the same in ten evaluations, {}", load.name()), texts);
        }
    }
    if conclusions[0]
        .values()
        .zip(conclusions[1].values())
        .all(|(idle, loaded)| most_frequent(idle).0 == most_frequent(loaded).0)
    {
        println!("idle and loaded agree");
    }
    check_false_promise(lab)?;
    report_methods(lab, &seen);
    if lab.options.full { check_full_evaluation(lab) } else { Ok(()) }
}

/// Conclusions of an evaluation: the findings without their figures, the results of claims, and the
/// recommendations with their reasons.
fn list_conclusions(found: &Evaluation) -> [(&'static str, String); 3] {
    let broken = |evaluated: &MethodEvaluation| {
        let clock = evaluated.candidate.clock.name;
        let rows = evaluated.contamination.iter().filter(|row| row.verdict == Seen::Broken);
        rows.map(move |row| format!("{clock}: {:?}", row.fault)).collect::<Vec<_>>()
    };
    let findings: Vec<String> = found.methods.iter().flat_map(broken).collect();
    let claims: Vec<String> = found.claims.iter().map(|claim| format!("{}: {:?}", claim.text, claim.holds)).collect();
    let named = |method: &Option<RecommendedMethod>| match method {
        Some(method) => format!("{} ({})", method.clock, method.why),
        None => "none".to_string(),
    };
    let recommended = found
        .verdicts
        .iter()
        .map(|verdict| format!("short code {}; long code {}", named(&verdict.short_code), named(&verdict.long_code)));
    [
        ("findings", findings.join("; ")),
        ("claims", claims.join("; ")),
        ("recommendations", recommended.collect::<Vec<_>>().join("; ")),
    ]
}

/// The most frequent of some texts, and its count.
fn most_frequent(texts: &[String]) -> (&str, usize) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    texts.iter().for_each(|text| *counts.entry(text).or_default() += 1);
    counts.into_iter().max_by_key(|(_, count)| *count).unwrap_or_default()
}

/// Requires that evaluations agree; prints their different texts if not.
fn demand_agreement(lab: &mut Lab, text: &str, texts: &[String]) {
    let (most, count) = most_frequent(texts);
    println!("{count} of {}: {text}: {most}", texts.len());
    for other in texts.iter().filter(|other| *other != most) {
        println!("    another: {other}");
    }
    lab.record_demand(text, Some(count == texts.len()), format!("{count} of {}", texts.len()));
}

/// Bare RDTSC with the promises of a fenced method: its body is unfinished at the end, which must
/// be detected.
fn check_false_promise(lab: &mut Lab) -> SectionResult {
    let fenced = Clock::find_named("lfence-rdtsc-lfence").ok_or("the clock exists")?;
    let bare = Clock::find_named("rdtsc").ok_or("the clock exists")?;
    let clock = Clock { promises: fenced.promises, ..*bare };
    let imul_latency = f64::from(lab.machine.cpu.imul_latency().unwrap_or(3));
    let step = fenced.reading_step(&lab.machine.tsc);
    let tested = TestedClock {
        clock: &clock,
        executor: "user",
        mode: CodeMode::default(),
        ruler: fenced,
        step,
        imul_latency,
        width: None,
        emulated: false,
    };
    let mut found = 0;
    for _ in 0..RUNS {
        let (mut executor, mut random) = (lab.spawn_executor()?, Random::new(lab.next_seed()));
        let rows = measure_contamination(&mut executor, &tested, ExperimentTimes::QUICK.contamination, &mut random)?;
        let is_broken =
            |row: &Contamination| row.fault == ContaminationFault::BodyUnfinished && row.verdict == Seen::Broken;
        found += usize::from(rows.iter().any(is_broken));
    }
    let text = "a method without fences that promises to wait for the body is found";
    lab.record_demand(text, Some(found == RUNS), format!("{found} of {RUNS} evaluations"));
    Ok(())
}

/// Results of the runs for one method.
#[derive(Default)]
struct MethodTally {
    overheads: Vec<f64>,
    steps: BTreeSet<String>,
    ergodic: BTreeSet<Option<ErgodicVerdict>>,
}

impl MethodTally {
    fn add(&mut self, method: &SampledMethod) {
        self.overheads.extend(method.trimmed.map(|summary| summary.overhead));
        self.steps.insert(format!("{:.0}", method.tested.step));
        self.ergodic.insert(method.trimmed_ergodicity());
    }

    fn overhead_range(&self) -> [f64; 2] {
        let fold = |[low, high]: [f64; 2], value: &f64| [low.min(*value), high.max(*value)];
        self.overheads.iter().fold([f64::INFINITY, f64::NEG_INFINITY], fold)
    }
}

fn report_methods(lab: &mut Lab, seen: &BTreeMap<&'static str, MethodTally>) {
    println!("{:<28} {:>21} {:>6}  ergodic, trimmed", "method", "overhead, core cycles", "step");
    let (mut overheads, mut verdicts) = (0, 0);
    let mut ergodic = 0;
    for (name, found) in seen {
        let [low, high] = found.overhead_range();
        let steps: Vec<&str> = found.steps.iter().map(String::as_str).collect();
        println!("{name:<28} {low:>9.2} to {high:>8.2} {:>6}  {:?}", steps.join(","), found.ergodic);
        verdicts += usize::from(found.ergodic.len() == 1 && found.steps.len() == 1);
        if found.ergodic.contains(&Some(ErgodicVerdict::Yes)) {
            ergodic += 1;
            overheads += usize::from(high - low <= SAME_CYCLES);
        }
    }
    let all = seen.len();
    let figure = format!("{verdicts} of {all} methods");
    lab.record_demand("step and trimmed verdict are the same in 20 evaluations", Some(verdicts == all), figure);
    let figure = format!("{overheads} of {ergodic} methods that were ergodic");
    let text = "the overhead is the same in 20 evaluations, within a core cycle";
    lab.record_demand(text, Some(overheads == ergodic), figure);
}

/// One evaluation with the paper's hundred million samples.
fn check_full_evaluation(lab: &mut Lab) -> SectionResult {
    let started = Instant::now();
    let found = evaluate_once(lab, SamplingSize::PAPER, plan::BUDGET, plan::SLOW_METHOD_TIME, ExperimentTimes::FULL)?;
    let seconds = started.elapsed().as_secs_f64();
    lab.record_demand(
        "an evaluation of everything takes at most 90 s",
        Some(seconds <= FULL_SECONDS),
        format!("{seconds:.1} s"),
    );
    let mut longest: f64 = 0.0;
    let mut cut = Vec::new();
    for method in found.methods.iter().filter_map(|evaluated| evaluated.method.as_ref()) {
        let samples: u64 = method.sampled.ensembles.iter().map(|ensemble| ensemble.count).sum();
        println!("{:<28} {samples:>11} samples in {:>5.1} s", method.tested.clock.name, method.sampled.seconds);
        if samples < SamplingSize::PAPER.total_samples() {
            cut.push(method.tested.clock.name);
        } else {
            longest = longest.max(method.sampled.seconds);
        }
    }
    let text = "a hundred million samples take at most 20 s a method";
    let figure = format!("longest {longest:.1} s; fewer samples: {}", cut.join(", "));
    lab.record_demand(text, Some(longest > 0.0 && longest <= METHOD_SECONDS), figure);
    Ok(())
}

fn evaluate_once(
    lab: &mut Lab,
    size: SamplingSize,
    budget: Duration,
    slow: Duration,
    times: ExperimentTimes,
) -> SectionResult<Evaluation> {
    let (candidates, not_run) = plan::split_candidates(
        clock::ALL_CLOCKS,
        CodeMode::default(),
        &lab.machine,
        &[user_capabilities(&lab.machine)],
    );
    let (slow, seed) = (Some(slow), lab.next_seed());
    let plan = EvaluatePlan {
        candidates,
        not_run,
        mode: CodeMode::default(),
        size,
        budget,
        slow,
        times,
        resolution_samples: None,
        seed,
        series: false,
        counters: None,
    };
    let mut study = EvaluateStudy::new(lab.machine.clone(), plan, OpenOptions::default(), String::new());
    match study.measure(&MachineAnswers::live(), &mut Vec::new()) {
        Ok(()) => Ok(study.found.ok_or("a study that ends has found something")?),
        Err(StopReason::Failed(error)) => Err(error.into()),
        Err(StopReason::Requested) => Err("nobody ended the evaluation".into()),
    }
}
