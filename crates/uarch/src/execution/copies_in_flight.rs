//! Moves that renaming does while other registers are copies already.
//!
//! A core that lets two registers have one entry has to count who has it. Where it counts a few of them alone, further moves are executed
//! until a copy is written again.

use crate::spec::data_moves::loop_in_pages;
use crate::spec::program_family::{StepLoop, assemble};
use crate::spec::rate::{ContrastSpec, ProgramVariant, TestRow};
use crate::spec::{Experiment, TestSpec, TestedPart};
use iced_x86::CpuidFeature::AVX;

/// Steps of an iteration.
const STEPS: usize = 16;
/// Iterations of the shorter call.
const ITERATIONS: u64 = 40;
/// Moves of a step.
const MOVES: f64 = 4.0;

/// Writes a register anew and copies it.
type CopyText = fn(usize) -> String;

fn copy_general(place: usize) -> String {
    const PAIRS: [[&str; 2]; 5] = [["r8", "r9"], ["r10", "r11"], ["rcx", "rdx"], ["rsi", "rdi"], ["r12", "rbp"]];
    let [one, other] = PAIRS[place];
    format!("lea {one}, [r14 + {place}]; mov {other}, {one}; ")
}

fn copy_xmm(place: usize) -> String {
    let one = 2 * place + 2;
    format!("psubd xmm{one}, xmm15; movdqa xmm{}, xmm{one}; ", one + 1)
}

fn copy_ymm(place: usize) -> String {
    let one = 2 * place + 2;
    format!("vmulps ymm{one}, ymm14, ymm15; vmovaps ymm{}, ymm{one}; ", one + 1)
}

/// So many copies, and a chain. What runs before makes vectors zero, so that no operation has a number that takes longer.
fn chain_with_copies(before: &str, copies: usize, copy: CopyText, chain: &str) -> StepLoop {
    let step = (0..copies).map(copy).collect::<String>() + chain;
    StepLoop {
        init: assemble(before),
        iterations: ITERATIONS,
        ..loop_in_pages(assemble(&step).repeat(STEPS), STEPS, 1)
    }
}

/// A program of a link and two moves, twice, less its two links alone.
macro_rules! move_variant {
    ($copy:ident, $before:literal, $link:literal, $one:literal, $other:literal) => {
        ProgramVariant::with_control(
            concat!("two of ", $link, "; ", $one, "; ", $other, ", less two of ", $link),
            |mov_reg_loop| {
                let all = concat!($link, "; ", $one, "; ", $other, "; ", $link, "; ", $one, "; ", $other);
                chain_with_copies($before, mov_reg_loop, $copy, all)
            },
            |mov_reg_loop| chain_with_copies($before, mov_reg_loop, $copy, concat!($link, "; ", $link)),
        )
    };
}

const GENERAL: &[ProgramVariant] = &[
    move_variant!(copy_general, "", "imul rax, rax", "mov rbx, rax", "mov rax, rbx"),
    move_variant!(copy_general, "", "imul ebx, ebx, 7", "mov eax, ebx", "mov ebx, eax"),
];
const VECTOR: &[ProgramVariant] = &[
    move_variant!(
        copy_xmm,
        "pxor xmm0, xmm0; pxor xmm1, xmm1",
        "pmuludq xmm0, xmm0",
        "movdqa xmm1, xmm0",
        "movdqa xmm0, xmm1"
    ),
    move_variant!(
        copy_xmm,
        "pxor xmm0, xmm0; pxor xmm1, xmm1",
        "pmaddwd xmm1, xmm15",
        "movaps xmm0, xmm1",
        "movaps xmm1, xmm0"
    ),
];
const WIDE: &[ProgramVariant] = &[
    move_variant!(copy_ymm, "vzeroall", "vmulps ymm0, ymm0, ymm15", "vmovaps ymm1, ymm0", "vmovaps ymm0, ymm1"),
    move_variant!(copy_ymm, "vzeroall", "vaddps ymm1, ymm1, ymm15", "vmovaps ymm0, ymm1", "vmovaps ymm1, ymm0"),
];

pub(crate) const TEST: TestSpec = TestSpec {
    name: "copies_in_flight",
    about: "what a move takes while so many other registers are copies",
    definition: "core cycles by which a chain takes longer for each move in it, beside copies of other registers that are made anew in each step; none where renaming does all moves",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: TestedPart::Execution,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[
            TestRow::new("general_alone", 0, MOVES, GENERAL),
            TestRow::new("general_beside_1", 1, MOVES, GENERAL),
            TestRow::new("general_beside_2", 2, MOVES, GENERAL),
            TestRow::new("general_beside_3", 3, MOVES, GENERAL),
            TestRow::new("general_beside_5", 5, MOVES, GENERAL),
            TestRow::new("xmm_alone", 0, MOVES, VECTOR),
            TestRow::new("xmm_beside_2", 2, MOVES, VECTOR),
            TestRow::new("xmm_beside_4", 4, MOVES, VECTOR),
            TestRow::new("xmm_beside_6", 6, MOVES, VECTOR),
            TestRow::new("ymm_alone", 0, MOVES, WIDE).requiring(&[AVX]),
            TestRow::new("ymm_beside_4", 4, MOVES, WIDE).requiring(&[AVX]),
            TestRow::new(
                "extended",
                0,
                MOVES,
                &[
                    move_variant!(copy_general, "", "imul rax, rax", "movsxd rbx, eax", "movsxd rax, ebx"),
                    move_variant!(copy_general, "", "imul ebx, ebx, 7", "movsxd rax, ebx", "movsxd rbx, eax"),
                ],
            ),
        ],
        tolerance: 0.1,
        tolerance_share: 0.2,
    }),
};
