//! Translations of the addresses of code.

use crate::test::walk::{LINE, Steps, Walk, Walks, jumps, straight};
use crate::test::{Look, Part, Test};
use cyclescope_code::program::memory::PAGE;
use cyclescope_core::unit::Unit;

/// A jump in each page, the next one in the next line, so that all sets of the cache have their part.
fn one(pages: usize) -> Steps {
    straight(jumps(pages, PAGE as usize + LINE), pages)
}

fn as_many_lines(lines: usize) -> Steps {
    straight(jumps(lines, LINE), lines)
}

/// Two jumps in each page: what other structures know of jumps ends at half as many pages.
fn two(pages: usize) -> Steps {
    let first = jumps(1, WITHIN);
    let other = jumps(1, PAGE as usize + LINE - WITHIN);
    straight([first, other].concat().repeat(pages), pages)
}

/// Bytes from the first jump in a page to the other one.
const WITHIN: usize = 5 * LINE;

fn twice_as_many_lines(lines: usize) -> Steps {
    straight(jumps(2 * lines, LINE), lines)
}

pub(crate) const TEST: Test = Test {
    name: "code_tlb",
    about: "how many pages of 4 KiB of code have their translation at hand",
    definition: "pages of 4 KiB with one or two jumps in each that are fetched as fast as as many in fewer pages",
    source: "R. Saavedra and A. Smith, Measuring Cache and TLB Performance and Their Effect on Benchmark Runtimes (1995)",
    part: Part::FrontEnd,
    look: Look::Levels(Walks {
        walks: &[
            Walk { name: "a jump in each page", program: one, without: Some(as_many_lines) },
            Walk { name: "two jumps in each page", program: two, without: Some(twice_as_many_lines) },
        ],
        others: &[],
        takes: &[],
        beside: None,
        // More do not fit the room for code.
        counts: [8, 896],
        unit: Unit::Count,
        rise: 0.6,
        ratio: 1.3,
        by_chance: false,
        // What ends behind it is not known to be one of translations: on Zen 4, whose second level is published as 512 pages, costs rise from
        // 310 on.
        one: true,
        always: true,
        cost: None,
        bytes: 0,
    }),
};
