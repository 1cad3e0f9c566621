//! A form for tests: its plan, a timer and given readings.

use super::FormMeasurement;
use crate::experiments::experiment::FormExperiment;
use crate::experiments::filler_curves::NO_FILLER_CURVES;
use crate::experiments::form_plan::FormPlan;
use crate::experiments::program_reading::ProgramReading;
use crate::experiments::survey_effort::SurveyEffort;
use crate::experiments::timing::ProgramTimer;
use crate::forms::form_anatomy::FormAnatomy;
use crate::selection::{FormCriteria, list_forms};
use cyclescope_code::asm::CodeMode;
use cyclescope_code::clock::Clock;
use cyclescope_core::machine::Machine;

impl<'a> FormMeasurement<'a> {
    /// The measurement in a survey that counts no slots.
    pub(super) fn without_slots(
        timer: &'a ProgramTimer,
        effort: SurveyEffort,
        plan: &'a FormPlan,
        earlier: &'a [Vec<ProgramReading>],
    ) -> FormMeasurement<'a> {
        FormMeasurement { timer, effort, plan, earlier, filler_curves: &NO_FILLER_CURVES }
    }
}

/// The plan of the form with this name.
pub(super) fn plan_form(name: &str) -> FormPlan {
    let criteria = FormCriteria { filters: vec![name.to_string()], ..FormCriteria::default() };
    let wanted = criteria.select(list_forms(CodeMode::default())).unwrap().remove(0);
    FormPlan::new(FormAnatomy::from_form(wanted.form).unwrap(), &Machine::detect().features, &wanted)
}

/// The plan of a multiplication.
pub(super) fn plan_imul() -> FormPlan {
    plan_form("Imul_r64_rm64 r64, r64")
}

pub(super) fn new_timer() -> ProgramTimer<'static> {
    ProgramTimer::new(Clock::find_named("rdtscp-lfence").unwrap(), 2.0, 3.0, CodeMode::Bits64)
}

/// Readings with this cost in six layouts of each program, if it gives one.
pub(super) fn give_readings(plan: &FormPlan, cost: impl Fn(&FormExperiment) -> Option<f64>) -> Vec<ProgramReading> {
    let reading = |one: &FormExperiment| ProgramReading {
        cycles: cost(one).map_or(Vec::new(), |cost| vec![cost; 6]),
        ..ProgramReading::default()
    };
    plan.experiments.iter().map(reading).collect()
}
