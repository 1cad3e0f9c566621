//! Instructions that move data between registers and memory, by width in bytes.

use super::program::ProgramVariant;
use super::rate::TestRow;
use iced_x86::CpuidFeature::{self, AVX, AVX512F};

/// General registers that programs without chains may change: no pointers and no loop counters.
const GENERAL_REGISTERS: [&str; 11] = ["rax", "rcx", "rdx", "rbx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12"];
/// Vector registers in all encodings.
const VECTOR_REGISTERS: usize = 16;

/// A load of 8, 16, 32 or 64 bytes. The register's number is taken modulo the number of registers.
pub(crate) fn load_text(width: usize, register: usize, address: &str) -> String {
    let (name, _) = move_mnemonics(width);
    format!("{name} {}, [{address}]", register_name(width, register))
}

/// A store of 8, 16, 32 or 64 bytes.
pub(crate) fn store_text(width: usize, register: usize, address: &str) -> String {
    let (name, _) = move_mnemonics(width);
    format!("{name} [{address}], {}", register_name(width, register))
}

/// A non-temporal store, which bypasses the caches.
pub(crate) fn nontemporal_store_text(width: usize, register: usize, address: &str) -> String {
    let (_, name) = move_mnemonics(width);
    format!("{name} [{address}], {}", register_name(width, register))
}

/// A row of programs that move this many bytes at once, for CPUs with registers of that width.
pub(crate) const fn width_row(name: &'static str, width: usize, variants: &'static [ProgramVariant]) -> TestRow {
    TestRow::for_n(name, width, variants).requiring(features_of_width(width))
}

/// CPU features for registers of this width.
const fn features_of_width(width: usize) -> &'static [CpuidFeature] {
    match width {
        32 => &[AVX],
        64 => &[AVX512F],
        _ => &[],
    }
}

/// Mnemonics of a move and of a non-temporal store.
fn move_mnemonics(width: usize) -> (&'static str, &'static str) {
    match width {
        8 => ("mov", "movnti"),
        16 => ("movups", "movntps"),
        _ => ("vmovups", "vmovntps"),
    }
}

fn register_name(width: usize, register: usize) -> String {
    let number = register % VECTOR_REGISTERS;
    match width {
        8 => GENERAL_REGISTERS[register % GENERAL_REGISTERS.len()].to_string(),
        16 => format!("xmm{number}"),
        32 => format!("ymm{number}"),
        64 => format!("zmm{number}"),
        _ => unreachable!("no test moves {width} bytes"),
    }
}
