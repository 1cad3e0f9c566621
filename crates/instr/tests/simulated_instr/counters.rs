//! Events and ports of forms on simulated cores with counters.

use super::{EFFORT, everything, sample, timing_of};
use cyclescope_code::asm::CodeMode;
use cyclescope_code::asm::forms::InstructionForm;
use cyclescope_events::{CounterColumn, CounterRequest, EventCode, NamedEvent};
use cyclescope_exec::Executor;
use cyclescope_instr::experiments::form_counter::FormCounter;
use cyclescope_instr::experiments::port_usage::PortUsage;
use cyclescope_instr::experiments::survey_effort::SurveyEffort;
use cyclescope_instr::forms::target_form::TargetForm;
use cyclescope_instr::rows::instr_row::{InstrRow, RowStatus};
use cyclescope_instr::survey::{FormSurvey, SurveyEvent, SurveyState};
use cyclescope_instr::survey_settings::SurveySettings;
use cyclescope_measure::result::answers::MachineAnswers;
use cyclescope_sim::{CoreCount, CoreModel, SimulatedCore, SimulatedPmu};
use iced_x86::Instruction;
use std::ops::ControlFlow;

/// One of this many forms is measured.
const SAMPLE: usize = 90;
/// Share of the forms with ports that are certain.
const CERTAIN_LEAST: f64 = 0.98;

const QUICK: SurveyEffort = SurveyEffort { regimes: false, recipes: 1, ..EFFORT };

/// The events of a core: its ports, slots and instructions.
fn list_events(model: &CoreModel) -> Vec<(String, CoreCount)> {
    let ports = (0..model.port_count()).map(|port| (format!("port{port}"), CoreCount::Port(port)));
    let others = [("uops", CoreCount::Slots), ("instructions", CoreCount::Instructions)];
    ports.chain(others.map(|(name, what)| (name.to_string(), what))).collect()
}

fn code(number: usize) -> EventCode {
    EventCode::new(4, 0x100 + number as u64)
}

/// The counters of a core: fewer than it has events.
fn pmu_of(model: &CoreModel) -> SimulatedPmu {
    let events = list_events(model).into_iter().enumerate();
    let core_events = events.map(|(number, (_, what))| (code(number), what)).collect();
    SimulatedPmu { general: 6, core_events, start: u64::MAX - 1000, ..SimulatedPmu::default() }
}

fn request_all(model: &CoreModel) -> CounterRequest {
    let names: Vec<String> = list_events(model).into_iter().map(|(name, _)| name).collect();
    let event = |(number, name): (usize, &String)| NamedEvent { name: name.clone(), code: code(number) };
    let column = |(number, name): (usize, &String)| (name.clone(), CounterColumn::Event(number));
    CounterRequest {
        events: names.iter().enumerate().map(event).collect(),
        columns: names.iter().enumerate().map(column).collect(),
        ports: (0..model.port_count() as usize).collect(),
    }
}

/// Surveys forms with or without counters. Returns each row with its instance.
fn survey_forms(
    model: &CoreModel,
    forms: &[InstructionForm],
    request: Option<&CounterRequest>,
) -> Vec<(InstrRow, Option<Instruction>)> {
    let features = everything();
    let mut core = SimulatedCore::new(model.clone(), model.seed).with_pmu(pmu_of(model));
    let targets = forms.iter().map(|form| TargetForm { latency: false, ..TargetForm::from(*form) }).collect();
    let timing = timing_of(model, 2.0);
    let settings = SurveySettings { effort: QUICK, seed: model.seed, confidence: 0.95 };
    let mut survey = FormSurvey::new(timing, &mut core, &features, targets, settings).expect("no fault is simulated");
    if let Some(request) = request {
        let executor: &dyn Executor = &core;
        let counter = FormCounter::new(request, executor, &MachineAnswers::live(), 0.95);
        survey = survey.with_counter(counter.expect("all events exist"), &mut core).expect("no fault is simulated");
    }
    let mut rows: Vec<InstrRow> = Vec::new();
    let mut take = |event: SurveyEvent, _| {
        if let SurveyEvent::Row(row) = event {
            rows.push(*row);
        }
        ControlFlow::Continue(())
    };
    survey.run(&mut core, SurveyState::default(), &mut take).expect("no fault is simulated");
    let name = |form: &InstructionForm| (format!("{:?}", form.code), form.describe_operands());
    let instance = |row: &InstrRow| {
        let own = |form: &InstructionForm| name(form) == (row.code.clone(), row.operands.clone());
        let form = forms.iter().position(own).expect("a row belongs to a form");
        survey.plan_form(form).ok().map(|plan| plan.anatomy.sample)
    };
    rows.into_iter().map(|row| (row.clone(), instance(&row))).collect()
}

