//! Latency of a load from the nearest cache, by addressing mode and by destination register.

use crate::spec::*;
use iced_x86::CpuidFeature::{AVX, AVX512F};

/// Cells of the ring.
const CELLS: usize = 8;
/// Loads per iteration.
const LOADS: usize = 32;
/// Where the cells begin in their page: some cores are slow if base and address are in different
/// pages.
const FIRST: usize = 1024;

/// The distance of cells in bytes, and how many cells further the next load goes.
struct CellLayout {
    apart: usize,
    next: usize,
}

/// A line per cell, upwards and downwards.
const UP: CellLayout = CellLayout { apart: 64, next: 1 };
const DOWN: CellLayout = CellLayout { apart: 192, next: 7 };
/// The same for offsets of seven bits.
const UP_NEAR: CellLayout = CellLayout { apart: 8, next: 1 };
const DOWN_NEAR: CellLayout = CellLayout { apart: 16, next: 7 };

/// Loads that each wait for the previous one: its result is their address or a part of it. `held`
/// is the content of a cell and of that register, by the offset of the next cell.
fn load_chain(load: &str, register: &str, set: &str, cells: &CellLayout, held: impl Fn(usize) -> String) -> StepLoop {
    let offset = |place: usize| place % CELLS * cells.apart;
    let mut init = assemble(set);
    for place in 0..CELLS {
        let (next, own) = (held(offset(place + cells.next)), FIRST + offset(place));
        init.extend(assemble(&format!("{next}; mov [r14 + {own}], rax")));
    }
    init.extend(assemble(&format!("{}; mov {register}, rax", held(0))));
    StepLoop { init, ..loop_in_pages(assemble(load).repeat(LOADS), LOADS, 1) }
}

/// The address of a cell, minus the part that an instruction adds.
fn pointer_text(added: usize) -> impl Fn(usize) -> String {
    move |offset| format!("lea rax, [r14 + {}]", (FIRST + offset) as i64 - added as i64)
}

/// The offset of a cell, by the scale of an index.
fn offset_text(scale: usize) -> impl Fn(usize) -> String {
    move |offset| format!("mov eax, {}", offset / scale)
}

fn plain_up(added: usize) -> StepLoop {
    load_chain(&format!("mov rbp, [rbp + {added}]"), "rbp", "", &UP, pointer_text(added))
}

fn plain_down(added: usize) -> StepLoop {
    load_chain(&format!("mov rsi, [rsi + {added}]"), "rsi", "", &DOWN, pointer_text(added))
}

/// Bytes in the address register that the chain does not change.
const ASIDE: usize = 64;

/// RBP is not used: as a base, it needs a displacement, a third part of the address on some cores.
fn base_chain(scale: usize) -> StepLoop {
    let set = format!("mov ecx, {}", ASIDE / scale);
    load_chain(&format!("mov rdx, [rdx + rcx*{scale}]"), "rdx", &set, &UP, pointer_text(ASIDE))
}

fn index_chain(scale: usize) -> StepLoop {
    let set = format!("lea rdi, [r14 + {FIRST}]");
    load_chain(&format!("mov rsi, [rdi + rsi*{scale}]"), "rsi", &set, &DOWN, offset_text(scale))
}

/// The same with a displacement.
fn base_chain_moved(scale: usize) -> StepLoop {
    let set = format!("mov ecx, {}", ASIDE / scale);
    load_chain(&format!("mov rdx, [rdx + rcx*{scale} + {ASIDE}]"), "rdx", &set, &UP, pointer_text(2 * ASIDE))
}

fn index_chain_moved(scale: usize) -> StepLoop {
    let set = format!("lea rdi, [r14 + {}]", FIRST - ASIDE);
    load_chain(&format!("mov rsi, [rdi + rsi*{scale} + {ASIDE}]"), "rsi", &set, &DOWN, offset_text(scale))
}

