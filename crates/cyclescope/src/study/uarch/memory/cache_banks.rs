//! Loads of the nearest cache that hinder each other by their addresses.

use crate::study::uarch::test::moves::{in_pages, load};
use crate::study::uarch::test::rate::{Rates, Row, Way};
use crate::study::uarch::test::walk::{Steps, code};
use crate::study::uarch::test::{Look, Part, Test};
use crate::unit::Unit;

/// Loads of an iteration.
const LOADS: usize = 192;
/// Addresses that they go to in turn: no more than a set has ways, where they are in one.
const ADDRESSES: usize = 4;

/// Loads of so many bytes, each that far behind the one before or before it, from this byte of a line on.
fn loads(apart: usize, width: usize, from: usize, down: bool) -> Steps {
    let place = |number: usize| if down { ADDRESSES - 1 - number % ADDRESSES } else { number % ADDRESSES };
    let each = |number: usize| load(width, number, &format!("r14 + {}", place(number) * apart + from));
    in_pages(code(&(0..LOADS).map(each).collect::<Vec<_>>().join("; ")), LOADS, ADDRESSES as u64)
}

fn upwards(apart: usize) -> Steps {
    loads(apart, 8, 0, false)
}

fn downwards(apart: usize) -> Steps {
    loads(apart, 8, 24, true)
}

fn vectors(apart: usize) -> Steps {
    loads(apart, 16, 32, false)
}

const NARROW: [Way; 2] =
    [Way::plain("8 bytes, upwards", upwards), Way::plain("8 bytes, downwards", downwards)];
/// Parts of a line where vectors would be of two.
const NEAR: &[Way] = &NARROW;
const FAR: &[Way] = {
    let [up, down] = NARROW;
    &[up, down, Way::plain("16 bytes, upwards", vectors)]
};

pub(in crate::study::uarch) const TEST: Test = Test {
    name: "cache_banks",
    about: "how many loads the core does in a cycle whose addresses differ by powers of two",
    definition: "loads in a core cycle, each so many bytes behind the one before, of four lines in turn or of one; fewer than load_rate has where the cache's \
                 banks answer one of them at a time",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024), cache bank conflicts",
    part: Part::Memory,
    look: Look::Rates(Rates {
        rows: &[
            Row::new("8_bytes", 8, 1.0, NEAR),
            Row::new("16_bytes", 16, 1.0, NEAR),
            Row::new("32_bytes", 32, 1.0, NEAR),
            Row::new("64_bytes", 64, 1.0, FAR),
            Row::new("128_bytes", 128, 1.0, FAR),
            Row::new("256_bytes", 256, 1.0, FAR),
            Row::new("512_bytes", 512, 1.0, FAR),
            Row::new("1024_bytes", 1024, 1.0, FAR),
            Row::new("2048_bytes", 2048, 1.0, FAR),
            Row::new("4096_bytes", 4096, 1.0, FAR),
        ],
        unit: Unit::PerCycle,
        bytes: 0,
        apart: 0.05,
        alone: false,
        within: None,
    }),
};
