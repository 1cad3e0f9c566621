//! Instructions that want the same units.

use crate::study::uarch::test::mixture::{Class, Mixture};
use crate::study::uarch::test::{Look, Part, Test};

/// A class with the same text in both encodings.
const fn general(name: &'static str, code: &'static [&'static str]) -> Class {
    Class { name, code: [code, code] }
}

/// A class in both encodings.
const fn vector(name: &'static str, legacy: &'static [&'static str], vex: &'static [&'static str]) -> Class {
    Class { name, code: [legacy, vex] }
}

/// What runs before: a factor, and vectors of 1.5 to read.
const BEFORE: &str =
    "mov ebx, 3; xor r12d, r12d; mov eax, 0x3fc00000; movd xmm13, eax; pshufd xmm13, xmm13, 0";

/// What takes nothing but what every instruction takes: no-operations, which some cores pack, zeros, which others execute, and no-operations that
/// are as long as the longest of the classes, which the decoders may not bring as fast.
const SLOTS: &[Class] = &[
    general("no-operation", &["nop"]),
    general("zero", &["xor r11d, r11d", "xor r12d, r12d"]),
    general("long no-operation", &["nop dword ptr [rax + 0x12345678]"]),
];

const CLASSES: &[Class] = &[
    general("alu", &["mov r11d, 7", "mov r12d, 7"]),
    general(
        "shift",
        &[
            "rol rax, 3",
            "rol rcx, 3",
            "rol rdx, 3",
            "rol rsi, 3",
            "rol rdi, 3",
            "rol r8, 3",
            "rol r9, 3",
            "rol r10, 3",
        ],
    ),
    general("lea", &["lea r11, [rbx + 4*rbx + 7]", "lea r12, [rbx + 4*rbx + 7]"]),
    general("multiply", &["imul r11, rbx, 7", "imul r12, rbx, 7"]),
    general("load", &["mov r11, [r14]", "mov r12, [r14 + 8]", "mov r11, [r14 + 16]", "mov r12, [r14 + 24]"]),
    general(
        "store",
        &["mov [r14 + 6464], rbx", "mov [r14 + 6472], rbx", "mov [r14 + 6480], rbx", "mov [r14 + 6488], rbx"],
    ),
    vector(
        "vector_add",
        &[
            "paddd xmm0, xmm15",
            "paddd xmm1, xmm15",
            "paddd xmm2, xmm15",
            "paddd xmm3, xmm15",
            "paddd xmm4, xmm15",
        ],
        &["vpaddd xmm11, xmm13, xmm14", "vpaddd xmm12, xmm13, xmm14"],
    ),
    vector(
        "vector_shift",
        &["pslld xmm0, 3", "pslld xmm1, 3", "pslld xmm2, 3", "pslld xmm3, 3", "pslld xmm4, 3"],
        &["vpslld xmm11, xmm13, 3", "vpslld xmm12, xmm13, 3"],
    ),
    vector(
        "shuffle",
        &["pshufd xmm11, xmm13, 27", "pshufd xmm12, xmm13, 27"],
        &["vpshufd xmm11, xmm13, 27", "vpshufd xmm12, xmm13, 27"],
    ),
    vector(
        "float_add",
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
    ),
    vector(
        "float_multiply",
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
    ),
    vector(
        "root",
        &["sqrtps xmm11, xmm13", "sqrtps xmm12, xmm13"],
        &["vsqrtps xmm11, xmm13", "vsqrtps xmm12, xmm13"],
    ),
    vector("to_general", &["movq r11, xmm13", "movq r12, xmm13"], &["vmovq r11, xmm13", "vmovq r12, xmm13"]),
    vector("to_vector", &["movq xmm11, rbx", "movq xmm12, rbx"], &["vmovq xmm11, rbx", "vmovq xmm12, rbx"]),
];

pub(in crate::study::uarch) const TEST: Test = Test {
    name: "mixed_throughput",
    about: "which instructions slow each other down, as they want the same units",
    definition: "instructions of a class in a core cycle, where none waits for another",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024); N. Derumigny et al., PALMED (CGO 2022)",
    part: Part::Execution,
    look: Look::Mixture(Mixture { slots: SLOTS, classes: CLASSES, before: BEFORE, triples: 24 }),
};
