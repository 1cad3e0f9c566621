//! Rates of moves, zeroing and other instructions that renaming may complete by itself.

use super::mixed_throughput::SLOTS;
use crate::spec::*;
use iced_x86::CpuidFeature::{AVX, AVX2, AVX512F};

/// Loops over texts of four instructions, 240 in an iteration: the loop's own instructions take
/// little room.
const FOUR: AsmLoop = AsmLoop::bare(240 / 4, 1);
const SIX: AsmLoop = AsmLoop::bare(240 / 6, 1);
const EIGHT: AsmLoop = AsmLoop::bare(240 / 8, 1);
const NINE: AsmLoop = AsmLoop::bare(240 / 9, 1);

/// A row of texts of four instructions, all of which count.
const fn four(name: &'static str, variants: &'static [ProgramVariant]) -> TestRow {
    TestRow::for_n(name, 4, variants).amount(4.0)
}

// Instructions that need no unit, unlike others of their kind.

/// Untimed setup: 64-bit numbers in general registers, and vectors.
const BEFORE: &str = "mov ebx, 3; mov ebp, 5; xor r12d, r12d; pxor xmm13, xmm13; pxor xmm14, xmm14";

// The core executes the first two classes. Each other class runs with them.
const CLASSES: &[MixtureClass] = &[
    general_class("test", &["test rbx, rbp"], &["cmp rbp, rbx"]),
    MixtureClass {
        name: "vector_or",
        code: [
            &["por xmm0, xmm15", "por xmm1, xmm15", "por xmm2, xmm15", "por xmm3, xmm15", "por xmm4, xmm15"],
            &["vpor xmm0, xmm13, xmm14", "vpor xmm1, xmm13, xmm14"],
        ],
        alternatives: [
            &["pand xmm4, xmm14", "pand xmm3, xmm14", "pand xmm2, xmm14", "pand xmm1, xmm14", "pand xmm0, xmm14"],
            &["vpand xmm2, xmm14, xmm13", "vpand xmm3, xmm14, xmm13"],
        ],
    },
    general_class("no_operation", &["nop"], &["nop dword ptr [rax]"]),
    general_class("zero_by_xor", &["xor r9d, r9d", "xor r10d, r10d"], &["xor r11d, r11d", "xor r12d, r12d"]),
    general_class("zero_by_subtraction", &["sub r9d, r9d", "sub r10d, r10d"], &["sub r11d, r11d", "sub r12d, r12d"]),
    general_class("move", &["mov r9, rbx", "mov r10, rbp"], &["mov r11d, ebx", "mov r12d, ebp"]),
    general_class("move_extended", &["movsxd r9, ebx", "movsxd r10, ebp"], &["movsxd r11, ebx", "movsxd r12, ebp"]),
    MixtureClass {
        name: "zero_xmm",
        code: [&["pxor xmm5, xmm5", "pxor xmm6, xmm6"], &["vpxor xmm5, xmm5, xmm5", "vpxor xmm6, xmm6, xmm6"]],
        alternatives: [&["pxor xmm7, xmm7", "pxor xmm8, xmm8"], &["vpxor xmm7, xmm7, xmm7", "vpxor xmm8, xmm8, xmm8"]],
    },
    MixtureClass {
        name: "ones_xmm",
        code: [
            &["pcmpeqd xmm5, xmm5", "pcmpeqd xmm6, xmm6"],
            &["vpcmpeqd xmm5, xmm5, xmm5", "vpcmpeqd xmm6, xmm6, xmm6"],
        ],
        alternatives: [
            &["pcmpeqd xmm7, xmm7", "pcmpeqd xmm8, xmm8"],
            &["vpcmpeqd xmm7, xmm7, xmm7", "vpcmpeqd xmm8, xmm8, xmm8"],
        ],
    },
    MixtureClass {
        name: "move_xmm",
        code: [&["movaps xmm5, xmm13", "movaps xmm6, xmm14"], &["vmovaps xmm5, xmm13", "vmovaps xmm6, xmm14"]],
        alternatives: [&["movdqa xmm7, xmm13", "movdqa xmm8, xmm14"], &["vmovdqa xmm7, xmm13", "vmovdqa xmm8, xmm14"]],
    },
];

