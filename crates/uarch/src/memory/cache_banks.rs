//! Loads of the nearest cache that hinder each other by their addresses.

use crate::spec::*;

/// Loads of an iteration.
const LOADS: usize = 192;
/// Addresses that they go to in turn: no more than a set has ways, where they are in one.
const ADDRESSES: usize = 4;

/// Loads of 8 bytes, each that far behind the one before or before it, from this byte of a line on.
fn strided_loads(apart: usize, from: usize, down: bool) -> StepLoop {
    let place = |number: usize| if down { ADDRESSES - 1 - number % ADDRESSES } else { number % ADDRESSES };
    let each = |number: usize| load_text(8, number, &format!("r14 + {}", place(number) * apart + from));
    loop_in_pages(assemble(&(0..LOADS).map(each).collect::<Vec<_>>().join("; ")), LOADS, ADDRESSES as u64)
}

fn loads_upwards(apart: usize) -> StepLoop {
    strided_loads(apart, 0, false)
}

fn loads_downwards(apart: usize) -> StepLoop {
    strided_loads(apart, 24, true)
}

const WAYS: &[ProgramVariant] = &[
    ProgramVariant::new("8 bytes, upwards", loads_upwards),
    ProgramVariant::new("8 bytes, downwards", loads_downwards),
];

/// How often two of them come at once depends on which of its ports the core gives to which: a program does 2.1 to 3.0 by where its code is (Genoa, family 25,
/// model 17).
const fn stride_row(name: &'static str, apart: usize) -> TestRow {
    TestRow::for_n(name, apart, WAYS).varying_by_place()
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "cache_banks",
    about: "how many loads the core does in a cycle whose addresses differ by powers of two",
    definition: "loads of 8 bytes in a core cycle, each so many bytes behind or before the one before, of four lines in turn or of one; fewer than load_rate has where the \
                 cache's banks answer one of them at a time, and with the least and the most where that depends on the place of the code",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024), cache bank conflicts",
    answers: &["cache_banks"],
    part: TestedPart::Memory,
    experiment: Experiment::Rates(RatesSpec::new(
        Unit::PerCycle,
        &[
            stride_row("8_bytes", 8),
            stride_row("16_bytes", 16),
            stride_row("32_bytes", 32),
            stride_row("64_bytes", 64),
            stride_row("128_bytes", 128),
            stride_row("256_bytes", 256),
            stride_row("512_bytes", 512),
            stride_row("1024_bytes", 1024),
            stride_row("2048_bytes", 2048),
            stride_row("4096_bytes", 4096),
        ],
    )),
}];
