//! What a load from the nearest cache takes, by how its address is made and by where it goes.

use crate::test::moves::in_pages;
use crate::test::rate::{Rates, Row, Way};
use crate::test::walk::{Steps, code};
use crate::test::{Look, Part, Test};
use cyclescope_core::unit::Unit;
use iced_x86::CpuidFeature::{AVX, AVX512F};

/// Cells that the loads go round, and loads of an iteration.
const CELLS: usize = 8;
const LOADS: usize = 32;
/// Where the cells begin in their page: some cores are slow where base and address are in different pages.
const FIRST: usize = 1024;

/// Where the cells are: bytes from one to the next, and how many further the next load goes.
struct Cells {
    apart: usize,
    next: usize,
}

/// A line each, upwards and downwards.
const UP: Cells = Cells { apart: 64, next: 1 };
const DOWN: Cells = Cells { apart: 192, next: 7 };
/// The same where their offsets have to fit seven bits.
const UP_NEAR: Cells = Cells { apart: 8, next: 1 };
const DOWN_NEAR: Cells = Cells { apart: 16, next: 7 };

/// Loads that each wait for the one before, in the register that is their address or a part of it. `held` is what a cell and that
/// register hold, by the offset of the next cell.
fn chain(load: &str, register: &str, set: &str, cells: &Cells, held: impl Fn(usize) -> String) -> Steps {
    let offset = |place: usize| place % CELLS * cells.apart;
    let mut init = code(set);
    for place in 0..CELLS {
        let (next, own) = (held(offset(place + cells.next)), FIRST + offset(place));
        init.extend(code(&format!("{next}; mov [r14 + {own}], rax")));
    }
    init.extend(code(&format!("{}; mov {register}, rax", held(0))));
    Steps { init, ..in_pages(code(load).repeat(LOADS), LOADS, 1) }
}

/// The address of a cell, less what an instruction adds.
fn pointer(added: usize) -> impl Fn(usize) -> String {
    move |offset| format!("lea rax, [r14 + {}]", (FIRST + offset) as i64 - added as i64)
}

/// The offset of a cell, by a scale of an index.
fn offset(scale: usize) -> impl Fn(usize) -> String {
    move |offset| format!("mov eax, {}", offset / scale)
}

fn plain_up(added: usize) -> Steps {
    chain(&format!("mov rbp, [rbp + {added}]"), "rbp", "", &UP, pointer(added))
}

fn plain_down(added: usize) -> Steps {
    chain(&format!("mov rsi, [rsi + {added}]"), "rsi", "", &DOWN, pointer(added))
}

/// Bytes that a register of an address holds that is no part of the chain.
const ASIDE: usize = 64;

/// Not through RBP: as a base it has a displacement too, of which some cores make a third part of the address.
fn base(scale: usize) -> Steps {
    let set = format!("mov ecx, {}", ASIDE / scale);
    chain(&format!("mov rdx, [rdx + rcx*{scale}]"), "rdx", &set, &UP, pointer(ASIDE))
}

fn index(scale: usize) -> Steps {
    let set = format!("lea rdi, [r14 + {FIRST}]");
    chain(&format!("mov rsi, [rdi + rsi*{scale}]"), "rsi", &set, &DOWN, offset(scale))
}

/// The same with a displacement.
fn base_moved(scale: usize) -> Steps {
    let set = format!("mov ecx, {}", ASIDE / scale);
    chain(&format!("mov rdx, [rdx + rcx*{scale} + {ASIDE}]"), "rdx", &set, &UP, pointer(2 * ASIDE))
}

fn index_moved(scale: usize) -> Steps {
    let set = format!("lea rdi, [r14 + {}]", FIRST - ASIDE);
    chain(&format!("mov rsi, [rdi + rsi*{scale} + {ASIDE}]"), "rsi", &set, &DOWN, offset(scale))
}

/// Loads of a part of a cell, by an offset.
fn part(load: String, register: &str, cells: &Cells) -> Steps {
    let set = format!("lea r10, [r14 + {FIRST}]");
    chain(&format!("{load} [r10 + {register}]"), register, &set, cells, offset(1))
}

fn zero_extending(bits: usize, register: &str) -> String {
    match bits {
        8 => format!("movzx e{register}, byte ptr"),
        16 => format!("movzx e{register}, word ptr"),
        _ => format!("mov e{register}, dword ptr"),
    }
}

