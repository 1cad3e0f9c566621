//! Forms that every study measures beside the selected ones: without them, there would be nothing to
//! compare a single form with.

use cyclescope_code::asm::CodeMode;
use cyclescope_instr::forms::target_form::TargetForm;
use cyclescope_instr::selection::{full_name, list_forms};

/// Plain instructions of many kinds. What they share with each other is measured, not assumed.
const REFERENCE_NAMES: [&str; 28] = [
    "VEX_Andn_r64_r64_rm64 r64, r64, r64",
    "VEX_Rorx_r64_rm64_imm8 r64, r64, imm8",
    "VEX_Shlx_r64_rm64_r64 r64, r64, r64",
    "Popcnt_r64_rm64 r64, r64",
    "Tzcnt_r64_rm64 r64, r64",
    "Lzcnt_r64_rm64 r64, r64",
    "Imul_r64_rm64 r64, r64",
    "VEX_Pext_r64_r64_rm64 r64, r64, r64",
    "VEX_Blsr_r64_rm64 r64, r64",
    "Mov_r64_rm64 r64, m64",
    "Mov_rm64_r64 m64, r64",
    "VEX_Vaddps_xmm_xmm_xmmm128 xmm, xmm, xmm",
    "VEX_Vmulps_xmm_xmm_xmmm128 xmm, xmm, xmm",
    "VEX_Vpaddd_xmm_xmm_xmmm128 xmm, xmm, xmm",
    "VEX_Vpand_xmm_xmm_xmmm128 xmm, xmm, xmm",
    "VEX_Vpshufb_xmm_xmm_xmmm128 xmm, xmm, xmm",
    "VEX_Vpermilps_xmm_xmm_xmmm128 xmm, xmm, xmm",
    "VEX_Vpsllvd_xmm_xmm_xmmm128 xmm, xmm, xmm",
    "VEX_Vpmulld_xmm_xmm_xmmm128 xmm, xmm, xmm",
    "VEX_Vaesenc_xmm_xmm_xmmm128 xmm, xmm, xmm",
    "VEX_Vcvtdq2ps_xmm_xmmm128 xmm, xmm",
    "VEX_Vpmuludq_xmm_xmm_xmmm128 xmm, xmm, xmm",
    "VEX_Vmovmskps_r32_xmm r32, xmm",
    "VEX_Vmovd_rm32_xmm r32, xmm",
    "VEX_Vmovd_xmm_rm32 xmm, r32",
    "VEX_Vmovdqu_xmm_xmmm128 xmm, m128",
    "VEX_Vmovdqu_xmmm128_xmm m128, xmm",
    "VEX_Vpsadbw_xmm_xmm_xmmm128 xmm, xmm, xmm",
];

/// The reference forms that are not among these.
pub(crate) fn list_reference_forms(asked: &[TargetForm]) -> Vec<TargetForm> {
    let known: Vec<String> = asked.iter().map(full_name).collect();
    let is_chosen = |target: &TargetForm| is_reference(target) && !known.contains(&full_name(target));
    list_forms(CodeMode::Bits64).into_iter().filter(is_chosen).collect()
}

/// Whether a form is one of the reference forms.
pub(crate) fn is_reference(target: &TargetForm) -> bool {
    REFERENCE_NAMES.contains(&full_name(target).as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_instr::selection::FormCriteria;

    #[test]
    fn each_reference_form_exists_once() {
        assert_eq!(list_reference_forms(&[]).len(), REFERENCE_NAMES.len());
        let criteria = FormCriteria { filters: vec!["imul r64, r64".to_string()], ..FormCriteria::default() };
        let asked = criteria.select(list_forms(CodeMode::Bits64)).unwrap();
        assert_eq!(list_reference_forms(&asked).len(), REFERENCE_NAMES.len() - 1);
    }
}
