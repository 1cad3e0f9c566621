//! Where code and data of a batch are, and in which order its programs are called.

/// A program's place in a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Placed {
    /// Which program of the batch.
    pub program: usize,
    /// Its offset in the executor's code arena.
    pub offset: u32,
}

/// Where one layout puts code and data, and in which order it calls.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Layout {
    /// The programs that this layout uses.
    pub code: Vec<Placed>,
    /// One round: the calls that follow each other.
    pub round: Vec<Call>,
    /// By how many bytes each area's register is moved from where the memory has it point: one for each area, within
    /// [`Memory::shifts`](crate::program::memory::Memory::shifts).
    pub data: Vec<i32>,
    /// Seeds the delays between calls.
    pub seed: u64,
}

/// One call of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Call {
    /// Which of the layout's places.
    pub place: usize,
    /// R15 at the entry of a looped body.
    pub loop_count: u64,
}
