//! Runs the study of instructions on simulated cores, and compares its results with the simulated
//! costs.
//!
//! A normal run takes a sample of the forms on two machines. The ignored test takes all forms.

mod constants;
mod counters;
#[path = "../chains/everything.rs"]
mod everything;
mod memory;
mod mixes;
mod partial_registers;
mod rates;
mod regimes;
mod score;
mod sequences;
mod simulated_costs;
mod slots;

use cyclescope_code::asm::forms::{self, InstructionForm, OperandChoice};
use cyclescope_code::asm::{ALL_MODES, CodeMode};
use cyclescope_code::clock::Clock;
use cyclescope_instr::experiments::form_plan::FormPlan;
use cyclescope_instr::experiments::survey_effort::SurveyEffort;
use cyclescope_instr::forms::target_form::TargetForm;
use cyclescope_instr::rows::instr_row::{InstrRow, RowStatus};
use cyclescope_instr::survey::{FormSurvey, SurveyEvent, SurveyState};
use cyclescope_instr::survey_settings::{SurveySettings, SurveyTiming};
use cyclescope_measure::{Plan, resolve_ruler_latency};
use cyclescope_sim::{CoreModel, SimulatedCore};
use everything::everything;
use iced_x86::FlowControl;
use score::Score;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Nothing disturbs a simulated core, so three layouts suffice. With two, intervals would be
/// arbitrarily wide by chance.
const EFFORT: SurveyEffort = SurveyEffort {
    passes: 1,
    layouts: 3,
    rounds: 1,
    recipes: 8,
    cycles: 3_000.0,
    decoders: false,
    regimes: true,
    constants: false,
    slots: false,
    wait: Duration::ZERO,
};
/// A normal run measures one of this many forms.
const SAMPLE: usize = 40;

/// The timing of a survey of a core, with a clock of this step.
fn timing_of(model: &CoreModel, step: f64) -> SurveyTiming<'static> {
    let clock = Clock::find_named("lfence-rdtsc-lfence").expect("a timing method");
    SurveyTiming { clock, step, imul_latency: model.imul_latency.into(), mode: CodeMode::default(), adders: None }
}

/// Surveys forms on a simulated machine. Returns rows, and the plans of measured ones.
fn survey(model: &CoreModel, seed: u64, all: &[InstructionForm]) -> Vec<(InstrRow, Option<FormPlan>)> {
    let features = everything();
    let mut core = SimulatedCore::new(model.clone(), seed);
    let wanted: Vec<TargetForm> = all.iter().map(|form| TargetForm::from(*form)).collect();
    let mode = all.first().map_or(CodeMode::default(), |form| form.mode);
    let imul_latency = match mode {
        CodeMode::Bits64 => model.imul_latency.into(),
        CodeMode::Bits32 => {
            let plan = Plan { seed, ..Plan::simulated() };
            resolve_ruler_latency(&mut core, &plan, mode).expect("no fault is simulated")
        }
    };
    let timing = SurveyTiming { imul_latency, mode, ..timing_of(model, 2.0) };
    let settings = SurveySettings { effort: EFFORT, seed, confidence: 0.95 };
    let survey = FormSurvey::new(timing, &mut core, &features, wanted, settings);
    let survey = survey.expect("no fault is simulated");
    let mut rows: Vec<InstrRow> = Vec::new();
    let mut take = |event: SurveyEvent, _| {
        if let SurveyEvent::Row(row) = event {
            rows.push(*row);
        }
        ControlFlow::Continue(())
    };
    survey.run(&mut core, SurveyState::default(), &mut take).expect("no fault is simulated");
    let planned = |row: InstrRow| {
        let is =
            |form: &InstructionForm| format!("{:?}", form.code) == row.code && form.describe_operands() == row.operands;
        let form = all.iter().position(is).expect("a row belongs to a form");
        let measured = row.status == RowStatus::Measured;
        let plan = measured.then(|| survey.plan_form(form).expect("a measured form has a plan"));
        (row, plan)
    };
    rows.into_iter().map(planned).collect()
}

/// Scores a survey of a machine against its simulated costs.
fn scored(model: &CoreModel, all: &[InstructionForm]) -> (Score, Vec<InstrRow>) {
    let rows = survey(model, model.seed, all);
    let mut score = Score::default();
    for (row, plan) in &rows {
        match (row.status, plan) {
            (RowStatus::Measured, Some(plan)) => score.add(row, plan, model),
            (RowStatus::Skipped, _) => score.skipped += 1,
            _ => score.failed.push(format!("{} {}: {:?}", row.code, row.operands, row.reason)),
        }
    }
    (score, rows.into_iter().map(|(row, _)| row).collect())
}

