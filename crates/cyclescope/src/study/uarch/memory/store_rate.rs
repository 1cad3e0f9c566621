//! Stores that the nearest cache takes in a cycle.

use crate::study::uarch::test::moves::{in_pages, store};
use crate::study::uarch::test::rate::{Rates, Row, Way};
use crate::study::uarch::test::walk::{LINE, Steps, code};
use crate::study::uarch::test::{Look, Part, Test};
use crate::unit::Unit;
use iced_x86::CpuidFeature::{AVX, AVX512F};

/// Stores of an iteration.
const STORES: usize = 192;
/// Lines that are stored to.
const LINES: usize = 16;
/// Stores to a line before the next one, at least.
const TO_A_LINE: usize = 2;

fn stores(width: usize, offset: impl Fn(usize) -> usize) -> Steps {
    let each = |number: usize| store(width, number, &format!("r14 + {}", offset(number)));
    in_pages(code(&(0..STORES).map(each).collect::<Vec<_>>().join("; ")), STORES, 1)
}

/// Stores that fill a line before the next one.
fn line_after_line(width: usize) -> Steps {
    let to_a_line = (LINE / width).max(TO_A_LINE);
    stores(width, |number| number / to_a_line % LINES * LINE + number % to_a_line * width % LINE)
}

/// The same from the last byte to the first.
fn line_before_line(width: usize) -> Steps {
    let to_a_line = (LINE / width).max(TO_A_LINE);
    stores(width, |number| {
        let line = LINES - 1 - number / to_a_line % LINES;
        line * LINE + (LINE - width) - number % to_a_line * width % LINE
    })
}

/// Stores each to the next line.
fn next_line(width: usize) -> Steps {
    stores(width, |number| number % LINES * LINE + number / LINES * width % LINE)
}

/// Stores each to the line before, in two rows of lines in turn.
fn line_before(width: usize) -> Steps {
    stores(width, |number| {
        let row = number % 2 * 2 * LINES * LINE;
        let line = LINES - 1 - number / 2 % LINES;
        row + line * LINE + number / (2 * LINES) * width % LINE
    })
}

const UP: &str = "line after line";
const DOWN: &str = "line before line";
const NEXT: &str = "the next line";
const BEFORE: &str = "two rows of lines, downwards";
const ONE_LINE: &[Way] = &[Way::plain(UP, line_after_line), Way::plain(DOWN, line_before_line)];
const OTHER_LINES: &[Way] = &[Way::plain(NEXT, next_line), Way::plain(BEFORE, line_before)];
const ONE_LINE_32: &[Way] =
    &[Way::plain(UP, line_after_line).needing(&[AVX]), Way::plain(DOWN, line_before_line).needing(&[AVX])];
const OTHER_LINES_32: &[Way] =
    &[Way::plain(NEXT, next_line).needing(&[AVX]), Way::plain(BEFORE, line_before).needing(&[AVX])];
const ONE_LINE_64: &[Way] = &[
    Way::plain(UP, line_after_line).needing(&[AVX512F]),
    Way::plain(DOWN, line_before_line).needing(&[AVX512F]),
];
const OTHER_LINES_64: &[Way] =
    &[Way::plain(NEXT, next_line).needing(&[AVX512F]), Way::plain(BEFORE, line_before).needing(&[AVX512F])];

pub(in crate::study::uarch) const TEST: Test = Test {
    name: "store_rate",
    about: "how many stores of each width the core does in a cycle",
    definition: "aligned stores that the nearest cache takes in a core cycle, of which some follow each other to one line, or, apart, each is to another \
                 line than the one before",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::Memory,
    look: Look::Rates(Rates {
        rows: &[
            Row::new("8_bytes", 8, 1.0, ONE_LINE),
            Row::new("8_bytes_apart", 8, 1.0, OTHER_LINES),
            Row::new("16_bytes", 16, 1.0, ONE_LINE),
            Row::new("16_bytes_apart", 16, 1.0, OTHER_LINES),
            Row::new("32_bytes", 32, 1.0, ONE_LINE_32),
            Row::new("32_bytes_apart", 32, 1.0, OTHER_LINES_32),
            Row::new("64_bytes", 64, 1.0, ONE_LINE_64),
            Row::new("64_bytes_apart", 64, 1.0, OTHER_LINES_64),
        ],
        unit: Unit::PerCycle,
        bytes: 0,
        apart: 0.05,
        alone: false,
    }),
};
