//! Loads and stores per cycle in the nearest cache.

use crate::spec::*;

// Loads per cycle from the nearest cache.

/// Loads per iteration.
const LOADS: usize = 192;
/// Bytes of a stream of loads.
const STREAM: usize = 4096;

fn one_stream(width: usize) -> StepLoop {
    let each = |number: usize| load_text(width, number, &format!("r14 + {}", number * width % STREAM));
    loop_in_pages(assemble(&(0..LOADS).map(each).collect::<Vec<_>>().join("; ")), LOADS, 1)
}

/// Every other load is from the next page, and from the other half of its line if half a line is
/// enough: a cache with banks within a line serves both at once.
fn two_streams(width: usize) -> StepLoop {
    let apart = STREAM + if width < LINE { LINE / 2 } else { 0 };
    let each = |number: usize| {
        let offset = number / 2 * width % (STREAM / 2) + number % 2 * apart;
        load_text(width, LOADS - number, &format!("r14 + {offset}"))
    };
    loop_in_pages(assemble(&(0..LOADS).map(each).collect::<Vec<_>>().join("; ")), LOADS, 2)
}

/// Loads of one line, or of the same line of two pages in turn. Loads of lines in different sets
/// may conflict if the lines share banks; these loads do not.
fn near_loads(width: usize, pages: usize) -> StepLoop {
    let each = |number: usize| {
        let offset = number % pages * STREAM + number / pages * width % LINE;
        load_text(width, number, &format!("r14 + {offset}"))
    };
    loop_in_pages(assemble(&(0..LOADS).map(each).collect::<Vec<_>>().join("; ")), LOADS, pages as u64)
}

const LOAD_VARIANTS: &[ProgramVariant] = &[
    ProgramVariant::new("one stream", one_stream),
    ProgramVariant::new("two streams", two_streams),
    ProgramVariant::new("one line", |width| near_loads(width, 1)),
    ProgramVariant::new("a line of two pages", |width| near_loads(width, 2)),
];

// Loads from the nearest cache that conflict because of their addresses.

/// Addresses in turn: at most as many as a set has ways, in case they fall into one set.
const ADDRESSES: usize = 4;

/// Loads of 8 bytes from this byte of a line. Each is `apart` bytes behind or before the previous
/// one.
fn strided_loads(apart: usize, from: usize, down: bool) -> StepLoop {
    let place = |number: usize| if down { ADDRESSES - 1 - number % ADDRESSES } else { number % ADDRESSES };
    let each = |number: usize| load_text(8, number, &format!("r14 + {}", place(number) * apart + from));
    loop_in_pages(assemble(&(0..LOADS).map(each).collect::<Vec<_>>().join("; ")), LOADS, ADDRESSES as u64)
}

const BANK_VARIANTS: &[ProgramVariant] = &[
    ProgramVariant::new("8 bytes, upwards", |apart| strided_loads(apart, 0, false)),
    ProgramVariant::new("8 bytes, downwards", |apart| strided_loads(apart, 24, true)),
];

/// Conflicts depend on the ports that the core picks: one program reaches 2.1 to 3.0 by the place
/// of its code (Genoa, family 25, model 17).
const fn stride_row(name: &'static str, apart: usize) -> TestRow {
    TestRow::for_n(name, apart, BANK_VARIANTS).varying_by_place()
}

// Stores per cycle to the nearest cache.

/// Stores per iteration.
const STORES: usize = 192;
/// Number of lines that stores go to.
const LINES: usize = 16;
/// The least number of stores to a line before the next one.
const TO_A_LINE: usize = 2;

fn store_lines(width: usize, offset: impl Fn(usize) -> usize) -> StepLoop {
    let each = |number: usize| store_text(width, number, &format!("r14 + {}", offset(number)));
    loop_in_pages(assemble(&(0..STORES).map(each).collect::<Vec<_>>().join("; ")), STORES, 1)
}

/// Stores that fill each line before they go to the next.
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

/// Each store goes to the next line.
fn next_line(width: usize) -> StepLoop {
    store_lines(width, |number| number % LINES * LINE + number / LINES * width % LINE)
}

/// Each store goes to the previous line, in two groups of lines in turn.
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

// Loads whose values are stored again, in the nearest cache.

/// Load and store pairs per iteration.
const PAIRS: usize = 96;
/// Bytes that are copied repeatedly.
const COPIED: usize = 2048;
/// The target is in the other half of a page: no load has an address with the same last 12 bits as
/// a store's.
const TO: usize = 4096 + COPIED;

/// Copies in which `together` loads precede their stores. `place` gives the order of addresses.
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

const COPY_VARIANTS: &[ProgramVariant] = &[
    ProgramVariant::new("a load and its store, upwards", |width| load_store_groups(width, 1, |number| number)),
    ProgramVariant::new("two loads and their stores, upwards", |width| load_store_groups(width, 2, |number| number)),
    ProgramVariant::new("four loads and their stores, downwards", |width| {
        load_store_groups(width, 4, |number| PAIRS - 1 - number)
    }),
];

pub(crate) const TESTS: &[TestSpec] = &[
    TestSpec {
        name: "load_rate",
        about: "how many loads of each width the core does in a cycle",
        definition: "aligned loads that the nearest cache answers in a core cycle, none of which waits for another",
        source: FOG,
        answers: &["cache_throughput"],
        part: TestedPart::Memory,
        experiment: Experiment::Rates(RatesSpec::new(
            Unit::PerCycle,
            &[
                width_row("8_bytes", 8, LOAD_VARIANTS),
                width_row("16_bytes", 16, LOAD_VARIANTS),
                width_row("32_bytes", 32, LOAD_VARIANTS),
                width_row("64_bytes", 64, LOAD_VARIANTS),
            ],
        )),
    },
    TestSpec {
        name: "cache_banks",
        about: "how many loads the core does in a cycle whose addresses differ by powers of two",
        definition: "loads of 8 bytes in a core cycle, each this many bytes behind or before the one before, of four \
                     lines in turn or of one; fewer than load_rate has where the cache's banks answer one of them \
                     at a time, and with the least and the most where that depends on the place of the code",
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
    },
    TestSpec {
        name: "store_rate",
        about: "how many stores of each width the core does in a cycle",
        definition: "aligned stores that the nearest cache takes in a core cycle, of which some follow each other \
                     to one line, or, apart, each is to another line than the one before",
        source: FOG,
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
    },
    TestSpec {
        name: "copy_rate",
        about: "how many loads the core stores again in a cycle",
        definition: "aligned loads of which each is stored to another line of the nearest cache, in a core cycle",
        source: FOG,
        answers: &["cache_throughput"],
        part: TestedPart::Memory,
        experiment: Experiment::Rates(RatesSpec::new(
            Unit::PerCycle,
            &[
                width_row("8_bytes", 8, COPY_VARIANTS),
                width_row("16_bytes", 16, COPY_VARIANTS),
                width_row("32_bytes", 32, COPY_VARIANTS),
                width_row("64_bytes", 64, COPY_VARIANTS),
            ],
        )),
    },
];
