//! Methods of copying memory, by size and by alignment.

use crate::spec::*;
use cyclescope_code::program::memory::PAGE_BYTES;
use iced_x86::CpuidFeature::{AVX, AVX512F};

/// Bytes of the shorter call.
const CALL: usize = 64 << 10;
/// The largest number of copies of the shorter call.
const COPIES: usize = 256;
/// Copies of this size take milliseconds, so that the shorter call has only one.
const LONG: usize = 32 << 20;
/// Loads and stores per iteration of a copy loop.
const TOGETHER: usize = 4;
/// Copies of less than a line per iteration: with one copy, the loop's own instructions would
/// matter.
const AGAIN: usize = 8;
/// Offsets of source and target in copies that are not aligned.
const OFF: [usize; 2] = [1, 3];

/// A method of copying.
enum CopyMethod {
    /// One instruction, with elements of this many bytes.
    Repeat(usize),
    /// A loop over registers of this many bytes.
    Registers(usize),
    /// The same with non-temporal stores.
    Past(usize),
    /// Overlapping registers of this many bytes at the start and the end, as libraries copy few
    /// bytes.
    Ends(usize),
    /// The system's function, in R13.
    Library,
}

/// The methods; programs refer to them by index.
const METHODS: [CopyMethod; 10] = [
    CopyMethod::Repeat(1),
    CopyMethod::Repeat(8),
    CopyMethod::Registers(8),
    CopyMethod::Registers(16),
    CopyMethod::Registers(32),
    CopyMethod::Registers(64),
    CopyMethod::Past(16),
    CopyMethod::Ends(16),
    CopyMethod::Ends(32),
    CopyMethod::Library,
];
/// The index of the system's function.
const LIBRARY: usize = 9;

impl CopyMethod {
    /// Text that copies this many bytes from RSI to RDI.
    fn copy_text(&self, bytes: usize) -> String {
        match *self {
            CopyMethod::Repeat(1) => format!("mov ecx, {bytes}; rep movsb"),
            CopyMethod::Repeat(width) => format!("mov ecx, {}; rep movsq", bytes / width),
            CopyMethod::Registers(width) => copy_loop(width, bytes, store_text),
            CopyMethod::Past(width) => format!("{}; sfence", copy_loop(width, bytes, nontemporal_store_text)),
            CopyMethod::Ends(width) => {
                let each = |move_text: fn(usize, usize, &str) -> String, pointer: &str| {
                    let last = move_text(width, 1, &format!("{pointer} + {}", bytes - width));
                    format!("{}; {last}", move_text(width, 0, pointer))
                };
                format!("{}; {}", each(load_text, "rsi"), each(store_text, "rdi"))
            }
            CopyMethod::Library => format!("mov edx, {bytes}; call r13"),
        }
    }
}

/// A loop of loads and stores of `width` bytes each.
fn copy_loop(width: usize, bytes: usize, store: fn(usize, usize, &str) -> String) -> String {
    let together = TOGETHER.min(bytes / width);
    // Registers other than RCX, RSI and RDI.
    let register = |number: usize| if width == 8 { 6 + number } else { number };
    let each = |number: usize| {
        let at = |pointer: &str| format!("{pointer} + {}", number * width);
        let from = load_text(width, register(number), &at("rsi"));
        format!("{from}; {}", store(width, register(number), &at("rdi")))
    };
    let all = (0..together).map(each).collect::<Vec<_>>().join("; ");
    let step = together * width;
    format!("mov ecx, {}; 1: {all}; add rsi, {step}; add rdi, {step}; dec ecx; jnz 1b", bytes / step)
}

/// The smallest copy whose size is halved when it has two targets: without that, two targets would
/// need a larger cache than one.
const HALVED: usize = 128 << 10;

/// Copies of this many bytes, to `places` targets in turn.
fn repeat_copies(method: &CopyMethod, bytes: usize, off: [usize; 2], places: usize) -> StepLoop {
    let page = PAGE_BYTES as usize;
    let parts = if bytes < HALVED { 1 } else { places };
    let least = if bytes < LONG { 2 } else { 1 };
    let bytes = bytes / parts;
    let part = bytes.next_multiple_of(page) + page;
    let copy = |place: usize| {
        let from = 2 * place * part + off[0];
        // A load matches a store in the last 12 address bits only if that store is 63 lines older.
        let to = (2 * place + 1) * part + page - LINE + off[1];
        format!("lea rsi, [r14 + {from}]; lea rdi, [r14 + {to}]; {}", method.copy_text(bytes))
    };
    let times = if bytes < LINE { AGAIN } else { 1 };
    let all: Vec<String> = (0..places * times).map(|number| copy(number % places)).collect();
    let iterations = (CALL / bytes / places).clamp(least, COPIES) as u64;
    // The last page is the stack of a called function.
    let pages = (2 * places * part / page + 2) as u64;
    StepLoop {
        init: assemble(&format!("cld; lea rsp, [r14 + {}]", pages * PAGE_BYTES)),
        iterations,
        calls_memcpy: matches!(method, CopyMethod::Library),
        ..loop_in_pages(assemble(&all.join("; ")), places * times / parts, pages)
    }
}

