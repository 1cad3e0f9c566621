//! Levels, each larger and slower than the one before, as data.

use super::program::{ProgramFamily, WitnessProgram};
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
    pub witness: Option<&'static WitnessProgram>,
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

impl LevelsSpec {
    /// A test of counts that need no memory and take nothing of other structures.
    pub(crate) const COUNTS: LevelsSpec = LevelsSpec {
        programs: &[],
        fallback_programs: &[],
        also_occupies: &[],
        witness: None,
        count_range: [1, 1],
        unit: Unit::Count,
        min_rise: 3.0,
        min_ratio: 1.3,
        fills_randomly: false,
        single_structure: false,
        always_ends: false,
        cost_definition: None,
        bytes_per_count: 0,
    };

    /// The largest count for which this many bytes of memory are enough, and no less than the smallest one.
    pub(crate) fn max_count(&self, memory: u64) -> usize {
        let room = memory.checked_div(self.bytes_per_count as u64).unwrap_or(u64::MAX);
        self.count_range[1].min(usize::try_from(room).unwrap_or(usize::MAX)).max(self.count_range[0])
    }
}
