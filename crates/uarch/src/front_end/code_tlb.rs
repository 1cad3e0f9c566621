//! Translations of the addresses of code.

use crate::spec::*;
use cyclescope_code::program::memory::PAGE_BYTES;

/// A jump in each page. The next jump is in the next line of its page: jumps use all sets of the
/// cache.
fn one_jump_per_page(pages: usize) -> StepLoop {
    straight_loop(jump_row(pages, PAGE_BYTES as usize + LINE), pages)
}

/// Two jumps in each page: structures that hold jumps are full at half as many pages.
fn two_jumps_per_page(pages: usize) -> StepLoop {
    let first = jump_row(1, WITHIN);
    let other = jump_row(1, PAGE_BYTES as usize + LINE - WITHIN);
    straight_loop([first, other].concat().repeat(pages), pages)
}

/// Bytes from the first jump in a page to the second.
const WITHIN: usize = 5 * LINE;

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "code_tlb",
    about: "how many pages of 4 KiB of code have their translation at hand",
    definition: "pages of 4 KiB with one or two jumps in each that are fetched as fast as as many in fewer pages",
    source: SAAVEDRA,
    answers: &[],
    part: TestedPart::FrontEnd,
    experiment: Experiment::Levels(LevelsSpec {
        programs: &[
            ProgramFamily::new("a jump in each page", one_jump_per_page)
                .less(|lines| straight_loop(jump_row(lines, LINE), lines)),
            ProgramFamily::new("two jumps in each page", two_jumps_per_page)
                .less(|lines| straight_loop(jump_row(2 * lines, LINE), lines)),
        ],
        // The area for code has no room for more.
        count_range: [8, 896],
        min_rise: 0.6,
        min_ratio: 1.3,
        // A later rise may come from another structure: on Zen 4, whose second level is published
        // as 512 pages, costs rise from 310 on.
        single_structure: true,
        always_ends: true,
        ..LevelsSpec::COUNTS
    }),
}];
