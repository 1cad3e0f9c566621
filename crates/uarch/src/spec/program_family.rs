//! Programs of steps that all cost the same until a structure is full.

use cyclescope_code::context::FloatElement;
use cyclescope_code::program::memory::{
    AreaFill, AreaPointer, MemoryArea, PAGE_BYTES, PagePresence, PointerPosition, PointerRing, ProgramMemory,
    RingOrder, StoreLifetime,
};
use cyclescope_code::snippet::Snippet;
use cyclescope_core::unit::Unit;

/// A test of levels, each larger and slower than the one before.
#[derive(Debug)]
pub(crate) struct LevelsSpec {
    /// Unlike programs. A size needs the first two to agree, and the cost of a step another one to agree with the first.
    pub programs: &'static [ProgramFamily],
    /// Such programs for cores on which the first ones have no end; none where every core has one.
    pub fallback_programs: &'static [ProgramFamily],
    /// What each that is counted takes of structures of other tests, which may be full first: these tests, and how much.
    pub also_occupies: &'static [(&'static str, usize)],
    /// A program that occupies a part beforehand: the first level ends by so much earlier.
    pub witness: Option<WitnessProgram>,
    /// The smallest count, and the largest one where memory allows it.
    pub count_range: [usize; 2],
    /// What is counted.
    pub unit: Unit,
    /// The least rise of a step's cost from a level to the next, in core cycles.
    pub min_rise: f64,
    /// The least ratio of a level's cost to the last one of the level before. What else becomes dearer at once has to be below it.
    pub min_ratio: f64,
    /// Whether what is counted fills the sets of a structure by chance, as by physical pages.
    pub fills_randomly: bool,
    /// Whether it is of one structure: its size has the test's name, and what costs more behind its end is no level.
    pub single_structure: bool,
    /// Whether every core has an end of it: where none is seen, it was not found.
    pub always_ends: bool,
    /// What the cost of a step in a level is; `None` where it has no meaning of its own.
    pub cost_definition: Option<&'static str>,
    /// Bytes of memory for each that is counted; no more is tried than has room in what may be used.
    pub bytes_per_count: usize,
}

/// A program that occupies a part of what is counted beforehand.
#[derive(Debug)]
pub(crate) struct WitnessProgram {
    /// The program by the count of the others.
    pub family: ProgramFamily,
    /// What it occupies.
    pub occupied: usize,
}

/// Programs by a count.
#[derive(Debug)]
pub(crate) struct ProgramFamily {
    /// Its name.
    pub name: &'static str,
    /// Its program.
    pub program: fn(usize) -> StepLoop,
    /// A program of as many steps that does all but what is asked: what it costs is subtracted.
    pub control: Option<fn(usize) -> StepLoop>,
}

/// A program of steps, in a loop.
#[derive(Debug, Clone)]
pub(crate) struct StepLoop {
    /// What runs before, untimed.
    pub init: Vec<u8>,
    /// One iteration.
    pub body: Vec<u8>,
    /// What runs behind, untimed.
    pub following: Vec<u8>,
    /// Steps of an iteration.
    pub steps_per_iteration: usize,
    /// Iterations of the shorter call; the longer one has twice as many.
    pub iterations: u64,
    /// Its memory.
    pub memory: ProgramMemory,
}

impl WitnessProgram {
    /// Whether it moves an end between these counts by more than what is not known of it, and leaves a level before it.
    pub(crate) fn can_move_end(&self, low: usize, high: usize) -> bool {
        self.occupied > (high - low).max(low / 20) && low >= 2 * self.occupied
    }
}

impl LevelsSpec {
    /// The largest count for which this many bytes of memory are enough, and no less than the smallest one.
    pub(crate) fn max_count(&self, memory: u64) -> usize {
        let room = memory.checked_div(self.bytes_per_count as u64).unwrap_or(u64::MAX);
        self.count_range[1].min(usize::try_from(room).unwrap_or(usize::MAX)).max(self.count_range[0])
    }
}

/// Loads of an iteration of a chase.
const CHASE_LOADS: usize = 32;
/// Iterations of a chase.
const CHASE_ITERATIONS: u64 = 24;
/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;
/// Times that a chase goes all the way round before it is timed.
const ROUNDS_BEFORE: usize = 2;
/// Elements that it visits before at most, behind a reading of all of them, one after another, which takes less time: what has room in a
/// cache is there then, and what has none is what comes next.
const MAX_STEPS_BEFORE: usize = 1 << 19;

/// Loads that each wait for the one before, around a ring of this many elements in this order, each call where the last one
/// stopped. The first call goes around it before.
pub(crate) fn chase_loop(elements: usize, stride: usize, order: RingOrder) -> StepLoop {
    // R14 points to the ring and R13 to a cell with the place in it, the number of steps to go before, and that of elements to read
    // before these. RBP holds the place: no clock changes it, not one that calls a function either.
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
    }
}

/// Machine code of a test.
pub(crate) fn assemble(text: &str) -> Vec<u8> {
    Snippet::parse(text).expect("the tests' instructions are assembly").code().to_vec()
}

/// A chase whose loads take turns with those of another one, around as many elements of the same stride as are `beside`.
pub(crate) fn chase_with_other_ring(elements: usize, stride: usize, beside: usize) -> StepLoop {
    let alone = chase_loop(elements, stride, RingOrder::RandomByLine);
    let mut memory = alone.memory;
    let ring = PointerRing { stride: stride as u32, order: RingOrder::RandomByLine, seed: 1 };
    let other = MemoryArea::from_ring(((beside - 1) * stride + 8) as u64, ring, 12);
    memory.areas.push(MemoryArea { lifetime: StoreLifetime::Kept, ..other });
    // Each call goes all the way round the other ring more than twice.
    let body = assemble("mov rbp, [rbp]; mov r12, [r12]").repeat(CHASE_LOADS);
    StepLoop { body, memory, ..alone }
}

/// A loop over code that touches no memory. Its calls take some ten thousand steps.
pub(crate) fn straight_loop(body: Vec<u8>, steps: usize) -> StepLoop {
    let iterations = (STEPS / steps).max(ITERATIONS_LEAST) as u64;
    let memory = ProgramMemory::standard(FloatElement::default(), false);
    StepLoop { init: Vec::new(), body, following: Vec::new(), steps_per_iteration: steps, iterations, memory }
}

/// Steps of the shorter call of code without memory, and its least number of iterations.
const STEPS: usize = 6000;
const ITERATIONS_LEAST: usize = 3;

/// This many jumps, each to the next, this many bytes apart.
pub(crate) fn jump_row(number: usize, apart: usize) -> Vec<u8> {
    const JUMP: usize = 5;
    let distance = (apart - JUMP) as i32;
    let one = [&[0xe9][..], &distance.to_le_bytes(), &vec![0xcc; apart - JUMP]].concat();
    one.repeat(number)
}
