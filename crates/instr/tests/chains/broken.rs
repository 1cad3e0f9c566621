//! Programs with an inserted fault, which the reader must reject.

use super::{NEAR, judge, plan};
use crate::everything::everything;
use crate::reader::{FAR, decode};
use cyclescope_code::asm::forms;
use cyclescope_instr::experiments::experiment::{ExperimentMeaning, FormExperiment};
use cyclescope_instr::forms::form_anatomy::encode_instructions;
use iced_x86::{Code, Instruction, Mnemonic, Register};

/// The experiments of the form with this code and these operands.
fn experiments(code: Code, operands: &str) -> (Vec<FormExperiment>, Instruction) {
    let form = forms::all_forms()
        .find(|form| form.code == code && form.describe_operands() == operands)
        .expect("it is a form");
    let (plan, sample) = plan(form, &everything()).expect("it is tried");
    (plan.experiments, sample)
}

fn latency(experiments: &[FormExperiment], from_name: &str, to_name: &str, special: Option<&str>) -> FormExperiment {
    let matches = |experiment: &&FormExperiment| match &experiment.meaning {
        ExperimentMeaning::Latency { from, to, variant, .. } => {
            from == from_name && to == to_name && variant.as_deref() == special
        }
        _ => false,
    };
    experiments.iter().find(matches).expect("the chain exists").clone()
}

/// The experiment with a modified period.
fn changed(experiment: &FormExperiment, change: impl FnOnce(&mut Vec<Instruction>)) -> FormExperiment {
    let mut period = decode(&experiment.period, experiment.world.mode);
    change(&mut period);
    FormExperiment {
        period: encode_instructions(experiment.world.mode, &period).expect("it can be encoded"),
        ..experiment.clone()
    }
}

fn refused(experiment: &FormExperiment, sample: &Instruction) -> String {
    judge(experiment, sample).expect_err("the fault must be detected")
}

fn nearest(experiment: &FormExperiment, sample: &Instruction) -> usize {
    let others = judge(experiment, sample).expect("all instances are present and chains are closed");
    others.values().min().copied().unwrap_or(FAR)
}

#[test]
fn a_swapped_register_opens_a_chain() {
    let (all, sample) = experiments(Code::Imul_r64_rm64, "r64, r64");
    let chain = latency(&all, "op2", "op1", None);
    assert!(judge(&chain, &sample).is_ok());
    let swapped = changed(&chain, |period| {
        let at = period.len() / 2;
        period[at].set_op1_register(Register::R12);
    });
    assert!(refused(&swapped, &sample).contains("does not wait"));
}

#[test]
fn the_end_of_a_period_must_reach_its_beginning() {
    let (all, sample) = experiments(Code::VEX_Vpaddd_xmm_xmm_xmmm128, "xmm, xmm, xmm");
    let chain = latency(&all, "op2", "op1", None);
    let cut = changed(&chain, |period| {
        period.pop();
    });
    let cut = FormExperiment { copies: chain.copies - 1, ..cut };
    assert!(refused(&cut, &sample).contains(&format!("instance {}", cut.copies)));
}

#[test]
fn a_removed_link_opens_a_chain() {
    let (all, sample) = experiments(Code::Add_rm64_r64, "r64, r64");
    let chain = latency(&all, "op1", "flags", None);
    assert!(judge(&chain, &sample).is_ok());
    let links = decode(&chain.period, chain.world.mode).len();
    for link in 1..links {
        let removed = changed(&chain, |period| {
            period.remove(link);
        });
        refused(&removed, &sample);
    }
}

#[test]
fn a_changed_address_opens_a_chain() {
    let (all, sample) = experiments(Code::VEX_Vmovd_xmm_rm32, "xmm, m32");
    let chain = latency(&all, "mem_addr", "op1", None);
    assert!(judge(&chain, &sample).is_ok());
    let once = changed(&chain, |period| {
        let last = period.iter().rposition(|instruction| instruction.mnemonic() == Mnemonic::Xor);
        period.remove(last.expect("two of them keep the address"));
    });
    refused(&once, &sample);
}

#[test]
fn a_store_elsewhere_opens_a_chain() {
    let (all, sample) = experiments(Code::Add_rm64_r64, "m64, r64");
    let chain = latency(&all, "op2", "mem_data", None);
    assert!(judge(&chain, &sample).is_ok());
    let elsewhere = changed(&chain, |period| {
        period[0].set_memory_displacement64(64);
        period[0].set_memory_displ_size(1);
    });
    assert!(refused(&elsewhere, &sample).contains("does not wait"));
    // Alternating bases that are not copies of the first.
    let alternating = |experiment: &&FormExperiment| match &experiment.meaning {
        ExperimentMeaning::Latency { from, .. } => from == "op2" && experiment.meaning.has_pairs(),
        _ => false,
    };
    let chain = all.iter().find(alternating).expect("the chain exists").clone();
    assert!(judge(&chain, &sample).is_ok());
    let apart = FormExperiment { init: Vec::new(), ..chain };
    refused(&apart, &sample);
}

#[test]
fn a_missing_breaker_is_detected() {
    let (all, sample) = experiments(Code::Adc_rm64_r64, "r64, r64");
    let broken = changed(&all[0], |period| {
        period.retain(|instruction| instruction.mnemonic() == Mnemonic::Adc);
    });
    assert_eq!(nearest(&broken, &sample), 1);
    assert!(nearest(&all[0], &sample) >= NEAR);
    let (all, sample) = experiments(Code::Mul_rm64, "r64");
    let broken = changed(&all[0], |period| {
        period.retain(|instruction| instruction.mnemonic() == Mnemonic::Mul);
    });
    assert_eq!(nearest(&broken, &sample), 1);
}

#[test]
fn a_second_dependency_path_is_detected() {
    // The conditional move keeps the product, so the next one also waits for it.
    let (all, sample) = experiments(Code::Imul_r64_rm64, "r64, r64");
    let chain = latency(&all, "op1", "flags", None);
    assert!(nearest(&chain, &sample) >= NEAR);
    let kept = changed(&chain, |period| {
        let product = period[0].op0_register();
        let select =
            period.iter_mut().find(|instruction| instruction.op_count() == 2 && instruction.rflags_read() != 0);
        select.expect("flags are read").set_op0_register(product);
        period.retain(|instruction| instruction.mnemonic() != Mnemonic::Movsxd);
    });
    let direct = match kept.meaning.clone() {
        ExperimentMeaning::Latency { from, to, variant, links, turn, ports } => {
            let links = links[..1].to_vec();
            FormExperiment { meaning: ExperimentMeaning::Latency { from, to, variant, links, turn, ports }, ..kept }
        }
        other => panic!("{other:?} is not a chain"),
    };
    assert_eq!(nearest(&direct, &sample), 1);
}