/// Every `every`-th form of a mode, with a different start for each seed. Without branches: a
/// simulated core knows no targets.
fn sample(mode: CodeMode, seed: u64, every: usize) -> Vec<InstructionForm> {
    let flow = |form: &InstructionForm| Some(form.build_instruction(&OperandChoice::default())?.flow_control());
    let chosen = |(at, form): (usize, InstructionForm)| (at % every == seed as usize * 7 % every).then_some(form);
    forms::all_forms_of(mode)
        .filter(|form| flow(form) == Some(FlowControl::Next))
        .enumerate()
        .filter_map(chosen)
        .collect()
}

fn check(mode: CodeMode, seed: u64, every: usize) {
    let start = Instant::now();
    let forms = sample(mode, seed, every);
    let (score, _) = scored(&CoreModel::from_seed(seed), &forms);
    println!(
        "machine {seed}, {mode:?}, {} forms in {:.1} s: {}",
        forms.len(),
        start.elapsed().as_secs_f64(),
        score.text()
    );
    score.complaints().iter().for_each(|line| println!("  {line}"));
    score.check(&forms);
}

#[test]
fn a_sample_of_forms_is_measured_as_simulated() {
    for seed in [1, 2] {
        check(CodeMode::Bits64, seed, SAMPLE);
    }
}

#[test]
fn a_sample_of_forms_of_32_bit_code_is_measured_as_simulated() {
    for seed in [1, 2] {
        check(CodeMode::Bits32, seed, 2 * SAMPLE);
    }
}

/// `CYCLESCOPE_SIMULATED_SEED` chooses the machine.
#[test]
#[ignore = "takes more than a minute per machine; the sample above runs every time"]
fn all_forms_are_measured_as_simulated() {
    let seed = std::env::var("CYCLESCOPE_SIMULATED_SEED").ok().and_then(|seed| seed.parse().ok());
    for mode in ALL_MODES {
        check(mode, seed.unwrap_or(3), 1);
    }
}

/// Two passes over some forms, interrupted twice, give each form one row, like an uninterrupted
/// survey.
#[test]
fn an_interrupted_survey_resumes() {
    let features = everything();
    let model = CoreModel::from_seed(5);
    let timing = timing_of(&model, 2.0);
    let effort = SurveyEffort { passes: 2, ..EFFORT };
    let forms = sample(CodeMode::default(), 5, 1500);
    let mut known = SurveyState::default();
    let mut rows: Vec<InstrRow> = Vec::new();
    for most in [forms.len() / 2, forms.len(), usize::MAX] {
        let mut core = SimulatedCore::new(model.clone(), 5);
        let wanted = forms.iter().map(|form| TargetForm::from(*form)).collect();
        let settings = SurveySettings { effort, seed: 5, confidence: 0.95 };
        let survey = FormSurvey::new(timing, &mut core, &features, wanted, settings);
        let survey = survey.expect("no fault is simulated");
        let mut events = 0;
        let mut made: Vec<InstrRow> = Vec::new();
        let mut done = known.done.clone();
        let standing = survey.count_progress(&known);
        let mut last = standing;
        let mut take = |event: SurveyEvent, progress| {
            match event {
                SurveyEvent::Row(row) => made.push(*row),
                SurveyEvent::Done(one) => done.push(one.clone()),
            }
            (events, last) = (events + 1, progress);
            if events >= most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        survey.run(&mut core, known, &mut take).expect("no fault is simulated");
        assert_eq!(last.done, standing.done + events, "known passes are not repeated");
        let is = |row: &InstrRow, form: &InstructionForm| {
            format!("{:?}", form.code) == row.code && form.describe_operands() == row.operands
        };
        rows.extend(made);
        let complete: Vec<usize> = (0..forms.len()).filter(|at| rows.iter().any(|row| is(row, &forms[*at]))).collect();
        done.retain(|one| !complete.contains(&one.form));
        known = SurveyState { complete, done };
    }
    let mut names: Vec<String> = rows.iter().map(|row| format!("{} {}", row.code, row.operands)).collect();
    names.sort();
    names.dedup();
    assert_eq!((rows.len(), names.len()), (forms.len(), forms.len()));
}
