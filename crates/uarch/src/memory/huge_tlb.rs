//! Translations of data addresses in huge pages.

use super::huge_pages::in_huge_pages;
use crate::test::walk::{LINE, Steps, Walk, Walks, chase};
use crate::test::{Look, Part, Test};
use cyclescope_code::program::memory::{HUGE_PAGE, Order, PAGE};
use cyclescope_core::unit::Unit;

/// One line of each page. The next one is in the next page, and in the next 4 KiB of it: so all sets of the cache have their part,
/// and where the hypervisor splits huge pages all sets of translations.
fn a_line(pages: usize) -> Steps {
    in_huge_pages(chase(pages, (HUGE_PAGE + PAGE) as usize + LINE, Order::RandomByLine))
}

fn as_many_lines(lines: usize) -> Steps {
    chase(lines, LINE, Order::RandomByLine)
}

fn another_line(pages: usize) -> Steps {
    in_huge_pages(chase(pages, (HUGE_PAGE + 3 * PAGE) as usize + 3 * LINE, Order::RandomByLine))
}

fn as_many_others(lines: usize) -> Steps {
    chase(lines, 3 * LINE, Order::RandomByLine)
}

pub(crate) const TEST: Test = Test {
    name: "huge_tlb",
    about: "how many pages of 2 MiB have their translation at hand, and what one more costs",
    definition: "pages of 2 MiB over which loads in random order find all translations in this level or a nearer one",
    source: "R. Saavedra and A. Smith, Measuring Cache and TLB Performance and Their Effect on Benchmark Runtimes (1995)",
    part: Part::Memory,
    look: Look::Levels(Walks {
        walks: &[
            Walk { name: "a line of each page", program: a_line, without: Some(as_many_lines) },
            Walk { name: "another line of each page", program: another_line, without: Some(as_many_others) },
        ],
        others: &[],
        takes: &[],
        beside: None,
        // Where huge pages are split, their pieces have the room of small pages: no core with less for huge ones than for small
        // ones has more than these.
        counts: [8, 48],
        unit: Unit::Count,
        rise: 3.0,
        ratio: 1.3,
        by_chance: false,
        one: false,
        always: false,
        cost: Some(
            "core cycles by which a load takes longer than one of as many lines in fewer pages: none in the first level",
        ),
        bytes: (HUGE_PAGE + 3 * PAGE) as usize + 3 * LINE,
    }),
};
