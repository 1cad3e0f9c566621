//! The penalty of a branch misprediction.

use crate::spec::*;
use cyclescope_code::program::memory::{
    AreaFill, AreaPointer, MemoryArea, PAGE_BYTES, PagePresence, PointerPosition, ProgramMemory, StoreLifetime,
};

/// Steps of the shorter call.
const ITERATIONS: u64 = 2000;
/// jc and jnc.
const JC: u8 = 0x72;
const JNC: u8 = 0x73;

/// The next random number in RBP.
pub(super) const GENERATE: &str = "imul rbp, r9; add rbp, r10";

/// A loop over this code, with a random number generator. RBP holds its state from call to call;
/// R12 is zero.
pub(super) fn random_loop(body: Vec<u8>, iterations: u64) -> StepLoop {
    // Multiplier and increment of D. Knuth's MMIX.
    let mut init = assemble("mov rbp, [r13]; xor r12d, r12d");
    init.extend([&[0x49, 0xb9][..], &6_364_136_223_846_793_005u64.to_le_bytes()].concat());
    init.extend([&[0x49, 0xba][..], &1_442_695_040_888_963_407u64.to_le_bytes()].concat());
    let seed = AreaFill::Image(0x5eed_u64.to_le_bytes().to_vec());
    let cell = MemoryArea {
        lifetime: StoreLifetime::Kept,
        present: PagePresence::Everywhere,
        pointer: Some(AreaPointer { register: 13, at: PointerPosition::Start }),
        ..MemoryArea::new(PAGE_BYTES, seed)
    };
    // Calls need a stack.
    let stack = MemoryArea {
        pointer: Some(AreaPointer { register: 4, at: PointerPosition::Top }),
        ..MemoryArea::new(STACK, AreaFill::Image(Vec::new()))
    };
    let memory = ProgramMemory { areas: vec![cell, stack], ..ProgramMemory::default() };
    let following = assemble("mov [r13], rbp");
    StepLoop { init, body, following, steps_per_iteration: 1, iterations, memory, calls_memcpy: false }
}

/// Bytes of a stack.
const STACK: u64 = 1 << 20;

/// A conditional branch on a bit of this register, with the generator behind it. No later
/// instruction can run before the branch: the generator continues behind it.
fn branch_on_bit(by: &str, condition: u8) -> StepLoop {
    let mut body = assemble(&format!("{GENERATE}; bt {by}, 60"));
    body.extend([condition, 3]);
    body.extend(assemble("nop dword ptr [rax]"));
    random_loop(body, ITERATIONS)
}

/// Instructions behind each branch of a long program, and the size of such programs. All
/// first-level caches hold them. Their instructions exceed any known cache of decoded instructions.
const BEHIND: &str = "lea eax, [rcx + rdx]; lea ebx, [rcx + rdx]; lea esi, [rcx + rdx]; lea edi, [rcx + rdx]";
const TIMES_BEHIND: usize = 3;
const BYTES: usize = 29 << 10;
/// Iterations of the shorter call of a long program.
const FEW_ITERATIONS: u64 = 5;

/// Repeats the branch and the instructions behind it up to `BYTES`.
fn long_program(by: &str, condition: u8) -> StepLoop {
    let block = [branch_on_bit(by, condition).body, assemble(BEHIND).repeat(TIMES_BEHIND)].concat();
    let number = BYTES / block.len();
    StepLoop { steps_per_iteration: number, ..random_loop(block.repeat(number), FEW_ITERATIONS) }
}

/// The share of random branches that are mispredicted.
const SHARE: f64 = 0.5;

/// A test of the cost of mispredictions, by programs and their controls.
const fn penalty_contrast(rows: &'static [TestRow]) -> Experiment {
    Experiment::Contrast(ContrastSpec::new(rows, 2.0, 0.1))
}

pub(crate) const TESTS: &[TestSpec] = &[
    TestSpec {
        name: "misprediction",
        about: "how long a mispredicted branch delays what follows",
        definition: "core cycles that a step takes longer where its branch is mispredicted, the target in the \
                     nearest cache",
        source: FOG,
        answers: &["branch"],
        part: TestedPart::FrontEnd,
        experiment: penalty_contrast(&[TestRow::new(
            "",
            &[
                ProgramVariant::new("random jc, less one that is never taken", |_| branch_on_bit("rbp", JC))
                    .less_generated(|_| branch_on_bit("r12", JC)),
                ProgramVariant::new("random jnc, less one that is always taken", |_| branch_on_bit("rbp", JNC))
                    .less_generated(|_| branch_on_bit("r12", JNC)),
            ],
        )
        .amount(SHARE)]),
    },
    TestSpec {
        name: "misprediction_decoded",
        about: "how long a mispredicted branch delays what has to be decoded",
        definition: "core cycles that a step takes longer where its branch is mispredicted, among 29 KiB of code, \
                     which the instruction cache holds and no cache of decoded instructions",
        source: FOG,
        answers: &["ucache_misprediction"],
        part: TestedPart::FrontEnd,
        experiment: penalty_contrast(&[TestRow::new(
            "",
            &[
                ProgramVariant::new("random jc, less one that is never taken", |_| long_program("rbp", JC))
                    .less_generated(|_| long_program("r12", JC)),
                ProgramVariant::new("random jnc, less one that is always taken", |_| long_program("rbp", JNC))
                    .less_generated(|_| long_program("r12", JNC)),
            ],
        )
        .amount(SHARE)]),
    },
];
