//! Instructions that move data between registers and memory, by width in bytes.

use super::rate::{Row, Way};
use super::walk::{Steps, straight};
use cyclescope_code::program::memory::{Area, At, Fill, Lifetime, Memory, PAGE, Pointer, Present};
use iced_x86::CpuidFeature::{self, AVX, AVX512F};

/// A loop over code that moves data to and from so many pages, to whose first byte R14 points.
pub(crate) fn in_pages(body: Vec<u8>, steps: usize, pages: u64) -> Steps {
    let area = Area {
        lifetime: Lifetime::Kept,
        present: Present::Everywhere,
        pointer: Some(Pointer { register: 14, at: At::Start }),
        ..Area::new(pages * PAGE, Fill::Bytes(vec![1]))
    };
    Steps { memory: Memory { areas: vec![area], ..Memory::default() }, ..straight(body, steps) }
}

/// General registers that programs without chains may change: neither pointers nor the place in a loop.
const GENERAL: [&str; 11] = ["rax", "rcx", "rdx", "rbx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12"];
/// Vector registers that all encodings have.
const VECTORS: usize = 16;

/// A load of 8, 16, 32 or 64 bytes from an address into a register of this number, modulo those that there are.
pub(crate) fn load(width: usize, register: usize, address: &str) -> String {
    let (name, _) = moving(width);
    format!("{name} {}, [{address}]", named(width, register))
}

/// A store.
pub(crate) fn store(width: usize, register: usize, address: &str) -> String {
    let (name, _) = moving(width);
    format!("{name} [{address}], {}", named(width, register))
}

/// A store that goes past the caches.
pub(crate) fn store_past(width: usize, register: usize, address: &str) -> String {
    let (_, name) = moving(width);
    format!("{name} [{address}], {}", named(width, register))
}

/// A row of programs that move so many bytes at once, where the CPU has registers of that width.
pub(crate) const fn moving_row(name: &'static str, width: usize, ways: &'static [Way]) -> Row {
    Row::new(name, width, 1.0, ways).needing(needs(width))
}

/// The features that registers of this width need.
const fn needs(width: usize) -> &'static [CpuidFeature] {
    match width {
        32 => &[AVX],
        64 => &[AVX512F],
        _ => &[],
    }
}

/// The instruction, and the one that goes past the caches.
fn moving(width: usize) -> (&'static str, &'static str) {
    match width {
        8 => ("mov", "movnti"),
        16 => ("movups", "movntps"),
        _ => ("vmovups", "vmovntps"),
    }
}

fn named(width: usize, register: usize) -> String {
    let number = register % VECTORS;
    match width {
        8 => GENERAL[register % GENERAL.len()].to_string(),
        16 => format!("xmm{number}"),
        32 => format!("ymm{number}"),
        64 => format!("zmm{number}"),
        _ => unreachable!("no test moves {width} bytes"),
    }
}
