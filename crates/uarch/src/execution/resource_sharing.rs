//! What another CPU shares with the measured one.

use crate::spec::*;

/// Reads through 64 pages, which are more than a first cache holds and less than a second one. Each load is `{a}` bytes
/// behind the last one.
const fn read_through(name: &'static str, bytes: &'static str) -> ProgramFamily {
    let pages = AsmLoop { setup: "xor r12d, r12d", ..AsmLoop::bare(32, 64) };
    let text = "and r12d, 0x3ffff; mov rax, [r14 + r12]; add r12d, {a}";
    pages.with([bytes, "", "", ""]).asm(text).label(name).family
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "resource_sharing",
    about: "what this CPU shares with another one: how much longer work takes beside the same work",
    definition: "the core cycles that work takes while another CPU does the same, for each that it takes while that one executes PAUSE; of the CPU that slows additions most, of the nearest three",
    source: "A. Fog, Test programs for measuring clock cycles and performance monitoring (2024)",
    answers: &["resource_sharing"],
    part: TestedPart::Environment,
    experiment: Experiment::Sharing(SharingSpec {
        rows: &[
            SharedWork::asm(
                "alu",
                "not rax; not rcx; not rdx; not rsi; not rdi; not r8; not r9; not r10",
                "add rax, r12; add rcx, r12; add rdx, r12; add rsi, r12; add rdi, r12; add r8, r12; add r9, r12; add r10, r12",
            ),
            SharedWork::asm(
                "multiply",
                "imul rax, r12, 7; imul rcx, r12, 7; imul rdx, r12, 7; imul rsi, r12, 7",
                "imul rax, r12; imul rcx, r12; imul rdx, r12; imul rsi, r12",
            ),
            SharedWork::asm("root", "sqrtps xmm2, xmm4; sqrtps xmm3, xmm4", "sqrtpd xmm2, xmm4; sqrtpd xmm3, xmm4"),
            SharedWork::asm(
                "float_multiply",
                "mulps xmm2, xmm10; mulps xmm3, xmm10; mulps xmm4, xmm10; mulps xmm5, xmm10; mulps xmm6, xmm10; mulps xmm7, xmm10; mulps xmm8, xmm10; mulps xmm9, xmm10",
                "mulpd xmm2, xmm10; mulpd xmm3, xmm10; mulpd xmm4, xmm10; mulpd xmm5, xmm10; mulpd xmm6, xmm10; mulpd xmm7, xmm10; mulpd xmm8, xmm10; mulpd xmm9, xmm10",
            ),
            SharedWork::asm(
                "load",
                "mov rax, [r14]; mov rcx, [r14 + 8]; mov rdx, [r14 + 16]; mov rsi, [r14 + 24]",
                "mov r8, [r14 + 64]; mov r9, [r14 + 72]; mov r10, [r14 + 80]; mov r11, [r14 + 88]",
            ),
            SharedWork::asm(
                "store",
                "mov [r14], rax; mov [r14 + 8], rax; mov [r14 + 16], rax; mov [r14 + 24], rax",
                "mov [r14 + 64], rcx; mov [r14 + 72], rcx; mov [r14 + 80], rcx; mov [r14 + 88], rcx",
            ),
            SharedWork {
                name: "second_cache",
                programs: [read_through("each line", "64"), read_through("every third line", "192")],
                background_load: "and r12d, 0x3ffff; mov rax, [r14 + r12]; add r12d, 64",
            },
        ],
        idle_load: "pause",
        load_description: "the same work",
        load_memory: None,
        // What adds, and the multiplier, are busy in each cycle.
        sibling_proofs: &["alu", "multiply"],
        tolerance_share: 0.15,
        structures: &[
            "rob",
            "int_registers",
            "vector_registers_xmm",
            "loads_in_flight",
            "stores_in_flight",
            "integer_scheduler",
            "load_scheduler",
        ],
        structure_definition: "the share of the entries it has alone that is left beside work that fills it on another CPU of the same core",
        // Behind each pair of roots waits a part of each kind.
        filling_load: "sqrtsd xmm0, xmm0; sqrtsd xmm0, xmm0; mov rax, [r14]; mov [r14 + 8], rbx; lea rcx, [rdx + 1]; mov rsi, [r14 + 16]; mov [r14 + 24], rbx; lea rdi, [rdx + 2]; mov r8, [r14 + 32]; mov [r14 + 40], rbx; lea r9, [rdx + 3]; mov r10, [r14 + 48]; mov [r14 + 56], rbx; lea r11, [rdx + 4]; movq rax, xmm0; and eax, 63; mov rsi, [r14 + rax]; add rsi, rcx",
    }),
}];
