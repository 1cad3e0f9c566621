//! The levels of data caches in huge pages.
//!
//! Physical memory is in one piece over 2 MiB: sets fill evenly, and a level ends at one count. Translations cost less too.

use super::data_caches::{OCCUPIED, beside_others, each_line, every_other_line, page_after_page};
use super::huge_pages::in_huge_pages;
use crate::test::walk::{Beside, Steps, Walk, Walks};
use crate::test::{Look, Part, Test};
use cyclescope_core::unit::Unit;

fn each_line_huge(bytes: usize) -> Steps {
    in_huge_pages(each_line(bytes))
}

fn every_other_line_huge(bytes: usize) -> Steps {
    in_huge_pages(every_other_line(bytes))
}

fn page_after_page_huge(bytes: usize) -> Steps {
    in_huge_pages(page_after_page(bytes))
}

fn beside_others_huge(bytes: usize) -> Steps {
    in_huge_pages(beside_others(bytes))
}

pub(crate) const TEST: Test = Test {
    name: "data_caches_huge",
    about: "how large each level of the data caches is in pages of 2 MiB, and how long a load takes",
    definition: "bytes over which loads in random order, in pages of 2 MiB, find all in this level or a nearer one",
    source: "R. Saavedra and A. Smith, Measuring Cache and TLB Performance and Their Effect on Benchmark Runtimes (1995)",
    part: Part::Memory,
    look: Look::Levels(Walks {
        walks: &[
            Walk { name: "each line", program: each_line_huge, without: None },
            Walk { name: "every other line", program: every_other_line_huge, without: None },
            Walk { name: "page after page", program: page_after_page_huge, without: None },
        ],
        others: &[],
        takes: &[],
        beside: Some(Beside {
            walk: Walk { name: "each line, beside 8 KiB", program: beside_others_huge, without: None },
            occupied: OCCUPIED,
        }),
        // What has room in a small page is in one. No known second cache is larger, and others use third ones too.
        counts: [8 << 10, 8 << 20],
        unit: Unit::Bytes,
        rise: 3.0,
        ratio: 1.8,
        // Whoever maps this memory may have split it.
        by_chance: true,
        one: false,
        always: false,
        cost: Some(
            "core cycles of a load of 64 bits, mov r, [r], that waits for the one before, in pages of 2 MiB",
        ),
        bytes: 1,
    }),
};
