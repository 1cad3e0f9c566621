//! Translations of data addresses.

use crate::test::walk::{Beside, LINE, Steps, Walk, Walks, chase, chase_beside};
use crate::test::{Look, Part, Test};
use cyclescope_code::program::memory::{Order, PAGE};
use cyclescope_core::unit::Unit;

/// One line of each page, the next one in the next page, so that all sets of the cache have their part.
fn a_line(pages: usize) -> Steps {
    chase(pages, PAGE as usize + LINE, Order::RandomByLine)
}

fn as_many_lines(lines: usize) -> Steps {
    chase(lines, LINE, Order::RandomByLine)
}

fn another_line(pages: usize) -> Steps {
    chase(pages, PAGE as usize + 3 * LINE, Order::RandomByLine)
}

fn as_many_others(lines: usize) -> Steps {
    chase(lines, 3 * LINE, Order::RandomByLine)
}

/// Pages of another ring.
const OCCUPIED: usize = 24;

fn beside_others(pages: usize) -> Steps {
    chase_beside(pages, PAGE as usize + LINE, OCCUPIED)
}

pub(crate) const TEST: Test = Test {
    name: "data_tlb",
    about: "how many pages of 4 KiB have their translation at hand, and what one more costs",
    definition: "pages of 4 KiB over which loads in random order find all translations in this level or a nearer one",
    source: "R. Saavedra and A. Smith, Measuring Cache and TLB Performance and Their Effect on Benchmark Runtimes (1995)",
    part: Part::Memory,
    look: Look::Levels(Walks {
        walks: &[
            Walk { name: "a line of each page", program: a_line, without: Some(as_many_lines) },
            Walk { name: "another line of each page", program: another_line, without: Some(as_many_others) },
        ],
        others: &[],
        takes: &[],
        beside: Some(Beside {
            walk: Walk {
                name: "a line of each page, beside 24 pages",
                program: beside_others,
                without: None,
            },
            occupied: OCCUPIED,
        }),
        counts: [8, 8192],
        unit: Unit::Count,
        rise: 3.0,
        ratio: 1.3,
        by_chance: false,
        one: false,
        always: false,
        cost: Some(
            "core cycles by which a load takes longer than one of as many lines in fewer pages: none in the first level",
        ),
        bytes: 2 * PAGE as usize,
    }),
};