/// Loads of a part of a cell, from an offset.
fn partial_chain(load: String, register: &str, cells: &CellLayout) -> StepLoop {
    let set = format!("lea r10, [r14 + {FIRST}]");
    load_chain(&format!("{load} [r10 + {register}]"), register, &set, cells, offset_text(1))
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

/// A load into a vector register of this many bytes, or of the first eight bytes, then a move of
/// these to a general register.
fn float_load_chain(bytes: usize) -> StepLoop {
    let both = match bytes {
        8 => "movsd xmm0, [rbp]; movq rbp, xmm0",
        16 => "movups xmm0, [rbp]; movq rbp, xmm0",
        32 => "vmovups ymm0, [rbp]; vmovq rbp, xmm0",
        _ => "vmovups zmm0, [rbp]; vmovq rbp, xmm0",
    };
    load_chain(both, "rbp", "", &UP, pointer_text(0))
}

fn integer_load_chain(bytes: usize) -> StepLoop {
    let both = match bytes {
        8 => "movq xmm5, [rsi]; movq rsi, xmm5",
        16 => "movdqu xmm5, [rsi]; movq rsi, xmm5",
        32 => "vmovdqu ymm5, [rsi]; vmovq rsi, xmm5",
        _ => "vmovdqu64 zmm5, [rsi]; vmovq rsi, xmm5",
    };
    load_chain(both, "rsi", "", &DOWN, pointer_text(0))
}

const PLAIN: &[ProgramVariant] =
    &[ProgramVariant::new("lines upwards", plain_up), ProgramVariant::new("every third line, downwards", plain_down)];
const INDEXED: &[ProgramVariant] =
    &[ProgramVariant::new("through the base", base_chain), ProgramVariant::new("through the index", index_chain)];
const INDEXED_MOVED: &[ProgramVariant] = &[
    ProgramVariant::new("through the base", base_chain_moved),
    ProgramVariant::new("through the index", index_chain_moved),
];
const ZEROS: &[ProgramVariant] = &[
    ProgramVariant::new("upwards", |bits| partial_chain(zero_extending(bits, "bp"), "rbp", &UP_NEAR)),
    ProgramVariant::new("downwards", |bits| partial_chain(zero_extending(bits, "si"), "rsi", &DOWN_NEAR)),
];
const SIGNS: &[ProgramVariant] = &[
    ProgramVariant::new("upwards", |bits| partial_chain(sign_extending(bits, "bp"), "rbp", &UP_NEAR)),
    ProgramVariant::new("downwards", |bits| partial_chain(sign_extending(bits, "si"), "rsi", &DOWN_NEAR)),
];
const VECTORS: &[ProgramVariant] = &[
    ProgramVariant::new("floating point, lines upwards", float_load_chain),
    ProgramVariant::new("integers, downwards", integer_load_chain),
];

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "load_latency",
    about: "how long a load from the nearest cache takes, by its address and its register",
    definition: "core cycles from the result of one load, which is the address of the next one, to that one's \
                 result: of mov r64, [r] and the same with a displacement, an index, or both; with an index and \
                 with a part of a register, zero or sign extended; of loads into a vector register the sum with \
                 movq r64, xmm",
    source: "A. Fog, Instruction tables (2024), how the values were measured",
    answers: &["cache_latency"],
    part: TestedPart::Memory,
    experiment: Experiment::Rates(RatesSpec {
        tolerance_share: 0.02,
        ..RatesSpec::new(
            Unit::CoreCycles,
            &[
                TestRow::for_n("base", 0, PLAIN),
                TestRow::for_n("displacement_64", 64, PLAIN),
                TestRow::for_n("displacement_4096", 4096, PLAIN),
                TestRow::new("index", INDEXED),
                TestRow::for_n("index_scaled", 8, INDEXED),
                TestRow::new("index_and_displacement", INDEXED_MOVED),
                TestRow::for_n("index_8_bits", 8, ZEROS),
                TestRow::for_n("index_8_bits_signed", 8, SIGNS),
                TestRow::for_n("index_16_bits", 16, ZEROS),
                TestRow::for_n("index_16_bits_signed", 16, SIGNS),
                TestRow::for_n("index_32_bits", 32, ZEROS),
                TestRow::for_n("index_32_bits_signed", 32, SIGNS),
                TestRow::for_n("with_movq_8_bytes", 8, VECTORS),
                TestRow::for_n("with_movq_xmm", 16, VECTORS),
                TestRow::for_n("with_movq_ymm", 32, VECTORS).requiring(&[AVX]),
                TestRow::for_n("with_movq_zmm", 64, VECTORS).requiring(&[AVX, AVX512F]),
            ],
        )
    }),
}];
