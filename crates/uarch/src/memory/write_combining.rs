//! Lines that non-temporal stores fill before they are written to memory.

use crate::test::walk::{LINE, Steps, Walk, Walks, code};
use crate::test::{Look, Part, Test};
use cyclescope_code::program::memory::{Area, At, Fill, Lifetime, Memory, PAGE, Pointer, Present};
use cyclescope_core::unit::Unit;

/// Bytes of a store, and of all lines.
const STORE: usize = 16;
const BYTES: usize = 8 << 20;
/// Lines of the shorter call at least.
const LINES: usize = 2000;

/// Stores that go round so many lines, this far apart, until all are full, and then to as many others.
fn stores(lines: usize, apart: usize) -> Steps {
    // R14 points to the area and RBP to the lines; R12 is their end.
    let group = lines * apart;
    let mut body = Vec::new();
    for place in (0..LINE).step_by(STORE) {
        for line in 0..lines {
            body.extend(code(&format!("movntps [rbp + {}], xmm0", line * apart + place)));
        }
    }
    // Where lines are further apart than a line, those between come later.
    body.extend(code(&format!(
        "add rbp, {}; cmp rbp, r12; cmovae rbp, r14",
        if apart == LINE { group } else { LINE }
    )));
    let room = if apart == LINE { BYTES - BYTES % group } else { PAGE as usize - LINE };
    let area = Area {
        lifetime: Lifetime::Kept,
        present: Present::Everywhere,
        pointer: Some(Pointer { register: 14, at: At::Start }),
        ..Area::new((room + group) as u64, Fill::Image(Vec::new()))
    };
    Steps {
        init: code(&format!("mov rbp, r14; lea r12, [r14 + {room}]")),
        body,
        following: code("sfence"),
        steps: lines,
        iterations: LINES.div_ceil(lines) as u64,
        memory: Memory { areas: vec![area], ..Memory::default() },
    }
}

fn one_after_another(lines: usize) -> Steps {
    stores(lines, LINE)
}

fn in_pages(lines: usize) -> Steps {
    stores(lines, PAGE as usize + LINE)
}

pub(crate) const TEST: Test = Test {
    name: "write_combining",
    about: "how many lines non-temporal stores can fill at once",
    definition: "lines that non-temporal stores of 16 bytes fill in turn, each of which is written to memory once",
    source: "Intel 64 and IA-32 Architectures Optimization Reference Manual, section on write combining",
    part: Part::Memory,
    look: Look::Levels(Walks {
        walks: &[
            Walk { name: "lines one after another", program: one_after_another, without: None },
            Walk { name: "a line of each page", program: in_pages, without: None },
        ],
        others: &[],
        takes: &[],
        beside: None,
        counts: [2, 64],
        unit: Unit::Count,
        rise: 10.0,
        ratio: 1.3,
        by_chance: false,
        one: true,
        always: true,
        cost: None,
        bytes: 0,
    }),
};
