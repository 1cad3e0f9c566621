//! Capacity of the branch direction predictor, for one branch and for several.

use crate::spec::*;
use cyclescope_code::program::memory::{
    AreaFill, AreaPointer, MemoryArea, PAGE_BYTES, PagePresence, PointerPosition, ProgramMemory, StoreLifetime,
};
use cyclescope_core::random::Random;

// Capacity of the direction predictor.

/// Least and largest number of iterations of the shorter call; within them, one pass through the
/// pattern. In a longer call, background load would no longer show as an outlier.
pub(super) const ITERATIONS: [usize; 2] = [4000, 32768];

/// One conditional branch per step, taken by a random pattern of this period. The pattern continues
/// from call to call.
pub(crate) fn pattern_loop(period: usize, branch: u8, seed: u64) -> StepLoop {
    let mut random = Random::new(seed ^ period as u64);
    let bits: Vec<u8> = (0..period).map(|_| random.below(2) as u8).collect();
    let mut body = assemble("cmp byte ptr [r14 + rbp], 0");
    body.extend([branch, 3]);
    body.extend(assemble(&format!("nop dword ptr [rax]; inc rbp; cmp rbp, {period}; cmovae rbp, r11")));
    table_loop(body, AreaFill::Bytes(bits), period as u64, period.clamp(ITERATIONS[0], ITERATIONS[1]))
}

/// A loop over code that reads a table of this length entry by entry, over and over. Each call
/// continues where the last one stopped. R14 points to the table, and R11 is zero. RBP holds the
/// place in the table; no timing method changes it.
pub(super) fn table_loop(body: Vec<u8>, table: AreaFill, bytes: u64, iterations: usize) -> StepLoop {
    let kept = |area: MemoryArea, register| MemoryArea {
        lifetime: StoreLifetime::Kept,
        present: PagePresence::Everywhere,
        pointer: Some(AreaPointer { register, at: PointerPosition::Start }),
        ..area
    };
    // R13 points to a cell that keeps the place.
    let cell = kept(MemoryArea::new(PAGE_BYTES, AreaFill::Image(vec![0; 8])), 13);
    StepLoop {
        init: assemble("xor r11d, r11d; mov rbp, [r13]"),
        body,
        following: assemble("mov [r13], rbp"),
        steps_per_iteration: 1,
        iterations: iterations as u64,
        memory: ProgramMemory {
            areas: vec![kept(MemoryArea::new(bytes, table), 14), cell],
            ..ProgramMemory::default()
        },
        calls_memcpy: false,
    }
}

// Capacity of the direction predictor for several branches together.

/// A number of conditional branches per iteration, each with its own random pattern. All patterns
/// together have `outcomes` outcomes.
fn pattern_branches(outcomes: usize, branches: usize, branch: u8, seed: u64) -> StepLoop {
    let period = outcomes / branches;
    let mut random = Random::new(seed ^ outcomes as u64);
    let bits: Vec<u8> = (0..period * branches).map(|_| random.below(2) as u8).collect();
    let mut body = Vec::new();
    for number in 0..branches {
        // cmp byte ptr [r14 + rbp + place of its pattern], 0
        body.extend([0x41, 0x80, 0xbc, 0x2e]);
        body.extend(((number * period) as i32).to_le_bytes());
        body.extend([0, branch, 3]);
        body.extend(assemble("nop dword ptr [rax]"));
    }
    body.extend(assemble(&format!("inc rbp; cmp rbp, {period}; cmovae rbp, r11")));
    let turns = ITERATIONS.map(|executed| executed / branches);
    let turns = period.clamp(turns[0], turns[1]);
    let steps = table_loop(body, AreaFill::Bytes(bits), outcomes as u64, turns);
    StepLoop { steps_per_iteration: branches, ..steps }
}

fn four_branches(outcomes: usize) -> StepLoop {
    pattern_branches(outcomes, 4, 0x74, 0x5eed)
}

fn thirty_two_branches(outcomes: usize) -> StepLoop {
    pattern_branches(outcomes, 32, 0x75, 0xacade)
}

// Loops that run a fixed number of times.
//
// The control is one loop of as many iterations in all: it is left once where the program's is left
// each time. What remains is the cost of leaving the loop.

/// Loops per iteration of the control.
const JOINED: usize = 64;
/// Iterations of all loops of the shorter call, and the least number of loops.
const LOOP_ITERATIONS: usize = 8000;
const LOOPS_LEAST: usize = 64;

