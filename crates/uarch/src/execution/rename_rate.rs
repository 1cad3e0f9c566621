//! Instructions that renaming may do by itself, by how many of them go through the core in a cycle.

use crate::spec::data_moves::loop_in_pages;
use crate::spec::program_family::{StepLoop, assemble};
use crate::spec::rate::{ProgramVariant, RatesSpec, TestRow};
use crate::spec::{Experiment, TestSpec, TestedPart};
use cyclescope_core::unit::Unit;
use iced_x86::CpuidFeature::{AVX, AVX2, AVX512F};

/// Instructions of an iteration: so many that its own count of iterations takes little room beside them.
const NUMBER: usize = 240;

/// A loop over a text of so many instructions.
fn loop_text(instructions: usize, text: &str) -> StepLoop {
    loop_in_pages(assemble(text).repeat(NUMBER / instructions), NUMBER / instructions, 1)
}

/// Two programs of so many instructions each, which do so many of what is asked, where the CPU has these features.
macro_rules! row {
    ($name:literal, $number:literal, $one:literal, $other:literal) => {
        row!($name, $number, $one, $other, &[])
    };
    ($name:literal, $number:literal, $one:literal, $other:literal, $needs:expr) => {
        row!($name, $number, $number as f64, $one, $other, $needs)
    };
    ($name:literal, $number:literal, $each:expr, $one:literal, $other:literal, $needs:expr) => {
        TestRow::new(
            $name,
            $number,
            $each,
            &[
                ProgramVariant::new($one, |instructions| loop_text(instructions, $one)),
                ProgramVariant::new($other, |instructions| loop_text(instructions, $other)),
            ],
        )
        .requiring($needs)
    };
}

