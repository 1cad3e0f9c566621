//! Targets of one indirect jump.

use crate::study::uarch::test::walk::{Steps, Walk, Walks, code, straight};
use crate::study::uarch::test::{Look, Part, Test};
use crate::unit::Unit;

/// An indirect jump whose targets take turns, this many bytes apart. All of them jump to one place.
fn in_turn(targets: usize, apart: usize) -> Steps {
    // R8 is the first target, R9 the number of the next one, R11 zero.
    let next = code(&format!(
        "inc r9; cmp r9, {targets}; cmovae r9, r11; imul r10, r9, {apart}; add r10, r8; jmp r10"
    ));
    // lea r8, [rip + what is before the first target]
    let mut body = [&[0x4c, 0x8d, 0x05][..], &(next.len() as i32).to_le_bytes(), &next].concat();
    for target in 0..targets {
        const JUMP: usize = 5;
        let rest = (targets - target) * apart - JUMP;
        body.push(0xe9);
        body.extend((rest as i32).to_le_bytes());
        body.extend(std::iter::repeat_n(0xcc, apart - JUMP));
    }
    Steps { init: code("xor r11d, r11d; xor r9d, r9d"), ..straight(body, 1) }
}

fn each_64(targets: usize) -> Steps {
    in_turn(targets, 64)
}

fn each_192(targets: usize) -> Steps {
    in_turn(targets, 192)
}

pub(in crate::study::uarch) const TEST: Test = Test {
    name: "indirect_targets",
    about: "how many targets of one indirect jump, in turn, the core foresees",
    definition: "targets of one indirect jump that take turns, with which a jump costs what it does with fewer",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::FrontEnd,
    look: Look::Levels(Walks {
        walks: &[
            Walk { name: "targets 64 bytes apart", program: each_64, without: None },
            Walk { name: "targets 192 bytes apart", program: each_192, without: None },
        ],
        beside: None,
        counts: [1, 4096],
        unit: Unit::Count,
        rise: 8.0,
        by_chance: false,
        cost: Some("core cycles of a turn: the jump, and two or three of its counter"),
        bytes: 0,
    }),
};
