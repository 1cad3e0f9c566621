//! Tests of levels, each larger and slower than the one before, as data.

use super::program::{ProgramFamily, WitnessProgram};
use cyclescope_core::unit::Unit;

/// A test of levels, each larger and slower than the one before.
#[derive(Debug)]
pub(crate) struct LevelsSpec {
    /// Different programs. A size needs the first two to agree, and a cost needs another one to
    /// agree with the first.
    pub programs: &'static [ProgramFamily],
    /// Programs for cores on which the first ones show no end; empty if every core shows one.
    pub fallback_programs: &'static [ProgramFamily],
    /// Structures of other tests that each counted item also occupies and that may be full first:
    /// the test, and how much.
    pub also_occupies: &'static [(&'static str, usize)],
    /// A program that occupies a part beforehand: the first level ends earlier by that part.
    pub witness: Option<&'static WitnessProgram>,
    /// The smallest count, and the largest count if memory allows it.
    pub count_range: [usize; 2],
    /// What is counted.
    pub unit: Unit,
    /// The least rise of a step's cost from a level to the next, in core cycles.
    pub min_rise: f64,
    /// The least ratio of a level's cost to the last cost of the level before. Other causes must
    /// not reach it.
    pub min_ratio: f64,
    /// Whether the items fill the sets of a structure by chance, as physical pages do.
    pub fills_randomly: bool,
    /// Whether it tests a single structure: the size has the test's name, and a rise behind its end
    /// starts no level.
    pub single_structure: bool,
    /// Whether every core has an end: without one, the verdict is `unclear`, not `none`.
    pub always_ends: bool,
    /// What the cost of a step in a level means; `None` if the cost is not reported.
    pub cost_definition: Option<&'static str>,
    /// Bytes of memory per item. Counts that need more memory than allowed are not tried.
    pub bytes_per_count: usize,
}

impl LevelsSpec {
    /// Defaults: items that need no memory and occupy no other structure.
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

    /// The largest count that fits this many bytes of memory, at least the smallest count.
    pub(crate) fn max_count(&self, memory: u64) -> usize {
        let room = memory.checked_div(self.bytes_per_count as u64).unwrap_or(u64::MAX);
        self.count_range[1].min(usize::try_from(room).unwrap_or(usize::MAX)).max(self.count_range[0])
    }
}