/// Copies by a method, aligned or not, to one target or two. The numbers: index of the method, of
/// its alignment, and number of targets.
fn build_copies(bytes: usize, inputs: &Inputs) -> StepLoop {
    let [method, unaligned, places, _] = inputs.numbers;
    repeat_copies(&METHODS[method], bytes, if unaligned == 1 { OFF } else { [0; 2] }, places)
}

const fn copies(method: usize, unaligned: usize) -> [ProgramVariant; 2] {
    [
        ProgramVariant::built("to one place", build_copies, [""; 4], [method, unaligned, 1, 0]),
        ProgramVariant::built("to two places in turn", build_copies, [""; 4], [method, unaligned, 2, 0]),
    ]
}

/// The methods, each aligned and not aligned.
const REP_MOVSB: &[ProgramVariant] = &copies(0, 0);
const REP_MOVSB_UNALIGNED: &[ProgramVariant] = &copies(0, 1);
const REP_MOVSQ: &[ProgramVariant] = &copies(1, 0);
const BY_8: &[ProgramVariant] = &copies(2, 0);
const BY_16: &[ProgramVariant] = &copies(3, 0);
const BY_16_UNALIGNED: &[ProgramVariant] = &copies(3, 1);
const BY_32: &[ProgramVariant] = &copies(4, 0);
const BY_32_UNALIGNED: &[ProgramVariant] = &copies(4, 1);
const BY_64: &[ProgramVariant] = &copies(5, 0);
const BY_64_UNALIGNED: &[ProgramVariant] = &copies(5, 1);
const PAST_CACHES: &[ProgramVariant] = &copies(6, 0);
const ENDS_16: &[ProgramVariant] = &copies(7, 0);
const ENDS_16_UNALIGNED: &[ProgramVariant] = &copies(7, 1);
const ENDS_32: &[ProgramVariant] = &copies(8, 0);
const ENDS_32_UNALIGNED: &[ProgramVariant] = &copies(8, 1);
const BY_LIBRARY: &[ProgramVariant] = &copies(LIBRARY, 0);
const BY_LIBRARY_UNALIGNED: &[ProgramVariant] = &copies(LIBRARY, 1);

const fn copy_row(
    name: &'static str,
    bytes: usize,
    variants: &'static [ProgramVariant],
    needs: &'static [CpuidFeature],
) -> TestRow {
    TestRow::for_n(name, bytes, variants).amount(bytes as f64).requiring(needs).bounded_by("copy_rate")
}

// Copies from and to each byte of a line.

/// Bytes of these copies.
const MOVED: usize = 1 << 10;

/// Copies with the source or the target at this byte of a line. The numbers: index of the method,
/// whether it is the target, and number of targets.
fn copies_at(offset: usize, inputs: &Inputs) -> StepLoop {
    let [method, is_target, places, _] = inputs.numbers;
    repeat_copies(&METHODS[method], MOVED, if is_target == 1 { [0, offset] } else { [offset, 0] }, places)
}

const fn offset_row(
    name: &'static str,
    method: usize,
    is_target: usize,
    required_features: &'static [CpuidFeature],
) -> MapRow {
    let one = ProgramVariant::built("to one place", copies_at, [""; 4], [method, is_target, 1, 0]).family;
    let two = ProgramVariant::built("to two places in turn", copies_at, [""; 4], [method, is_target, 2, 0]).family;
    MapRow { name, first_place: 0, place_count: LINE, stride: 1, programs: [one, two], required_features }
}

