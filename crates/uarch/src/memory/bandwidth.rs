//! Bytes that are read, written and copied in a cycle, by how much memory they are of.

use crate::spec::data_moves::{load_text, nontemporal_store_text, store_text};
use crate::spec::program_family::{LINE, StepLoop, assemble};
use crate::spec::rate::{ProgramVariant, RatesSpec, TestRow};
use crate::spec::{Experiment, TestSpec, TestedPart};
use cyclescope_code::program::memory::{
    AreaFill, AreaPointer, MemoryArea, PAGE_BYTES, PagePresence, PointerPosition, ProgramMemory, StoreLifetime,
};
use cyclescope_core::unit::Unit;
use iced_x86::CpuidFeature::AVX;

/// Bytes of an iteration, and of the shorter call.
const BLOCK: usize = 1024;
const CALL: usize = 256 << 10;

/// Share by which rates may differ that are the same: what is far from the core others use too.
const APART: f64 = 0.1;

/// How a program goes through memory.
struct StreamCourse {
    /// Streams that each have their part. One follows the other, some lines of each: a core may store to a line more often than to one and
    /// another in turn.
    streams: usize,
    /// From the last byte to the first.
    down: bool,
}

/// The courses, by the numbers that programs have.
const COURSES: [StreamCourse; 4] = [
    StreamCourse { streams: 1, down: false },
    StreamCourse { streams: 1, down: true },
    StreamCourse { streams: 8, down: false },
    StreamCourse { streams: 16, down: false },
];

/// What is done with so many bytes of a register, at this address, where all memory is so large.
type StreamAction = fn(width: usize, register: usize, address: &str, offset: usize, bytes: usize) -> String;