/// A loop that counts from this number down to zero, which the next one adds its number to. The last instruction of `turn` is the branch
/// back to its start. The counter's multiplication by one sets the pace: the place of the code does
/// not matter, and no older work hides a misprediction.
fn counted_loop(count: usize, joined: usize, turn: &str) -> StepLoop {
    let text = format!("lea ecx, [rcx + {}]; 1: {turn} 1b", count * joined);
    let loops = (LOOP_ITERATIONS / count).max(LOOPS_LEAST);
    let init = assemble("xor ecx, ecx; mov r8d, 1");
    StepLoop { init, iterations: (loops / joined).max(1) as u64, ..straight_loop(assemble(&text), joined) }
}

const DECREMENT: &str = "imul ecx, r8d; dec ecx; jnz";
const SUBTRACT: &str = "imul rcx, r8; nop; sub rcx, 1; mov eax, ecx; test ecx, ecx; jg";

pub(crate) const TESTS: &[TestSpec] = &[
    TestSpec {
        name: "counted_loops",
        about: "how often a loop may run before its end is no longer predicted",
        definition: "iterations of a loop with a fixed count, run over and over, whose last branch is predicted; a \
                     longer one costs a misprediction each time it is left",
        source: FOG,
        answers: &["branch"],
        part: TestedPart::FrontEnd,
        experiment: Experiment::Levels(LevelsSpec {
            programs: &[
                ProgramFamily::new("dec and jnz", |count| counted_loop(count, 1, DECREMENT))
                    .less(|count| counted_loop(count, JOINED, DECREMENT)),
                ProgramFamily::new("sub, test and jg", |count| counted_loop(count, 1, SUBTRACT))
                    .less(|count| counted_loop(count, JOINED, SUBTRACT)),
            ],
            count_range: [4, 512],
            min_rise: 4.0,
            min_ratio: 1.3,
            // Tables that are found by hashes fill by chance.
            fills_randomly: true,
            single_structure: true,
            ..LevelsSpec::COUNTS
        }),
    },
    TestSpec {
        name: "direction_predictor",
        about: "how long a random pattern of one conditional branch the core learns",
        definition: "period of a random pattern that one branch follows, of which about half is still known: tables \
                     that are found by hashes fill by chance",
        source: FOG,
        answers: &["branch"],
        part: TestedPart::FrontEnd,
        experiment: Experiment::Levels(LevelsSpec {
            programs: &[
                ProgramFamily::new("je", |period| pattern_loop(period, 0x74, 0x5eed)),
                ProgramFamily::new("jne", |period| pattern_loop(period, 0x75, 0xacade)),
            ],
            count_range: [16, 131072],
            min_rise: 5.0,
            min_ratio: 1.3,
            // Its tables are indexed by hashes.
            fills_randomly: true,
            cost_definition: Some("core cycles of a turn: the branch, its load and its counter"),
            bytes_per_count: 1,
            ..LevelsSpec::COUNTS
        }),
    },
    TestSpec {
        name: "predictor_reach",
        about: "how many outcomes of random patterns of several conditional branches the core learns",
        definition: "outcomes in the random patterns of 4 and of 32 branches together, one pattern each, of which \
                     about half are still known: tables that are found by hashes fill by chance",
        source: FOG,
        answers: &["branch"],
        part: TestedPart::FrontEnd,
        experiment: Experiment::Levels(LevelsSpec {
            programs: &[
                ProgramFamily::new("4 branches, je", four_branches),
                ProgramFamily::new("32 branches, jne", thirty_two_branches),
            ],
            count_range: [256, 131072],
            min_rise: 3.0,
            min_ratio: 1.3,
            // Its tables are indexed by hashes.
            fills_randomly: true,
            cost_definition: Some("core cycles of a branch: its load, and its part of the counter"),
            bytes_per_count: 1,
            ..LevelsSpec::COUNTS
        }),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic};

    #[test]
    fn each_branch_has_a_pattern_of_its_own() {
        for (program, branches) in [(four_branches as fn(usize) -> StepLoop, 4), (thirty_two_branches, 32)] {
            let steps = program(3200);
            let all: Vec<_> = Decoder::new(64, &steps.body, DecoderOptions::NONE).iter().collect();
            let places: Vec<u64> = all
                .iter()
                .filter(|instruction| instruction.mnemonic() == Mnemonic::Cmp && instruction.memory_size().size() == 1)
                .map(|instruction| instruction.memory_displacement64())
                .collect();
            let period = 3200 / branches;
            assert_eq!(places, (0..branches).map(|number| number * period).collect::<Vec<_>>());
            let AreaFill::Bytes(bits) = &steps.memory.areas[0].fill else { panic!("patterns are bytes") };
            let taken = bits.iter().map(|bit| usize::from(*bit)).sum::<usize>();
            assert!(bits.len() == 3200 && taken.abs_diff(1600) < 200, "{taken}");
            let conditional =
                all.iter().filter(|instruction| instruction.flow_control() == FlowControl::ConditionalBranch).count();
            assert_eq!((conditional, steps.steps_per_iteration), (branches as usize, branches as usize));
        }
    }
}
