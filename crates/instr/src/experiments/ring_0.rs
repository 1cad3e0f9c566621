//! Forms in ring 0: the programs that may run, and the meaning of an exception.
//!
//! The executor decides what it refuses. Here it judges one instance of each form after its init
//! code, and each program of privileged forms and of branches. Behind a branch that leads anywhere,
//! every byte counts. A test checks that no program of the other forms is refused.

use super::form_plan::FormPlan;
use crate::forms::form_anatomy::FormAnatomy;
use crate::forms::privileged::{check_ring_0, is_branch, is_privileged, is_user_restricted};
use crate::forms::skip::{SkipReason, join_reason};
use cyclescope_core::error::RunError;
use cyclescope_exec::kernel::refusal::RefusalReason;

/// Vectors of #UD and #GP: raised if a processor lacks an instruction, or a register that it names.
const ABSENT_VECTORS: [u8; 2] = [6, 13];

/// Removes programs that may not run in ring 0. If none is left, returns the reason.
pub fn restrict_plan(plan: &mut FormPlan) -> Option<SkipReason> {
    let sample = &plan.anatomy.sample;
    if !is_privileged(sample) && !is_branch(sample) {
        return None;
    }
    let reason = plan.drop_refused(|one| check_ring_0(&one.init, &one.period, one.count_repeats(usize::MAX)));
    reason.map(SkipReason::RefusedInRing0)
}

/// Why a form is skipped after this error. `None` if the error is a failure. A processor may lack a
/// privileged instruction, or a counter or register that it names, without a feature bit.
pub(crate) fn explain_skip(anatomy: &FormAnatomy, error: &RunError) -> Option<String> {
    let sample = &anatomy.sample;
    match error {
        RunError::Refused { why, .. } => {
            Some(join_reason(SkipReason::RefusedInRing0(RefusalReason::Unlisted).code(), why))
        }
        RunError::Exception { vector, name, .. }
            if ABSENT_VECTORS.contains(vector) && (is_privileged(sample) || is_user_restricted(sample.mnemonic())) =>
        {
            Some(join_reason(SkipReason::RaisesException.code(), name))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::experiment::ExperimentMeaning;
    use crate::forms::privileged::find_refusal;
    use crate::forms::target_form::TargetForm;
    use cyclescope_code::asm::forms;
    use cyclescope_core::machine::cpuid_leaves::CpuidLeaves;
    use cyclescope_core::machine::fact::{Fact, SystemFiles};
    use cyclescope_core::machine::features::{CpuFeatures, SystemSupport};
    use cyclescope_core::machine::processor::Processor;
    use iced_x86::Code;

    fn anatomy(code: Code) -> FormAnatomy {
        let form = forms::all_forms().find(|form| form.code == code).expect("there is one");
        FormAnatomy::from_form(form).expect("it has an instance")
    }

    fn plan(code: Code) -> FormPlan {
        let anatomy = anatomy(code);
        let target = TargetForm::from(anatomy.form);
        let leaves = CpuidLeaves::from_table(&[]);
        let cpu = Processor::detect(&leaves, &SystemFiles::rooted_at("/nowhere"));
        let features =
            CpuFeatures::from_leaves(&leaves, &cpu, SystemSupport::default(), Fact::unknown("of no machine"));
        FormPlan::new(anatomy, &features, &target)
    }

    fn variants(plan: &FormPlan) -> Vec<&str> {
        let variant = |one: &ExperimentMeaning| matches!(one, ExperimentMeaning::Throughput { variant: Some(_), .. });
        let special = plan.experiments.iter().filter(|one| variant(&one.meaning));
        special
            .filter_map(|one| match &one.meaning {
                ExperimentMeaning::Throughput { variant, .. } => variant.as_deref(),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn control_registers_are_written_only_where_ring_0_permits() {
        let mut writes = plan(Code::Mov_cr_r64);
        assert_eq!((restrict_plan(&mut writes), variants(&writes)), (None, vec!["cr2", "cr8"]));
        let mut reads = plan(Code::Mov_r64_cr);
        assert_eq!((restrict_plan(&mut reads), variants(&reads)), (None, vec!["cr2", "cr3", "cr4", "cr8"]));
        let mut debug = plan(Code::Mov_dr_r64);
        assert_eq!((restrict_plan(&mut debug), variants(&debug)), (None, vec!["dr1", "dr2", "dr3", "dr6"]));
    }

    #[test]
    fn each_sti_is_directly_followed_by_cli() {
        let plan = plan(Code::Sti);
        for experiment in &plan.experiments {
            let cli = experiment.period.iter().filter(|byte| **byte == 0xfa).count();
            assert!(experiment.period.windows(2).filter(|pair| *pair == [0xfb, 0xfa]).count() == cli);
            assert_eq!(cli, experiment.copies);
        }
    }

    #[test]
    fn absent_instructions_are_skipped_and_other_exceptions_are_failures() {
        let raised = |vector| RunError::Exception {
            vector,
            name: "#GP (general protection)".to_string(),
            error_code: 0,
            address: 0x1000,
            instruction: None,
        };
        let absent = Some("raises_exception: #GP (general protection)".to_string());
        assert_eq!(explain_skip(&anatomy(Code::Rdmsr), &raised(13)), absent);
        assert_eq!(explain_skip(&anatomy(Code::Rdpmc), &raised(13)), absent);
        assert_eq!(explain_skip(&anatomy(Code::Rdmsr), &raised(14)), None);
        assert_eq!(explain_skip(&anatomy(Code::Add_r64_rm64), &raised(13)), None);
    }

    #[test]
    fn a_refusal_states_its_reason() {
        let text = |code| find_refusal(&anatomy(code)).map(|reason| SkipReason::RefusedInRing0(reason).describe());
        assert_eq!(text(Code::Hlt).unwrap(), "refused_in_ring_0: it can stop the processor for good");
        assert_eq!(text(Code::Add_r64_rm64), None);
        assert_eq!(text(Code::Xsetbv), None);
    }
}
