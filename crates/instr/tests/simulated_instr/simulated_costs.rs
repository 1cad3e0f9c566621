//! The costs that a simulated core should show: the sum of simulated latencies around a chain.

use cyclescope_code::asm::{CodeMode, Listing};
use cyclescope_instr::bodies::links::Link;
use cyclescope_instr::experiments::experiment::{ChainVariation, ExperimentMeaning, FormExperiment};
use cyclescope_instr::experiments::form_plan::FormPlan;
use cyclescope_instr::forms::form_anatomy::RegisterBank;
use cyclescope_instr::rows::instr_row::OperandLatency;
use cyclescope_sim::CoreModel;
use iced_x86::{Instruction, OpKind, Register};

/// The experiment of a row's latency.
pub fn origin(plan: &FormPlan, latency: &OperandLatency) -> Option<FormExperiment> {
    let is_it = |experiment: &FormExperiment| match &experiment.meaning {
        ExperimentMeaning::Latency { from, to, variant, turn, .. } => {
            let text = Listing::from_code(turn, plan.anatomy.form.mode).text().replace('\n', "; ");
            let shown = latency.chain.split(" [").next().unwrap_or_default();
            let same = (from, to, variant) == (&latency.from, &latency.to, &latency.variant);
            same && (shown == text || latency.chain == text || latency.chain.starts_with(&format!("{text} [")))
        }
        _ => false,
    };
    let again = || {
        let variations = (1..100).map(ChainVariation::Longer).chain((1..20).map(ChainVariation::Beside));
        let variations = variations.chain([ChainVariation::Cleared]);
        let all = variations.flat_map(|variation| (0..plan.experiments.len()).map(move |index| (index, variation)));
        all.filter_map(|(index, variation)| plan.vary_chain(index, variation)).find(is_it)
    };
    plan.experiments.iter().find(|experiment| is_it(experiment)).cloned().or_else(again)
}

/// The model's name of a place: it uses full names of implied registers.
fn full(name: &str) -> String {
    let same = |register: &Register| format!("{register:?}").to_lowercase() == name;
    match Register::values().find(same) {
        Some(register) if register.is_gpr() => format!("{:?}", register.full_register()).to_lowercase(),
        _ => name.to_string(),
    }
}

/// The latency from an input to an output. Explicit operands in one register count as one input.
fn through(model: &CoreModel, instruction: &Instruction, from: &str, to: &str) -> Option<u32> {
    let named = |name: &str| name.strip_prefix("op").and_then(|number| number.parse::<u32>().ok());
    let to = &full(to);
    let Some(input) = named(from) else {
        let from = full(from);
        let address = ["rsi", "rdi", "rsp"].contains(&from.as_str()).then_some("mem_addr");
        let direct = model.latency(instruction, &from, to);
        return direct.or_else(|| model.latency(instruction, address?, to));
    };
    let is = |operand: u32| {
        instruction.op_kind(operand) == OpKind::Register
            && instruction.op_register(operand).full_register() == instruction.op_register(input - 1).full_register()
    };
    let same = (0..instruction.op_count()).filter(|operand| is(*operand)).map(|operand| format!("op{}", operand + 1));
    same.filter_map(|from| model.latency(instruction, &from, to)).max()
}

/// Core cycles from a link's source to its destination.
fn link(model: &CoreModel, instruction: &Instruction, link: &Link, again: bool) -> Option<u32> {
    let is_and = link.name(CodeMode::default()) == "and";
    let (from, to) = match (link.from, link.to) {
        (_, RegisterBank::Flags) => ("op1", "flags"),
        (RegisterBank::Flags, _) => ("flags", "op1"),
        (_, RegisterBank::Memory) => ("op2", "mem_data"),
        (RegisterBank::Memory, _) => ("mem_data", "op1"),
        _ if is_and || again => ("op1", "op1"),
        _ => ("op2", "op1"),
    };
    through(model, instruction, from, to)
}

/// The simulated latency of an experiment's form, and that of all its links. `None` if nothing
/// depends on the input.
pub fn cycle(model: &CoreModel, experiment: &FormExperiment, sample: &Instruction) -> Option<(u32, u32)> {
    let ExperimentMeaning::Latency { from, to, links, turn, .. } = &experiment.meaning else { return None };
    let mode = experiment.world.mode;
    let turn = Listing::from_code(turn, mode);
    let turn = turn.instructions();
    let at = turn.iter().rposition(|instruction| is_alike(instruction, sample))?;
    let own = through(model, &turn[at], from, to)?;
    // A turn may begin with the previous turn's last link.
    let stored_again = |other: &&Instruction| sample.memory_base() != Register::None && is_alike(other, sample);
    let mut rest = turn[at + 1..].iter().chain(&turn[..at]).filter(|other| !stored_again(other));
    let mut sum = 0;
    for (index, one) in links.iter().enumerate() {
        let word = one.name(mode).split(' ').next()?;
        let is = |instruction: &&Instruction| {
            let text = format!("{:?}", instruction.mnemonic()).to_lowercase();
            text == match word {
                "cmovc" => "cmovb",
                "cmovz" => "cmove",
                other => other,
            }
        };
        let instruction = rest.find(is)?;
        let again = index > 0 && one.name(mode) == "xor" && links[index - 1].name(mode) == "xor";
        sum += link(model, instruction, one, again)?;
    }
    Some((own, sum))
}

/// The instance in a chain's first turn.
pub fn instance(experiment: &FormExperiment, sample: &Instruction) -> Option<Instruction> {
    let ExperimentMeaning::Latency { turn, .. } = &experiment.meaning else { return None };
    let turn = Listing::from_code(turn, experiment.world.mode);
    turn.instructions().iter().copied().find(|instruction| is_alike(instruction, sample))
}

/// Whether an instruction has this form. XCHG of two registers differs from XCHG with memory.
fn is_alike(instruction: &Instruction, sample: &Instruction) -> bool {
    let kinds = |of: &Instruction| [0, 1, 2, 3, 4].map(|operand| of.try_op_kind(operand).ok());
    instruction.code() == sample.code() && kinds(instruction) == kinds(sample)
}
