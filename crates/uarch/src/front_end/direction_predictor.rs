//! The memory of the predictor of directions.

use crate::test::walk::{Steps, Walk, Walks, code};
use crate::test::{Look, Part, Test};
use cyclescope_code::program::memory::{Area, At, Fill, Lifetime, Memory, PAGE, Pointer, Present};
use cyclescope_core::random::Random;
use cyclescope_core::unit::Unit;

/// Iterations of the shorter call: once through the pattern, and no fewer and no more than these. What other work does in a longer time is no
/// outlier.
pub(super) const ITERATIONS: [usize; 2] = [4000, 32768];

/// One conditional branch a step, taken by a random pattern of this period, from one call to the next.
fn pattern(period: usize, branch: u8, seed: u64) -> Steps {
    let mut random = Random::new(seed ^ period as u64);
    let bits: Vec<u8> = (0..period).map(|_| random.below(2) as u8).collect();
    let mut body = code("cmp byte ptr [r14 + rbp], 0");
    body.extend([branch, 3]);
    body.extend(code(&format!("nop dword ptr [rax]; inc rbp; cmp rbp, {period}; cmovae rbp, r11")));
    in_turn(body, Fill::Bytes(bits), period as u64, period.clamp(ITERATIONS[0], ITERATIONS[1]))
}

/// A loop over code that reads a table of this length entry by entry, and then from its begin. A call goes on where the last one
/// stopped. R14 points to the table, RBP holds the place in it, which no clock changes, and R11 is zero.
pub(super) fn in_turn(body: Vec<u8>, table: Fill, bytes: u64, iterations: usize) -> Steps {
    let kept = |area: Area, register| Area {
        lifetime: Lifetime::Kept,
        present: Present::Everywhere,
        pointer: Some(Pointer { register, at: At::Start }),
        ..area
    };
    // R13 points to a cell with the place.
    let cell = kept(Area::new(PAGE, Fill::Image(vec![0; 8])), 13);
    Steps {
        init: code("xor r11d, r11d; mov rbp, [r13]"),
        body,
        following: code("mov [r13], rbp"),
        steps: 1,
        iterations: iterations as u64,
        memory: Memory { areas: vec![kept(Area::new(bytes, table), 14), cell], ..Memory::default() },
    }
}

fn je(period: usize) -> Steps {
    pattern(period, 0x74, 0x5eed)
}

fn jne(period: usize) -> Steps {
    pattern(period, 0x75, 0xacade)
}

pub(crate) const TEST: Test = Test {
    name: "direction_predictor",
    about: "how long a random pattern of one conditional branch the core learns",
    definition: "period of a random pattern that one branch follows, of which about half is still known: tables that are found by hashes fill by \
                 chance",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::FrontEnd,
    look: Look::Levels(Walks {
        walks: &[
            Walk { name: "je", program: je, without: None },
            Walk { name: "jne", program: jne, without: None },
        ],
        others: &[],
        takes: &[],
        beside: None,
        counts: [16, 131072],
        unit: Unit::Count,
        rise: 5.0,
        ratio: 1.3,
        // Its tables are found by hashes.
        by_chance: true,
        one: false,
        always: false,
        cost: Some("core cycles of a turn: the branch, its load and its counter"),
        bytes: 1,
    }),
};
