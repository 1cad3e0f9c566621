//! Instructions with long constants, from the cache of decoded instructions.

use crate::spec::*;

/// Steps of an iteration: so few that every cache of decoded instructions holds them.
const STEPS: usize = 24;

/// Bytes of each instruction: short constants get prefixes.
const LONG_BYTES: usize = 10;

/// A loop over these instructions in turn, all of as many bytes.
fn loop_in_turn(all: &[&str]) -> StepLoop {
    let all: Vec<Vec<u8>> = all.iter().map(|one| pad_with_prefixes(&assemble(one), LONG_BYTES)).collect();
    loop_in_pages(all.iter().cycle().take(STEPS).flatten().copied().collect(), STEPS, 1)
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "long_constants",
    about: "what instructions with long constants take longer than with short ones",
    definition: "core cycles by which an instruction takes longer in a short loop than one of as many bytes with shorter constants: where the cache of decoded instructions keeps such a constant beside its entry, or in a second one",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    answers: &["ucache_double_entries"],
    part: TestedPart::FrontEnd,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[TestRow::new(
            "immediate_64",
            &[
                ProgramVariant::new("mov of 64 bits to three registers, less of 32", |_| {
                    loop_in_turn(&[
                        "mov rax, 0x123456789abcdef1",
                        "mov rbx, 0x213456789abcdef1",
                        "mov rsi, 0x31456789abcdef12",
                    ])
                })
                .less_generated(|_| {
                    loop_in_turn(&["mov eax, 0x12345678", "mov ebx, 0x21345678", "mov esi, 0x31456789"])
                }),
                ProgramVariant::new("mov of 64 bits to four other registers, less of 32", |_| {
                    loop_in_turn(&[
                        "mov r8, 0x123456789abcdef1",
                        "mov r9, 0x213456789abcdef1",
                        "mov r10, 0x31456789abcdef12",
                        "mov r11, 0x413456789abcdef1",
                    ])
                })
                .less_generated(|_| {
                    loop_in_turn(&[
                        "mov r8d, 0x12345678",
                        "mov r9d, 0x21345678",
                        "mov r10d, 0x31456789",
                        "mov r11d, 0x41345678",
                    ])
                }),
            ],
        )],
        tolerance: 0.06,
        tolerance_share: 0.2,
    }),
}];
