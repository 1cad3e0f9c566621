//! Sequences on simulated cores: the joint cost of their instructions, and latencies only for
//! carried registers.

use super::everything::everything;
use super::{EFFORT, timing_of};
use cyclescope_code::asm::parse_assembly;
use cyclescope_instr::forms::instruction_sequence::InstructionSequence;
use cyclescope_instr::forms::target_form::TargetForm;
use cyclescope_instr::rows::instr_row::{InstrRow, LatencyBound, RowStatus};
use cyclescope_instr::survey::FormSurvey;
use cyclescope_instr::survey_settings::SurveySettings;
use cyclescope_sim::{CoreModel, SimulatedCore};

/// The input and output operand through which a value passes each instruction.
type Path<'a> = &'a [(&'a str, &'a str)];

const SEEDS: [u64; 3] = [21, 22, 23];

fn sequence(text: &str) -> InstructionSequence {
    InstructionSequence::new(parse_assembly(text).expect("assembly").instructions()).expect("it can be repeated")
}

/// The rows of these sequences on a simulated core.
fn rows(model: &CoreModel, texts: &[&str]) -> Vec<InstrRow> {
    let features = everything();
    let mut core = SimulatedCore::new(model.clone(), model.seed);
    let timing = timing_of(model, 2.0);
    let settings = SurveySettings { effort: EFFORT, seed: model.seed, confidence: 0.95 };
    let wanted = |text: &&str| TargetForm::from_sequence(sequence(text)).expect("it has an instruction");
    let forms = texts.iter().map(wanted).collect();
    let survey = FormSurvey::new(timing, &mut core, &features, forms, settings).expect("no fault is simulated");
    let rows = (0..texts.len()).map(|at| survey.settle_form(&mut core, at).expect("no fault is simulated").0);
    let rows: Vec<InstrRow> = rows.collect();
    assert!(rows.iter().all(|row| row.status == RowStatus::Measured), "{rows:?}");
    rows
}

/// Core cycles from a carried operand to the same operand of the next repetition.
fn simulated(model: &CoreModel, text: &str, path: Path) -> f64 {
    let sequence = sequence(text);
    let each = sequence.instructions().iter().zip(path);
    let cycles = each.map(|(one, (from, to))| model.latency(one, from, to).expect("a dependency"));
    f64::from(cycles.sum::<u32>())
}

/// The rate is between that of the slowest instruction and the sum of all.
fn rate_is_possible(model: &CoreModel, row: &InstrRow, text: &str) {
    let rates: Vec<f64> =
        sequence(text).instructions().iter().map(|instruction| model.throughput(instruction)).collect();
    let throughput = row.throughput.as_ref().expect("a rate");
    let found = throughput.cost.value.expect("a number");
    let (slowest, all) = (rates.iter().copied().fold(0.0, f64::max), rates.iter().sum::<f64>());
    // Instructions that break carried dependencies count too.
    let most = if throughput.recipe.contains("broken") { f64::INFINITY } else { 1.06 * all };
    assert!(found > 0.97 * slowest && found < most, "{found}, not {slowest} to {all}: {row:?}");
}

#[test]
fn a_latency_is_the_sum_along_the_carried_path() {
    let op1 = ("op1", "op1");
    let cases: [(&str, &[(&str, Path)]); 6] = [
        ("imul rax, rbx; add rax, 1", &[("rax", &[op1, op1])]),
        ("popcnt rax, rbx; add rcx, rax", &[("rcx", &[("op1", "op1")])]),
        ("mulps xmm1, xmm2; addps xmm1, xmm3; mulps xmm1, xmm2", &[("xmm1", &[op1, op1, op1])]),
        ("adc rax, rbx", &[("rax", &[op1]), ("flags", &[("flags", "flags")])]),
        // The loop counter writes the zero flag, so it reaches no other iteration.
        ("cmove rax, rbx; add rax, 1", &[("rax", &[op1, op1])]),
        ("cmovb rax, rbx; add rax, 1", &[("rax", &[op1, op1]), ("flags", &[("flags", "op1"), ("op1", "flags")])]),
    ];
    for seed in SEEDS {
        let model = CoreModel::from_seed(seed);
        let texts = cases.map(|(text, _)| text);
        for ((text, carried), row) in cases.iter().zip(rows(&model, &texts)) {
            let mut names: Vec<&str> = row.latency.iter().map(|latency| latency.from.as_str()).collect();
            names.sort_unstable();
            let mut expected: Vec<&str> = carried.iter().map(|(name, _)| *name).collect();
            expected.sort_unstable();
            assert_eq!(names, expected, "{row:?}");
            for (name, path) in *carried {
                let latency = row.latency.iter().find(|one| one.from == *name).expect("it is there");
                // The first instruction of the second case is not part of the path.
                let part = if path.len() == 1 && text.contains(';') {
                    &text[text.find(';').expect("one") + 1..]
                } else {
                    text
                };
                let simulated = simulated(&model, part, path);
                let found = latency.cost.value.expect("a number");
                let fits = match latency.bound {
                    LatencyBound::Exact => (found - simulated).abs() < 0.05,
                    _ => found > simulated - 0.05,
                };
                assert!(fits && latency.to == *name, "simulated {simulated}: {row:?}");
            }
            rate_is_possible(&model, &row, text);
        }
    }
}

#[test]
fn sequences_without_a_carried_register_have_no_latency() {
    for seed in SEEDS {
        let model = CoreModel::from_seed(seed);
        let texts = ["popcnt rax, rbx; add rax, 1", "xor eax, eax; imul rax, rbx", "mov [rsi], rax; mov rax, [rsi]"];
        let rows = rows(&model, &texts);
        for (text, row) in texts.iter().zip(&rows) {
            assert!(row.latency.is_empty(), "{row:?}");
            let recipe = &row.throughput.as_ref().expect("a rate").recipe;
            assert_eq!(recipe.contains("dependencies left"), text.contains('['), "{recipe}");
        }
        rate_is_possible(&model, &rows[0], texts[0]);
    }
}

/// An implied and carried register gets its value back, so that repetitions don't wait for it.
#[test]
fn an_implied_register_is_restored() {
    for seed in SEEDS {
        let model = CoreModel::from_seed(seed);
        let row = rows(&model, &["mul rbx"]).remove(0);
        let recipe = &row.throughput.as_ref().expect("a rate").recipe;
        assert!(recipe.contains("broken by copies"), "{recipe}");
        let names: Vec<&str> = row.latency.iter().map(|latency| latency.from.as_str()).collect();
        assert_eq!(names, ["rax"], "{row:?}");
        let simulated = simulated(&model, "mul rbx", &[("rax", "rax")]);
        let found = row.latency[0].cost.value.expect("a number");
        assert!(
            row.latency[0].bound != LatencyBound::Exact || (found - simulated).abs() < 0.05,
            "{simulated}: {row:?}"
        );
    }
}
