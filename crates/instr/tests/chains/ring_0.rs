//! Programs that ring 0 refuses, over all forms.

use crate::everything::everything;
use cyclescope_code::asm::forms;
use cyclescope_code::program::LoopPlan;
use cyclescope_core::machine::features::CpuFeatures;
use cyclescope_exec::PrivilegeRing;
use cyclescope_exec::kernel::refusal::{JudgedCode, RefusalRules, judge_code};
use cyclescope_instr::experiments::experiment::FormExperiment;
use cyclescope_instr::experiments::form_plan::FormPlan;
use cyclescope_instr::experiments::ring_0::restrict_plan;
use cyclescope_instr::forms::form_anatomy::FormAnatomy;
use cyclescope_instr::forms::skip::{SkipReason, find_skip};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Privileged instructions that are measured in ring 0.
const PRIVILEGED: &str = "clac cli clts invlpg invpcid mov rdmsr stac sti swapgs wbinvd wbnoinvd wrmsr xsaves xsaves64 \
                          xsetbv";
/// Instructions that user mode runs and ring 0 refuses. Some exist on few processors or are wrongly
/// listed as unprivileged. For near branches to anywhere, displacements are bytes that may be
/// executed, and some are not valid instructions.
const REFUSED: &str = "call ccs_encrypt ccs_hash getsec getsecq jmp monitor montmul mwait ret slwpcb xcryptcbc \
                       xcryptcfb xcryptctr xcryptecb xcryptofb xsha1 xsha256 xsha512 xsha512_alt xstore xstore_alt";
/// Unprivileged instructions that user mode skips and ring 0 measures.
const MORE: &str = "rdpmc sgdt sidt sldt smsw str";

#[derive(Default)]
struct Found {
    privileged: BTreeSet<String>,
    refused: BTreeSet<String>,
    more: BTreeSet<String>,
    /// Refused programs of forms that run, by form and reason.
    programs: BTreeMap<String, usize>,
    /// Privileged forms and their outcomes.
    outcomes: Vec<String>,
    judged: usize,
    took: Duration,
}

fn is_refused(experiment: &FormExperiment) -> Option<String> {
    let judged = JudgedCode {
        init: &experiment.init,
        snippet: &experiment.period,
        copies: experiment.count_repeats(usize::MAX),
        looped: Some(LoopPlan::PLAIN),
        following: &[],
    };
    judge_code(judged, RefusalRules { lone_cpu: false }).err().map(|refusal| refusal.to_string())
}

impl Found {
    fn form(&mut self, form: forms::InstructionForm, features: &CpuFeatures) {
        let anatomy = FormAnatomy::from_form(form).expect("every form has an instance");
        let name = form.mnemonic();
        let user = find_skip(&anatomy, features, PrivilegeRing::Three);
        let kernel = find_skip(&anatomy, features, PrivilegeRing::Zero);
        let mut plan = FormPlan::new(anatomy, features, &form.into());
        let all = plan.experiments.len();
        let kernel = kernel.or_else(|| restrict_plan(&mut plan));
        if user == Some(SkipReason::Privileged) {
            let end = kernel.map_or(format!("{} of {all} programs", plan.experiments.len()), SkipReason::describe);
            self.outcomes.push(format!("{:?} {}: {end}", form.code, form.describe_operands()));
        }
        match (user, kernel) {
            (None, Some(_)) => drop(self.refused.insert(name)),
            (Some(SkipReason::Privileged), None) => drop(self.privileged.insert(name)),
            (Some(_), None) => drop(self.more.insert(name)),
            _ => {}
        }
        if kernel.is_some() {
            return;
        }
        let begun = Instant::now();
        for experiment in &plan.experiments {
            if let Some(why) = is_refused(experiment) {
                *self.programs.entry(format!("{:?} {}: {why}", form.code, form.describe_operands())).or_default() += 1;
            }
        }
        self.judged += plan.experiments.len();
        self.took += begun.elapsed();
    }

    fn add(&mut self, other: Found) {
        self.privileged.extend(other.privileged);
        self.refused.extend(other.refused);
        self.more.extend(other.more);
        self.programs.extend(other.programs);
        self.outcomes.extend(other.outcomes);
        self.judged += other.judged;
        self.took += other.took;
    }
}

fn words(text: &str) -> BTreeSet<String> {
    text.split_whitespace().map(str::to_string).collect()
}

#[test]
fn ring_0_refuses_no_program_of_a_form_that_it_measures() {
    let features = everything();
    let all: Vec<forms::InstructionForm> = forms::all_forms().collect();
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let mut found = Found::default();
    std::thread::scope(|scope| {
        let look = |thread: usize| {
            let mut found = Found::default();
            all.iter().skip(thread).step_by(threads).for_each(|form| found.form(*form, &features));
            found
        };
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || look(thread))).collect();
        running.into_iter().for_each(|thread| found.add(thread.join().expect("no form makes it panic")));
    });
    found.outcomes.sort();
    println!("{}", found.outcomes.join("\n"));
    let each = found.took.as_secs_f64() / found.judged as f64;
    println!("{} programs judged, {:.0} µs each", found.judged, 1e6 * each);
    let programs: Vec<&String> = found.programs.keys().collect();
    println!("{} refused:", programs.len());
    programs.iter().take(100).for_each(|text| println!("  {text}"));
    assert_eq!(found.refused, words(REFUSED));
    assert_eq!(found.privileged, words(PRIVILEGED));
    assert_eq!(found.more, words(MORE));
    assert!(programs.is_empty());
}
