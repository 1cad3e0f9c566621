//! The ways of the nearest data cache.

use crate::spec::*;
use cyclescope_code::program::memory::RingOrder;

/// Bytes after which the sets of any nearest data cache begin again.
const SETS: usize = 64 << 10;

fn one_set(lines: usize) -> StepLoop {
    chase_loop(lines, SETS, RingOrder::RandomByLine)
}

/// As many lines in as many pages, each in another set.
fn many_sets(lines: usize) -> StepLoop {
    chase_loop(lines, SETS + LINE, RingOrder::RandomByLine)
}

fn one_set_of_more(lines: usize) -> StepLoop {
    chase_loop(lines, 3 * SETS, RingOrder::RandomByLine)
}

fn many_sets_of_more(lines: usize) -> StepLoop {
    chase_loop(lines, 3 * SETS + LINE, RingOrder::RandomByLine)
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "l1d_ways",
    about: "how many lines a set of the nearest data cache holds",
    definition: "lines with the same address modulo 64 KiB that are all in the nearest data cache",
    source: "R. Saavedra and A. Smith, Measuring Cache and TLB Performance and Their Effect on Benchmark Runtimes (1995)",
    answers: &[],
    part: TestedPart::Memory,
    experiment: Experiment::Levels(LevelsSpec {
        programs: &[
            ProgramFamily::new("each 64 KiB", one_set).less(many_sets),
            ProgramFamily::new("each 192 KiB", one_set_of_more).less(many_sets_of_more),
        ],
        count_range: [2, 48],
        min_rise: 3.0,
        min_ratio: 1.3,
        single_structure: true,
        always_ends: true,
        bytes_per_count: 3 * SETS + LINE,
        ..LevelsSpec::COUNTS
    }),
}];
