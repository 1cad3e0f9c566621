//! Instructions that compete for the same units.

use crate::spec::*;

/// Untimed setup: a factor, and vectors of 1.5 to read.
const BEFORE: &str = "mov ebx, 3; xor r12d, r12d; mov eax, 0x3fc00000; movd xmm13, eax; pshufd xmm13, xmm13, 0";

/// Instructions that use only what every instruction uses. Some cores pack no-operations, and some
/// execute zeroing instructions. No-operations as long as the longest class show the limit of the
/// decoders.
pub(crate) const SLOTS: &[MixtureClass] = &[
    general_class("no-operation", &["nop"], &["nop dword ptr [rax]"]),
    general_class("zero", &["xor r11d, r11d", "xor r12d, r12d"], &["xor eax, eax", "xor ecx, ecx", "xor edx, edx"]),
    general_class(
        "long no-operation",
        &["nop dword ptr [rax + 0x12345678]"],
        &["nop dword ptr [rcx + rcx + 0x12345678]"],
    ),
];

const CLASSES: &[MixtureClass] = &[
    general_class("alu", &["mov r11d, 7", "mov r12d, 7"], &["mov r8d, 9", "mov r9d, 9", "mov r10d, 9"]),
    general_class(
        "shift",
        &["rol rax, 3", "rol rcx, 3", "rol rdx, 3", "rol rsi, 3", "rol rdi, 3", "rol r8, 3", "rol r9, 3", "rol r10, 3"],
        &[
            "ror ecx, 5",
            "ror r8d, 5",
            "ror r10d, 5",
            "ror eax, 5",
            "ror edi, 5",
            "ror edx, 5",
            "ror r9d, 5",
            "ror esi, 5",
        ],
    ),
    general_class(
        "lea",
        &["lea r11, [rbx + 4*rbx + 7]", "lea r12, [rbx + 4*rbx + 7]"],
        &["lea r8, [rbx + 8*r14 + 100]", "lea r9, [rbx + 8*r14 + 100]", "lea r10, [r14 + 2*rbx + 50]"],
    ),
    general_class(
        "multiply",
        &["imul r11, rbx, 7", "imul r12, rbx, 7"],
        &["imul r8d, r14d, 77", "imul r9d, r14d, 77", "imul r10d, r14d, 77"],
    ),
    general_class(
        "load",
        &["mov r11, [r14]", "mov r12, [r14 + 8]", "mov r11, [r14 + 16]", "mov r12, [r14 + 24]"],
        &["mov r8d, [r14 + 4]", "mov r9d, [r14 + 192]", "mov r10d, [r14 + 324]"],
    ),
    general_class(
        "store",
        &["mov [r14 + 6464], rbx", "mov [r14 + 6472], rbx", "mov [r14 + 6480], rbx", "mov [r14 + 6488], rbx"],
        &["mov [r14 + 6592], r14d", "mov [r14 + 6596], r14d", "mov [r14 + 6600], r14d"],
    ),
    MixtureClass {
        name: "vector_add",
        code: [
            &["paddd xmm0, xmm15", "paddd xmm1, xmm15", "paddd xmm2, xmm15", "paddd xmm3, xmm15", "paddd xmm4, xmm15"],
            &["vpaddd xmm11, xmm13, xmm14", "vpaddd xmm12, xmm13, xmm14"],
        ],
        alternatives: [
            &["psubw xmm4, xmm14", "psubw xmm2, xmm14", "psubw xmm0, xmm14", "psubw xmm3, xmm14", "psubw xmm1, xmm14"],
            &["vpsubw xmm0, xmm14, xmm13", "vpsubw xmm1, xmm14, xmm13", "vpsubw xmm2, xmm14, xmm13"],
        ],
    },
    MixtureClass {
        name: "vector_shift",
        code: [
            &["pslld xmm0, 3", "pslld xmm1, 3", "pslld xmm2, 3", "pslld xmm3, 3", "pslld xmm4, 3"],
            &["vpslld xmm11, xmm13, 3", "vpslld xmm12, xmm13, 3"],
        ],
        alternatives: [
            &["psrlq xmm4, 5", "psrlq xmm2, 5", "psrlq xmm0, 5", "psrlq xmm3, 5", "psrlq xmm1, 5"],
            &["vpsrlq xmm0, xmm14, 5", "vpsrlq xmm1, xmm14, 5", "vpsrlq xmm2, xmm14, 5"],
        ],
    },
    MixtureClass {
        name: "shuffle",
        code: [
            &["pshufd xmm11, xmm13, 27", "pshufd xmm12, xmm13, 27"],
            &["vpshufd xmm11, xmm13, 27", "vpshufd xmm12, xmm13, 27"],
        ],
        alternatives: [
            &["pshufd xmm8, xmm14, 78", "pshufd xmm9, xmm14, 78", "pshufd xmm10, xmm14, 78"],
            &["vpshufd xmm0, xmm14, 78", "vpshufd xmm1, xmm14, 78", "vpshufd xmm2, xmm14, 78"],
        ],
    },
    MixtureClass {
        name: "float_add",
        code: [
            &[
                "addps xmm5, xmm15",
                "addps xmm6, xmm15",
                "addps xmm7, xmm15",
                "addps xmm8, xmm15",
                "addps xmm9, xmm15",
                "addps xmm10, xmm15",
                "addps xmm11, xmm15",
                "addps xmm12, xmm15",
            ],
            &["vaddps xmm11, xmm13, xmm13", "vaddps xmm12, xmm13, xmm13"],
        ],
        alternatives: [
            &[
                "subpd xmm12, xmm15",
                "subpd xmm10, xmm15",
                "subpd xmm8, xmm15",
                "subpd xmm6, xmm15",
                "subpd xmm11, xmm15",
                "subpd xmm9, xmm15",
                "subpd xmm7, xmm15",
                "subpd xmm5, xmm15",
            ],
            &["vsubpd xmm0, xmm13, xmm13", "vsubpd xmm1, xmm13, xmm13", "vsubpd xmm2, xmm13, xmm13"],
        ],
    },
    MixtureClass {
        name: "float_multiply",
        code: [
            &[
                "mulps xmm5, xmm15",
                "mulps xmm6, xmm15",
                "mulps xmm7, xmm15",
                "mulps xmm8, xmm15",
                "mulps xmm9, xmm15",
                "mulps xmm10, xmm15",
                "mulps xmm11, xmm15",
                "mulps xmm12, xmm15",
            ],
            &["vmulps xmm11, xmm13, xmm13", "vmulps xmm12, xmm13, xmm13"],
        ],
        alternatives: [
            &[
                "mulss xmm12, xmm15",
                "mulss xmm10, xmm15",
                "mulss xmm8, xmm15",
                "mulss xmm6, xmm15",
                "mulss xmm11, xmm15",
                "mulss xmm9, xmm15",
                "mulss xmm7, xmm15",
                "mulss xmm5, xmm15",
            ],
            &["vmulss xmm0, xmm13, xmm13", "vmulss xmm1, xmm13, xmm13", "vmulss xmm2, xmm13, xmm13"],
        ],
    },
    MixtureClass {
        name: "root",
        code: [&["sqrtps xmm11, xmm13", "sqrtps xmm12, xmm13"], &["vsqrtps xmm11, xmm13", "vsqrtps xmm12, xmm13"]],
        alternatives: [
            &["sqrtps xmm8, xmm13", "sqrtps xmm9, xmm13", "sqrtps xmm10, xmm13"],
            &["vsqrtps xmm0, xmm13", "vsqrtps xmm1, xmm13", "vsqrtps xmm2, xmm13"],
        ],
    },
    MixtureClass {
        name: "to_general",
        code: [&["movq r11, xmm13", "movq r12, xmm13"], &["vmovq r11, xmm13", "vmovq r12, xmm13"]],
        alternatives: [
            &["movd r8d, xmm14", "movd r9d, xmm14", "movd r10d, xmm14"],
            &["vmovd r8d, xmm14", "vmovd r9d, xmm14", "vmovd r10d, xmm14"],
        ],
    },
    MixtureClass {
        name: "to_vector",
        code: [&["movq xmm11, rbx", "movq xmm12, rbx"], &["vmovq xmm11, rbx", "vmovq xmm12, rbx"]],
        alternatives: [
            &["movd xmm8, r14d", "movd xmm9, r14d", "movd xmm10, r14d"],
            &["vmovd xmm0, r14d", "vmovd xmm1, r14d", "vmovd xmm2, r14d"],
        ],
    },
];

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "mixed_throughput",
    about: "which instructions slow each other down, as they want the same units",
    definition: "instructions of a class in a core cycle, where none waits for another",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024); N. Derumigny et al., PALMED (CGO 2022)",
    answers: &["mixed_throughput"],
    part: TestedPart::Execution,
    experiment: Experiment::Mixture(MixtureSpec {
        slot_classes: SLOTS,
        classes: CLASSES,
        init: BEFORE,
        triple_count: 24,
    }),
}];
