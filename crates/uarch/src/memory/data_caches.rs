//! The levels of data caches, and the memory behind them.

use crate::test::walk::{Beside, LINE, Steps, Walk, Walks, chase, chase_beside};
use crate::test::{Look, Part, Test};
use cyclescope_code::program::memory::Order;
use cyclescope_core::unit::Unit;

pub(super) fn each_line(bytes: usize) -> Steps {
    chase(bytes / LINE, LINE, Order::RandomByLine)
}

pub(super) fn every_other_line(bytes: usize) -> Steps {
    chase(bytes / (2 * LINE), 2 * LINE, Order::RandomByLine)
}

/// The same with few translations: all lines of a page, then those of another one.
pub(super) fn page_after_page(bytes: usize) -> Steps {
    chase(bytes / LINE, LINE, Order::RandomByPage)
}

/// Bytes of another ring.
pub(super) const OCCUPIED: usize = 8 << 10;

pub(super) fn beside_others(bytes: usize) -> Steps {
    chase_beside(bytes / LINE, LINE, OCCUPIED / LINE)
}

pub(crate) const TEST: Test = Test {
    name: "data_caches",
    about: "how large each level of the data caches is, and how long a load takes",
    definition: "bytes over which loads in random order find all in this level or a nearer one",
    source: "R. Saavedra and A. Smith, Measuring Cache and TLB Performance and Their Effect on Benchmark Runtimes (1995)",
    part: Part::Memory,
    look: Look::Levels(Walks {
        walks: &[
            Walk { name: "each line", program: each_line, without: None },
            Walk { name: "page after page", program: page_after_page, without: None },
            Walk { name: "every other line", program: every_other_line, without: None },
        ],
        others: &[],
        takes: &[],
        beside: Some(Beside {
            walk: Walk { name: "each line, beside 8 KiB", program: beside_others, without: None },
            occupied: OCCUPIED,
        }),
        counts: [4 << 10, 128 << 20],
        unit: Unit::Bytes,
        rise: 3.0,
        // The next cache takes more than twice as long. Translations that are not at hand make loads from the second cache dearer
        // by a half at most.
        ratio: 1.8,
        by_chance: true,
        one: false,
        always: false,
        cost: Some(
            "core cycles of a load of 64 bits, mov r, [r], that waits for the one before; its translation is part of it",
        ),
        bytes: 1,
    }),
};
