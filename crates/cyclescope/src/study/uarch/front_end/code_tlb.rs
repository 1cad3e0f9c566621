//! Translations of the addresses of code.

use crate::program::memory::PAGE;
use crate::study::uarch::test::walk::{LINE, Steps, Walk, Walks, jumps, straight};
use crate::study::uarch::test::{Look, Part, Test};
use crate::unit::Unit;

/// A jump in each page, the next one in the next line, so that all sets of the cache have their part.
fn a_line(pages: usize) -> Steps {
    straight(jumps(pages, PAGE as usize + LINE), pages)
}

fn as_many_lines(lines: usize) -> Steps {
    straight(jumps(lines, LINE), lines)
}

fn another_line(pages: usize) -> Steps {
    straight(jumps(pages, PAGE as usize + 3 * LINE), pages)
}

fn as_many_others(lines: usize) -> Steps {
    straight(jumps(lines, 3 * LINE), lines)
}

pub(in crate::study::uarch) const TEST: Test = Test {
    name: "code_tlb",
    about: "how many pages of 4 KiB of code have their translation at hand",
    definition: "pages of 4 KiB with a jump in each over which each jump is fetched as fast as one of as many in fewer pages",
    source: "R. Saavedra and A. Smith, Measuring Cache and TLB Performance and Their Effect on Benchmark Runtimes (1995)",
    part: Part::FrontEnd,
    look: Look::Levels(Walks {
        walks: &[
            Walk { name: "a line of each page", program: a_line, without: Some(as_many_lines) },
            Walk { name: "another line of each page", program: another_line, without: Some(as_many_others) },
        ],
        beside: None,
        // So many lines have room in an instruction cache of 32 KiB.
        counts: [8, 512],
        unit: Unit::Count,
        rise: 3.0,
        ratio: 1.3,
        by_chance: false,
        one: false,
        cost: Some("core cycles by which a jump takes longer than one of as many in fewer pages"),
        bytes: 0,
    }),
};