fn sign_extending(bits: usize, register: &str) -> String {
    match bits {
        8 => format!("movsx r{register}, byte ptr"),
        16 => format!("movsx r{register}, word ptr"),
        _ => format!("movsxd r{register}, dword ptr"),
    }
}

fn zeros_up(bits: usize) -> Steps {
    part(zero_extending(bits, "bp"), "rbp", &UP_NEAR)
}

fn zeros_down(bits: usize) -> Steps {
    part(zero_extending(bits, "si"), "rsi", &DOWN_NEAR)
}

fn signs_up(bits: usize) -> Steps {
    part(sign_extending(bits, "bp"), "rbp", &UP_NEAR)
}

fn signs_down(bits: usize) -> Steps {
    part(sign_extending(bits, "si"), "rsi", &DOWN_NEAR)
}

/// A load into a vector register of so many bytes, or of their first eight, then a move of these to a general one.
fn floats(bytes: usize) -> Steps {
    let both = match bytes {
        8 => "movsd xmm0, [rbp]; movq rbp, xmm0",
        16 => "movups xmm0, [rbp]; movq rbp, xmm0",
        32 => "vmovups ymm0, [rbp]; vmovq rbp, xmm0",
        _ => "vmovups zmm0, [rbp]; vmovq rbp, xmm0",
    };
    chain(both, "rbp", "", &UP, pointer(0))
}

fn integers(bytes: usize) -> Steps {
    let both = match bytes {
        8 => "movq xmm5, [rsi]; movq rsi, xmm5",
        16 => "movdqu xmm5, [rsi]; movq rsi, xmm5",
        32 => "vmovdqu ymm5, [rsi]; vmovq rsi, xmm5",
        _ => "vmovdqu64 zmm5, [rsi]; vmovq rsi, xmm5",
    };
    chain(both, "rsi", "", &DOWN, pointer(0))
}

const PLAIN: &[Way] =
    &[Way::plain("lines upwards", plain_up), Way::plain("every third line, downwards", plain_down)];
const INDEXED: &[Way] = &[Way::plain("through the base", base), Way::plain("through the index", index)];
const INDEXED_MOVED: &[Way] =
    &[Way::plain("through the base", base_moved), Way::plain("through the index", index_moved)];
const ZEROS: &[Way] = &[Way::plain("upwards", zeros_up), Way::plain("downwards", zeros_down)];
const SIGNS: &[Way] = &[Way::plain("upwards", signs_up), Way::plain("downwards", signs_down)];
const VECTORS: &[Way] =
    &[Way::plain("floating point, lines upwards", floats), Way::plain("integers, downwards", integers)];

pub(crate) const TEST: Test = Test {
    name: "load_latency",
    about: "how long a load from the nearest cache takes, by its address and its register",
    definition: "core cycles from the result of one load, which is the address of the next one, to that one's result: of mov r64, [r] and the same with a displacement, an \
                 index, or both; with an index and with a part of a register, zero or sign extended; of loads into a vector register the sum with movq r64, xmm",
    source: "A. Fog, Instruction tables (2024), how the values were measured",
    part: Part::Memory,
    look: Look::Rates(Rates {
        rows: &[
            Row::new("base", 0, 1.0, PLAIN),
            Row::new("displacement_64", 64, 1.0, PLAIN),
            Row::new("displacement_4096", 4096, 1.0, PLAIN),
            Row::new("index", 1, 1.0, INDEXED),
            Row::new("index_scaled", 8, 1.0, INDEXED),
            Row::new("index_and_displacement", 1, 1.0, INDEXED_MOVED),
            Row::new("index_8_bits", 8, 1.0, ZEROS),
            Row::new("index_8_bits_signed", 8, 1.0, SIGNS),
            Row::new("index_16_bits", 16, 1.0, ZEROS),
            Row::new("index_16_bits_signed", 16, 1.0, SIGNS),
            Row::new("index_32_bits", 32, 1.0, ZEROS),
            Row::new("index_32_bits_signed", 32, 1.0, SIGNS),
            Row::new("with_movq_8_bytes", 8, 1.0, VECTORS),
            Row::new("with_movq_xmm", 16, 1.0, VECTORS),
            Row::new("with_movq_ymm", 32, 1.0, VECTORS).needing(&[AVX]),
            Row::new("with_movq_zmm", 64, 1.0, VECTORS).needing(&[AVX, AVX512F]),
        ],
        unit: Unit::CoreCycles,
        bytes: 0,
        apart: 0.02,
        alone: false,
        within: None,
    }),
};
