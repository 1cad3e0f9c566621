//! Instructions whose result does not depend on what their registers hold.

use crate::spec::rate::{ProgramVariant, RatesSpec, TestRow};
use crate::spec::text_loop::{repeat_text, variant};
use crate::spec::{Experiment, TestSpec, TestedPart};
use cyclescope_core::unit::Unit;
use iced_x86::CpuidFeature::AVX;

/// Two programs of a multiplication and an instruction behind it that may break the chain.
macro_rules! integer {
    ($name:literal, $one:literal, $other:literal) => {
        TestRow::new(
            $name,
            1,
            1.0,
            &[variant!(concat!("imul rax, rdi; ", $one)), variant!(concat!("imul rsi, rdi; ", $other))],
        )
    };
}

/// The same of vectors.
macro_rules! vector {
    ($name:literal, $one:literal, $other:literal) => {
        TestRow::new(
            $name,
            1,
            1.0,
            &[variant!(concat!("pmuludq xmm2, xmm6; ", $one)), variant!(concat!("pmuludq xmm4, xmm6; ", $other))],
        )
    };
}

pub(crate) const TEST: TestSpec = TestSpec {
    name: "dependency_breaking",
    about: "which instructions of one register twice the core knows not to depend on it",
    definition: "core cycles of a multiplication and the instruction behind it, which the next multiplication waits for: the sum of their latencies, and less where the instruction waits for nothing",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: TestedPart::Execution,
    experiment: Experiment::Rates(RatesSpec {
        rows: &[
            integer!("add_64", "add rax, rax", "add rsi, rsi"),
            integer!("xor_32", "xor eax, eax", "xor esi, esi"),
            integer!("xor_64", "xor rax, rax", "xor rsi, rsi"),
            integer!("xor_16", "xor ax, ax", "xor si, si"),
            integer!("sub_64", "sub rax, rax", "sub rsi, rsi"),
            integer!("sbb_64", "test r8, r8; sbb rax, rax", "test r8, r8; sbb rsi, rsi"),
            integer!("and_0", "and rax, 0", "and rsi, 0"),
            vector!("pxor", "pxor xmm2, xmm2", "pxor xmm4, xmm4"),
            vector!("xorps", "xorps xmm2, xmm2", "xorps xmm4, xmm4"),
            vector!("psubd", "psubd xmm2, xmm2", "psubd xmm4, xmm4"),
            vector!("pandn", "pandn xmm2, xmm2", "pandn xmm4, xmm4"),
            vector!("pcmpeqd", "pcmpeqd xmm2, xmm2", "pcmpeqd xmm4, xmm4"),
            vector!("pcmpgtd", "pcmpgtd xmm2, xmm2", "pcmpgtd xmm4, xmm4"),
            TestRow::new(
                "vxorps_ymm",
                1,
                1.0,
                &[
                    variant!("vmulps ymm2, ymm2, ymm6; vxorps ymm2, ymm2, ymm2").requiring(&[AVX]),
                    variant!("vmulps ymm4, ymm4, ymm6; vxorps ymm4, ymm4, ymm4").requiring(&[AVX]),
                ],
            ),
        ],
        unit: Unit::CoreCycles,
        bytes_per_n: 0,
        tolerance_share: 0.05,
        allow_outlier: false,
        required_entries: None,
    }),
};
