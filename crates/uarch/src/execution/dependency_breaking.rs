//! Instructions whose result does not depend on what their registers hold.

use crate::spec::*;
use iced_x86::CpuidFeature::AVX;

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "dependency_breaking",
    about: "which instructions of one register twice the core knows not to depend on it",
    definition: "core cycles of a multiplication and the instruction behind it, which the next multiplication waits for: the sum of their latencies, and less where the instruction waits for nothing",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    answers: &["xor"],
    part: TestedPart::Execution,
    experiment: Experiment::Rates(RatesSpec::new(
        Unit::CoreCycles,
        &[
            TestRow::new("add_64", &[asm("imul rax, rdi; add rax, rax"), asm("imul rsi, rdi; add rsi, rsi")]),
            TestRow::new("xor_32", &[asm("imul rax, rdi; xor eax, eax"), asm("imul rsi, rdi; xor esi, esi")]),
            TestRow::new("xor_64", &[asm("imul rax, rdi; xor rax, rax"), asm("imul rsi, rdi; xor rsi, rsi")]),
            TestRow::new("xor_16", &[asm("imul rax, rdi; xor ax, ax"), asm("imul rsi, rdi; xor si, si")]),
            TestRow::new("sub_64", &[asm("imul rax, rdi; sub rax, rax"), asm("imul rsi, rdi; sub rsi, rsi")]),
            TestRow::new(
                "sbb_64",
                &[asm("imul rax, rdi; test r8, r8; sbb rax, rax"), asm("imul rsi, rdi; test r8, r8; sbb rsi, rsi")],
            ),
            TestRow::new("and_0", &[asm("imul rax, rdi; and rax, 0"), asm("imul rsi, rdi; and rsi, 0")]),
            TestRow::new(
                "pxor",
                &[asm("pmuludq xmm2, xmm6; pxor xmm2, xmm2"), asm("pmuludq xmm4, xmm6; pxor xmm4, xmm4")],
            ),
            TestRow::new(
                "xorps",
                &[asm("pmuludq xmm2, xmm6; xorps xmm2, xmm2"), asm("pmuludq xmm4, xmm6; xorps xmm4, xmm4")],
            ),
            TestRow::new(
                "psubd",
                &[asm("pmuludq xmm2, xmm6; psubd xmm2, xmm2"), asm("pmuludq xmm4, xmm6; psubd xmm4, xmm4")],
            ),
            TestRow::new(
                "pandn",
                &[asm("pmuludq xmm2, xmm6; pandn xmm2, xmm2"), asm("pmuludq xmm4, xmm6; pandn xmm4, xmm4")],
            ),
            TestRow::new(
                "pcmpeqd",
                &[asm("pmuludq xmm2, xmm6; pcmpeqd xmm2, xmm2"), asm("pmuludq xmm4, xmm6; pcmpeqd xmm4, xmm4")],
            ),
            TestRow::new(
                "pcmpgtd",
                &[asm("pmuludq xmm2, xmm6; pcmpgtd xmm2, xmm2"), asm("pmuludq xmm4, xmm6; pcmpgtd xmm4, xmm4")],
            ),
            TestRow::new(
                "vxorps_ymm",
                &[
                    asm("vmulps ymm2, ymm2, ymm6; vxorps ymm2, ymm2, ymm2").requiring(&[AVX]),
                    asm("vmulps ymm4, ymm4, ymm6; vxorps ymm4, ymm4, ymm4").requiring(&[AVX]),
                ],
            ),
        ],
    )),
}];
