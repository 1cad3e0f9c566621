//! Bytes that are read, written and copied in a cycle, by how much memory they are of.

use crate::test::moves::{load, store, store_past};
use crate::test::rate::{Rates, Row, Way};
use crate::test::walk::{LINE, Steps, code};
use crate::test::{Look, Part, Test};
use cyclescope_code::program::memory::{Area, At, Fill, Lifetime, Memory, PAGE, Pointer, Present};
use cyclescope_core::unit::Unit;
use iced_x86::CpuidFeature::AVX;

/// Bytes of an iteration, and of the shorter call.
const BLOCK: usize = 1024;
const CALL: usize = 256 << 10;

/// Share by which rates may differ that are the same: what is far from the core others use too.
const APART: f64 = 0.1;

/// How a program goes through memory.
struct Course {
    /// Streams that each have their part. One follows the other, some lines of each: a core may store to a line more often than to one and
    /// another in turn.
    streams: usize,
    /// From the last byte to the first.
    down: bool,
}

/// The courses, by the numbers that programs have.
const COURSES: [Course; 4] = [
    Course { streams: 1, down: false },
    Course { streams: 1, down: true },
    Course { streams: 8, down: false },
    Course { streams: 16, down: false },
];

/// What is done with so many bytes of a register, at this address, where all memory is so large.
type Doing = fn(width: usize, register: usize, address: &str, offset: usize, bytes: usize) -> String;

/// Goes through the first bytes of so many over and over, each call where the last one stopped. A step is a line.
fn through(gone: usize, bytes: usize, width: usize, course: &Course, doing: Doing) -> Steps {
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
    let kept = |area: Area, register| Area {
        lifetime: Lifetime::Kept,
        present: Present::Everywhere,
        pointer: Some(Pointer { register, at: At::Start }),
        ..area
    };
    let memory = Area::new(bytes as u64 + PAGE, Fill::Bytes(vec![1]));
    let cell = Area::new(PAGE, Fill::Image(vec![0; 8]));
    let bound = "cmp rbp, r12; cmovae rbp, r14; cmp rbp, r14; cmovb rbp, r14";
    let last = format!("lea r11, [r14 + {}]; add r11, r14", part - block);
    Steps {
        init: code(&format!("mov rbp, [r13]; lea r12, [r14 + {part}]; {bound}; {last}")),
        body: code(&format!("{place}{}; {next}", all.join("; "))),
        following: code("mov [r13], rbp"),
        steps: BLOCK / LINE,
        iterations: (CALL / BLOCK) as u64,
        memory: Memory { areas: vec![kept(memory, 14), kept(cell, 13)], ..Memory::default() },
    }
}

fn read<const WIDTH: usize, const COURSE: usize>(bytes: usize) -> Steps {
    let doing: Doing = |width, register, at, offset, _| load(width, register, &format!("{at} + {offset}"));
    through(bytes, bytes, WIDTH, &COURSES[COURSE], doing)
}

fn write<const WIDTH: usize, const COURSE: usize>(bytes: usize) -> Steps {
    let doing: Doing = |width, register, at, offset, _| store(width, register, &format!("{at} + {offset}"));
    through(bytes, bytes, WIDTH, &COURSES[COURSE], doing)
}

fn write_past<const WIDTH: usize, const COURSE: usize>(bytes: usize) -> Steps {
    let doing: Doing =
        |width, register, at, offset, _| store_past(width, register, &format!("{at} + {offset}"));
    through(bytes, bytes, WIDTH, &COURSES[COURSE], doing)
}

/// From the first half to the other one, a line less than a page behind it: a load's address is that of a store in its last 12 bits only where
/// that store is 63 lines older.
fn copy<const WIDTH: usize, const COURSE: usize>(bytes: usize) -> Steps {
    let doing: Doing = |width, register, at, offset, bytes| {
        let from = load(width, register, &format!("{at} + {offset}"));
        let to = bytes / 2 + PAGE as usize - LINE + offset;
        format!("{from}; {}", store(width, register, &format!("{at} + {to}")))
    };
    through(bytes / 2, bytes, WIDTH, &COURSES[COURSE], doing)
}

const UP: &str = "upwards";
const DOWN: &str = "downwards";
const EIGHT: &str = "eight streams";
const SIXTEEN: &str = "sixteen streams";

/// A row for so many bytes.
const fn row(name: &'static str, n: usize, ways: &'static [Way]) -> Row {
    Row::new(name, n, LINE as f64, ways)
}

/// Rows from what is in every first cache to what is in few last ones.
const fn rows(ways: &'static [Way]) -> [Row; 5] {
    [
        row("16_KiB", 16 << 10, ways),
        row("128_KiB", 128 << 10, ways),
        row("1_MiB", 1 << 20, ways),
        row("8_MiB", 8 << 20, ways),
        row("64_MiB", 64 << 20, ways),
    ]
}

