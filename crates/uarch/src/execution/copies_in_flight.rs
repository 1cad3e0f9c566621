//! Moves that renaming does while other registers are copies already.
//!
//! A core that lets two registers have one entry has to count who has it. Where it counts a few of them alone, further moves are executed
//! until a copy is written again.

use crate::test::moves::in_pages;
use crate::test::rate::{Contrast, Row, Way};
use crate::test::walk::{Steps, code};
use crate::test::{Look, Part, Test};
use iced_x86::CpuidFeature::AVX;

/// Steps of an iteration.
const STEPS: usize = 16;
/// Iterations of the shorter call.
const ITERATIONS: u64 = 40;
/// Moves of a step.
const MOVES: f64 = 4.0;

/// Writes a register anew and copies it.
type Copy = fn(usize) -> String;

fn general(place: usize) -> String {
    const PAIRS: [[&str; 2]; 5] =
        [["r8", "r9"], ["r10", "r11"], ["rcx", "rdx"], ["rsi", "rdi"], ["r12", "rbp"]];
    let [one, other] = PAIRS[place];
    format!("lea {one}, [r14 + {place}]; mov {other}, {one}; ")
}

fn vector(place: usize) -> String {
    let one = 2 * place + 2;
    format!("psubd xmm{one}, xmm15; movdqa xmm{}, xmm{one}; ", one + 1)
}

fn wide(place: usize) -> String {
    let one = 2 * place + 2;
    format!("vmulps ymm{one}, ymm14, ymm15; vmovaps ymm{}, ymm{one}; ", one + 1)
}

/// So many copies, and a chain. What runs before makes vectors zero, so that no operation has a number that takes longer.
fn chain(before: &str, copies: usize, copy: Copy, chain: &str) -> Steps {
    let step = (0..copies).map(copy).collect::<String>() + chain;
    Steps { init: code(before), iterations: ITERATIONS, ..in_pages(code(&step).repeat(STEPS), STEPS, 1) }
}

/// A program of a link and two moves, twice, less its two links alone.
macro_rules! moves {
    ($copy:ident, $before:literal, $link:literal, $one:literal, $other:literal) => {
        Way::less(
            concat!("two of ", $link, "; ", $one, "; ", $other, ", less two of ", $link),
            |copies| {
                let all = concat!($link, "; ", $one, "; ", $other, "; ", $link, "; ", $one, "; ", $other);
                chain($before, copies, $copy, all)
            },
            |copies| chain($before, copies, $copy, concat!($link, "; ", $link)),
        )
    };
}

const GENERAL: &[Way] = &[
    moves!(general, "", "imul rax, rax", "mov rbx, rax", "mov rax, rbx"),
    moves!(general, "", "imul ebx, ebx, 7", "mov eax, ebx", "mov ebx, eax"),
];
const VECTOR: &[Way] = &[
    moves!(
        vector,
        "pxor xmm0, xmm0; pxor xmm1, xmm1",
        "pmuludq xmm0, xmm0",
        "movdqa xmm1, xmm0",
        "movdqa xmm0, xmm1"
    ),
    moves!(
        vector,
        "pxor xmm0, xmm0; pxor xmm1, xmm1",
        "pmaddwd xmm1, xmm15",
        "movaps xmm0, xmm1",
        "movaps xmm1, xmm0"
    ),
];
const WIDE: &[Way] = &[
    moves!(wide, "vzeroall", "vmulps ymm0, ymm0, ymm15", "vmovaps ymm1, ymm0", "vmovaps ymm0, ymm1"),
    moves!(wide, "vzeroall", "vaddps ymm1, ymm1, ymm15", "vmovaps ymm0, ymm1", "vmovaps ymm1, ymm0"),
];

pub(crate) const TEST: Test = Test {
    name: "copies_in_flight",
    about: "what a move takes while so many other registers are copies",
    definition: "core cycles by which a chain takes longer for each move in it, beside copies of other registers that are made anew in each step; none where renaming does all moves",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::Execution,
    look: Look::Contrast(Contrast {
        rows: &[
            Row::new("general_alone", 0, MOVES, GENERAL),
            Row::new("general_beside_1", 1, MOVES, GENERAL),
            Row::new("general_beside_2", 2, MOVES, GENERAL),
            Row::new("general_beside_3", 3, MOVES, GENERAL),
            Row::new("general_beside_5", 5, MOVES, GENERAL),
            Row::new("xmm_alone", 0, MOVES, VECTOR),
            Row::new("xmm_beside_2", 2, MOVES, VECTOR),
            Row::new("xmm_beside_4", 4, MOVES, VECTOR),
            Row::new("xmm_beside_6", 6, MOVES, VECTOR),
            Row::new("ymm_alone", 0, MOVES, WIDE).needing(&[AVX]),
            Row::new("ymm_beside_4", 4, MOVES, WIDE).needing(&[AVX]),
            Row::new(
                "extended",
                0,
                MOVES,
                &[
                    moves!(general, "", "imul rax, rax", "movsxd rbx, eax", "movsxd rax, ebx"),
                    moves!(general, "", "imul ebx, ebx, 7", "movsxd rax, ebx", "movsxd rbx, eax"),
                ],
            ),
        ],
        apart: 0.1,
        apart_share: 0.2,
    }),
};
