//! Chains through moves and other instructions whose results renaming may know.

use crate::spec::*;
use iced_x86::CpuidFeature::{AVX, AVX512F};

// A core that lets two registers share an entry has to count the sharers. With few counters, it
// executes further moves until a copy is overwritten.

/// Moves per step.
const MOVES: f64 = 4.0;

/// Steps that begin with copies of other registers, as many as the row says. Each copied register
/// is then written anew.
const COPIES: AsmLoop = AsmLoop {
    counted: &[
        "lea r8, [r14 + 0]; mov r9, r8",
        "lea r10, [r14 + 1]; mov r11, r10",
        "lea rcx, [r14 + 2]; mov rdx, rcx",
        "lea rsi, [r14 + 3]; mov rdi, rsi",
        "lea r12, [r14 + 4]; mov rbp, r12",
    ],
    iterations: Some(40),
    ..AsmLoop::bare(16, 1)
};
/// The same with vector registers. All values are zero: no value slows an operation down.
const XMM_COPIES: AsmLoop = AsmLoop {
    before: "pxor xmm0, xmm0; pxor xmm1, xmm1",
    counted: &[
        "psubd xmm2, xmm15; movdqa xmm3, xmm2",
        "psubd xmm4, xmm15; movdqa xmm5, xmm4",
        "psubd xmm6, xmm15; movdqa xmm7, xmm6",
        "psubd xmm8, xmm15; movdqa xmm9, xmm8",
        "psubd xmm10, xmm15; movdqa xmm11, xmm10",
        "psubd xmm12, xmm15; movdqa xmm13, xmm12",
    ],
    ..COPIES
};
const YMM_COPIES: AsmLoop = AsmLoop {
    before: "vzeroall",
    counted: &[
        "vmulps ymm2, ymm14, ymm15; vmovaps ymm3, ymm2",
        "vmulps ymm4, ymm14, ymm15; vmovaps ymm5, ymm4",
        "vmulps ymm6, ymm14, ymm15; vmovaps ymm7, ymm6",
        "vmulps ymm8, ymm14, ymm15; vmovaps ymm9, ymm8",
    ],
    ..COPIES
};

/// A link of a chain and two moves, twice, less two links alone.
const fn moves(copies: AsmLoop, link: &'static str, [one, other]: [&'static str; 2]) -> ProgramVariant {
    let program = copies.with([link, one, other, ""]).asm("{a}; {b}; {c}; {a}; {b}; {c}").less("{a}; {a}");
    program.label("two of {a}; {b}; {c}, less two of {a}")
}

const GENERAL: &[ProgramVariant] = &[
    moves(COPIES, "imul rax, rax", ["mov rbx, rax", "mov rax, rbx"]),
    moves(COPIES, "imul ebx, ebx, 7", ["mov eax, ebx", "mov ebx, eax"]),
];
const VECTOR: &[ProgramVariant] = &[
    moves(XMM_COPIES, "pmuludq xmm0, xmm0", ["movdqa xmm1, xmm0", "movdqa xmm0, xmm1"]),
    moves(XMM_COPIES, "pmaddwd xmm1, xmm15", ["movaps xmm0, xmm1", "movaps xmm1, xmm0"]),
];
const WIDE: &[ProgramVariant] = &[
    moves(YMM_COPIES, "vmulps ymm0, ymm0, ymm15", ["vmovaps ymm1, ymm0", "vmovaps ymm0, ymm1"]),
    moves(YMM_COPIES, "vaddps ymm1, ymm1, ymm15", ["vmovaps ymm0, ymm1", "vmovaps ymm1, ymm0"]),
];

