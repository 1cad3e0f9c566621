//! Loads that are stored again, in the nearest cache.

use crate::spec::*;

/// Pairs of an iteration.
const PAIRS: usize = 96;
/// Bytes that are copied over and over.
const COPIED: usize = 2048;
/// Where to: in the other half of a page, so that no load's address is that of a store in its last 12 bits.
const TO: usize = 4096 + COPIED;

/// Copies in which so many loads come before their stores, in this order of addresses.
fn load_store_groups(width: usize, together: usize, place: fn(usize) -> usize) -> StepLoop {
    let offset = |number: usize| place(number) * width % COPIED;
    let group = |first: usize| {
        let numbers = first..first + together;
        let loads = numbers.clone().map(|number| load_text(width, number, &format!("r14 + {}", offset(number))));
        let stores = numbers.map(|number| store_text(width, number, &format!("r14 + {}", TO + offset(number))));
        loads.chain(stores).collect::<Vec<_>>()
    };
    let all: Vec<String> = (0..PAIRS).step_by(together).flat_map(group).collect();
    loop_in_pages(assemble(&all.join("; ")), PAIRS, 2)
}

fn one_by_one(width: usize) -> StepLoop {
    load_store_groups(width, 1, |number| number)
}

fn two_by_two(width: usize) -> StepLoop {
    load_store_groups(width, 2, |number| number)
}

fn four_by_four(width: usize) -> StepLoop {
    load_store_groups(width, 4, |number| PAIRS - 1 - number)
}

const WAYS: &[ProgramVariant] = &[
    ProgramVariant::new("a load and its store, upwards", one_by_one),
    ProgramVariant::new("two loads and their stores, upwards", two_by_two),
    ProgramVariant::new("four loads and their stores, downwards", four_by_four),
];

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "copy_rate",
    about: "how many loads the core stores again in a cycle",
    definition: "aligned loads of which each is stored to another line of the nearest cache, in a core cycle",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    answers: &["cache_throughput"],
    part: TestedPart::Memory,
    experiment: Experiment::Rates(RatesSpec::new(
        Unit::PerCycle,
        &[
            width_row("8_bytes", 8, WAYS),
            width_row("16_bytes", 16, WAYS),
            width_row("32_bytes", 32, WAYS),
            width_row("64_bytes", 64, WAYS),
        ],
    )),
}];
