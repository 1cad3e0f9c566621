//! Addresses of code and data in a batch, and the order of its calls.

/// A program's place in a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PlacedProgram {
    /// Index of the program in the batch.
    pub program: usize,
    /// Offset in the executor's code arena, in bytes.
    pub offset: u32,
}

/// Places of code and data in one layout, and the order of its calls.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Layout {
    /// Programs that this layout uses, with their places.
    pub code: Vec<PlacedProgram>,
    /// Calls of one round, in order.
    pub round: Vec<ProgramCall>,
    /// Displacement of each area's register in bytes from the pointer that the memory defines. One
    /// for each area, within
    /// [`Memory::shifts`](cyclescope_code::program::memory::ProgramMemory::allowed_shifts).
    pub data: Vec<i32>,
    /// Seed of the delays between calls.
    pub seed: u64,
}

/// One call of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ProgramCall {
    /// Index in [`Layout::code`].
    pub place: usize,
    /// Value of R15 at the entry of a looped body.
    pub loop_count: u64,
}
