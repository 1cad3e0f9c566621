//! Loads that the nearest cache answers in a cycle.

use crate::spec::*;

/// Loads of an iteration.
const LOADS: usize = 192;
/// Bytes of a stream of loads.
const STREAM: usize = 4096;

fn one_stream(width: usize) -> StepLoop {
    let each = |number: usize| load_text(width, number, &format!("r14 + {}", number * width % STREAM));
    loop_in_pages(assemble(&(0..LOADS).map(each).collect::<Vec<_>>().join("; ")), LOADS, 1)
}

/// Every other load is of the next page, and of the other half of its line where it is no larger than that: caches whose banks are
/// parts of a line answer both at once.
fn two_streams(width: usize) -> StepLoop {
    let apart = STREAM + if width < LINE { LINE / 2 } else { 0 };
    let each = |number: usize| {
        let offset = number / 2 * width % (STREAM / 2) + number % 2 * apart;
        load_text(width, LOADS - number, &format!("r14 + {offset}"))
    };
    loop_in_pages(assemble(&(0..LOADS).map(each).collect::<Vec<_>>().join("; ")), LOADS, 2)
}

/// Loads of one line, or of the same line of two pages in turn: loads of lines of different sets may hinder each other where they have parts of one bank, and these
/// do not.
fn near_loads(width: usize, pages: usize) -> StepLoop {
    let each = |number: usize| {
        let offset = number % pages * STREAM + number / pages * width % LINE;
        load_text(width, number, &format!("r14 + {offset}"))
    };
    loop_in_pages(assemble(&(0..LOADS).map(each).collect::<Vec<_>>().join("; ")), LOADS, pages as u64)
}

fn one_line(width: usize) -> StepLoop {
    near_loads(width, 1)
}

fn one_set(width: usize) -> StepLoop {
    near_loads(width, 2)
}

const WAYS: &[ProgramVariant] = &[
    ProgramVariant::new("one stream", one_stream),
    ProgramVariant::new("two streams", two_streams),
    ProgramVariant::new("one line", one_line),
    ProgramVariant::new("a line of two pages", one_set),
];

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "load_rate",
    about: "how many loads of each width the core does in a cycle",
    definition: "aligned loads that the nearest cache answers in a core cycle, none of which waits for another",
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
