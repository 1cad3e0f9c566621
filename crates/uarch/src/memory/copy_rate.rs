//! Loads that are stored again, in the nearest cache.

use crate::test::moves::{in_pages, load, moving_row, store};
use crate::test::rate::{Rates, Way};
use crate::test::walk::{Steps, code};
use crate::test::{Look, Part, Test};
use cyclescope_core::unit::Unit;

/// Pairs of an iteration.
const PAIRS: usize = 96;
/// Bytes that are copied over and over.
const COPIED: usize = 2048;
/// Where to: in the other half of a page, so that no load's address is that of a store in its last 12 bits.
const TO: usize = 4096 + COPIED;

/// Copies in which so many loads come before their stores, in this order of addresses.
fn copies(width: usize, together: usize, place: fn(usize) -> usize) -> Steps {
    let offset = |number: usize| place(number) * width % COPIED;
    let group = |first: usize| {
        let numbers = first..first + together;
        let loads = numbers.clone().map(|number| load(width, number, &format!("r14 + {}", offset(number))));
        let stores = numbers.map(|number| store(width, number, &format!("r14 + {}", TO + offset(number))));
        loads.chain(stores).collect::<Vec<_>>()
    };
    let all: Vec<String> = (0..PAIRS).step_by(together).flat_map(group).collect();
    in_pages(code(&all.join("; ")), PAIRS, 2)
}

fn one_by_one(width: usize) -> Steps {
    copies(width, 1, |number| number)
}

fn two_by_two(width: usize) -> Steps {
    copies(width, 2, |number| number)
}

fn four_by_four(width: usize) -> Steps {
    copies(width, 4, |number| PAIRS - 1 - number)
}

const WAYS: &[Way] = &[
    Way::plain("a load and its store, upwards", one_by_one),
    Way::plain("two loads and their stores, upwards", two_by_two),
    Way::plain("four loads and their stores, downwards", four_by_four),
];

pub(crate) const TEST: Test = Test {
    name: "copy_rate",
    about: "how many loads the core stores again in a cycle",
    definition: "aligned loads of which each is stored to another line of the nearest cache, in a core cycle",
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
