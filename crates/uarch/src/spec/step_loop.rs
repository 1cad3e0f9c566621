//! Loops of machine code.

use cyclescope_code::context::FloatElement;
use cyclescope_code::program::memory::{
    AreaFill, AreaPointer, MemoryArea, PAGE_BYTES, PagePresence, PointerPosition, ProgramMemory, StoreLifetime,
};
use cyclescope_code::snippet::Snippet;
use std::cell::RefCell;
use std::collections::HashMap;

/// A loop of steps, ready to run.
#[derive(Debug, Clone)]
pub(crate) struct StepLoop {
    /// Untimed setup.
    pub init: Vec<u8>,
    /// One iteration.
    pub body: Vec<u8>,
    /// Untimed code after the loop.
    pub following: Vec<u8>,
    /// Steps per iteration.
    pub steps_per_iteration: usize,
    /// Iterations of the shorter call. The longer call has twice as many.
    pub iterations: u64,
    /// The memory that the loop uses.
    pub memory: ProgramMemory,
    /// Whether R13 holds the address of the system's `memcpy`.
    pub calls_memcpy: bool,
}

/// The longest text whose code is kept: some instructions. Programs consist of few such texts,
/// and reading them again at each count takes two fifths of a study's own time.
const MAX_KEPT_TEXT: usize = 64;

thread_local! {
    static KEPT_CODE: RefCell<HashMap<String, Vec<u8>>> = RefCell::default();
}

/// Machine code of a text.
pub(crate) fn assemble(text: &str) -> Vec<u8> {
    if let Some(code) = KEPT_CODE.with_borrow(|kept| kept.get(text).cloned()) {
        return code;
    }
    let code = Snippet::parse(text).expect("the tests' instructions are assembly").code().to_vec();
    if text.len() <= MAX_KEPT_TEXT {
        KEPT_CODE.with_borrow_mut(|kept| kept.insert(text.to_string(), code.clone()));
    }
    code
}

/// A loop over code without memory. A call takes some ten thousand steps.
pub(crate) fn straight_loop(body: Vec<u8>, steps: usize) -> StepLoop {
    let iterations = (STEPS / steps).max(ITERATIONS_LEAST) as u64;
    let memory = ProgramMemory::standard(FloatElement::default(), false);
    StepLoop {
        init: Vec::new(),
        body,
        following: Vec::new(),
        steps_per_iteration: steps,
        iterations,
        memory,
        calls_memcpy: false,
    }
}

/// Steps of the shorter call of code without memory.
const STEPS: usize = 6000;
/// The least number of its iterations.
const ITERATIONS_LEAST: usize = 3;

/// A loop over code that uses this many pages. R14 points to their first byte.
pub(crate) fn loop_in_pages(body: Vec<u8>, steps: usize, pages: u64) -> StepLoop {
    let area = MemoryArea {
        lifetime: StoreLifetime::Kept,
        present: PagePresence::Everywhere,
        pointer: Some(AreaPointer { register: 14, at: PointerPosition::Start }),
        ..MemoryArea::new(pages * PAGE_BYTES, AreaFill::Bytes(vec![1]))
    };
    StepLoop { memory: ProgramMemory { areas: vec![area], ..ProgramMemory::default() }, ..straight_loop(body, steps) }
}
