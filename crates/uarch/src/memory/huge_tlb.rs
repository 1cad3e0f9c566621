//! Translations of data addresses in huge pages.

use super::huge_pages::in_huge_pages;
use crate::spec::*;
use cyclescope_code::program::memory::{HUGE_PAGE_BYTES, PAGE_BYTES, RingOrder};

/// One line of each page. The next one is in the next page, and in the next 4 KiB of it: so all sets of the cache have their part,
/// and where the hypervisor splits huge pages all sets of translations.
fn a_line(pages: usize) -> StepLoop {
    in_huge_pages(chase_loop(pages, (HUGE_PAGE_BYTES + PAGE_BYTES) as usize + LINE, RingOrder::RandomByLine))
}

fn as_many_lines(lines: usize) -> StepLoop {
    chase_loop(lines, LINE, RingOrder::RandomByLine)
}

fn another_line(pages: usize) -> StepLoop {
    in_huge_pages(chase_loop(pages, (HUGE_PAGE_BYTES + 3 * PAGE_BYTES) as usize + 3 * LINE, RingOrder::RandomByLine))
}

fn as_many_others(lines: usize) -> StepLoop {
    chase_loop(lines, 3 * LINE, RingOrder::RandomByLine)
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "huge_tlb",
    about: "how many pages of 2 MiB have their translation at hand, and what one more costs",
    definition: "pages of 2 MiB over which loads in random order find all translations in this level or a nearer one",
    source: "R. Saavedra and A. Smith, Measuring Cache and TLB Performance and Their Effect on Benchmark Runtimes (1995)",
    answers: &[],
    part: TestedPart::Memory,
    experiment: Experiment::Levels(LevelsSpec {
        programs: &[
            ProgramFamily::new("a line of each page", a_line).less(as_many_lines),
            ProgramFamily::new("another line of each page", another_line).less(as_many_others),
        ],
        // Where huge pages are split, their pieces have the room of small pages: no core with less for huge ones than for small
        // ones has more than these.
        count_range: [8, 48],
        min_rise: 3.0,
        min_ratio: 1.3,
        cost_definition: Some(
            "core cycles by which a load takes longer than one of as many lines in fewer pages: none in the first level",
        ),
        bytes_per_count: (HUGE_PAGE_BYTES + 3 * PAGE_BYTES) as usize + 3 * LINE,
        ..LevelsSpec::COUNTS
    }),
}];
