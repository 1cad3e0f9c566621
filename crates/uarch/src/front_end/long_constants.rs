//! Instructions with long constants, from the cache of decoded instructions.

use crate::spec::data_moves::loop_in_pages;
use crate::spec::program_family::{StepLoop, assemble};
use crate::spec::rate::{ContrastSpec, ProgramVariant, TestRow};
use crate::spec::sized_instructions::pad_with_prefixes;
use crate::spec::{Experiment, TestSpec, TestedPart};

/// Steps of an iteration: so few that every cache of decoded instructions holds them.
const STEPS: usize = 24;

/// A loop over these instructions in turn, all of as many bytes.
fn loop_in_turn(all: &[&str], bytes: usize) -> StepLoop {
    let all: Vec<Vec<u8>> = all.iter().map(|one| pad_with_prefixes(&assemble(one), bytes)).collect();
    loop_in_pages(all.iter().cycle().take(STEPS).flatten().copied().collect(), STEPS, 1)
}

/// Instructions with long constants, less the same with short ones and so many prefixes that they have as many bytes.
macro_rules! long {
    ($bytes:literal, $name:literal, $long:expr, less $short:expr) => {
        ProgramVariant::with_control($name, |_| loop_in_turn(&$long, $bytes), |_| loop_in_turn(&$short, $bytes))
    };
}

pub(crate) const TEST: TestSpec = TestSpec {
    name: "long_constants",
    about: "what instructions with long constants take longer than with short ones",
    definition: "core cycles by which an instruction takes longer in a short loop than one of as many bytes with shorter constants: where the cache of decoded instructions keeps such a constant beside its entry, or in a second one",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: TestedPart::FrontEnd,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[TestRow::new(
            "immediate_64",
            1,
            1.0,
            &[
                long!(10, "mov of 64 bits to three registers, less of 32",
                    ["mov rax, 0x123456789abcdef1", "mov rbx, 0x213456789abcdef1", "mov rsi, 0x31456789abcdef12"],
                    less ["mov eax, 0x12345678", "mov ebx, 0x21345678", "mov esi, 0x31456789"]),
                long!(10, "mov of 64 bits to four other registers, less of 32",
                    ["mov r8, 0x123456789abcdef1", "mov r9, 0x213456789abcdef1", "mov r10, 0x31456789abcdef12", "mov r11, 0x413456789abcdef1"],
                    less ["mov r8d, 0x12345678", "mov r9d, 0x21345678", "mov r10d, 0x31456789", "mov r11d, 0x41345678"]),
            ],
        )],
        tolerance: 0.06,
        tolerance_share: 0.2,
    }),
};
