//! The penalty of a misprediction.

use crate::test::rate::{Contrast, Row, Way};
use crate::test::walk::{Steps, code};
use crate::test::{Look, Part, Test};
use cyclescope_code::program::memory::{Area, At, Fill, Lifetime, Memory, PAGE, Pointer, Present};

/// Steps of the shorter call.
const ITERATIONS: u64 = 2000;
/// jc and jnc.
const JC: u8 = 0x72;
const JNC: u8 = 0x73;

/// The next random number in RBP.
pub(super) const GENERATE: &str = "imul rbp, r9; add rbp, r10";

/// A loop over this code, with a generator of random numbers whose state is in RBP and goes on from call to call; R12 is zero.
pub(super) fn generator(body: Vec<u8>, iterations: u64) -> Steps {
    // Multiplier and increment of D. Knuth's MMIX.
    let mut init = code("mov rbp, [r13]; xor r12d, r12d");
    init.extend([&[0x49, 0xb9][..], &6_364_136_223_846_793_005u64.to_le_bytes()].concat());
    init.extend([&[0x49, 0xba][..], &1_442_695_040_888_963_407u64.to_le_bytes()].concat());
    let seed = Fill::Image(0x5eed_u64.to_le_bytes().to_vec());
    let cell = Area {
        lifetime: Lifetime::Kept,
        present: Present::Everywhere,
        pointer: Some(Pointer { register: 13, at: At::Start }),
        ..Area::new(PAGE, seed)
    };
    // Calls need a stack.
    let stack = Area {
        pointer: Some(Pointer { register: 4, at: At::Top }),
        ..Area::new(STACK, Fill::Image(Vec::new()))
    };
    let memory = Memory { areas: vec![cell, stack], ..Memory::default() };
    Steps { init, body, following: code("mov [r13], rbp"), steps: 1, iterations, memory }
}

/// Bytes of a stack.
const STACK: u64 = 1 << 20;

/// A conditional branch by a bit of this register beside the generator. Nothing that follows can be executed before the branch
/// is, for the generator goes on behind it.
fn branch(by: &str, condition: u8) -> Steps {
    let mut body = code(&format!("{GENERATE}; bt {by}, 60"));
    body.extend([condition, 3]);
    body.extend(code("nop dword ptr [rax]"));
    generator(body, ITERATIONS)
}

fn random_jc(_: usize) -> Steps {
    branch("rbp", JC)
}

fn never_jc(_: usize) -> Steps {
    branch("r12", JC)
}

fn random_jnc(_: usize) -> Steps {
    branch("rbp", JNC)
}

fn always_jnc(_: usize) -> Steps {
    branch("r12", JNC)
}

/// Instructions behind each branch of a long program, and such programs' bytes: less than the first caches of all cores, and more
/// instructions than any cache of decoded ones is known to hold.
const BEHIND: &str = "lea eax, [rcx + rdx]; lea ebx, [rcx + rdx]; lea esi, [rcx + rdx]; lea edi, [rcx + rdx]";
const TIMES_BEHIND: usize = 3;
const BYTES: usize = 29 << 10;
/// Iterations of such a program's shorter call.
const FEW_ITERATIONS: u64 = 5;

/// Repeats the branch and the instructions behind it as often as they fit `BYTES`.
fn long(by: &str, condition: u8) -> Steps {
    let one = [branch(by, condition).body, code(BEHIND).repeat(TIMES_BEHIND)].concat();
    let number = BYTES / one.len();
    Steps { steps: number, ..generator(one.repeat(number), FEW_ITERATIONS) }
}

const SOURCE: &str = "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)";

/// The share of random branches that are mispredicted.
const SHARE: f64 = 0.5;

/// What mispredictions cost, by programs and their controls.
const fn penalty(rows: &'static [Row]) -> Look {
    Look::Contrast(Contrast { rows, apart: 2.0, apart_share: 0.1 })
}

pub(crate) const TEST: Test = Test {
    name: "misprediction",
    about: "how long a mispredicted branch delays what follows",
    definition: "core cycles that a step takes longer where its branch is mispredicted, the target in the nearest cache",
    source: SOURCE,
    part: Part::FrontEnd,
    look: penalty(&[Row::new(
        "",
        1,
        SHARE,
        &[
            Way::less("random jc, less one that is never taken", random_jc, never_jc),
            Way::less("random jnc, less one that is always taken", random_jnc, always_jnc),
        ],
    )]),
};

pub(crate) const DECODED: Test = Test {
    name: "misprediction_decoded",
    about: "how long a mispredicted branch delays what has to be decoded",
    definition: "core cycles that a step takes longer where its branch is mispredicted, among 29 KiB of code, which the instruction cache holds and \
                 no cache of decoded instructions",
    source: SOURCE,
    part: Part::FrontEnd,
    look: penalty(&[Row::new(
        "",
        1,
        SHARE,
        &[
            Way::less("random jc, less one that is never taken", |_| long("rbp", JC), |_| long("r12", JC)),
            Way::less(
                "random jnc, less one that is always taken",
                |_| long("rbp", JNC),
                |_| long("r12", JNC),
            ),
        ],
    )]),
};
