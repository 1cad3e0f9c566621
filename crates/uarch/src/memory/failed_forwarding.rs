//! Loads that no store can give all of their bytes.

use crate::spec::*;

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "failed_forwarding",
    about: "what it costs to load bytes of which a store before has a part alone",
    definition: "core cycles by which a value takes longer through memory than where the store has all bytes of the load",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    answers: &["store_forwarding"],
    part: TestedPart::Memory,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[
            TestRow::new(
                "8_of_4_bytes",
                &[
                    asm("mov [r14 + r12], eax; mov rax, [r14 + r12]")
                        .less("mov [r14 + r12], rax; mov rax, [r14 + r12]"),
                    asm("mov [r14 + r12 + 328], esi; mov rsi, [r14 + r12 + 328]")
                        .less("mov [r14 + r12 + 328], rsi; mov rsi, [r14 + r12 + 328]"),
                ],
            ),
            TestRow::new(
                "16_of_8_bytes",
                &[
                    asm("movq [r14 + r12], xmm2; movups xmm2, [r14 + r12]")
                        .less("movups [r14 + r12], xmm2; movups xmm2, [r14 + r12]"),
                    asm("movq [r14 + r12 + 320], xmm3; movdqu xmm3, [r14 + r12 + 320]")
                        .less("movdqu [r14 + r12 + 320], xmm3; movdqu xmm3, [r14 + r12 + 320]"),
                ],
            ),
            TestRow::new(
                "shifted_by_4_bytes",
                &[
                    asm("mov [r14 + r12], rax; mov rax, [r14 + r12 + 4]")
                        .less("mov [r14 + r12], rax; mov rax, [r14 + r12]"),
                    asm("mov [r14 + r12 + 328], rsi; mov rsi, [r14 + r12 + 332]")
                        .less("mov [r14 + r12 + 328], rsi; mov rsi, [r14 + r12 + 328]"),
                ],
            ),
            TestRow::new(
                "of_two_stores",
                &[
                    asm("mov [r14 + r12], eax; mov [r14 + r12 + 4], edi; mov rax, [r14 + r12]")
                        .less("mov [r14 + r12], rax; mov [r14 + r12 + 64], edi; mov rax, [r14 + r12]"),
                    asm("mov [r14 + r12 + 328], edi; mov [r14 + r12 + 332], esi; mov rsi, [r14 + r12 + 328]")
                        .less("mov [r14 + r12 + 256], edi; mov [r14 + r12 + 328], rsi; mov rsi, [r14 + r12 + 328]"),
                ],
            ),
        ],
        tolerance: 0.5,
        tolerance_share: 0.15,
    }),
}];