pub(crate) const TESTS: &[TestSpec] = &[
    TestSpec {
        name: "move_elimination",
        about: "what a move between registers takes in a chain of moves, and an addition of a constant in one of such",
        definition: "core cycles of a move, or of an addition of a constant, that waits for the one before; less than \
                 one where renaming does it, at least where slots for it are free",
        source: FOG,
        answers: &["mov_rename"],
        part: TestedPart::Execution,
        experiment: Experiment::Rates(RatesSpec::new(
            Unit::CoreCycles,
            &[
                TestRow::new("32_bits", &[asm("mov eax, ebx; mov ebx, eax"), asm("mov esi, r8d; mov r8d, esi")])
                    .amount(2.0),
                TestRow::new("64_bits", &[asm("mov rax, rbx; mov rbx, rax"), asm("mov rsi, r8; mov r8, rsi")])
                    .amount(2.0),
                TestRow::new(
                    "16_bits_extended",
                    &[asm("movzx eax, bx; movzx ebx, ax"), asm("movzx esi, r8w; movzx r8d, si")],
                )
                .amount(2.0),
                TestRow::new(
                    "8_bits_extended",
                    &[asm("movzx eax, bl; movzx ebx, al"), asm("movzx ecx, dl; movzx edx, cl")],
                )
                .amount(2.0),
                TestRow::new(
                    "8_bits_extended_of_new_registers",
                    &[asm("movzx esi, r8b; movzx r8d, sil"), asm("movzx edi, r9b; movzx r9d, dil")],
                )
                .amount(2.0),
                TestRow::new(
                    "xmm",
                    &[asm("movaps xmm2, xmm3; movaps xmm3, xmm2"), asm("movdqa xmm4, xmm5; movdqa xmm5, xmm4")],
                )
                .amount(2.0),
                TestRow::new(
                    "ymm",
                    &[
                        asm("vmovaps ymm2, ymm3; vmovaps ymm3, ymm2").requiring(&[AVX]),
                        asm("vmovdqa ymm4, ymm5; vmovdqa ymm5, ymm4").requiring(&[AVX]),
                    ],
                )
                .amount(2.0),
                TestRow::new(
                    "zmm",
                    &[
                        asm("vmovaps zmm2, zmm3; vmovaps zmm3, zmm2").requiring(&[AVX512F]),
                        asm("vmovdqa64 zmm4, zmm5; vmovdqa64 zmm5, zmm4").requiring(&[AVX512F]),
                    ],
                )
                .amount(2.0),
                TestRow::new("constant_added", &[asm("add rax, 3; add rax, 3"), asm("add rsi, 5; add rsi, 5")])
                    .amount(2.0),
                TestRow::new(
                    "long_constant_added",
                    &[asm("add rax, 123456; add rax, 123456"), asm("add rsi, 654321; add rsi, 654321")],
                )
                .amount(2.0),
            ],
        )),
    },
    TestSpec {
        name: "copies_in_flight",
        about: "what a move takes while this many other registers are copies",
        definition: "core cycles by which a chain takes longer for each move in it, beside copies of other \
                     registers that are made anew in each step; none where renaming does all moves",
        source: FOG,
        answers: &["mov_rename"],
        part: TestedPart::Execution,
        experiment: Experiment::Contrast(ContrastSpec {
            rows: &[
                TestRow::for_n("general_alone", 0, GENERAL).amount(MOVES),
                TestRow::new("general_beside_1", GENERAL).amount(MOVES),
                TestRow::for_n("general_beside_2", 2, GENERAL).amount(MOVES),
                TestRow::for_n("general_beside_3", 3, GENERAL).amount(MOVES),
                TestRow::for_n("general_beside_5", 5, GENERAL).amount(MOVES),
                TestRow::for_n("xmm_alone", 0, VECTOR).amount(MOVES),
                TestRow::for_n("xmm_beside_2", 2, VECTOR).amount(MOVES),
                TestRow::for_n("xmm_beside_4", 4, VECTOR).amount(MOVES),
                TestRow::for_n("xmm_beside_6", 6, VECTOR).amount(MOVES),
                TestRow::for_n("ymm_alone", 0, WIDE).amount(MOVES).requiring(&[AVX]),
                TestRow::for_n("ymm_beside_4", 4, WIDE).amount(MOVES).requiring(&[AVX]),
                TestRow::for_n(
                    "extended",
                    0,
                    &[
                        moves(COPIES, "imul rax, rax", ["movsxd rbx, eax", "movsxd rax, ebx"]),
                        moves(COPIES, "imul ebx, ebx, 7", ["movsxd rax, ebx", "movsxd rbx, eax"]),
                    ],
                )
                .amount(MOVES),
            ],
            tolerance: 0.1,
            tolerance_share: 0.2,
            slot_costs: &[],
        }),
    },
    TestSpec {
        name: "dependency_breaking",
        about: "which instructions of one register twice the core knows not to depend on it",
        definition: "core cycles of a multiplication and the instruction behind it, which the next multiplication \
                     waits for: the sum of their latencies, and less where the instruction waits for nothing",
        source: FOG,
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
                // A comparison writes flags only: a conditional move carries them on.
                TestRow::new(
                    "cmp_64",
                    &[
                        asm("imul rax, rdi; cmp rax, rax; mov rax, r8; cmovc rax, r10"),
                        asm("imul rsi, rdi; cmp rsi, rsi; mov rsi, r8; cmovc rsi, r10"),
                    ],
                ),
                TestRow::new(
                    "cmp_of_two_registers",
                    &[
                        asm("imul rax, rdi; cmp rax, r9; mov rax, r8; cmovc rax, r10"),
                        asm("imul rsi, rdi; cmp rsi, r9; mov rsi, r8; cmovc rsi, r10"),
                    ],
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
    },
];