pub(crate) const TESTS: &[TestSpec] = &[
    TestSpec {
        name: "rename_rate",
        about: "how many moves, zeros, ones, no-operations and loads of what was stored the core does in a cycle",
        definition: "instructions in a core cycle (of what goes through memory loads, or pairs of a store and a load), \
                 where none waits for another; beside those that renaming may do without executing them, the same \
                 of two registers, which are executed",
        source: FOG,
        answers: &["mov_rename"],
        part: TestedPart::Execution,
        experiment: Experiment::Rates(RatesSpec::new(
            Unit::PerCycle,
            &[
                four(
                    "no_operation",
                    &[
                        FOUR.asm("nop; nop; nop; nop"),
                        FOUR.asm(
                            "nop dword ptr [rax]; nop \
                 dword ptr [rax]; nop dword ptr [rax]; nop dword ptr [rax]",
                        ),
                    ],
                ),
                four(
                    "zero_32_bits",
                    &[
                        FOUR.asm("xor eax, eax; xor ecx, ecx; xor edx, edx; xor ebx, ebx"),
                        FOUR.asm(
                            "xor esi, esi; xor edi, edi; \
                 xor r8d, r8d; xor r9d, r9d",
                        ),
                    ],
                ),
                four(
                    "zero_64_bits",
                    &[
                        FOUR.asm("xor rax, rax; xor rcx, rcx; xor rdx, rdx; xor rbx, rbx"),
                        FOUR.asm(
                            "xor rsi, rsi; xor rdi, rdi; \
                 xor r8, r8; xor r9, r9",
                        ),
                    ],
                ),
                four(
                    "zero_by_subtraction",
                    &[
                        FOUR.asm("sub eax, eax; sub ecx, ecx; sub edx, edx; sub ebx, ebx"),
                        FOUR.asm(
                            "sub esi, esi; sub edi, edi; \
                 sub r8d, r8d; sub r9d, r9d",
                        ),
                    ],
                ),
                TestRow::for_n(
                    "xor_of_two_registers",
                    8,
                    &[
                        EIGHT.asm(
                            "xor eax, r14d; xor ecx, r14d; xor edx, r14d; xor \
                 ebx, r14d; xor esi, r14d; xor edi, r14d; xor r8d, r14d; xor r9d, r14d",
                        ),
                        EIGHT.asm(
                            "xor r10d, r14d; xor r11d, \
                      r14d; xor ebp, r14d; xor ecx, r14d; xor r9d, r14d; xor edi, r14d; xor r8d, r14d; xor esi, r14d",
                        ),
                    ],
                )
                .amount(8.0),
                four(
                    "move_32_bits",
                    &[
                        FOUR.asm("mov eax, ecx; mov edx, ebx; mov esi, edi; mov r8d, r9d"),
                        FOUR.asm(
                            "mov r10d, r11d; mov ebp, ebx; \
                 mov ecx, edx; mov r9d, esi",
                        ),
                    ],
                ),
                four(
                    "move_64_bits",
                    &[
                        FOUR.asm("mov rax, rcx; mov rdx, rbx; mov rsi, rdi; mov r8, r9"),
                        FOUR.asm(
                            "mov r10, r11; mov rbp, rbx; \
                 mov rcx, rdx; mov r9, rsi",
                        ),
                    ],
                ),
                four(
                    "move_of_one_register",
                    &[
                        FOUR.asm("mov rax, r14; mov rcx, r14; mov rdx, r14; mov rbx, r14"),
                        FOUR.asm(
                            "mov rsi, r12; mov rdi, r12; \
                 mov r8, r12; mov r9, r12",
                        ),
                    ],
                ),
                four(
                    "move_to_itself",
                    &[
                        FOUR.asm("mov rax, rax; mov rcx, rcx; mov rdx, rdx; mov rbx, rbx"),
                        FOUR.asm(
                            "mov rsi, rsi; mov rdi, rdi; \
                 mov r8, r8; mov r9, r9",
                        ),
                    ],
                ),
                four(
                    "move_extended",
                    &[
                        FOUR.asm("movsxd rax, ecx; movsxd rdx, ebx; movsxd rsi, edi; movsxd r8, r9d"),
                        FOUR.asm(
                            "movsxd r10, r11d; movsxd rbp, \
                 ebx; movsxd rcx, edx; movsxd r9, esi",
                        ),
                    ],
                ),
                four(
                    "zero_xmm",
                    &[
                        FOUR.asm("pxor xmm0, xmm0; pxor xmm1, xmm1; pxor xmm2, xmm2; pxor xmm3, xmm3"),
                        FOUR.asm(
                            "xorps xmm4, xmm4; xorps xmm5, \
                 xmm5; xorps xmm6, xmm6; xorps xmm7, xmm7",
                        ),
                    ],
                ),
                four(
                    "zero_ymm",
                    &[
                        FOUR.asm(
                            "vpxor ymm0, ymm0, ymm0; vpxor ymm1, ymm1, ymm1; vpxor ymm2, ymm2, ymm2; \
                                         vpxor ymm3, ymm3, ymm3",
                        ),
                        FOUR.asm(
                            "vpxor ymm4, ymm4, ymm4; vpxor \
                                              ymm5, ymm5, ymm5; vpxor ymm6, ymm6, ymm6; vpxor ymm7, ymm7, ymm7",
                        ),
                    ],
                )
                .requiring(&[AVX, AVX2]),
                four(
                    "zero_zmm",
                    &[
                        FOUR.asm(
                            "vpxord zmm0, zmm0, zmm0; vpxord zmm1, zmm1, zmm1; vpxord zmm2, zmm2, zmm2; \
                                         vpxord zmm3, zmm3, zmm3",
                        ),
                        FOUR.asm(
                            "vpxord zmm4, zmm4, zmm4; \
                                              vpxord zmm5, zmm5, zmm5; vpxord zmm6, zmm6, zmm6; vpxord zmm7, zmm7, \
                                              zmm7",
                        ),
                    ],
                )
                .requiring(&[AVX512F]),
                four(
                    "ones_xmm",
                    &[
                        FOUR.asm(
                            "pcmpeqd xmm0, xmm0; pcmpeqd xmm1, xmm1; pcmpeqd xmm2, xmm2; pcmpeqd xmm3, \
                                         xmm3",
                        ),
                        FOUR.asm(
                            "pcmpeqb xmm4, xmm4; pcmpeqb xmm5, xmm5; pcmpeqb xmm6, \
                                              xmm6; pcmpeqb xmm7, xmm7",
                        ),
                    ],
                ),
                four(
                    "ones_ymm",
                    &[
                        FOUR.asm(
                            "vpcmpeqd ymm0, ymm0, ymm0; vpcmpeqd ymm1, ymm1, ymm1; vpcmpeqd ymm2, ymm2, \
                                         ymm2; vpcmpeqd ymm3, ymm3, ymm3",
                        ),
                        FOUR.asm(
                            "vpcmpeqb ymm4, ymm4, ymm4; \
                                              vpcmpeqb ymm5, ymm5, ymm5; vpcmpeqb ymm6, ymm6, ymm6; vpcmpeqb ymm7, \
                                              ymm7, ymm7",
                        ),
                    ],
                )
                .requiring(&[AVX, AVX2]),
                four(
                    "ones_zmm",
                    &[
                        FOUR.asm(
                            "vpternlogd zmm0, zmm0, zmm0, 255; vpternlogd zmm1, zmm1, zmm1, 255; \
                                         vpternlogd zmm2, zmm2, zmm2, 255; vpternlogd zmm3, zmm3, zmm3, 255",
                        ),
                        FOUR.asm(
                            "vpternlogd zmm4, zmm4, zmm4, \
                                              255; vpternlogd zmm5, zmm5, zmm5, 255; vpternlogd zmm6, zmm6, zmm6, \
                                              255; vpternlogd zmm7, zmm7, zmm7, 255",
                        ),
                    ],
                )
                .requiring(&[AVX512F]),
                TestRow::for_n(
                    "pxor_of_two_registers",
                    6,
                    &[
                        SIX.asm(
                            "pxor xmm0, xmm15; pxor xmm1, xmm15; pxor xmm2, \
                 xmm15; pxor xmm3, xmm15; pxor xmm4, xmm15; pxor xmm5, xmm15",
                        ),
                        SIX.asm(
                            "pxor xmm6, xmm14; pxor xmm7, \
                      xmm14; pxor xmm8, xmm14; pxor xmm9, xmm14; pxor xmm10, xmm14; pxor xmm11, xmm14",
                        ),
                    ],
                )
                .amount(6.0),
                four(
                    "move_xmm",
                    &[
                        FOUR.asm("movaps xmm0, xmm1; movaps xmm2, xmm3; movaps xmm4, xmm5; movaps xmm6, xmm7"),
                        FOUR.asm(
                            "movdqa xmm8, xmm9; movdqa \
                 xmm10, xmm11; movdqa xmm12, xmm13; movdqa xmm1, xmm3",
                        ),
                    ],
                ),
                four(
                    "move_ymm",
                    &[
                        FOUR.asm(
                            "vmovaps ymm0, ymm1; vmovaps ymm2, ymm3; vmovaps ymm4, ymm5; vmovaps ymm6, \
                                         ymm7",
                        ),
                        FOUR.asm(
                            "vmovdqa ymm8, ymm9; vmovdqa ymm10, ymm11; vmovdqa ymm12, \
                                              ymm13; vmovdqa ymm1, ymm3",
                        ),
                    ],
                )
                .requiring(&[AVX]),
                four(
                    "move_zmm",
                    &[
                        FOUR.asm(
                            "vmovaps zmm0, zmm1; vmovaps zmm2, zmm3; vmovaps zmm4, zmm5; vmovaps zmm6, \
                                         zmm7",
                        ),
                        FOUR.asm(
                            "vmovdqa64 zmm8, zmm9; vmovdqa64 zmm10, zmm11; vmovdqa64 \
                                              zmm12, zmm13; vmovdqa64 zmm1, zmm3",
                        ),
                    ],
                )
                .requiring(&[AVX512F]),
                TestRow::for_n(
                    "load_of_what_was_stored",
                    9,
                    &[
                        NINE.asm(
                            "mov [r14 + 64], rax; mov rcx, [r14 + 64]; mov \
                 rdx, [r14 + 64]; mov rbx, [r14 + 64]; mov rsi, [r14 + 64]; mov rdi, [r14 + 64]; mov r8, [r14 + \
                 64]; mov r9, [r14 + 64]; mov r10, [r14 + 64]",
                        ),
                        NINE.asm(
                            "mov [r14 + 328], rsi; mov \
                      rdi, [r14 + 328]; mov r8, [r14 + 328]; mov r9, [r14 + 328]; mov r10, [r14 + 328]; mov r11, \
                      [r14 + 328]; mov rax, [r14 + 328]; mov rcx, [r14 + 328]; mov rdx, [r14 + 328]",
                        ),
                    ],
                )
                .amount(8.0),
                TestRow::for_n(
                    "store_and_load_of_it",
                    8,
                    &[
                        EIGHT.asm(
                            "mov [r14 + 64], rax; mov rax, [r14 + 64]; mov \
                 [r14 + 72], rcx; mov rcx, [r14 + 72]; mov [r14 + 80], rdx; mov rdx, [r14 + 80]; mov [r14 + 88], \
                 rbx; mov rbx, [r14 + 88]",
                        ),
                        EIGHT.asm(
                            "mov [r14 + 328], rsi; mov rsi, [r14 + 328]; mov [r14 + \
                      336], rdi; mov rdi, [r14 + 336]; mov [r14 + 344], r8; mov r8, [r14 + 344]; mov [r14 + 352], \
                      r9; mov r9, [r14 + 352]",
                        ),
                    ],
                )
                .amount(4.0),
            ],
        )),
    },
    TestSpec {
        name: "eliminated",
        about: "which moves, zeros and ones take no unit that other instructions need",
        definition: "instructions of a class in a core cycle; what is executed slows those that are executed in the \
                 same units, and what renaming does slows nothing",
        source: FOG,
        answers: &["mov_rename"],
        part: TestedPart::Execution,
        experiment: Experiment::Mixture(MixtureSpec {
            slot_classes: SLOTS,
            classes: CLASSES,
            init: BEFORE,
            triple_count: 8,
        }),
    },
];
