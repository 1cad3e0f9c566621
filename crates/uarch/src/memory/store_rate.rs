//! Stores that the nearest cache takes in a cycle.

use crate::spec::*;

/// Stores of an iteration.
const STORES: usize = 192;
/// Lines that are stored to.
const LINES: usize = 16;
/// Stores to a line before the next one, at least.
const TO_A_LINE: usize = 2;

fn store_lines(width: usize, offset: impl Fn(usize) -> usize) -> StepLoop {
    let each = |number: usize| store_text(width, number, &format!("r14 + {}", offset(number)));
    loop_in_pages(assemble(&(0..STORES).map(each).collect::<Vec<_>>().join("; ")), STORES, 1)
}

/// Stores that fill a line before the next one.
fn line_after_line(width: usize) -> StepLoop {
    let to_a_line = (LINE / width).max(TO_A_LINE);
    store_lines(width, |number| number / to_a_line % LINES * LINE + number % to_a_line * width % LINE)
}

/// The same from the last byte to the first.
fn line_before_line(width: usize) -> StepLoop {
    let to_a_line = (LINE / width).max(TO_A_LINE);
    store_lines(width, |number| {
        let line = LINES - 1 - number / to_a_line % LINES;
        line * LINE + (LINE - width) - number % to_a_line * width % LINE
    })
}

/// Stores each to the next line.
fn next_line(width: usize) -> StepLoop {
    store_lines(width, |number| number % LINES * LINE + number / LINES * width % LINE)
}

/// Stores each to the line before, in two rows of lines in turn.
fn line_before(width: usize) -> StepLoop {
    store_lines(width, |number| {
        let row = number % 2 * 2 * LINES * LINE;
        let line = LINES - 1 - number / 2 % LINES;
        row + line * LINE + number / (2 * LINES) * width % LINE
    })
}

const ONE_LINE: &[ProgramVariant] = &[
    ProgramVariant::new("line after line", line_after_line),
    ProgramVariant::new("line before line", line_before_line),
];
const OTHER_LINES: &[ProgramVariant] = &[
    ProgramVariant::new("the next line", next_line),
    ProgramVariant::new("two rows of lines, downwards", line_before),
];

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "store_rate",
    about: "how many stores of each width the core does in a cycle",
    definition: "aligned stores that the nearest cache takes in a core cycle, of which some follow each other to one line, or, apart, each is to another \
                 line than the one before",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    answers: &["cache_throughput"],
    part: TestedPart::Memory,
    experiment: Experiment::Rates(RatesSpec::new(
        Unit::PerCycle,
        &[
            width_row("8_bytes", 8, ONE_LINE),
            width_row("8_bytes_apart", 8, OTHER_LINES),
            width_row("16_bytes", 16, ONE_LINE),
            width_row("16_bytes_apart", 16, OTHER_LINES),
            width_row("32_bytes", 32, ONE_LINE),
            width_row("32_bytes_apart", 32, OTHER_LINES),
            width_row("64_bytes", 64, ONE_LINE),
            width_row("64_bytes_apart", 64, OTHER_LINES),
        ],
    )),
}];
