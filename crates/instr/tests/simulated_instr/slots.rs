//! Dispatch slots on simulated cores of several widths.

use super::{EFFORT, everything, sample, timing_of};
use cyclescope_code::asm::CodeMode;
use cyclescope_code::asm::forms::InstructionForm;
use cyclescope_core::machine::integer_adders::IntegerAdders;
use cyclescope_instr::experiments::slot_judgement::SlotVerdict;
use cyclescope_instr::experiments::survey_effort::SurveyEffort;
use cyclescope_instr::forms::target_form::TargetForm;
use cyclescope_instr::rows::instr_row::InstrRow;
use cyclescope_instr::survey::{FormSurvey, SurveyEvent, SurveyState};
use cyclescope_instr::survey_settings::{SurveySettings, SurveyTiming};
use cyclescope_sim::{CoreModel, Scenario, SimulatedCore, SimulatedNoise, SimulatedSibling};
use std::ops::ControlFlow;

/// One of this many forms is measured.
const SAMPLE: usize = 180;
/// Share of the forms with a verdict that must be certain and right.
const RIGHT_LEAST: f64 = 0.99;
/// Share of the forms that must have a number or a verdict.
const DECIDED_LEAST: f64 = 0.9;

/// A core of this width with enough ports for it.
fn core_of_width(width: u32) -> CoreModel {
    let integer_ports = (width - 1).clamp(3, 5);
    CoreModel { width, integer_ports, vector_ports: 3, load_ports: 3, ..CoreModel::from_seed(u64::from(width)) }
}

/// An undisturbed machine with a TSC that counts in steps of two.
fn quiet() -> Scenario {
    Scenario { step: 2, ..Scenario::default() }
}

/// Counts of the rows of a survey.
#[derive(Debug, Default)]
struct SlotScore {
    /// Certain and right, microcode included.
    right: usize,
    /// Called certain, with a wrong number.
    wrong: Vec<String>,
    /// Only a bound, which holds.
    bounded: Vec<String>,
    /// No figure, with its reason.
    unclear: Vec<String>,
}

impl SlotScore {
    fn add(&mut self, row: &InstrRow, truth: Option<u32>) {
        let slots = row.slots.as_ref().expect("slots are counted");
        let text = || format!("{} {}: {:?}, truly {truth:?}", row.code, row.operands, slots);
        let is_small = |truth: u32| truth <= 8;
        match (slots.verdict, slots.whole, truth) {
            (SlotVerdict::Exact, Some(whole), Some(truth)) if whole == truth as usize => self.right += 1,
            (SlotVerdict::Microcoded, _, truth) if !truth.is_some_and(is_small) => self.right += 1,
            (SlotVerdict::Upper, Some(whole), Some(truth)) if whole >= truth as usize => self.bounded.push(text()),
            (SlotVerdict::Unclear, ..) => self.unclear.push(text()),
            _ => self.wrong.push(text()),
        }
    }
}

/// Counts the slots of forms on a core.
fn count_slots(model: &CoreModel, scenario: Scenario, effort: SurveyEffort, forms: &[InstructionForm]) -> SlotScore {
    let features = everything();
    let step = scenario.step as f64;
    let mut core = SimulatedCore::with_scenario(model.clone(), scenario, model.seed);
    let wanted = forms.iter().map(|form| TargetForm { latency: false, ..TargetForm::from(*form) }).collect();
    let timing = timing_of(model, step);
    let settings = SurveySettings { effort, seed: model.seed, confidence: 0.95 };
    let survey = FormSurvey::new(timing, &mut core, &features, wanted, settings).expect("no fault is simulated");
    let mut score = SlotScore::default();
    let mut take = |event: SurveyEvent, _| {
        if let SurveyEvent::Row(row) = event
            && row.slots.is_some()
        {
            let form = forms
                .iter()
                .position(|form| format!("{:?}", form.code) == row.code && form.describe_operands() == row.operands);
            let form = form.expect("a row belongs to a form");
            let sample = survey.plan_form(form).expect("a measured form has a plan").anatomy.sample;
            score.add(&row, model.slots(&sample));
        }
        ControlFlow::Continue(())
    };
    survey.run(&mut core, SurveyState::default(), &mut take).expect("no fault is simulated");
    score
}

