//! Latencies to a part of a register on simulated cores.

use crate::survey;
use cyclescope_code::asm::forms::{self, InstructionForm};
use cyclescope_instr::rows::instr_row::LatencyBound;
use cyclescope_sim::CoreModel;

/// Tolerance of a latency, in core cycles.
const OFF: f64 = 0.05;

#[test]
fn forms_that_keep_a_part_of_a_register_have_an_exact_latency() {
    let names = ["Lahf", "Mov_r8_imm8 r8, imm8", "Mov_r8_imm8 r8h, imm8", "Mov_r16_imm16 r16, imm16"];
    let named = |form: &InstructionForm| {
        let name = format!("{:?} {}", form.code, form.describe_operands());
        names.contains(&name.trim_end())
    };
    let forms: Vec<InstructionForm> = forms::all_forms().filter(named).collect();
    assert_eq!(forms.len(), names.len());
    for seed in [1, 2, 3] {
        let model = CoreModel::from_seed(seed);
        for (row, plan) in survey(&model, seed, &forms) {
            let sample = plan.expect("every core has these forms").anatomy.sample;
            let headlines: Vec<_> = row.latency.iter().filter(|latency| latency.variant.is_none()).collect();
            let [latency] = headlines[..] else { panic!("{} {}: {:?}", row.code, row.operands, row.latency) };
            let to = if latency.to == "ah" { "rax" } else { &latency.to };
            let own = model.latency(&sample, &latency.from, to).map(f64::from);
            let is_own = |own: f64| (latency.cost.value.unwrap_or(f64::NAN) - own).abs() <= OFF;
            assert!(latency.bound == LatencyBound::Exact && own.is_some_and(is_own), "{seed}: {own:?}, {latency:?}");
        }
    }
}
