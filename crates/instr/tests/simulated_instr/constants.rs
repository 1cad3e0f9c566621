//! Constants in code on simulated cores: the rows have variants for constants with a simulated
//! effect, and no others.

use super::everything::everything;
use super::timing_of;
use cyclescope_code::asm::forms::{self, InstructionForm};
use cyclescope_instr::experiments::survey_effort::SurveyEffort;
use cyclescope_instr::forms::encoded_constant::EncodedConstant;
use cyclescope_instr::forms::form_anatomy::FormAnatomy;
use cyclescope_instr::forms::target_form::TargetForm;
use cyclescope_instr::rows::instr_row::{InstrRow, RowStatus};
use cyclescope_instr::survey::FormSurvey;
use cyclescope_instr::survey_settings::SurveySettings;
use cyclescope_sim::{CoreModel, SimulatedCore};
use std::collections::BTreeSet;
use std::time::Duration;

/// A difference must appear in two passes, and few layouts give wide intervals.
const EFFORT: SurveyEffort = SurveyEffort {
    passes: 2,
    layouts: 4,
    rounds: 1,
    recipes: 6,
    cycles: 3_000.0,
    decoders: false,
    regimes: false,
    constants: true,
    slots: false,
    wait: Duration::ZERO,
};
/// One of this many forms with a constant is measured.
const SAMPLE: usize = 60;

/// The simulated rate, and latencies except through memory.
type Figures = (f64, Vec<(String, String, u32)>);

fn figures(model: &CoreModel, anatomy: &FormAnatomy) -> Figures {
    let mut latencies = model.latencies(&anatomy.sample);
    latencies.retain(|(from, to, _)| from != "mem_data" && to != "mem_data");
    (model.throughput(&anatomy.sample), latencies)
}

/// The constants whose simulated cost differs from the general one's.
fn simulated(model: &CoreModel, anatomy: &FormAnatomy) -> BTreeSet<String> {
    let (rate, latencies) = figures(model, anatomy);
    let differs = |constant: &&EncodedConstant| {
        let other = anatomy.with_constant(**constant).expect("its code can hold it");
        let (other_rate, others) = figures(model, &other);
        // A shift by zero writes no flags, so there is nothing to compare.
        let changed = |(from, to, cycles): &(String, String, u32)| {
            others.iter().any(|other| (&other.0, &other.1) == (from, to) && other.2 != *cycles)
        };
        other_rate != rate || latencies.iter().any(changed)
    };
    anatomy.constants.iter().skip(1).filter(differs).map(EncodedConstant::to_string).collect()
}

/// The constants that are variants of a row.
fn found(row: &InstrRow) -> BTreeSet<String> {
    let rates = row.throughput.iter().flat_map(|throughput| &throughput.variants);
    let rates = rates.map(|variant| variant.variant.clone());
    let names = rates.chain(row.latency.iter().filter_map(|latency| latency.variant.clone()));
    names.filter(|name| row.tried.contains(name)).collect()
}

fn check(model: &CoreModel, every: usize) -> usize {
    let has = |form: &InstructionForm| FormAnatomy::from_form(*form).is_some_and(|anatomy| anatomy.constants.len() > 1);
    let forms: Vec<InstructionForm> = forms::all_forms().filter(has).step_by(every).collect();
    let features = everything();
    let mut core = SimulatedCore::new(model.clone(), model.seed);
    let timing = timing_of(model, 2.0);
    let settings = SurveySettings { effort: EFFORT, seed: model.seed, confidence: 0.95 };
    let wanted = forms.iter().copied().map(TargetForm::from).collect();
    let survey = FormSurvey::new(timing, &mut core, &features, wanted, settings).expect("no fault is simulated");
    let (mut matter, mut wrong) = (0, Vec::new());
    for (at, form) in forms.iter().enumerate() {
        let row = survey.settle_form(&mut core, at).expect("no fault is simulated").0;
        if row.status != RowStatus::Measured {
            continue;
        }
        let anatomy = FormAnatomy::from_form(*form).expect("it was measured");
        let (simulated, found) = (simulated(model, &anatomy), found(&row));
        matter += simulated.len();
        if simulated != found {
            wrong.push(format!("{} {}: simulated {simulated:?}, found {found:?}", row.code, row.operands));
        }
    }
    assert!(wrong.is_empty(), "{} of {} forms:\n{}", wrong.len(), forms.len(), wrong.join("\n"));
    matter
}

#[test]
fn constants_with_a_simulated_effect_are_variants() {
    let model = CoreModel { special_constants: Some(2), ..CoreModel::from_seed(11) };
    assert!(check(&model, SAMPLE) > 10);
}

#[test]
fn constants_without_an_effect_are_not_variants() {
    assert_eq!(check(&CoreModel::from_seed(12), SAMPLE), 0);
}
