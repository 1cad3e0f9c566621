//! Instructions that need no unit of those that others of their kind need.

use super::mixed_throughput::SLOTS;
use crate::spec::*;

/// What runs before: general registers of numbers of 64 bits, and vectors.
const BEFORE: &str = "mov ebx, 3; mov ebp, 5; xor r12d, r12d; pxor xmm13, xmm13; pxor xmm14, xmm14";

// The first two are executed; each of the others is beside them.
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

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "eliminated",
    about: "which moves, zeros and ones take no unit that other instructions need",
    definition: "instructions of a class in a core cycle; what is executed slows those that are executed in the same units, and what renaming does slows nothing",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    answers: &["mov_rename"],
    part: TestedPart::Execution,
    experiment: Experiment::Mixture(MixtureSpec {
        slot_classes: SLOTS,
        classes: CLASSES,
        init: BEFORE,
        triple_count: 8,
    }),
}];
