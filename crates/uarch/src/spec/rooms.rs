//! Tests of how much more room code takes in a structure, as data.

use super::program::ProgramFamily;

/// A test of how much more room some code takes than other code of as many instructions.
#[derive(Debug)]
pub(crate) struct RoomsSpec {
    /// The kinds of code.
    pub rows: &'static [RoomRow],
    /// The least and the largest number of instructions, and the distance of two numbers.
    pub count_range: [usize; 2],
    pub count_step: usize,
    /// The least ratio of the costs of code that the structure does not hold and that it holds.
    pub min_ratio: f64,
}

/// Code, and other code of as many instructions of the same lengths, by their number. The first two
/// programs and the other two differ in the same way.
#[derive(Debug)]
pub(crate) struct RoomRow {
    /// The key of its record, behind the test's name.
    pub name: &'static str,
    /// Two programs of the code.
    pub large: [ProgramFamily; 2],
    /// Two programs of the other code.
    pub small: [ProgramFamily; 2],
}