/// Goes through the first bytes of so many over and over, each call where the last one stopped. A step is a line.
fn stream_loop(gone: usize, bytes: usize, width: usize, course: &StreamCourse, doing: StreamAction) -> StepLoop {
    // R14 points to the memory and R13 to a cell with the way gone in the first part; RBP holds it as an address, which no clock changes, and R12
    // is the end of the part. A program of other streams may have left a way that is longer. RDI goes down as RBP goes up.
    let part = gone / course.streams;
    let block = BLOCK / course.streams;
    let together = block / width;
    let each = |number: usize| {
        let offset = number / together * part + number % together * width;
        match course.down {
            true => doing(width, number, "rdi", block - width - offset, bytes),
            false => doing(width, number, "rbp", offset, bytes),
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
    }
}

fn read_stream<const WIDTH: usize, const COURSE: usize>(bytes: usize) -> StepLoop {
    let doing: StreamAction = |width, register, at, offset, _| load_text(width, register, &format!("{at} + {offset}"));
    stream_loop(bytes, bytes, WIDTH, &COURSES[COURSE], doing)
}

fn write_stream<const WIDTH: usize, const COURSE: usize>(bytes: usize) -> StepLoop {
    let doing: StreamAction = |width, register, at, offset, _| store_text(width, register, &format!("{at} + {offset}"));
    stream_loop(bytes, bytes, WIDTH, &COURSES[COURSE], doing)
}

fn write_nontemporal<const WIDTH: usize, const COURSE: usize>(bytes: usize) -> StepLoop {
    let doing: StreamAction =
        |width, register, at, offset, _| nontemporal_store_text(width, register, &format!("{at} + {offset}"));
    stream_loop(bytes, bytes, WIDTH, &COURSES[COURSE], doing)
}

/// From the first half to the other one, a line less than a page behind it: a load's address is that of a store in its last 12 bits only where
/// that store is 63 lines older.
fn copy_stream<const WIDTH: usize, const COURSE: usize>(bytes: usize) -> StepLoop {
    let doing: StreamAction = |width, register, at, offset, bytes| {
        let from = load_text(width, register, &format!("{at} + {offset}"));
        let to = bytes / 2 + PAGE_BYTES as usize - LINE + offset;
        format!("{from}; {}", store_text(width, register, &format!("{at} + {to}")))
    };
    stream_loop(bytes / 2, bytes, WIDTH, &COURSES[COURSE], doing)
}

const UP: &str = "upwards";
const DOWN: &str = "downwards";
const EIGHT: &str = "eight streams";
const SIXTEEN: &str = "sixteen streams";

/// A row for so many bytes.
const fn bandwidth_row(name: &'static str, n: usize, ways: &'static [ProgramVariant]) -> TestRow {
    TestRow::new(name, n, LINE as f64, ways)
}

/// Rows from what is in every first cache to what is in few last ones.
const fn bandwidth_rows(ways: &'static [ProgramVariant]) -> [TestRow; 5] {
    [
        bandwidth_row("16_KiB", 16 << 10, ways),
        bandwidth_row("128_KiB", 128 << 10, ways),
        bandwidth_row("1_MiB", 1 << 20, ways),
        bandwidth_row("8_MiB", 8 << 20, ways),
        bandwidth_row("64_MiB", 64 << 20, ways),
    ]
}

const fn bandwidth_test(
    name: &'static str,
    about: &'static str,
    definition: &'static str,
    rows: &'static [TestRow],
) -> TestSpec {
    TestSpec {
        name,
        about,
        definition,
        source: "J. McCalpin, Memory Bandwidth and Machine Balance in Current High Performance Computers (1995)",
        part: TestedPart::Memory,
        experiment: Experiment::Rates(RatesSpec {
            rows,
            unit: Unit::BytesPerCycle,
            bytes_per_n: 1,
            tolerance_share: APART,
            allow_outlier: false,
            required_entries: None,
        }),
    }
}

const READ_WAYS: &[ProgramVariant] = &[
    ProgramVariant::new(UP, read_stream::<16, 0>).excluding(AVX),
    ProgramVariant::new(DOWN, read_stream::<16, 1>).excluding(AVX),
    ProgramVariant::new(EIGHT, read_stream::<16, 2>).excluding(AVX),
    ProgramVariant::new(SIXTEEN, read_stream::<16, 3>).excluding(AVX),
    ProgramVariant::new(UP, read_stream::<32, 0>).requiring(&[AVX]),
    ProgramVariant::new(DOWN, read_stream::<32, 1>).requiring(&[AVX]),
    ProgramVariant::new(EIGHT, read_stream::<32, 2>).requiring(&[AVX]),
    ProgramVariant::new(SIXTEEN, read_stream::<32, 3>).requiring(&[AVX]),
];

const WRITE_WAYS: &[ProgramVariant] = &[
    ProgramVariant::new(UP, write_stream::<16, 0>).excluding(AVX),
    ProgramVariant::new(DOWN, write_stream::<16, 1>).excluding(AVX),
    ProgramVariant::new(EIGHT, write_stream::<16, 2>).excluding(AVX),
    ProgramVariant::new(SIXTEEN, write_stream::<16, 3>).excluding(AVX),
    ProgramVariant::new(UP, write_stream::<32, 0>).requiring(&[AVX]),
    ProgramVariant::new(DOWN, write_stream::<32, 1>).requiring(&[AVX]),
    ProgramVariant::new(EIGHT, write_stream::<32, 2>).requiring(&[AVX]),
    ProgramVariant::new(SIXTEEN, write_stream::<32, 3>).requiring(&[AVX]),
];

const COPY_WAYS: &[ProgramVariant] = &[
    ProgramVariant::new(UP, copy_stream::<16, 0>).excluding(AVX),
    ProgramVariant::new(DOWN, copy_stream::<16, 1>).excluding(AVX),
    ProgramVariant::new(EIGHT, copy_stream::<16, 2>).excluding(AVX),
    ProgramVariant::new(SIXTEEN, copy_stream::<16, 3>).excluding(AVX),
    ProgramVariant::new(UP, copy_stream::<32, 0>).requiring(&[AVX]),
    ProgramVariant::new(DOWN, copy_stream::<32, 1>).requiring(&[AVX]),
    ProgramVariant::new(EIGHT, copy_stream::<32, 2>).requiring(&[AVX]),
    ProgramVariant::new(SIXTEEN, copy_stream::<32, 3>).requiring(&[AVX]),
];

const WRITE_PAST_WAYS: &[ProgramVariant] = &[
    ProgramVariant::new(UP, write_nontemporal::<16, 0>).excluding(AVX),
    ProgramVariant::new(DOWN, write_nontemporal::<16, 1>).excluding(AVX),
    ProgramVariant::new(EIGHT, write_nontemporal::<16, 2>).excluding(AVX),
    ProgramVariant::new(SIXTEEN, write_nontemporal::<16, 3>).excluding(AVX),
    ProgramVariant::new(UP, write_nontemporal::<32, 0>).requiring(&[AVX]),
    ProgramVariant::new(DOWN, write_nontemporal::<32, 1>).requiring(&[AVX]),
    ProgramVariant::new(EIGHT, write_nontemporal::<32, 2>).requiring(&[AVX]),
    ProgramVariant::new(SIXTEEN, write_nontemporal::<32, 3>).requiring(&[AVX]),
];

pub(crate) const READ: TestSpec = bandwidth_test(
    "read_bandwidth",
    "how many bytes the core reads in a cycle, by how much memory they are of",
    "bytes that one thread loads in a core cycle, of that much memory over and over in the order of addresses, in one stream to sixteen; vectors of 32 bytes where the CPU has AVX, else of 16",
    &bandwidth_rows(READ_WAYS),
);

pub(crate) const WRITE: TestSpec = bandwidth_test(
    "write_bandwidth",
    "how many bytes the core writes in a cycle, by how much memory they are of",
    "bytes that one thread stores in a core cycle, of that much memory over and over in the order of addresses, in one stream to sixteen; vectors of 32 bytes where the CPU has AVX, else of 16",
    &bandwidth_rows(WRITE_WAYS),
);

pub(crate) const COPY: TestSpec = bandwidth_test(
    "copy_bandwidth",
    "how many bytes the core copies in a cycle, by how much memory they are of",
    "bytes that one thread loads and stores again in a core cycle; half of the memory is read, and the other half written, of that much memory over and over in the order of addresses, in one stream to sixteen; vectors of 32 bytes where the CPU has AVX, else of 16",
    &bandwidth_rows(COPY_WAYS),
);

pub(crate) const WRITE_PAST: TestSpec = bandwidth_test(
    "nt_write_bandwidth",
    "how many bytes the core writes past the caches in a cycle, with non-temporal stores",
    "bytes that one thread stores past the caches in a core cycle, with non-temporal stores, of that much memory over and over in the order of addresses, in one stream to sixteen; vectors of 32 bytes where the CPU has AVX, else of 16",
    &bandwidth_rows(WRITE_PAST_WAYS),
);
