//! Loops for several tests: pointer rings, and rows of jumps.

use super::step_loop::{StepLoop, assemble};
use cyclescope_code::program::memory::{
    AreaFill, AreaPointer, MemoryArea, PAGE_BYTES, PagePresence, PointerPosition, PointerRing, ProgramMemory,
    RingOrder, StoreLifetime,
};

/// Loads per iteration of a chase.
const CHASE_LOADS: usize = 32;
/// Iterations of a chase.
const CHASE_ITERATIONS: u64 = 24;
/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;
/// Rounds of a chase before timing.
const ROUNDS_BEFORE: usize = 2;
/// The largest number of elements of these rounds. A faster pass over all elements in order
/// precedes them. It loads what fits a cache; the rounds load the elements that come next.
const MAX_STEPS_BEFORE: usize = 1 << 19;

/// A pointer chase: each load waits for the one before, around a ring of this many elements. Each
/// call continues where the last one stopped. The first call warms up the ring.
pub(crate) fn chase_loop(elements: usize, stride: usize, order: RingOrder) -> StepLoop {
    // R14 points to the ring. R13 points to a cell with the place in it, the number of warm-up
    // steps, and the number of elements to read before them. RBP holds the place: no timing method
    // changes RBP, not even one that calls a function.
    let ring = PointerRing { stride: stride as u32, order, seed: elements as u64 };
    let bytes = ((elements - 1) * stride + 8) as u64;
    let before = (ROUNDS_BEFORE * elements).min(MAX_STEPS_BEFORE) as u64;
    let cell = [0, before, elements as u64].map(u64::to_le_bytes).concat();
    let kept = |area: MemoryArea, register| MemoryArea {
        lifetime: StoreLifetime::Kept,
        present: PagePresence::Everywhere,
        pointer: Some(AreaPointer { register, at: PointerPosition::Start }),
        ..area
    };
    let areas = vec![
        kept(MemoryArea::new(bytes, AreaFill::Ring(ring)), 14),
        kept(MemoryArea::new(PAGE_BYTES, AreaFill::Image(cell)), 13),
    ];
    let mut init = assemble("mov rbp, [r13]; test rbp, rbp; cmovz rbp, r14; mov r8, r14");
    for (number, step) in [(16, format!("mov rax, [r8]; add r8, {stride}")), (8, "mov rbp, [rbp]".to_string())] {
        init.extend(assemble(&format!("mov r9, [r13 + {number}]")));
        let mut step = assemble(&format!("{step}; dec r9"));
        // jg back to the load.
        step.extend([0x7f, (-(step.len() as i8) - 2) as u8]);
        init.extend(step);
        init.extend(assemble(&format!("mov [r13 + {number}], r9")));
    }
    StepLoop {
        init,
        body: assemble("mov rbp, [rbp]").repeat(CHASE_LOADS),
        following: assemble("mov [r13], rbp"),
        steps_per_iteration: CHASE_LOADS,
        iterations: CHASE_ITERATIONS,
        memory: ProgramMemory { areas, ..ProgramMemory::default() },
        calls_memcpy: false,
    }
}

/// A chase whose loads take turns with the loads of a second one, around `other_elements` elements
/// of the same stride.
pub(crate) fn chase_with_other_ring(elements: usize, stride: usize, other_elements: usize) -> StepLoop {
    let alone = chase_loop(elements, stride, RingOrder::RandomByLine);
    let mut memory = alone.memory;
    let ring = PointerRing { stride: stride as u32, order: RingOrder::RandomByLine, seed: 1 };
    let other = MemoryArea::from_ring(((other_elements - 1) * stride + 8) as u64, ring, 12);
    memory.areas.push(MemoryArea { lifetime: StoreLifetime::Kept, ..other });
    // Each call goes around the second ring more than twice.
    let body = assemble("mov rbp, [rbp]; mov r12, [r12]").repeat(CHASE_LOADS);
    StepLoop { body, memory, ..alone }
}

/// Machine code of jumps, each to the next one, `apart` bytes from it.
pub(crate) fn jump_row(number: usize, apart: usize) -> Vec<u8> {
    const JUMP: usize = 5;
    let distance = (apart - JUMP) as i32;
    let jump = [&[0xe9][..], &distance.to_le_bytes(), &vec![0xcc; apart - JUMP]].concat();
    jump.repeat(number)
}
