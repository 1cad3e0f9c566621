//! Translations of data addresses.

use crate::spec::*;
use cyclescope_code::program::memory::{PAGE_BYTES, RingOrder};

/// One line of each page, the next one in the next page, so that all sets of the cache have their part.
fn a_line(pages: usize) -> StepLoop {
    chase_loop(pages, PAGE_BYTES as usize + LINE, RingOrder::RandomByLine)
}

fn as_many_lines(lines: usize) -> StepLoop {
    chase_loop(lines, LINE, RingOrder::RandomByLine)
}

fn another_line(pages: usize) -> StepLoop {
    chase_loop(pages, PAGE_BYTES as usize + 3 * LINE, RingOrder::RandomByLine)
}

fn as_many_others(lines: usize) -> StepLoop {
    chase_loop(lines, 3 * LINE, RingOrder::RandomByLine)
}

/// Pages of another ring.
const OCCUPIED: usize = 24;

fn with_other_ring(pages: usize) -> StepLoop {
    chase_with_other_ring(pages, PAGE_BYTES as usize + LINE, OCCUPIED)
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "data_tlb",
    about: "how many pages of 4 KiB have their translation at hand, and what one more costs",
    definition: "pages of 4 KiB over which loads in random order find all translations in this level or a nearer one",
    source: "R. Saavedra and A. Smith, Measuring Cache and TLB Performance and Their Effect on Benchmark Runtimes (1995)",
    answers: &[],
    part: TestedPart::Memory,
    experiment: Experiment::Levels(LevelsSpec {
        programs: &[
            ProgramFamily::new("a line of each page", a_line).less(as_many_lines),
            ProgramFamily::new("another line of each page", another_line).less(as_many_others),
        ],
        witness: Some(WitnessProgram {
            family: ProgramFamily::new("a line of each page, beside 24 pages", with_other_ring),
            occupied: OCCUPIED,
        }),
        count_range: [8, 8192],
        min_rise: 3.0,
        min_ratio: 1.3,
        cost_definition: Some(
            "core cycles by which a load takes longer than one of as many lines in fewer pages: none in the first level",
        ),
        bytes_per_count: 2 * PAGE_BYTES as usize,
        ..LevelsSpec::COUNTS
    }),
}];