const fn bandwidth(
    name: &'static str,
    about: &'static str,
    definition: &'static str,
    rows: &'static [Row],
) -> Test {
    Test {
        name,
        about,
        definition,
        source: "J. McCalpin, Memory Bandwidth and Machine Balance in Current High Performance Computers (1995)",
        part: Part::Memory,
        look: Look::Rates(Rates {
            rows,
            unit: Unit::BytesPerCycle,
            bytes: 1,
            apart: APART,
            alone: false,
            within: None,
        }),
    }
}

const READ_WAYS: &[Way] = &[
    Way::plain(UP, read::<16, 0>).unless(AVX),
    Way::plain(DOWN, read::<16, 1>).unless(AVX),
    Way::plain(EIGHT, read::<16, 2>).unless(AVX),
    Way::plain(SIXTEEN, read::<16, 3>).unless(AVX),
    Way::plain(UP, read::<32, 0>).needing(&[AVX]),
    Way::plain(DOWN, read::<32, 1>).needing(&[AVX]),
    Way::plain(EIGHT, read::<32, 2>).needing(&[AVX]),
    Way::plain(SIXTEEN, read::<32, 3>).needing(&[AVX]),
];

const WRITE_WAYS: &[Way] = &[
    Way::plain(UP, write::<16, 0>).unless(AVX),
    Way::plain(DOWN, write::<16, 1>).unless(AVX),
    Way::plain(EIGHT, write::<16, 2>).unless(AVX),
    Way::plain(SIXTEEN, write::<16, 3>).unless(AVX),
    Way::plain(UP, write::<32, 0>).needing(&[AVX]),
    Way::plain(DOWN, write::<32, 1>).needing(&[AVX]),
    Way::plain(EIGHT, write::<32, 2>).needing(&[AVX]),
    Way::plain(SIXTEEN, write::<32, 3>).needing(&[AVX]),
];

const COPY_WAYS: &[Way] = &[
    Way::plain(UP, copy::<16, 0>).unless(AVX),
    Way::plain(DOWN, copy::<16, 1>).unless(AVX),
    Way::plain(EIGHT, copy::<16, 2>).unless(AVX),
    Way::plain(SIXTEEN, copy::<16, 3>).unless(AVX),
    Way::plain(UP, copy::<32, 0>).needing(&[AVX]),
    Way::plain(DOWN, copy::<32, 1>).needing(&[AVX]),
    Way::plain(EIGHT, copy::<32, 2>).needing(&[AVX]),
    Way::plain(SIXTEEN, copy::<32, 3>).needing(&[AVX]),
];

const WRITE_PAST_WAYS: &[Way] = &[
    Way::plain(UP, write_past::<16, 0>).unless(AVX),
    Way::plain(DOWN, write_past::<16, 1>).unless(AVX),
    Way::plain(EIGHT, write_past::<16, 2>).unless(AVX),
    Way::plain(SIXTEEN, write_past::<16, 3>).unless(AVX),
    Way::plain(UP, write_past::<32, 0>).needing(&[AVX]),
    Way::plain(DOWN, write_past::<32, 1>).needing(&[AVX]),
    Way::plain(EIGHT, write_past::<32, 2>).needing(&[AVX]),
    Way::plain(SIXTEEN, write_past::<32, 3>).needing(&[AVX]),
];

pub(crate) const READ: Test = bandwidth(
    "read_bandwidth",
    "how many bytes the core reads in a cycle, by how much memory they are of",
    "bytes that one thread loads in a core cycle, of that much memory over and over in the order of addresses, in one stream to sixteen; vectors of 32 bytes where the CPU has AVX, else of 16",
    &rows(READ_WAYS),
);

pub(crate) const WRITE: Test = bandwidth(
    "write_bandwidth",
    "how many bytes the core writes in a cycle, by how much memory they are of",
    "bytes that one thread stores in a core cycle, of that much memory over and over in the order of addresses, in one stream to sixteen; vectors of 32 bytes where the CPU has AVX, else of 16",
    &rows(WRITE_WAYS),
);

pub(crate) const COPY: Test = bandwidth(
    "copy_bandwidth",
    "how many bytes the core copies in a cycle, by how much memory they are of",
    "bytes that one thread loads and stores again in a core cycle; half of the memory is read, and the other half written, of that much memory over and over in the order of addresses, in one stream to sixteen; vectors of 32 bytes where the CPU has AVX, else of 16",
    &rows(COPY_WAYS),
);

pub(crate) const WRITE_PAST: Test = bandwidth(
    "nt_write_bandwidth",
    "how many bytes the core writes past the caches in a cycle, with non-temporal stores",
    "bytes that one thread stores past the caches in a core cycle, with non-temporal stores, of that much memory over and over in the order of addresses, in one stream to sixteen; vectors of 32 bytes where the CPU has AVX, else of 16",
    &rows(WRITE_PAST_WAYS),
);