pub(crate) const TEST: TestSpec = TestSpec {
    name: "rename_rate",
    about: "how many moves, zeros, ones, no-operations and loads of what was stored the core does in a cycle",
    definition: "instructions in a core cycle (of what goes through memory loads, or pairs of a store and a load), where none waits for another; beside those that renaming may do without executing them, the same of two registers, which are executed",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: TestedPart::Execution,
    experiment: Experiment::Rates(RatesSpec {
        rows: &[
            row!(
                "no_operation",
                4,
                "nop; nop; nop; nop",
                "nop dword ptr [rax]; nop dword ptr [rax]; nop dword ptr [rax]; nop dword ptr [rax]"
            ),
            row!(
                "zero_32_bits",
                4,
                "xor eax, eax; xor ecx, ecx; xor edx, edx; xor ebx, ebx",
                "xor esi, esi; xor edi, edi; xor r8d, r8d; xor r9d, r9d"
            ),
            row!(
                "zero_64_bits",
                4,
                "xor rax, rax; xor rcx, rcx; xor rdx, rdx; xor rbx, rbx",
                "xor rsi, rsi; xor rdi, rdi; xor r8, r8; xor r9, r9"
            ),
            row!(
                "zero_by_subtraction",
                4,
                "sub eax, eax; sub ecx, ecx; sub edx, edx; sub ebx, ebx",
                "sub esi, esi; sub edi, edi; sub r8d, r8d; sub r9d, r9d"
            ),
            row!(
                "xor_of_two_registers",
                8,
                "xor eax, r14d; xor ecx, r14d; xor edx, r14d; xor ebx, r14d; xor esi, r14d; xor edi, r14d; xor r8d, r14d; xor r9d, r14d",
                "xor r10d, r14d; xor r11d, r14d; xor ebp, r14d; xor ecx, r14d; xor r9d, r14d; xor edi, r14d; xor r8d, r14d; xor esi, r14d"
            ),
            row!(
                "move_32_bits",
                4,
                "mov eax, ecx; mov edx, ebx; mov esi, edi; mov r8d, r9d",
                "mov r10d, r11d; mov ebp, ebx; mov ecx, edx; mov r9d, esi"
            ),
            row!(
                "move_64_bits",
                4,
                "mov rax, rcx; mov rdx, rbx; mov rsi, rdi; mov r8, r9",
                "mov r10, r11; mov rbp, rbx; mov rcx, rdx; mov r9, rsi"
            ),
            row!(
                "move_of_one_register",
                4,
                "mov rax, r14; mov rcx, r14; mov rdx, r14; mov rbx, r14",
                "mov rsi, r12; mov rdi, r12; mov r8, r12; mov r9, r12"
            ),
            row!(
                "move_to_itself",
                4,
                "mov rax, rax; mov rcx, rcx; mov rdx, rdx; mov rbx, rbx",
                "mov rsi, rsi; mov rdi, rdi; mov r8, r8; mov r9, r9"
            ),
            row!(
                "move_extended",
                4,
                "movsxd rax, ecx; movsxd rdx, ebx; movsxd rsi, edi; movsxd r8, r9d",
                "movsxd r10, r11d; movsxd rbp, ebx; movsxd rcx, edx; movsxd r9, esi"
            ),
            row!(
                "zero_xmm",
                4,
                "pxor xmm0, xmm0; pxor xmm1, xmm1; pxor xmm2, xmm2; pxor xmm3, xmm3",
                "xorps xmm4, xmm4; xorps xmm5, xmm5; xorps xmm6, xmm6; xorps xmm7, xmm7"
            ),
            row!(
                "zero_ymm",
                4,
                "vpxor ymm0, ymm0, ymm0; vpxor ymm1, ymm1, ymm1; vpxor ymm2, ymm2, ymm2; vpxor ymm3, ymm3, ymm3",
                "vpxor ymm4, ymm4, ymm4; vpxor ymm5, ymm5, ymm5; vpxor ymm6, ymm6, ymm6; vpxor ymm7, ymm7, ymm7",
                &[AVX, AVX2]
            ),
            row!(
                "zero_zmm",
                4,
                "vpxord zmm0, zmm0, zmm0; vpxord zmm1, zmm1, zmm1; vpxord zmm2, zmm2, zmm2; vpxord zmm3, zmm3, zmm3",
                "vpxord zmm4, zmm4, zmm4; vpxord zmm5, zmm5, zmm5; vpxord zmm6, zmm6, zmm6; vpxord zmm7, zmm7, zmm7",
                &[AVX512F]
            ),
            row!(
                "ones_xmm",
                4,
                "pcmpeqd xmm0, xmm0; pcmpeqd xmm1, xmm1; pcmpeqd xmm2, xmm2; pcmpeqd xmm3, xmm3",
                "pcmpeqb xmm4, xmm4; pcmpeqb xmm5, xmm5; pcmpeqb xmm6, xmm6; pcmpeqb xmm7, xmm7"
            ),
            row!(
                "ones_ymm",
                4,
                "vpcmpeqd ymm0, ymm0, ymm0; vpcmpeqd ymm1, ymm1, ymm1; vpcmpeqd ymm2, ymm2, ymm2; vpcmpeqd ymm3, ymm3, ymm3",
                "vpcmpeqb ymm4, ymm4, ymm4; vpcmpeqb ymm5, ymm5, ymm5; vpcmpeqb ymm6, ymm6, ymm6; vpcmpeqb ymm7, ymm7, ymm7",
                &[AVX, AVX2]
            ),
            row!(
                "ones_zmm",
                4,
                "vpternlogd zmm0, zmm0, zmm0, 255; vpternlogd zmm1, zmm1, zmm1, 255; vpternlogd zmm2, zmm2, zmm2, 255; vpternlogd zmm3, zmm3, zmm3, 255",
                "vpternlogd zmm4, zmm4, zmm4, 255; vpternlogd zmm5, zmm5, zmm5, 255; vpternlogd zmm6, zmm6, zmm6, 255; vpternlogd zmm7, zmm7, zmm7, 255",
                &[AVX512F]
            ),
            row!(
                "pxor_of_two_registers",
                6,
                "pxor xmm0, xmm15; pxor xmm1, xmm15; pxor xmm2, xmm15; pxor xmm3, xmm15; pxor xmm4, xmm15; pxor xmm5, xmm15",
                "pxor xmm6, xmm14; pxor xmm7, xmm14; pxor xmm8, xmm14; pxor xmm9, xmm14; pxor xmm10, xmm14; pxor xmm11, xmm14"
            ),
            row!(
                "move_xmm",
                4,
                "movaps xmm0, xmm1; movaps xmm2, xmm3; movaps xmm4, xmm5; movaps xmm6, xmm7",
                "movdqa xmm8, xmm9; movdqa xmm10, xmm11; movdqa xmm12, xmm13; movdqa xmm1, xmm3"
            ),
            row!(
                "move_ymm",
                4,
                "vmovaps ymm0, ymm1; vmovaps ymm2, ymm3; vmovaps ymm4, ymm5; vmovaps ymm6, ymm7",
                "vmovdqa ymm8, ymm9; vmovdqa ymm10, ymm11; vmovdqa ymm12, ymm13; vmovdqa ymm1, ymm3",
                &[AVX]
            ),
            row!(
                "move_zmm",
                4,
                "vmovaps zmm0, zmm1; vmovaps zmm2, zmm3; vmovaps zmm4, zmm5; vmovaps zmm6, zmm7",
                "vmovdqa64 zmm8, zmm9; vmovdqa64 zmm10, zmm11; vmovdqa64 zmm12, zmm13; vmovdqa64 zmm1, zmm3",
                &[AVX512F]
            ),
            row!(
                "load_of_what_was_stored",
                9,
                8.0,
                "mov [r14 + 64], rax; mov rcx, [r14 + 64]; mov rdx, [r14 + 64]; mov rbx, [r14 + 64]; mov rsi, [r14 + 64]; mov rdi, [r14 + 64]; mov r8, [r14 + 64]; mov r9, [r14 + 64]; mov r10, [r14 + 64]",
                "mov [r14 + 328], rsi; mov rdi, [r14 + 328]; mov r8, [r14 + 328]; mov r9, [r14 + 328]; mov r10, [r14 + 328]; mov r11, [r14 + 328]; mov rax, [r14 + 328]; mov rcx, [r14 + 328]; mov rdx, [r14 + 328]",
                &[]
            ),
            row!(
                "store_and_load_of_it",
                8,
                4.0,
                "mov [r14 + 64], rax; mov rax, [r14 + 64]; mov [r14 + 72], rcx; mov rcx, [r14 + 72]; mov [r14 + 80], rdx; mov rdx, [r14 + 80]; mov [r14 + 88], rbx; mov rbx, [r14 + 88]",
                "mov [r14 + 328], rsi; mov rsi, [r14 + 328]; mov [r14 + 336], rdi; mov rdi, [r14 + 336]; mov [r14 + 344], r8; mov r8, [r14 + 344]; mov [r14 + 352], r9; mov r9, [r14 + 352]",
                &[]
            ),
        ],
        unit: Unit::PerCycle,
        bytes_per_n: 0,
        tolerance_share: 0.05,
        allow_outlier: false,
        required_entries: None,
    }),
};
