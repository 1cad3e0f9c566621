//! Instructions with long constants, from the cache of decoded instructions.

use crate::test::lengths::prefixed;
use crate::test::moves::in_pages;
use crate::test::rate::{Contrast, Row, Way};
use crate::test::walk::{Steps, code};
use crate::test::{Look, Part, Test};

/// Steps of an iteration: so few that every cache of decoded instructions holds them.
const STEPS: usize = 24;

/// A loop over these instructions in turn, all of as many bytes.
fn turns(all: &[&str], bytes: usize) -> Steps {
    let all: Vec<Vec<u8>> = all.iter().map(|one| prefixed(&code(one), bytes)).collect();
    in_pages(all.iter().cycle().take(STEPS).flatten().copied().collect(), STEPS, 1)
}

/// Instructions with long constants, less the same with short ones and so many prefixes that they have as many bytes.
macro_rules! long {
    ($bytes:literal, $name:literal, $long:expr, less $short:expr) => {
        Way::less($name, |_| turns(&$long, $bytes), |_| turns(&$short, $bytes))
    };
}

pub(crate) const TEST: Test = Test {
    name: "long_constants",
    about: "what instructions with long constants take longer than with short ones",
    definition: "core cycles by which an instruction takes longer in a short loop than one of as many bytes with shorter constants: where the cache of decoded instructions keeps such a constant beside its entry, or in a second one",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::FrontEnd,
    look: Look::Contrast(Contrast {
        rows: &[Row::new(
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
        apart: 0.06,
        apart_share: 0.2,
    }),
};
