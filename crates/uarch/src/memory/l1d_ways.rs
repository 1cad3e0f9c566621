//! The ways of the nearest data cache.

use crate::spec::program_family::{LINE, LevelsSpec, ProgramFamily, StepLoop, chase_loop};
use crate::spec::{Experiment, TestSpec, TestedPart};
use cyclescope_code::program::memory::RingOrder;
use cyclescope_core::unit::Unit;

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

pub(crate) const TEST: TestSpec = TestSpec {
    name: "l1d_ways",
    about: "how many lines a set of the nearest data cache holds",
    definition: "lines with the same address modulo 64 KiB that are all in the nearest data cache",
    source: "R. Saavedra and A. Smith, Measuring Cache and TLB Performance and Their Effect on Benchmark Runtimes (1995)",
    part: TestedPart::Memory,
    experiment: Experiment::Levels(LevelsSpec {
        programs: &[
            ProgramFamily { name: "each 64 KiB", program: one_set, control: Some(many_sets) },
            ProgramFamily { name: "each 192 KiB", program: one_set_of_more, control: Some(many_sets_of_more) },
        ],
        fallback_programs: &[],
        also_occupies: &[],
        witness: None,
        count_range: [2, 48],
        unit: Unit::Count,
        min_rise: 3.0,
        min_ratio: 1.3,
        fills_randomly: false,
        single_structure: true,
        always_ends: true,
        cost_definition: None,
        bytes_per_count: 3 * SETS + LINE,
    }),
};
