//! Bytes read, written and copied per cycle, by the size of the memory.

use crate::spec::*;
use cyclescope_code::program::memory::{
    AreaFill, AreaPointer, MemoryArea, PAGE_BYTES, PagePresence, PointerPosition, ProgramMemory, StoreLifetime,
};
use iced_x86::CpuidFeature::{AVX, AVX512F};

/// Bytes per iteration.
const BLOCK: usize = 1024;
/// Bytes of the shorter call.
const CALL: usize = 256 << 10;

/// Share by which equal rates may differ: other CPUs use the distant levels too.
const APART: f64 = 0.1;

/// The order in which a program accesses memory.
struct StreamCourse {
    /// Number of streams, each with its own part of the memory. They take turns after some lines
    /// each: a core may store faster to one line repeatedly than to several lines in turn.
    streams: usize,
    /// Whether it goes from the last byte to the first.
    down: bool,
}

/// The courses; programs refer to them by index.
const COURSES: [StreamCourse; 4] = [
    StreamCourse { streams: 1, down: false },
    StreamCourse { streams: 1, down: true },
    StreamCourse { streams: 8, down: false },
    StreamCourse { streams: 16, down: false },
];

/// What a program does with a register at an address and an offset.
#[derive(Clone, Copy)]
enum StreamAction {
    Read,
    Write,
    /// Non-temporal stores, which bypass the caches.
    WritePast,
    /// Copies the first half to the other half, displaced by almost a line. So a load matches a
    /// store in the last 12 address bits only if that store is 63 lines older.
    Copy,
}

impl StreamAction {
    fn text(self, width: usize, register: usize, pointer: &str, offset: usize, bytes: usize) -> String {
        let at = format!("{pointer} + {offset}");
        match self {
            StreamAction::Read => load_text(width, register, &at),
            StreamAction::Write => store_text(width, register, &at),
            StreamAction::WritePast => nontemporal_store_text(width, register, &at),
            StreamAction::Copy => {
                let to = bytes / 2 + PAGE_BYTES as usize - LINE + offset;
                format!(
                    "{}; {}",
                    load_text(width, register, &at),
                    store_text(width, register, &format!("{pointer} + {to}"))
                )
            }
        }
    }
}

/// Goes through the first `gone` of all bytes repeatedly. Each call continues where the last one
/// stopped. A step is a line.
fn stream_loop(gone: usize, bytes: usize, width: usize, course: &StreamCourse, action: StreamAction) -> StepLoop {
    // R14 points to the memory, and R13 to a cell with the position in the first part. RBP holds
    // the position as an address; no timing method changes it. R12 is the end of the part. A
    // program with other streams may have left a larger position. RDI falls as RBP rises.
    let part = gone / course.streams;
    let block = BLOCK / course.streams;
    let together = block / width;
    let each = |number: usize| {
        let offset = number / together * part + number % together * width;
        match course.down {
            true => action.text(width, number, "rdi", block - width - offset, bytes),
            false => action.text(width, number, "rbp", offset, bytes),
        }
    };
    let all: Vec<String> = (0..BLOCK / width).map(each).collect();
    let place = if course.down { "mov rdi, r11; sub rdi, rbp; " } else { "" };
    let next = format!("add rbp, {block}; cmp rbp, r12; cmovae rbp, r14");
    let kept = |area: MemoryArea, register| MemoryArea {
        lifetime: StoreLifetime::Kept,
        present: PagePresence::Everywhere,
        pointer: Some(AreaPointer { register, at: PointerPosition::Start }),
        ..area
    };
    let memory = MemoryArea::new(bytes as u64 + PAGE_BYTES, AreaFill::Bytes(vec![1]));
    let cell = MemoryArea::new(PAGE_BYTES, AreaFill::Image(vec![0; 8]));
    let bound = "cmp rbp, r12; cmovae rbp, r14; cmp rbp, r14; cmovb rbp, r14";
    let last = format!("lea r11, [r14 + {}]; add r11, r14", part - block);
    StepLoop {
        init: assemble(&format!("mov rbp, [r13]; lea r12, [r14 + {part}]; {bound}; {last}")),
        body: assemble(&format!("{place}{}; {next}", all.join("; "))),
        following: assemble("mov [r13], rbp"),
        steps_per_iteration: BLOCK / LINE,
        iterations: (CALL / BLOCK) as u64,
        memory: ProgramMemory { areas: vec![kept(memory, 14), kept(cell, 13)], ..ProgramMemory::default() },
        calls_memcpy: false,
    }
}

