//! Loads that the nearest cache answers in a cycle.

use crate::study::uarch::test::moves::{in_pages, load};
use crate::study::uarch::test::rate::{Rates, Row, Way};
use crate::study::uarch::test::walk::{LINE, Steps, code};
use crate::study::uarch::test::{Look, Part, Test};
use crate::unit::Unit;
use iced_x86::CpuidFeature::{AVX, AVX512F};

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

const ONE: &str = "one stream";
const TWO: &str = "two streams";
const PLAIN: &[Way] = &[Way::plain(ONE, one_stream), Way::plain(TWO, two_streams)];

pub(in crate::study::uarch) const TEST: Test = Test {
    name: "load_rate",
    about: "how many loads of each width the core does in a cycle",
    definition: "aligned loads that the nearest cache answers in a core cycle, none of which waits for another",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::Memory,
    look: Look::Rates(Rates {
        rows: &[
            Row::new("8_bytes", 8, 1.0, PLAIN),
            Row::new("16_bytes", 16, 1.0, PLAIN),
            Row::new(
                "32_bytes",
                32,
                1.0,
                &[Way::plain(ONE, one_stream).needing(&[AVX]), Way::plain(TWO, two_streams).needing(&[AVX])],
            ),
            Row::new(
                "64_bytes",
                64,
                1.0,
                &[
                    Way::plain(ONE, one_stream).needing(&[AVX512F]),
                    Way::plain(TWO, two_streams).needing(&[AVX512F]),
                ],
            ),
        ],
        unit: Unit::PerCycle,
        bytes: 0,
        apart: 0.05,
        alone: false,
    }),
};
