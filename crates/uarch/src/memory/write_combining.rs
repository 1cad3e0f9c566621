//! Lines that non-temporal stores fill before they reach memory.

use crate::spec::*;
use cyclescope_code::program::memory::{
    AreaFill, AreaPointer, MemoryArea, PAGE_BYTES, PagePresence, PointerPosition, ProgramMemory, StoreLifetime,
};

/// Bytes of a store.
const STORE: usize = 16;
/// Bytes of all lines.
const BYTES: usize = 8 << 20;
/// The least number of lines of the shorter call.
const LINES: usize = 2000;

/// Stores to `lines` lines in turn, `apart` bytes from each other, until all are full; then to the
/// next group.
fn nontemporal_stores(lines: usize, apart: usize) -> StepLoop {
    // R14 points to the area and RBP to the lines; R12 is their end.
    let group = lines * apart;
    let mut body = Vec::new();
    for place in (0..LINE).step_by(STORE) {
        for line in 0..lines {
            body.extend(assemble(&format!("movntps [rbp + {}], xmm0", line * apart + place)));
        }
    }
    // If the lines are not adjacent, the lines in between come later.
    body.extend(assemble(&format!(
        "add rbp, {}; cmp rbp, r12; cmovae rbp, r14",
        if apart == LINE { group } else { LINE }
    )));
    let room = if apart == LINE { BYTES - BYTES % group } else { PAGE_BYTES as usize - LINE };
    let area = MemoryArea {
        lifetime: StoreLifetime::Kept,
        present: PagePresence::Everywhere,
        pointer: Some(AreaPointer { register: 14, at: PointerPosition::Start }),
        ..MemoryArea::new((room + group) as u64, AreaFill::Image(Vec::new()))
    };
    StepLoop {
        init: assemble(&format!("mov rbp, r14; lea r12, [r14 + {room}]")),
        body,
        following: assemble("sfence"),
        steps_per_iteration: lines,
        iterations: LINES.div_ceil(lines) as u64,
        memory: ProgramMemory { areas: vec![area], ..ProgramMemory::default() },
        calls_memcpy: false,
    }
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "write_combining",
    about: "how many lines non-temporal stores can fill at once",
    definition: "lines that non-temporal stores of 16 bytes fill in turn, each of which is written to memory once",
    source: "Intel 64 and IA-32 Architectures Optimization Reference Manual, section on write combining",
    answers: &[],
    part: TestedPart::Memory,
    experiment: Experiment::Levels(LevelsSpec {
        programs: &[
            ProgramFamily::new("lines one after another", |lines| nontemporal_stores(lines, LINE)),
            ProgramFamily::new("a line of each page", |lines| nontemporal_stores(lines, PAGE_BYTES as usize + LINE)),
        ],
        count_range: [2, 64],
        min_rise: 10.0,
        min_ratio: 1.3,
        single_structure: true,
        always_ends: true,
        ..LevelsSpec::COUNTS
    }),
}];