/// The numbers: the width, the index of the course, and the index of the action.
fn build_stream(bytes: usize, inputs: &Inputs) -> StepLoop {
    let [width, course, action, _] = inputs.numbers;
    let action = ACTIONS[action];
    let gone = if matches!(action, StreamAction::Copy) { bytes / 2 } else { bytes };
    stream_loop(gone, bytes, width, &COURSES[course], action)
}

/// The actions; programs refer to them by index.
const ACTIONS: [StreamAction; 4] =
    [StreamAction::Read, StreamAction::Write, StreamAction::WritePast, StreamAction::Copy];

/// An action in all courses, with vectors of 32 bytes if the CPU has AVX, or else of 16.
const fn streams(action: StreamAction) -> [ProgramVariant; 8] {
    [
        stream(16, 0, action).excluding(AVX),
        stream(16, 1, action).excluding(AVX),
        stream(16, 2, action).excluding(AVX),
        stream(16, 3, action).excluding(AVX),
        stream(32, 0, action).requiring(&[AVX]),
        stream(32, 1, action).requiring(&[AVX]),
        stream(32, 2, action).requiring(&[AVX]),
        stream(32, 3, action).requiring(&[AVX]),
    ]
}

const fn stream(width: usize, course: usize, action: StreamAction) -> ProgramVariant {
    let name = ["upwards", "downwards", "eight streams", "sixteen streams"][course];
    ProgramVariant::built(name, build_stream, [""; 4], [width, course, action as usize, 0])
}

/// A row for this many bytes.
const fn bandwidth_row(name: &'static str, n: usize, variants: &'static [ProgramVariant]) -> TestRow {
    TestRow::for_n(name, n, variants).amount(LINE as f64)
}

/// Rows from memory that fits every first cache to memory that exceeds most last caches.
const fn bandwidth_rows(variants: &'static [ProgramVariant]) -> [TestRow; 5] {
    [
        bandwidth_row("16_KiB", 16 << 10, variants),
        bandwidth_row("128_KiB", 128 << 10, variants),
        bandwidth_row("1_MiB", 1 << 20, variants),
        bandwidth_row("8_MiB", 8 << 20, variants).in_shared_memory(),
        bandwidth_row("64_MiB", 64 << 20, variants).in_shared_memory(),
    ]
}

/// An action with registers of one width, in three courses.
const fn streams_of_width(width: usize, action: StreamAction) -> [ProgramVariant; 3] {
    [stream(width, 0, action), stream(width, 1, action), stream(width, 2, action)]
}

const READ_16: &[ProgramVariant] = &streams_of_width(16, StreamAction::Read);
const READ_32: &[ProgramVariant] = &streams_of_width(32, StreamAction::Read);
const READ_64: &[ProgramVariant] = &streams_of_width(64, StreamAction::Read);
const WRITE_16: &[ProgramVariant] = &streams_of_width(16, StreamAction::Write);
const WRITE_32: &[ProgramVariant] = &streams_of_width(32, StreamAction::Write);
const WRITE_64: &[ProgramVariant] = &streams_of_width(64, StreamAction::Write);
/// Bytes that second caches hold, and bytes that only third ones do.
const SECOND: usize = 128 << 10;
const THIRD: usize = 4 << 20;

