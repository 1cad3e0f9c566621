//! The levels of data caches, and the memory behind them.

use crate::spec::program_family::{
    LINE, LevelsSpec, ProgramFamily, StepLoop, WitnessProgram, chase_loop, chase_with_other_ring,
};
use crate::spec::{Experiment, TestSpec, TestedPart};
use cyclescope_code::program::memory::RingOrder;
use cyclescope_core::unit::Unit;

pub(super) fn each_line(bytes: usize) -> StepLoop {
    chase_loop(bytes / LINE, LINE, RingOrder::RandomByLine)
}

pub(super) fn every_other_line(bytes: usize) -> StepLoop {
    chase_loop(bytes / (2 * LINE), 2 * LINE, RingOrder::RandomByLine)
}

/// The same with few translations: all lines of a page, then those of another one.
pub(super) fn page_after_page(bytes: usize) -> StepLoop {
    chase_loop(bytes / LINE, LINE, RingOrder::RandomByPage)
}

/// Bytes of another ring.
pub(super) const OCCUPIED: usize = 8 << 10;

pub(super) fn with_other_ring(bytes: usize) -> StepLoop {
    chase_with_other_ring(bytes / LINE, LINE, OCCUPIED / LINE)
}

pub(crate) const TEST: TestSpec = TestSpec {
    name: "data_caches",
    about: "how large each level of the data caches is, and how long a load takes",
    definition: "bytes over which loads in random order find all in this level or a nearer one",
    source: "R. Saavedra and A. Smith, Measuring Cache and TLB Performance and Their Effect on Benchmark Runtimes (1995)",
    part: TestedPart::Memory,
    experiment: Experiment::Levels(LevelsSpec {
        programs: &[
            ProgramFamily { name: "each line", program: each_line, control: None },
            ProgramFamily { name: "page after page", program: page_after_page, control: None },
            ProgramFamily { name: "every other line", program: every_other_line, control: None },
        ],
        fallback_programs: &[],
        also_occupies: &[],
        witness: Some(WitnessProgram {
            family: ProgramFamily { name: "each line, beside 8 KiB", program: with_other_ring, control: None },
            occupied: OCCUPIED,
        }),
        count_range: [4 << 10, 128 << 20],
        unit: Unit::Bytes,
        min_rise: 3.0,
        // The next cache takes more than twice as long. Translations that are not at hand make loads from the second cache dearer
        // by a half at most.
        min_ratio: 1.8,
        fills_randomly: true,
        single_structure: false,
        always_ends: false,
        cost_definition: Some(
            "core cycles of a load of 64 bits, mov r, [r], that waits for the one before; its translation is part of it",
        ),
        bytes_per_count: 1,
    }),
};
