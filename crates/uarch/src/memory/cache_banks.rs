//! Loads of the nearest cache that hinder each other by their addresses.

use crate::test::moves::{in_pages, load};
use crate::test::rate::{Rates, Row, Way};
use crate::test::walk::{Steps, code};
use crate::test::{Look, Part, Test};
use cyclescope_core::unit::Unit;

/// Loads of an iteration.
const LOADS: usize = 192;
/// Addresses that they go to in turn: no more than a set has ways, where they are in one.
const ADDRESSES: usize = 4;

/// Loads of 8 bytes, each that far behind the one before or before it, from this byte of a line on.
fn loads(apart: usize, from: usize, down: bool) -> Steps {
    let place = |number: usize| if down { ADDRESSES - 1 - number % ADDRESSES } else { number % ADDRESSES };
    let each = |number: usize| load(8, number, &format!("r14 + {}", place(number) * apart + from));
    in_pages(code(&(0..LOADS).map(each).collect::<Vec<_>>().join("; ")), LOADS, ADDRESSES as u64)
}

fn upwards(apart: usize) -> Steps {
    loads(apart, 0, false)
}

fn downwards(apart: usize) -> Steps {
    loads(apart, 24, true)
}

const WAYS: &[Way] = &[Way::plain("8 bytes, upwards", upwards), Way::plain("8 bytes, downwards", downwards)];

/// How often two of them come at once depends on which of its ports the core gives to which: a program does 2.1 to 3.0 by where its code is (Genoa, family 25,
/// model 17).
const fn row(name: &'static str, apart: usize) -> Row {
    Row::new(name, apart, 1.0, WAYS).varying()
}

pub(crate) const TEST: Test = Test {
    name: "cache_banks",
    about: "how many loads the core does in a cycle whose addresses differ by powers of two",
    definition: "loads of 8 bytes in a core cycle, each so many bytes behind or before the one before, of four lines in turn or of one; fewer than load_rate has where the \
                 cache's banks answer one of them at a time, and with the least and the most where that depends on the place of the code",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024), cache bank conflicts",
    part: Part::Memory,
    look: Look::Rates(Rates {
        rows: &[
            row("8_bytes", 8),
            row("16_bytes", 16),
            row("32_bytes", 32),
            row("64_bytes", 64),
            row("128_bytes", 128),
            row("256_bytes", 256),
            row("512_bytes", 512),
            row("1024_bytes", 1024),
            row("2048_bytes", 2048),
            row("4096_bytes", 4096),
        ],
        unit: Unit::PerCycle,
        bytes: 0,
        apart: 0.05,
        alone: false,
        within: None,
    }),
};