const fn bandwidth_test(
    name: &'static str,
    about: &'static str,
    definition: &'static str,
    answers: &'static [&'static str],
    rows: &'static [TestRow],
) -> TestSpec {
    TestSpec {
        name,
        about,
        definition,
        source: "J. McCalpin, Memory Bandwidth and Machine Balance in Current High Performance Computers (1995)",
        answers,
        part: TestedPart::Memory,
        experiment: Experiment::Rates(RatesSpec {
            bytes_per_n: 1,
            tolerance_share: APART,
            ..RatesSpec::new(Unit::BytesPerCycle, rows)
        }),
    }
}

pub(crate) const TESTS: &[TestSpec] = &[
    bandwidth_test(
        "read_bandwidth",
        "how many bytes the core reads in a cycle, by how much memory they are of",
        "bytes that one thread loads in a core cycle, of that much memory over and over in the order of addresses, \
         in one stream to sixteen; vectors of 32 bytes where the CPU has AVX, else of 16",
        &["cache_throughput", "read_write_bandwidth"],
        &bandwidth_rows(&streams(StreamAction::Read)),
    ),
    bandwidth_test(
        "write_bandwidth",
        "how many bytes the core writes in a cycle, by how much memory they are of",
        "bytes that one thread stores in a core cycle, of that much memory over and over in the order of addresses, \
         in one stream to sixteen; vectors of 32 bytes where the CPU has AVX, else of 16",
        &["read_write_bandwidth"],
        &bandwidth_rows(&streams(StreamAction::Write)),
    ),
    bandwidth_test(
        "copy_bandwidth",
        "how many bytes the core copies in a cycle, by how much memory they are of",
        "bytes that one thread loads and stores again in a core cycle; half of the memory is read, and the other \
         half written, of that much memory over and over in the order of addresses, in one stream to sixteen; \
         vectors of 32 bytes where the CPU has AVX, else of 16",
        &[],
        &bandwidth_rows(&streams(StreamAction::Copy)),
    ),
    bandwidth_test(
        "nt_write_bandwidth",
        "how many bytes the core writes past the caches in a cycle, with non-temporal stores",
        "bytes that one thread stores past the caches in a core cycle, with non-temporal stores, of that much \
         memory over and over in the order of addresses, in one stream to sixteen; vectors of 32 bytes where the \
         CPU has AVX, else of 16",
        &["read_write_bandwidth"],
        &bandwidth_rows(&streams(StreamAction::WritePast)),
    ),
    bandwidth_test(
        "cache_width",
        "how many bytes the core reads or writes in a cycle beyond the first cache, by the width of its registers",
        "bytes that one thread loads or stores in a core cycle with registers of this many bytes, of 128 KiB, which \
         second caches hold, or of 4 MiB, which third ones do, over and over in the order of addresses, in one stream or eight",
        &["cache_throughput"],
        &[
            bandwidth_row("read_16_bytes.128_KiB", SECOND, READ_16),
            bandwidth_row("read_32_bytes.128_KiB", SECOND, READ_32).requiring(&[AVX]),
            bandwidth_row("read_64_bytes.128_KiB", SECOND, READ_64).requiring(&[AVX512F]),
            bandwidth_row("write_16_bytes.128_KiB", SECOND, WRITE_16),
            bandwidth_row("write_32_bytes.128_KiB", SECOND, WRITE_32).requiring(&[AVX]),
            bandwidth_row("write_64_bytes.128_KiB", SECOND, WRITE_64).requiring(&[AVX512F]),
            bandwidth_row("read_16_bytes.4_MiB", THIRD, READ_16).in_shared_memory(),
            bandwidth_row("read_32_bytes.4_MiB", THIRD, READ_32).requiring(&[AVX]).in_shared_memory(),
            bandwidth_row("read_64_bytes.4_MiB", THIRD, READ_64).requiring(&[AVX512F]).in_shared_memory(),
            bandwidth_row("write_16_bytes.4_MiB", THIRD, WRITE_16).in_shared_memory(),
            bandwidth_row("write_32_bytes.4_MiB", THIRD, WRITE_32).requiring(&[AVX]).in_shared_memory(),
            bandwidth_row("write_64_bytes.4_MiB", THIRD, WRITE_64).requiring(&[AVX512F]).in_shared_memory(),
        ],
    ),
];
