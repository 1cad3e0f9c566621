//! The levels of data caches in huge pages.
//!
//! Physical memory is in one piece over 2 MiB: sets fill evenly, and a level ends at one count. Translations cost less too.

use super::data_caches::{OCCUPIED, each_line, every_other_line, page_after_page, with_other_ring};
use super::huge_pages::in_huge_pages;
use crate::spec::*;

fn each_line_huge(bytes: usize) -> StepLoop {
    in_huge_pages(each_line(bytes))
}

fn every_other_line_huge(bytes: usize) -> StepLoop {
    in_huge_pages(every_other_line(bytes))
}

fn page_after_page_huge(bytes: usize) -> StepLoop {
    in_huge_pages(page_after_page(bytes))
}

fn with_other_ring_huge(bytes: usize) -> StepLoop {
    in_huge_pages(with_other_ring(bytes))
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "data_caches_huge",
    about: "how large each level of the data caches is in pages of 2 MiB, and how long a load takes",
    definition: "bytes over which loads in random order, in pages of 2 MiB, find all in this level or a nearer one",
    source: "R. Saavedra and A. Smith, Measuring Cache and TLB Performance and Their Effect on Benchmark Runtimes (1995)",
    answers: &[],
    part: TestedPart::Memory,
    experiment: Experiment::Levels(LevelsSpec {
        programs: &[
            ProgramFamily::new("each line", each_line_huge),
            ProgramFamily::new("every other line", every_other_line_huge),
            ProgramFamily::new("page after page", page_after_page_huge),
        ],
        witness: Some(WitnessProgram {
            family: ProgramFamily::new("each line, beside 8 KiB", with_other_ring_huge),
            occupied: OCCUPIED,
        }),
        // What has room in a small page is in one. No known second cache is larger, and others use third ones too.
        count_range: [8 << 10, 8 << 20],
        unit: Unit::Bytes,
        min_rise: 3.0,
        min_ratio: 1.8,
        // Whoever maps this memory may have split it.
        fills_randomly: true,
        cost_definition: Some(
            "core cycles of a load of 64 bits, mov r, [r], that waits for the one before, in pages of 2 MiB",
        ),
        bytes_per_count: 1,
        ..LevelsSpec::COUNTS
    }),
}];