/// The µops of each set of ports, as text in a certain order.
fn summarize(sets: impl IntoIterator<Item = (Vec<u32>, u32)>) -> Vec<(Vec<u32>, u32)> {
    let mut all: Vec<(Vec<u32>, u32)> = Vec::new();
    for (ports, uops) in sets {
        match all.iter_mut().find(|(known, _)| *known == ports) {
            Some((_, known)) => *known += uops,
            None => all.push((ports, uops)),
        }
    }
    all.sort();
    all
}

fn measured_ports(usage: &PortUsage) -> Vec<(Vec<u32>, u32)> {
    let number = |name: &String| name["port".len()..].parse::<u32>().expect("ports have numbers");
    summarize(usage.shares.iter().map(|share| (share.ports.iter().map(number).collect(), share.uops)))
}

fn value(row: &InstrRow, name: &str) -> Option<f64> {
    row.counters.iter().find(|counter| counter.name == name).and_then(|counter| counter.quantity.value)
}

#[test]
fn ports_and_slots_of_forms_are_those_of_the_core() {
    for seed in [3, 5, 8] {
        let model = CoreModel::from_seed(seed);
        let (mut right, mut alone, mut unclear, mut wrong) = (0, 0, Vec::new(), Vec::new());
        for (row, instance) in
            survey_forms(&model, &sample(CodeMode::default(), seed, SAMPLE), Some(&request_all(&model)))
        {
            let (Some(instance), RowStatus::Measured) = (instance, row.status) else { continue };
            let name = format!("{} {}", row.code, row.operands);
            let usage = row.ports.as_ref().expect("ports are counted");
            let lost = row.counters.iter().find_map(|counter| counter.lost.clone());
            if lost.is_none() {
                let counts = ["uops", "instructions"].map(|event| value(&row, event).expect("it is counted"));
                let is_slots = model.slots(&instance).is_none_or(|slots| (counts[0] - f64::from(slots)).abs() < 0.01);
                let is_right = is_slots && (counts[1] - 1.0).abs() < 0.01;
                assert!(is_right, "{name}: {counts:?}, truly {:?} slots", model.slots(&instance));
                assert_eq!(row.counter_passes, Some((list_events(&model).len()).div_ceil(6)));
            }
            let truth = summarize(model.port_uses(&instance).into_iter().map(|ports| (ports, 1)));
            match &usage.why {
                // Nothing else can be counted beside it either.
                Some(why) if lost.as_ref() == Some(why) => alone += 1,
                Some(why) => unclear.push(format!("{name}: {why}; {:?}, truly {truth:?}", usage.uops)),
                None if measured_ports(usage) == truth => right += 1,
                None => wrong.push(format!("{name}: {}, truly {truth:?}", usage.summarize())),
            }
        }
        println!("core {seed}: {right} right, {} unclear, {} wrong, {alone} not alone", unclear.len(), wrong.len());
        unclear.iter().take(20).for_each(|line| println!("  {line}"));
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(f64::from(right) >= CERTAIN_LEAST * (right as usize + unclear.len()) as f64);
        assert!(20 * alone <= right);
    }
}

#[test]
fn counting_changes_no_cycles() {
    let model = CoreModel::from_seed(5);
    let forms = sample(CodeMode::default(), 5, 20 * SAMPLE);
    // The instructions that block ports are timed too.
    let request = CounterRequest { ports: Vec::new(), ..request_all(&model) };
    let [plain, counted] = [None, Some(&request)].map(|request| survey_forms(&model, &forms, request));
    assert_eq!(plain.len(), counted.len());
    for ((plain, _), (counted, _)) in plain.iter().zip(&counted) {
        assert!(plain.counters.is_empty() && counted.ports.is_none());
        let without = InstrRow { counters: Vec::new(), counter_passes: None, ports: None, ..counted.clone() };
        assert_eq!(without, *plain);
    }
}