pub(crate) const TESTS: &[TestSpec] = &[
    TestSpec {
        name: "copy_offsets",
        about: "what a copy of 1 KiB takes, by the byte of a line that it begins at",
        definition: "core cycles of a copy of 1 KiB in the nearest cache whose source or target begins at this byte of a \
                 line, the other one at a line's begin; the number is the least cost",
        source: FOG_TEST_PROGRAMS,
        answers: &["memcpy", "testmemcpyalign"],
        part: TestedPart::Memory,
        experiment: Experiment::CostMap(CostMapSpec {
            rows: &[
                offset_row("rep_movsb.source", 0, 0, &[]),
                offset_row("rep_movsb.target", 0, 1, &[]),
                offset_row("by_16_bytes.source", 3, 0, &[]),
                offset_row("by_16_bytes.target", 3, 1, &[]),
                offset_row("by_32_bytes.source", 4, 0, &[AVX]),
                offset_row("by_32_bytes.target", 4, 1, &[AVX]),
            ],
            tolerance: 2.0,
            tolerance_share: 0.08,
        }),
    },
    TestSpec {
        name: "library_copy_offsets",
        about: "what the C library's memcpy of 1 KiB takes, by the byte of a line that it begins at",
        definition: "core cycles of a call of the C library's memcpy that copies 1 KiB in the nearest cache, whose \
                 source or target begins at this byte of a line, the other one at a line's begin; the number is the \
                 least cost",
        source: FOG_TEST_PROGRAMS,
        answers: &["memcpy", "testmemcpyalign"],
        part: TestedPart::Memory,
        experiment: Experiment::CostMap(CostMapSpec {
            rows: &[offset_row("source", LIBRARY, 0, &[]), offset_row("target", LIBRARY, 1, &[])],
            tolerance: 2.0,
            tolerance_share: 0.08,
        }),
    },
    TestSpec {
        name: "library_copies",
        about: "how many bytes the C library's memcpy copies in a cycle, by size and alignment",
        definition: "bytes that the C library's memcpy copies in a core cycle, over and over from the same places, \
                 with its call; without alignment the source is one byte past a line's begin, and the target three",
        source: FOG_TEST_PROGRAMS,
        answers: &["memcpy", "testmemcpyalign"],
        part: TestedPart::Memory,
        experiment: Experiment::Rates(RatesSpec {
            bytes_per_n: 8,
            tolerance_share: 0.1,
            ..RatesSpec::new(
                Unit::BytesPerCycle,
                &[
                    copy_row("1_byte", 1, BY_LIBRARY, &[]),
                    copy_row("8_bytes", 8, BY_LIBRARY, &[]),
                    copy_row("24_bytes", 24, BY_LIBRARY, &[]),
                    copy_row("64_bytes", 64, BY_LIBRARY, &[]),
                    copy_row("256_bytes", 256, BY_LIBRARY, &[]),
                    copy_row("1_KiB", 1 << 10, BY_LIBRARY, &[]),
                    copy_row("4_KiB", 4 << 10, BY_LIBRARY, &[]),
                    copy_row("32_KiB", 32 << 10, BY_LIBRARY, &[]),
                    copy_row("256_KiB", 256 << 10, BY_LIBRARY, &[]),
                    copy_row("8_MiB", 8 << 20, BY_LIBRARY, &[]).in_shared_memory(),
                    copy_row("64_MiB", 64 << 20, BY_LIBRARY, &[]),
                    copy_row("64_bytes_unaligned", 64, BY_LIBRARY_UNALIGNED, &[]),
                    copy_row("1_KiB_unaligned", 1 << 10, BY_LIBRARY_UNALIGNED, &[]),
                    copy_row("4_KiB_unaligned", 4 << 10, BY_LIBRARY_UNALIGNED, &[]),
                    copy_row("256_KiB_unaligned", 256 << 10, BY_LIBRARY_UNALIGNED, &[]),
                ],
            )
        }),
    },
    TestSpec {
        name: "copy_methods",
        about: "how many bytes the core copies in a cycle, by method, size and alignment",
        definition: "bytes that one thread copies in a core cycle, over and over from the same places, each copy with \
                 the instructions before its loop; without alignment the source is one byte past a line's begin, \
                 and the target three",
        source: "A. Fog, Optimizing subroutines in assembly language (2024), memcpy; Intel 64 and IA-32 Architectures \
             Optimization Reference Manual, Enhanced REP MOVSB",
        answers: &["memcpy", "testmemcpyalign"],
        part: TestedPart::Memory,
        experiment: Experiment::Rates(RatesSpec {
            bytes_per_n: 8,
            tolerance_share: 0.1,
            ..RatesSpec::new(
                Unit::BytesPerCycle,
                &[
                    copy_row("rep_movsb.1_byte", 1, REP_MOVSB, &[]),
                    copy_row("rep_movsb.8_bytes", 8, REP_MOVSB, &[]),
                    copy_row("rep_movsb.64_bytes", 64, REP_MOVSB, &[]),
                    copy_row("rep_movsb.1_KiB", 1 << 10, REP_MOVSB, &[]),
                    copy_row("rep_movsb.4_KiB", 4 << 10, REP_MOVSB, &[]),
                    copy_row("rep_movsb.256_KiB", 256 << 10, REP_MOVSB, &[]),
                    copy_row("rep_movsb.8_MiB", 8 << 20, REP_MOVSB, &[]).in_shared_memory(),
                    copy_row("by_16_bytes.8_MiB", 8 << 20, BY_16, &[]).in_shared_memory(),
                    copy_row("by_32_bytes.8_MiB", 8 << 20, BY_32, &[AVX]).in_shared_memory(),
                    copy_row("past_caches.8_MiB", 8 << 20, PAST_CACHES, &[]).in_shared_memory(),
                    copy_row("rep_movsb.1_KiB_unaligned", 1 << 10, REP_MOVSB_UNALIGNED, &[]),
                    copy_row("rep_movsb.4_KiB_unaligned", 4 << 10, REP_MOVSB_UNALIGNED, &[]),
                    copy_row("rep_movsq.64_bytes", 64, REP_MOVSQ, &[]),
                    copy_row("rep_movsq.1_KiB", 1 << 10, REP_MOVSQ, &[]),
                    copy_row("rep_movsq.4_KiB", 4 << 10, REP_MOVSQ, &[]),
                    copy_row("rep_movsq.256_KiB", 256 << 10, REP_MOVSQ, &[]),
                    copy_row("by_8_bytes.64_bytes", 64, BY_8, &[]),
                    copy_row("by_8_bytes.1_KiB", 1 << 10, BY_8, &[]),
                    copy_row("by_8_bytes.4_KiB", 4 << 10, BY_8, &[]),
                    copy_row("by_8_bytes.256_KiB", 256 << 10, BY_8, &[]),
                    copy_row("by_16_bytes.64_bytes", 64, BY_16, &[]),
                    copy_row("by_16_bytes.1_KiB", 1 << 10, BY_16, &[]),
                    copy_row("by_16_bytes.4_KiB", 4 << 10, BY_16, &[]),
                    copy_row("by_16_bytes.256_KiB", 256 << 10, BY_16, &[]),
                    copy_row("by_16_bytes.1_KiB_unaligned", 1 << 10, BY_16_UNALIGNED, &[]),
                    copy_row("by_16_bytes.4_KiB_unaligned", 4 << 10, BY_16_UNALIGNED, &[]),
                    copy_row("by_32_bytes.64_bytes", 64, BY_32, &[AVX]),
                    copy_row("by_32_bytes.1_KiB", 1 << 10, BY_32, &[AVX]),
                    copy_row("by_32_bytes.4_KiB", 4 << 10, BY_32, &[AVX]),
                    copy_row("by_32_bytes.256_KiB", 256 << 10, BY_32, &[AVX]),
                    copy_row("by_32_bytes.1_KiB_unaligned", 1 << 10, BY_32_UNALIGNED, &[AVX]),
                    copy_row("by_32_bytes.4_KiB_unaligned", 4 << 10, BY_32_UNALIGNED, &[AVX]),
                    copy_row("by_64_bytes.64_bytes", 64, BY_64, &[AVX512F]),
                    copy_row("by_64_bytes.1_KiB", 1 << 10, BY_64, &[AVX512F]),
                    copy_row("by_64_bytes.4_KiB", 4 << 10, BY_64, &[AVX512F]),
                    copy_row("by_64_bytes.256_KiB", 256 << 10, BY_64, &[AVX512F]),
                    copy_row("by_64_bytes.1_KiB_unaligned", 1 << 10, BY_64_UNALIGNED, &[AVX512F]),
                    copy_row("by_64_bytes.4_KiB_unaligned", 4 << 10, BY_64_UNALIGNED, &[AVX512F]),
                    copy_row("head_and_tail.24_bytes", 24, ENDS_16, &[]),
                    copy_row("head_and_tail.24_bytes_unaligned", 24, ENDS_16_UNALIGNED, &[]),
                    copy_row("head_and_tail.48_bytes", 48, ENDS_32, &[AVX]),
                    copy_row("head_and_tail.48_bytes_unaligned", 48, ENDS_32_UNALIGNED, &[AVX]),
                    copy_row("past_caches.1_KiB", 1 << 10, PAST_CACHES, &[]),
                    copy_row("past_caches.4_KiB", 4 << 10, PAST_CACHES, &[]),
                    copy_row("past_caches.256_KiB", 256 << 10, PAST_CACHES, &[]),
                ],
            )
        }),
    },
];
