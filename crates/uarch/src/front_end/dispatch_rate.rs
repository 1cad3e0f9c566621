//! Instructions that go through the core in a cycle.

use crate::spec::*;

/// So many instructions of which each in turn goes to other units than the one before.
fn cycle_through(number: usize, period: &[&str]) -> StepLoop {
    let all: Vec<&str> = period.iter().copied().cycle().take(number).collect();
    loop_in_pages(assemble(&all.join("; ")), number, 1)
}

fn adds_and_loads(number: usize) -> StepLoop {
    cycle_through(
        number,
        &[
            "add rax, r14",
            "mov r8, [r14]",
            "add rcx, r14",
            "nop dword ptr [rax]",
            "add rdx, r14",
            "mov r9, [r14 + 64]",
            "add rbx, r14",
            "paddd xmm0, xmm15",
            "add rsi, r14",
            "mov r10, [r14 + 128]",
            "add rdi, r14",
            "nop dword ptr [rax]",
            "add r11, r14",
            "mov r9, [r14 + 192]",
            "add r12, r14",
            "paddd xmm1, xmm15",
        ],
    )
}

fn vectors_and_loads(number: usize) -> StepLoop {
    cycle_through(
        number,
        &[
            "paddd xmm1, xmm15",
            "movups xmm8, [r14]",
            "and rax, r14",
            "or rcx, r14",
            "mov r8, [r14 + 320]",
            "andps xmm2, xmm15",
            "mov r9, [r14 + 128]",
            "sub rdx, r14",
            "paddd xmm3, xmm15",
            "movups xmm9, [r14 + 192]",
            "and rbx, r14",
            "or rsi, r14",
            "xor r11, r14",
            "andps xmm4, xmm15",
            "mov r10, [r14 + 256]",
            "sub rdi, r14",
        ],
    )
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "dispatch_rate",
    about: "how many instructions the core takes in a cycle",
    definition: "instructions in a core cycle, of a short loop in which none waits for the one before it; kinds that some cores pack or end early count \
                 where two of them agree",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    answers: &[],
    part: TestedPart::FrontEnd,
    experiment: Experiment::Rates(RatesSpec {
        allow_outlier: true,
        ..RatesSpec::new(
            Unit::PerCycle,
            &[TestRow::for_n(
                "instructions",
                240,
                &[
                    ProgramVariant::new("no-operations", nop_loop),
                    ProgramVariant::new("xor r32, same", zeroing_loop),
                    ProgramVariant::new("mov r32, immediate", mov_imm_loop),
                    ProgramVariant::new("additions with loads", adds_and_loads),
                    ProgramVariant::new("vectors with loads", vectors_and_loads),
                ],
            )],
        )
    }),
}];
