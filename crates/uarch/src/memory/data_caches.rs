//! The levels of data caches, and the memory behind them.

use crate::spec::*;
use cyclescope_code::program::memory::RingOrder;

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

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "data_caches",
    about: "how large each level of the data caches is, and how long a load takes",
    definition: "bytes over which loads in random order find all in this level or a nearer one",
    source: "R. Saavedra and A. Smith, Measuring Cache and TLB Performance and Their Effect on Benchmark Runtimes (1995)",
    answers: &["cache_latency"],
    part: TestedPart::Memory,
    experiment: Experiment::Levels(LevelsSpec {
        programs: &[
            ProgramFamily::new("each line", each_line),
            ProgramFamily::new("page after page", page_after_page),
            ProgramFamily::new("every other line", every_other_line),
        ],
        witness: Some(WitnessProgram {
            family: ProgramFamily::new("each line, beside 8 KiB", with_other_ring),
            occupied: OCCUPIED,
        }),
        count_range: [4 << 10, 128 << 20],
        unit: Unit::Bytes,
        min_rise: 3.0,
        // The next cache takes more than twice as long. Translations that are not at hand make loads from the second cache dearer
        // by a half at most.
        min_ratio: 1.8,
        fills_randomly: true,
        cost_definition: Some(
            "core cycles of a load of 64 bits, mov r, [r], that waits for the one before; its translation is part of it",
        ),
        bytes_per_count: 1,
        ..LevelsSpec::COUNTS
    }),
}];
