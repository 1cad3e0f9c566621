//! Properties of some cores only: memory renaming by base register or for any base, and write
//! combining.

use super::scored;
use cyclescope_code::asm::forms::{self, InstructionForm};
use cyclescope_instr::rows::instr_row::{InstrRow, LatencyBound, OperandLatency};
use cyclescope_sim::CoreModel;
use iced_x86::Code;

/// The forms with these codes and operands.
fn forms(wanted: &[(Code, &str)]) -> Vec<InstructionForm> {
    let matches = |form: &InstructionForm| {
        wanted.iter().any(|(code, operands)| form.code == *code && form.describe_operands() == *operands)
    };
    let found: Vec<InstructionForm> = forms::all_forms().filter(matches).collect();
    assert_eq!(found.len(), wanted.len());
    found
}

fn is_renamed(latency: &&OperandLatency) -> bool {
    latency.variant.as_deref() == Some("renamed")
}

#[test]
fn memory_renaming_is_detected_with_any_base() {
    let forms = forms(&[
        (Code::Mov_r64_rm64, "r64, m64"),
        (Code::Mov_rm64_r64, "m64, r64"),
        (Code::Mov_r32_rm32, "r32, m32"),
        (Code::Imul_r64_rm64, "r64, m64"),
        (Code::Add_r64_rm64, "r64, m64"),
        (Code::Add_rm64_r64, "m64, r64"),
        (Code::Adc_rm64_imm32, "m64, imm32"),
        (Code::Rcl_rm64_imm8, "m64, imm8"),
        (Code::Xadd_rm64_r64, "m64, r64"),
        (Code::Xchg_rm64_r64, "m64, r64"),
        (Code::Cmp_rm32_r32, "m32, r32"),
        (Code::VEX_Vpaddd_xmm_xmm_xmmm128, "xmm, xmm, m128"),
    ]);
    for seed in [1, 2, 3] {
        for (renamed_latency, renames_any_base) in
            [(None, false), (Some(0), false), (Some(0), true), (Some(1), false), (Some(1), true)]
        {
            let model = CoreModel { renamed_latency, renames_any_base, ..CoreModel::from_seed(seed) };
            let (score, rows) = scored(&model, &forms);
            let case = format!("machine {seed}, {renamed_latency:?}, any base {renames_any_base}");
            assert_eq!(score.complaints(), Vec::<String>::new(), "{case}");
            // Some of these forms have no second chain for one of their latencies, and one is
            // atomic.
            let apart = |row: &&InstrRow| ["adc", "rcl", "xadd", "xchg"].contains(&row.mnemonic.as_str());
            for row in rows.iter().filter(|row| !row.operands.contains("xmm") && !apart(row)) {
                let seen = row.latency.iter().find(is_renamed);
                assert_eq!(seen.is_some(), renamed_latency.is_some(), "{case}: {row:?}");
                // Moves also have latencies that don't pass through renamed memory.
                let moved = row.mnemonic == "mov" && row.latency.iter().any(|one| one.variant.is_none());
                assert!(moved || row.mnemonic != "mov", "{case}: {row:?}");
            }
            let impossible = |latency: &OperandLatency| latency.cost.high.is_none_or(|high| high <= 0.0);
            assert!(!rows.iter().flat_map(|row| &row.latency).any(impossible), "{case}");
            let pair =
                rows.iter().find(|row| row.code == "Mov_r64_rm64").and_then(|row| row.latency.iter().find(is_renamed));
            if let (Some(pair), Some(simulated)) = (pair, renamed_latency) {
                let cycles = pair.cost.value.expect("it was measured");
                assert!(
                    (cycles - f64::from(simulated)).abs() < 0.05 && pair.bound == LatencyBound::Sum,
                    "{case}: {pair:?}"
                );
            }
        }
    }
}

#[test]
fn non_temporal_stores_are_measured_by_whole_lines() {
    let forms = forms(&[
        (Code::Movnti_m64_r64, "m64, r64"),
        (Code::VEX_Vmovntdq_m128_xmm, "m128, xmm"),
        (Code::EVEX_Vmovntdq_m512_zmm, "m512, zmm"),
    ]);
    for combining_latency in [None, Some(24)] {
        let model = CoreModel { combining_latency, ..CoreModel::from_seed(1) };
        let (score, rows) = scored(&model, &forms);
        assert_eq!(score.complaints(), Vec::<String>::new());
        for row in &rows {
            let throughput = row.throughput.as_ref().expect("it was measured");
            let of_line = |row: &InstrRow| {
                let variants = &row.throughput.as_ref()?.variants;
                variants.iter().find(|one| one.variant == "one line")?.cost.value
            };
            let (sustained, merged) = (throughput.cost.value.expect("a number"), of_line(row).expect("a number"));
            assert_eq!(sustained > 2.0 * merged, combining_latency.is_some(), "{row:?}");
            assert!(throughput.recipe.contains("cache lines written whole"), "{row:?}");
        }
    }
}
