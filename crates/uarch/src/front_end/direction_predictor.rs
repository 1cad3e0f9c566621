//! The memory of the predictor of directions.

use crate::spec::*;
use cyclescope_code::program::memory::{
    AreaFill, AreaPointer, MemoryArea, PAGE_BYTES, PagePresence, PointerPosition, ProgramMemory, StoreLifetime,
};
use cyclescope_core::random::Random;

/// Iterations of the shorter call: once through the pattern, and no fewer and no more than these. What other work does in a longer time is no
/// outlier.
pub(super) const ITERATIONS: [usize; 2] = [4000, 32768];

/// One conditional branch a step, taken by a random pattern of this period, from one call to the next.
fn pattern_loop(period: usize, branch: u8, seed: u64) -> StepLoop {
    let mut random = Random::new(seed ^ period as u64);
    let bits: Vec<u8> = (0..period).map(|_| random.below(2) as u8).collect();
    let mut body = assemble("cmp byte ptr [r14 + rbp], 0");
    body.extend([branch, 3]);
    body.extend(assemble(&format!("nop dword ptr [rax]; inc rbp; cmp rbp, {period}; cmovae rbp, r11")));
    table_loop(body, AreaFill::Bytes(bits), period as u64, period.clamp(ITERATIONS[0], ITERATIONS[1]))
}

/// A loop over code that reads a table of this length entry by entry, and then from its begin. A call goes on where the last one
/// stopped. R14 points to the table, RBP holds the place in it, which no clock changes, and R11 is zero.
pub(super) fn table_loop(body: Vec<u8>, table: AreaFill, bytes: u64, iterations: usize) -> StepLoop {
    let kept = |area: MemoryArea, register| MemoryArea {
        lifetime: StoreLifetime::Kept,
        present: PagePresence::Everywhere,
        pointer: Some(AreaPointer { register, at: PointerPosition::Start }),
        ..area
    };
    // R13 points to a cell with the place.
    let cell = kept(MemoryArea::new(PAGE_BYTES, AreaFill::Image(vec![0; 8])), 13);
    StepLoop {
        init: assemble("xor r11d, r11d; mov rbp, [r13]"),
        body,
        following: assemble("mov [r13], rbp"),
        steps_per_iteration: 1,
        iterations: iterations as u64,
        memory: ProgramMemory {
            areas: vec![kept(MemoryArea::new(bytes, table), 14), cell],
            ..ProgramMemory::default()
        },
    }
}

fn je_pattern(period: usize) -> StepLoop {
    pattern_loop(period, 0x74, 0x5eed)
}

fn jne_pattern(period: usize) -> StepLoop {
    pattern_loop(period, 0x75, 0xacade)
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "direction_predictor",
    about: "how long a random pattern of one conditional branch the core learns",
    definition: "period of a random pattern that one branch follows, of which about half is still known: tables that are found by hashes fill by \
                 chance",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    answers: &["branch"],
    part: TestedPart::FrontEnd,
    experiment: Experiment::Levels(LevelsSpec {
        programs: &[ProgramFamily::new("je", je_pattern), ProgramFamily::new("jne", jne_pattern)],
        count_range: [16, 131072],
        min_rise: 5.0,
        min_ratio: 1.3,
        // Its tables are found by hashes.
        fills_randomly: true,
        cost_definition: Some("core cycles of a turn: the branch, its load and its counter"),
        bytes_per_count: 1,
        ..LevelsSpec::COUNTS
    }),
}];