const SLOTS_ONLY: SurveyEffort = SurveyEffort { slots: true, regimes: false, recipes: 3, ..EFFORT };

fn check(what: &str, score: &SlotScore) {
    let SlotScore { right, wrong, bounded, unclear } = score;
    let decided = right + wrong.len() + bounded.len();
    let all = decided + unclear.len();
    println!("{what}: {right} of {decided} right, {} bounds, {} unclear", bounded.len(), unclear.len());
    bounded.iter().chain(unclear).take(12).for_each(|line| println!("  {line}"));
    assert!(wrong.is_empty(), "{what}: {wrong:#?}");
    assert!(
        *right as f64 >= RIGHT_LEAST * (right + wrong.len()) as f64 && decided as f64 >= DECIDED_LEAST * all as f64
    );
    assert!(*right as f64 >= 0.95 * decided as f64, "{what}: {bounded:#?}");
}

#[test]
fn slots_are_counted_at_every_width() {
    for width in 4..=8 {
        let model = core_of_width(width);
        let forms = sample(CodeMode::default(), u64::from(width), SAMPLE);
        check(&format!("width {width}"), &count_slots(&model, quiet(), SLOTS_ONLY, &forms));
    }
}

#[test]
fn fused_loads_and_microcode_are_told_apart() {
    let fused = CoreModel { fuses_memory: true, microcode_above: Some(2), ..core_of_width(6) };
    check("fused, microcode", &count_slots(&fused, quiet(), SLOTS_ONLY, &sample(CodeMode::default(), 6, SAMPLE)));
}

/// Without zero idioms, other fillers agree.
#[test]
fn a_core_without_zero_idioms_has_other_fillers() {
    let model = CoreModel { knows_zero_idioms: false, eliminates_64: true, ..core_of_width(7) };
    check("no zero idioms", &count_slots(&model, quiet(), SLOTS_ONLY, &sample(CodeMode::default(), 7, SAMPLE)));
}

/// With noise or a sibling that is busy at times, no number is called certain and wrong.
#[test]
fn noise_and_a_busy_sibling_make_no_wrong_number() {
    let noise = SimulatedNoise::LogNormal { probability: 0.1, median: 120.0, sigma: 1.5 };
    let sibling = SimulatedSibling { busy: 1e6, idle: 2e6, snippet: 0.5 };
    for scenario in [Scenario { noise, ..quiet() }, Scenario { sibling: Some(sibling), ..quiet() }] {
        let effort = SurveyEffort { rounds: 3, ..SLOTS_ONLY };
        let score = count_slots(&core_of_width(8), scenario, effort, &sample(CodeMode::default(), 8, 2 * SAMPLE));
        check("disturbed", &score);
    }
}

#[test]
fn a_sibling_that_never_rests_leaves_no_slots_per_cycle() {
    let model = core_of_width(6);
    let features = everything();
    let settings = SurveySettings { effort: SLOTS_ONLY, seed: model.seed, confidence: 0.95 };
    let find_width = |sibling, adders| {
        let mut core = SimulatedCore::with_scenario(model.clone(), Scenario { sibling, ..quiet() }, 5);
        let timing = SurveyTiming { adders, ..timing_of(&model, 2.0) };
        let survey = FormSurvey::new(timing, &mut core, &features, Vec::new(), settings);
        survey.expect("no fault is simulated").filler_curves.width()
    };
    let adders = Some(IntegerAdders::with_usual_share(model.integer_ports));
    let busy = SimulatedSibling { busy: 1e30, idle: 1e-9, snippet: 1.0 };
    let alone = find_width(None, adders).expect("a width");
    assert!((alone - 6.0).abs() < 0.02, "{alone}");
    assert_eq!(find_width(Some(busy), adders), None);
    // Without data nothing tells the half from the whole.
    let half = find_width(Some(busy), None).expect("a width");
    assert!((half - 3.0).abs() < 0.05, "{half}");
}
