//! Loads that the nearest cache answers in a cycle.

use crate::test::moves::{in_pages, load, moving_row};
use crate::test::rate::{Rates, Way};
use crate::test::walk::{LINE, Steps, code};
use crate::test::{Look, Part, Test};
use cyclescope_core::unit::Unit;

/// Loads of an iteration.
const LOADS: usize = 192;
/// Bytes of a stream of loads.
const STREAM: usize = 4096;

fn one_stream(width: usize) -> Steps {
    let each = |number: usize| load(width, number, &format!("r14 + {}", number * width % STREAM));
    in_pages(code(&(0..LOADS).map(each).collect::<Vec<_>>().join("; ")), LOADS, 1)
}

/// Every other load is of the next page, and of the other half of its line where it is no larger than that: caches whose banks are
/// parts of a line answer both at once.
fn two_streams(width: usize) -> Steps {
    let apart = STREAM + if width < LINE { LINE / 2 } else { 0 };
    let each = |number: usize| {
        let offset = number / 2 * width % (STREAM / 2) + number % 2 * apart;
        load(width, LOADS - number, &format!("r14 + {offset}"))
    };
    in_pages(code(&(0..LOADS).map(each).collect::<Vec<_>>().join("; ")), LOADS, 2)
}

/// Loads of one line, or of the same line of two pages in turn: loads of lines of different sets may hinder each other where they have parts of one bank, and these
/// do not.
fn near(width: usize, pages: usize) -> Steps {
    let each = |number: usize| {
        let offset = number % pages * STREAM + number / pages * width % LINE;
        load(width, number, &format!("r14 + {offset}"))
    };
    in_pages(code(&(0..LOADS).map(each).collect::<Vec<_>>().join("; ")), LOADS, pages as u64)
}

fn one_line(width: usize) -> Steps {
    near(width, 1)
}

fn one_set(width: usize) -> Steps {
    near(width, 2)
}

const WAYS: &[Way] = &[
    Way::plain("one stream", one_stream),
    Way::plain("two streams", two_streams),
    Way::plain("one line", one_line),
    Way::plain("a line of two pages", one_set),
];

pub(crate) const TEST: Test = Test {
    name: "load_rate",
    about: "how many loads of each width the core does in a cycle",
    definition: "aligned loads that the nearest cache answers in a core cycle, none of which waits for another",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::Memory,
    look: Look::Rates(Rates {
        rows: &[
            moving_row("8_bytes", 8, WAYS),
            moving_row("16_bytes", 16, WAYS),
            moving_row("32_bytes", 32, WAYS),
            moving_row("64_bytes", 64, WAYS),
        ],
        unit: Unit::PerCycle,
        bytes: 0,
        apart: 0.05,
        alone: false,
        within: None,
    }),
};
