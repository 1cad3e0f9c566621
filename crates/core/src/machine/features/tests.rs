use std::collections::BTreeSet;

use super::super::cpuid_leaves::tests::emerald_rapids_vm;
use super::*;
use CpuidFeature as F;

fn emerald_rapids(enabled: SystemSupport) -> CpuFeatures {
    let leaves = emerald_rapids_vm();
    let cpu = Processor::detect(&leaves, &SystemFiles::rooted_at("/nonexistent"));
    CpuFeatures::from_leaves(&leaves, &cpu, enabled, Fact::Known(LfenceOrder::Architectural))
}

fn all_enabled() -> SystemSupport {
    SystemSupport { xcr0: 0x600E7, tile_permission: true, fsgsbase: true, shadow_stack: true }
}

#[test]
fn every_feature_is_decided_once() {
    let mut seen = BTreeSet::new();
    let special = [F::HLE_or_RTM, F::SKINIT_or_SVM, F::TDX, F::XSAVE, F::PKU, F::FSGSBASE, F::CET_SS].into_iter();
    let listed = FEATURE_BITS
        .iter()
        .map(|row| row.feature)
        .chain(ALWAYS_USABLE.iter().copied())
        .chain(NEVER_USABLE.iter().map(|row| row.0))
        .chain(PADLOCK_BITS.iter().map(|row| row.0))
        .chain(special);
    for feature in listed {
        assert!(seen.insert(feature), "{feature:?} is listed twice");
    }
    for feature in F::values() {
        assert!(seen.contains(&feature), "{feature:?} is not decided");
    }
}

#[test]
fn a_recorded_vm_has_the_features_it_reports() {
    let features = emerald_rapids(all_enabled());
    for feature in [F::X64, F::SSE2, F::AVX2, F::AVX512F, F::AVX512_FP16, F::AVX_VNNI, F::RDTSCP, F::SERIALIZE] {
        assert!(features.has(feature), "{feature:?}");
    }
    for feature in [F::AMX_TILE, F::SSE4A, F::XOP, F::MPX, F::RDPRU, F::KNC, F::WAITPKG, F::PADLOCK_RNG] {
        assert!(!features.has(feature) && features.why_not(feature).is_some(), "{feature:?}");
    }
    assert!(features.has_invariant_tsc());
}

#[test]
fn disabled_register_state_removes_features() {
    let without_zmm = emerald_rapids(SystemSupport { xcr0: 0b111, ..all_enabled() });
    assert!(without_zmm.has(F::AVX2) && !without_zmm.has(F::AVX512F));
    let without_ymm = emerald_rapids(SystemSupport { xcr0: 0b11, ..all_enabled() });
    assert!(!without_ymm.has(F::AVX) && !without_ymm.has(F::VAES) && without_ymm.has(F::SSE4_2));
    let without_fsgsbase = emerald_rapids(SystemSupport { fsgsbase: false, ..all_enabled() });
    assert!(!without_fsgsbase.has_fsgsbase());
}

#[test]
fn missing_features_are_named_in_lower_case() {
    let features = emerald_rapids(all_enabled());
    assert_eq!(features.find_missing(&[F::AVX2, F::SSE4A, F::AMX_TILE]), [F::SSE4A, F::AMX_TILE]);
    let refused = features.require(&[F::SSE4A, F::AMX_TILE]).unwrap_err();
    assert_eq!(refused.what, "CPU feature sse4a, amx_tile");
    assert!(features.require(&[F::AVX2]).is_ok());
}

#[test]
fn without_cpuid_there_is_no_feature() {
    let leaves = CpuidLeaves::default();
    let cpu = Processor::detect(&leaves, &SystemFiles::rooted_at("/nonexistent"));
    let features = CpuFeatures::from_leaves(&leaves, &cpu, SystemSupport::default(), Fact::unknown("hidden"));
    assert_eq!(features.list_usable().count(), 0);
}

/// Features that include one another by definition must do so on this machine too.
#[test]
fn this_machine_is_consistent() {
    let features = this_machine();
    let implied = [(F::AVX, F::SSE4_2), (F::AVX2, F::AVX), (F::AVX512F, F::AVX2), (F::AVX512BW, F::AVX512F)];
    for (feature, needs) in implied {
        assert!(!features.has(feature) || features.has(needs), "{feature:?} without {needs:?}");
    }
}

/// `/proc/cpuinfo` is the kernel's own reading of the same bits: every flag shown must be usable. A
/// boot parameter can hide flags, so the reverse is not checked.
#[test]
fn this_machine_agrees_with_the_kernel() {
    let Fact::Known(record) = SystemFiles::system().read_first_record("/proc/cpuinfo") else {
        cyclescope_skipped::report_skipped("/proc/cpuinfo can't be read");
        return;
    };
    let features = this_machine();
    let flags = cpuinfo_field(&record, "flags").unwrap_or_default();
    for flag in flags.split_whitespace() {
        if let Some(feature) = feature_of_flag(flag) {
            assert!(features.has(feature), "the kernel shows {flag}: {:?}", features.why_not(feature));
        }
    }
}

fn this_machine() -> CpuFeatures {
    let (leaves, files) = (CpuidLeaves::read(), SystemFiles::system());
    CpuFeatures::detect(&leaves, &Processor::detect(&leaves, &files), &files)
}

/// The feature of a kernel flag. Excludes flags that mean more than usability by this process (AMX,
/// shadow stacks).
fn feature_of_flag(flag: &str) -> Option<F> {
    let renamed = match flag {
        "lm" => "x64",
        "pni" => "sse3",
        "cx16" => "cmpxchg16b",
        "clflush" => "clfsh",
        "abm" => "lzcnt",
        "3dnowprefetch" => "prefetchw",
        "3dnow" => "d3now",
        "3dnowext" => "d3nowext",
        "sha_ni" => "sha",
        "avx512ifma" => "avx512_ifma",
        "avx512vbmi" => "avx512_vbmi",
        "mwaitx" => "monitorx",
        "pku" | "user_shstk" => return None,
        _ if flag.starts_with("amx") => return None,
        other => other,
    };
    F::values().find(|&feature| feature_name(feature) == renamed)
}

#[test]
fn lfence_order_is_detected_from_each_source() {
    let nothing = SystemFiles::rooted_at("/nonexistent");
    let order = |vendor: [u32; 3], signature: u32, bits: u32| {
        let leaves = CpuidLeaves::from_table(&[
            (0, 0, [1, vendor[0], vendor[1], vendor[2]]),
            (1, 0, [signature, 0, 0, 0]),
            (0x8000_0021, 0, [bits, 0, 0, 0]),
        ]);
        detect_lfence_order(&leaves, &Processor::detect(&leaves, &nothing), &nothing).known().copied()
    };
    const AMD: [u32; 3] = [0x6874_7541, 0x444D_4163, 0x6974_6E65];
    const INTEL: [u32; 3] = [0x756e_6547, 0x6c65_746e, 0x4965_6e69];
    assert_eq!(order(INTEL, 0x000c_06f2, 0), Some(LfenceOrder::Architectural));
    assert_eq!(order(AMD, 0x00a1_0f11, 4), Some(LfenceOrder::AlwaysSerializing));
    assert_eq!(order(AMD, 0x0000_0f4a, 0), Some(LfenceOrder::AlwaysSerializing));
    assert_eq!(order(AMD, 0x0080_0f11, 0), None);
}
