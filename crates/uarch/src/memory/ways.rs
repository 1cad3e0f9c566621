//! The ways of the nearest data cache.

use crate::test::walk::{LINE, Steps, Walk, Walks, chase};
use crate::test::{Look, Part, Test};
use cyclescope_code::program::memory::Order;
use cyclescope_core::unit::Unit;

/// Bytes after which the sets of any nearest data cache begin again.
const SETS: usize = 64 << 10;

fn one_set(lines: usize) -> Steps {
    chase(lines, SETS, Order::RandomByLine)
}

/// As many lines in as many pages, each in another set.
fn many_sets(lines: usize) -> Steps {
    chase(lines, SETS + LINE, Order::RandomByLine)
}

fn one_set_of_more(lines: usize) -> Steps {
    chase(lines, 3 * SETS, Order::RandomByLine)
}

fn many_sets_of_more(lines: usize) -> Steps {
    chase(lines, 3 * SETS + LINE, Order::RandomByLine)
}

pub(crate) const TEST: Test = Test {
    name: "l1d_ways",
    about: "how many lines a set of the nearest data cache holds",
    definition: "lines with the same address modulo 64 KiB that are all in the nearest data cache",
    source: "R. Saavedra and A. Smith, Measuring Cache and TLB Performance and Their Effect on Benchmark Runtimes (1995)",
    part: Part::Memory,
    look: Look::Levels(Walks {
        walks: &[
            Walk { name: "each 64 KiB", program: one_set, without: Some(many_sets) },
            Walk { name: "each 192 KiB", program: one_set_of_more, without: Some(many_sets_of_more) },
        ],
        others: &[],
        takes: &[],
        beside: None,
        counts: [2, 48],
        unit: Unit::Count,
        rise: 3.0,
        ratio: 1.3,
        by_chance: false,
        one: true,
        always: true,
        cost: None,
        bytes: 3 * SETS + LINE,
    }),
};
