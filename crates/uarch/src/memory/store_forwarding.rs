//! Latency from a store to a load of its bytes.

use crate::spec::*;
use iced_x86::CpuidFeature::{AVX, AVX512F};

// Latency from a store to a load of its bytes.

const ON_X87: AsmLoop = AsmLoop { before: "fld1", ..AsmLoop::REPEATED };

pub(crate) const TESTS: &[TestSpec] = &[
// An index hides from the core that both addresses are the same. Partial loads behind the first
// byte are in a chain with multiplications, which are subtracted. Without these, loads that some
// cores first take for renamed are late at times: 6.1 to 7.2 cycles by the place of the code; with
// them, 6 at all places (Genoa, family 25, model 17).
TestSpec {
    name: "store_forwarding",
    about: "what a value takes through a store and a load of it, by what they have in common",
    definition: "core cycles from a register through a store and a load of what it wrote, or of a part of it, and \
                 back",
    source: FOG,
    answers: &["store_forwarding"],
    part: TestedPart::Memory,
    experiment: Experiment::Rates(RatesSpec::new(Unit::CoreCycles, &[
            TestRow::new("8_bytes", &[
                    asm("mov [r14 + r12], rax; mov rax, [r14 + r12]"),
                    asm("mov [r14 + r12 + 328], rsi; mov rsi, [r14 + r12 + 328]"),
                ]),
            TestRow::new("low_4_of_8_bytes", &[
                    asm("mov [r14 + r12], rax; mov eax, [r14 + r12]"),
                    asm("mov [r14 + r12 + 328], rsi; mov esi, [r14 + r12 + 328]"),
                ]),
            TestRow::new("high_4_of_8_bytes", &[
                    asm("mov [r14 + r12], rax; mov eax, [r14 + r12 + 4]; imul rax, rax; imul rax, rax").less("imul rax, rax; imul rax, rax"),
                    asm("mov [r14 + r12 + 328], rsi; mov esi, [r14 + r12 + 332]; imul rsi, rsi, 5; imul rsi, rsi, 5").less("imul rsi, rsi, 5; imul rsi, \
                         rsi, 5"),
                ]),
            TestRow::new("last_of_8_bytes", &[
                    asm("mov [r14 + r12], rax; movzx eax, byte ptr [r14 + r12 + 7]; imul rax, rax; imul rax, rax").less("imul rax, rax; imul rax, rax"),
                    asm("mov [r14 + r12 + 328], rsi; movzx esi, byte ptr [r14 + r12 + 335]; imul rsi, rsi, 5; imul \
                         rsi, rsi, 5").less("imul rsi, rsi, 5; imul rsi, rsi, 5"),
                ]),
            TestRow::new("16_bytes", &[
                    asm("movups [r14 + r12], xmm2; movups xmm2, [r14 + r12]"),
                    asm("movdqu [r14 + r12 + 320], xmm3; movdqu xmm3, [r14 + r12 + 320]"),
                ]),
            TestRow::new("low_8_of_16_bytes", &[
                    asm("movups [r14 + r12], xmm2; movq xmm2, [r14 + r12]"),
                    asm("movdqu [r14 + r12 + 320], xmm3; movq xmm3, [r14 + r12 + 320]"),
                ]),
            TestRow::new("high_8_of_16_bytes", &[
                    asm("movups [r14 + r12], xmm2; movq xmm2, [r14 + r12 + 8]"),
                    asm("movdqu [r14 + r12 + 320], xmm3; movq xmm3, [r14 + r12 + 328]"),
                ]),
            TestRow::new("32_bytes", &[
                    asm("vmovups [r14 + r12], ymm2; vmovups ymm2, [r14 + r12]").requiring(&[AVX]),
                    asm("vmovdqu [r14 + r12 + 320], ymm3; vmovdqu ymm3, [r14 + r12 + 320]").requiring(&[AVX]),
                ]),
            TestRow::new("64_bytes", &[
                    asm("vmovups [r14 + r12], zmm2; vmovups zmm2, [r14 + r12]").requiring(&[AVX512F]),
                    asm("vmovdqu64 [r14 + r12 + 320], zmm3; vmovdqu64 zmm3, [r14 + r12 + 320]")
                        .requiring(&[AVX512F]),
                ]),
            TestRow::new("8_bytes_x87", &[
                    ON_X87.asm("fstp qword ptr [r14 + r12]; fld qword ptr [r14 + r12]"),
                    ON_X87.asm("fstp qword ptr [r14 + r12 + 328]; fld qword ptr [r14 + r12 + 328]"),
                ]),
            TestRow::new("10_bytes_x87", &[
                    ON_X87.asm("fstp tbyte ptr [r14 + r12]; fld tbyte ptr [r14 + r12]"),
                    ON_X87.asm("fstp tbyte ptr [r14 + r12 + 336]; fld tbyte ptr [r14 + r12 + 336]"),
                ]),
            TestRow::new("across_lines", &[
                    asm("mov [r14 + r12 + 60], rax; mov rax, [r14 + r12 + 60]"),
                    asm("mov [r14 + r12 + 316], rsi; mov rsi, [r14 + r12 + 316]"),
                ]),
            TestRow::new("across_pages", &[
                    asm("mov [r14 + r12 + 4092], rax; mov rax, [r14 + r12 + 4092]"),
                    asm("mov [r14 + r12 + 12284], rsi; mov rsi, [r14 + r12 + 12284]"),
                ]),
        ])),
},
TestSpec {
    name: "failed_forwarding",
    about: "what it costs to load bytes of which a store before has a part alone",
    definition: "core cycles by which a value takes longer through memory than where the store has all bytes of the \
                 load",
    source: FOG,
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
        slot_costs: &[],
    }),
},
];
