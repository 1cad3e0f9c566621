//! Runs and instruction tables on simulated cores of unusual kinds: the simulated costs are found
//! on each.

use cyclescope_code::asm::CodeMode;
use cyclescope_code::asm::forms;
use cyclescope_code::clock::Clock;
use cyclescope_code::snippet::Snippet;
use cyclescope_core::machine::Machine;
use cyclescope_exec::Executor;
use cyclescope_instr::experiments::survey_effort::SurveyEffort;
use cyclescope_instr::forms::target_form::TargetForm;
use cyclescope_instr::rows::instr_row::{InstrRow, LatencyBound};
use cyclescope_instr::survey::{FormSurvey, SurveyEvent, SurveyState};
use cyclescope_instr::survey_settings::{SurveySettings, SurveyTiming};
use cyclescope_run::{RunRequest, run_snippet};
use cyclescope_sim::{CoreModel, Scenario, SimulatedCore, SimulatedExecutor};
use std::ops::ControlFlow;

/// Never executed: the simulated machine knows costs but no instructions.
fn snippet() -> Snippet {
    Snippet::new(vec![0x0f, 0x0b], Vec::new(), "simulated")
}

/// It makes no difference whether the multiplier's latency is known in advance.
#[test]
fn a_run_finds_the_simulated_cost_on_every_machine() {
    for (name, scenario) in Scenario::machine_variants() {
        for known in [true, false] {
            let mut core = SimulatedExecutor::new(scenario.clone(), 7);
            let request = RunRequest { seed: 3, ..RunRequest::default() };
            let mut plan = request.make_plan(core.capabilities(), core.machine()).expect("a clock");
            if !known {
                plan.imul_latency = None;
            }
            let found =
                run_snippet(&mut core, &snippet(), &plan, request.required_precision()).expect("no fault is simulated");
            let cost = found.cost().unwrap_or_else(|| panic!("{name}: {:?}", found.caveats));
            // Of eighteen intervals at 95 %, one misses, and by less than its width.
            let error = (cost.value - scenario.cost).abs();
            assert!(error <= 2.0 * cost.half_width() && cost.half_width() < 0.02, "{name}: {cost:?}");
            assert_eq!(found.measurement.acquisition.shape.imul_latency, f64::from(scenario.imul_latency), "{name}");
            assert!(found.caveats.is_empty(), "{name}: {:?}", found.caveats);
        }
    }
}

/// Checks exact latencies and throughput of several kinds of forms.
#[test]
fn a_table_finds_the_simulated_figures_on_every_machine() {
    const FORMS: [(&str, &str); 5] = [
        ("Add_r64_rm64", "r64, r64"),
        ("Imul_r64_rm64", "r64, r64"),
        ("Shl_rm64_imm8", "r64, imm8"),
        ("Mulps_xmm_xmmm128", "xmm, xmm"),
        ("Pshufb_xmm_xmmm128", "xmm, xmm"),
    ];
    for (name, scenario) in Scenario::machine_variants() {
        let model = CoreModel { imul_latency: scenario.imul_latency, ..CoreModel::from_seed(4) };
        let rows = table(&model, &scenario, &FORMS);
        assert_eq!(rows.len(), FORMS.len(), "{name}");
        for row in rows {
            let form = forms::all_forms().find(|form| is(&row, form)).expect("a row belongs to a form");
            let instruction = form.build_instruction(&forms::OperandChoice::default()).expect("it can be encoded");
            let exact: Vec<_> =
                row.latency.iter().filter(|one| one.bound == LatencyBound::Exact && one.variant.is_none()).collect();
            assert!(!exact.is_empty(), "{name}: {row:?}");
            for latency in exact {
                let simulated = model.latency(&instruction, &latency.from, &latency.to).expect("a dependency");
                let found = latency.cost.value.expect("a number");
                assert!((found - f64::from(simulated)).abs() < 0.05, "{name}: {row:?}, simulated {simulated}");
            }
            let found = row.throughput.as_ref().and_then(|one| one.cost.value).expect("a number");
            let share = found / model.throughput(&instruction);
            assert!((0.97..1.06).contains(&share), "{name}: {row:?}, {share}");
        }
    }
}

fn is(row: &InstrRow, form: &forms::InstructionForm) -> bool {
    format!("{:?}", form.code) == row.code && form.describe_operands() == row.operands
}

/// Rows of these forms on a simulated core with a scenario's clock.
fn table(model: &CoreModel, scenario: &Scenario, names: &[(&str, &str)]) -> Vec<InstrRow> {
    let clock = Clock::find_named("lfence-rdtsc-lfence").expect("a timing method");
    let mut core = SimulatedCore::with_scenario(model.clone(), scenario.clone(), 4);
    let machine: Machine = core.machine().clone();
    let wanted = |form: &forms::InstructionForm| {
        names
            .iter()
            .any(|(code, operands)| format!("{:?}", form.code) == *code && form.describe_operands() == *operands)
    };
    let forms = forms::all_forms().filter(wanted).map(TargetForm::from).collect();
    let step = scenario.step as f64;
    let timing =
        SurveyTiming { clock, step, imul_latency: model.imul_latency.into(), mode: CodeMode::default(), adders: None };
    let settings = SurveySettings { effort: SurveyEffort::FULL, seed: 4, confidence: 0.95 };
    let survey = FormSurvey::new(timing, &mut core, &machine.features, forms, settings).expect("no fault is simulated");
    let mut rows = Vec::new();
    let mut take = |event: SurveyEvent, _| {
        if let SurveyEvent::Row(row) = event {
            rows.push(*row);
        }
        ControlFlow::Continue(())
    };
    survey.run(&mut core, SurveyState::default(), &mut take).expect("no fault is simulated");
    rows
}
