//! The cache of decoded instructions.
//!
//! Straight code that exceeds the cache runs slower, if the decoders are slower than the rest of
//! the core. If they are as fast, the rate shows nothing. But after a mispredicted branch the core
//! waits for instructions, and the decoders deliver them later than the cache. So a loop with
//! mispredicted branches slows down as soon as it exceeds the cache.

use super::misprediction::{GENERATE, random_loop};
use crate::spec::*;

/// Instructions per step of straight code. With fewer, a rise could be less than the noise of a
/// mispredicted branch.
const STEP: usize = 32;
/// Bytes of its instructions.
const LENGTH: usize = 3;

/// A loop of this number of instructions, in whole steps.
fn straight_steps(instructions: usize, instruction: fn(usize, usize) -> Vec<u8>) -> StepLoop {
    let steps = instructions / STEP;
    straight_loop((0..STEP * steps).flat_map(|place| instruction(LENGTH, place)).collect(), steps)
}

/// Branches that the shorter call executes.
const EXECUTED: usize = 2400;
/// The least number of iterations of the shorter call.
const ITERATIONS_LEAST: usize = 2;
/// Instructions before each branch, and the branch itself.
const BESIDE: usize = 4;

/// Groups of instructions of three bytes and a random branch. The branch goes to the next
/// instruction either way: all code runs.
fn random_branches(instructions: usize, each: usize, period: &[&str]) -> StepLoop {
    let period: Vec<Vec<u8>> = period.iter().map(|instruction| assemble(instruction)).collect();
    let mut group: Vec<u8> = period.iter().cycle().take(each - BESIDE).flatten().copied().collect();
    group.extend(assemble(&format!("{GENERATE}; bt rbp, 60")));
    // jc to the next instruction
    group.extend([0x72, 0]);
    let number = instructions / each;
    let iterations = (EXECUTED / number).max(ITERATIONS_LEAST) as u64;
    StepLoop { steps_per_iteration: number, ..random_loop(group.repeat(number), iterations) }
}

fn lea_and_branches(instructions: usize) -> StepLoop {
    let period = ["lea eax, [rcx + rdx]", "lea ebx, [rcx + rdx]", "lea esi, [rcx + rdx]", "lea edi, [rcx + rdx]"];
    random_branches(instructions, 20, &period)
}

fn test_and_branches(instructions: usize) -> StepLoop {
    random_branches(instructions, 12, &["test rdx, rax", "test rdx, rbx", "test rdx, rsi", "test rdx, rdi"])
}

// The associativity of the cache of decoded instructions.
//
// Small blocks of code, each jumping to the next, are so far apart that all fall into one set. The
// control has the same blocks in sets of their own. The instruction cache has sets too, and so has
// the branch target buffer. So two blocks of the witness take two entries of decoded instructions
// each, but one line and one jump. They must make the row end earlier by four.

/// Bytes after which the sets of any such cache repeat. The largest published one has 64 sets of 64
/// bytes (Zen 4: AMD, Software Optimization Guide, 57647).
const SETS: usize = 8 << 10;
/// Instructions of a one-entry block without its jump: every entry holds six. They fit a window of
/// 32 bytes.
const FEW: usize = 4;
/// Instructions of a two-entry block without its jump: no entry holds more than nine operations
/// (Zen 4, as above). They fit a window of 32 bytes.
const MANY: usize = 10;
/// Number of two-entry blocks in the witness.
const BEFORE: usize = 2;
/// int3, which never runs.
const TRAP: u8 = 0xcc;
/// Bytes of a jump.
const JUMP: usize = 5;

/// Blocks `apart` bytes from each other. The first `before` blocks have two entries each; the
/// others have instructions of this kind.
fn jump_blocks(number: usize, before: usize, apart: usize, instruction: fn(usize) -> Vec<u8>) -> StepLoop {
    let mut body = Vec::new();
    let last = before + number - 1;
    for block in 0..=last {
        let begin = body.len();
        match block < before {
            true => (0..MANY).for_each(|place| body.extend(zeroing_of_length(2, place))),
            false => (0..FEW).for_each(|place| body.extend(instruction(place))),
        }
        // The last block continues to the loop's own jump.
        if block < last {
            let distance = (apart - (body.len() - begin) - JUMP) as i32;
            body.push(0xe9);
            body.extend(distance.to_le_bytes());
            body.resize(begin + apart, TRAP);
        }
    }
    straight_loop(body, before + number)
}

fn zeroing_instruction(place: usize) -> Vec<u8> {
    zeroing_of_length(3, place)
}

fn mov_instruction(place: usize) -> Vec<u8> {
    mov_reg_of_length(4, place)
}

// Instructions with long constants, from the cache of decoded instructions.

/// Steps per iteration, few enough for every cache of decoded instructions.
const STEPS: usize = 24;

/// Bytes of each instruction; those with short constants get prefixes.
const LONG_BYTES: usize = 10;

/// A loop over these instructions in turn. All have the same length.
fn loop_in_turn(all: &[&str]) -> StepLoop {
    let all: Vec<Vec<u8>> = all.iter().map(|text| pad_with_prefixes(&assemble(text), LONG_BYTES)).collect();
    loop_in_pages(all.iter().cycle().take(STEPS).flatten().copied().collect(), STEPS, 1)
}

// The room that long constants take in the cache of decoded instructions.
//
// Each sixth instruction has a constant, long or short, and prefixes give both the same length.
// Code of long instructions alone ends where the instruction cache does: it fills few entries. The
// short instructions between them fill the rest.

/// Instructions for each constant.
const CONSTANT_EVERY: usize = 6;
/// Constants that follow each other in the programs that have them together.
const TOGETHER: usize = 3;
/// The longest instruction with a constant, in bytes.
const CONSTANT_BYTES: usize = 11;

/// Instructions with constants, in turn.
#[derive(Debug, Clone, Copy)]
enum ConstantKind {
    ShortMove,
    LongMove,
    ShortCompare,
    LongCompare,
    ShortRelative,
    LongRelative,
}

/// The kinds; programs refer to them by index.
const CONSTANT_KINDS: [ConstantKind; 6] = [
    ConstantKind::ShortMove,
    ConstantKind::LongMove,
    ConstantKind::ShortCompare,
    ConstantKind::LongCompare,
    ConstantKind::ShortRelative,
    ConstantKind::LongRelative,
];

impl ConstantKind {
    /// The instruction, of `CONSTANT_BYTES`. A relative address is that of the instruction itself.
    fn instruction(self) -> Vec<u8> {
        let code = match self {
            ConstantKind::ShortMove => assemble("mov esi, 0x123456"),
            ConstantKind::LongMove => assemble("mov rsi, 0x123456789abcdef1"),
            ConstantKind::ShortCompare | ConstantKind::ShortRelative => assemble("cmp dword ptr [r14 + 8], 1"),
            ConstantKind::LongCompare => assemble("cmp dword ptr [r14 + 4104], 0x12345678"),
            // cmp dword ptr [rip - 12], 0x12345678
            ConstantKind::LongRelative => {
                let distance = -(CONSTANT_BYTES as i32);
                [&[0x81, 0x3d][..], &distance.to_le_bytes(), &0x1234_5678i32.to_le_bytes()].concat()
            }
        };
        pad_with_prefixes(&code, CONSTANT_BYTES)
    }
}

/// The numbers: the kind of constants, the kind of instructions between them, and how many constants
/// follow each other.
fn steps_with_constants(instructions: usize, inputs: &Inputs) -> StepLoop {
    let [kind, between, together, _] = inputs.numbers;
    let constant = CONSTANT_KINDS[kind].instruction();
    let steps = instructions / STEP;
    let mut body = Vec::new();
    for place in 0..STEP * steps {
        match place % (CONSTANT_EVERY * together) < together {
            true => body.extend(&constant),
            _ if between == 0 => body.extend(zeroing_of_length(2, place)),
            _ => body.extend(mov_reg_of_length(2, place)),
        }
    }
    loop_in_pages(body, steps, 2)
}

const fn with_constants(kind: usize, together: usize) -> [ProgramFamily; 2] {
    [
        ProgramVariant::built("among xor r32, same", steps_with_constants, [""; 4], [kind, 0, together, 0]).family,
        ProgramVariant::built("among mov r32, r32", steps_with_constants, [""; 4], [kind, 1, together, 0]).family,
    ]
}

/// Constants of a kind, and of the kind before it, which is short.
const fn constant_row(name: &'static str, kind: usize, together: usize) -> RoomRow {
    RoomRow { name, large: with_constants(kind, together), small: with_constants(kind - 1, together) }
}

pub(crate) const TESTS: &[TestSpec] = &[
    TestSpec {
        name: "constant_room",
        about: "how much more room code with long constants takes in the cache of decoded instructions",
        definition: "instructions, each sixth of them with a short constant, that the cache of decoded instructions \
                     holds, for each that it holds with a long constant in an instruction of the same length, one \
                     by one or three together; more than one where a long constant takes a second entry and the \
                     entries of this mixture have no room for it",
        source: FOG,
        answers: &["ucache_double_entries"],
        part: TestedPart::FrontEnd,
        experiment: Experiment::Rooms(RoomsSpec {
            rows: &[
                constant_row("immediate_64", 1, 1),
                constant_row("immediate_64_together", 1, TOGETHER),
                constant_row("displacement_32_and_immediate_32", 3, 1),
                constant_row("displacement_32_and_immediate_32_together", 3, TOGETHER),
                constant_row("relative_and_immediate_32", 5, 1),
                constant_row("relative_and_immediate_32_together", 5, TOGETHER),
            ],
            // Code of the largest count fits an instruction cache of 32 KiB: 21 bytes for six.
            count_range: [10 * STEP, 270 * STEP],
            count_step: STEP,
            min_ratio: 1.25,
        }),
    },
    TestSpec {
        name: "uop_cache",
        about: "how many instructions the core has at hand decoded",
        definition: "instructions of three bytes that run as fast as in a shorter loop; where decoders are as fast \
                     as the core, of a loop in which mispredicted branches delay what follows no longer than in a \
                     shorter one: entries of that cache that end where a line of code does are full in part",
        source: FOG,
        answers: &["loop_size", "ucache_size"],
        part: TestedPart::FrontEnd,
        experiment: Experiment::Levels(LevelsSpec {
            programs: &[
                ProgramFamily::new("xor r32, same", |instructions| straight_steps(instructions, zeroing_of_length)),
                ProgramFamily::new("mov r32, r32", |instructions| straight_steps(instructions, mov_reg_of_length)),
            ],
            fallback_programs: &[
                ProgramFamily::new("lea, every 20th a branch", lea_and_branches),
                ProgramFamily::new("test, every 12th a branch", test_and_branches),
            ],
            // Code of the largest count fits an instruction cache of 32 KiB.
            count_range: [320, 9600],
            min_rise: 1.0,
            min_ratio: 1.08,
            // Windows of code select its sets by address, and fill entries depending on where
            // instructions lie in them.
            fills_randomly: true,
            ..LevelsSpec::COUNTS
        }),
    },
    TestSpec {
        name: "uop_cache_ways",
        about: "how many entries a set of the cache of decoded instructions holds",
        definition: "blocks of five instructions with the same address modulo 8 KiB that are all in the cache of \
                     decoded instructions, one in each entry",
        source: FOG,
        answers: &["ucache_size"],
        part: TestedPart::FrontEnd,
        experiment: Experiment::Batches(BatchesSpec {
            programs: &[
                ProgramFamily::new("xor r32, same", |number| jump_blocks(number, 0, SETS, zeroing_instruction))
                    .less(|number| jump_blocks(number, 0, SETS + LINE, zeroing_instruction)),
                ProgramFamily::new("mov r32, r32", |number| jump_blocks(number, 0, SETS, mov_instruction))
                    .less(|number| jump_blocks(number, 0, SETS + LINE, mov_instruction)),
            ],
            single_event: &ProgramFamily::new("a block", |_| jump_blocks(2, 0, SETS + LINE, zeroing_instruction)),
            witness: &WitnessProgram {
                family: ProgramFamily::new("xor r32, same, behind two blocks of two entries", |number| {
                    jump_blocks(number, BEFORE, SETS, zeroing_instruction)
                })
                .less(|number| jump_blocks(number, BEFORE, SETS + LINE, zeroing_instruction)),
                occupied: 2 * BEFORE,
            },
            uncounted_events: 0,
            last_event_slack: 0.15,
            counts: &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 24],
            also_occupies: &[],
            pacing_test: "branch_rate",
        }),
    },
    TestSpec {
        name: "long_constants",
        about: "what instructions with long constants take longer than with short ones",
        definition: "core cycles by which an instruction takes longer in a short loop than one of as many bytes \
                     with shorter constants: where the cache of decoded instructions keeps such a constant beside \
                     its entry, or in a second one",
        source: FOG,
        answers: &["ucache_double_entries"],
        part: TestedPart::FrontEnd,
        experiment: Experiment::Contrast(ContrastSpec {
            rows: &[TestRow::new(
                "immediate_64",
                &[
                    ProgramVariant::new("mov of 64 bits to three registers, less of 32", |_| {
                        loop_in_turn(&[
                            "mov rax, 0x123456789abcdef1",
                            "mov rbx, 0x213456789abcdef1",
                            "mov rsi, 0x31456789abcdef12",
                        ])
                    })
                    .less_generated(|_| {
                        loop_in_turn(&["mov eax, 0x12345678", "mov ebx, 0x21345678", "mov esi, 0x31456789"])
                    }),
                    ProgramVariant::new("mov of 64 bits to four other registers, less of 32", |_| {
                        loop_in_turn(&[
                            "mov r8, 0x123456789abcdef1",
                            "mov r9, 0x213456789abcdef1",
                            "mov r10, 0x31456789abcdef12",
                            "mov r11, 0x413456789abcdef1",
                        ])
                    })
                    .less_generated(|_| {
                        loop_in_turn(&[
                            "mov r8d, 0x12345678",
                            "mov r9d, 0x21345678",
                            "mov r10d, 0x31456789",
                            "mov r11d, 0x41345678",
                        ])
                    }),
                ],
            )],
            tolerance: 0.06,
            tolerance_share: 0.2,
            slot_costs: &[],
        }),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_list::find_test;
    use iced_x86::{Decoder, DecoderOptions, FlowControl};
    use std::collections::BTreeSet;

    #[test]
    fn programs_have_the_counted_instructions_and_fit_the_instruction_cache() {
        for (program, each) in [(lea_and_branches as fn(usize) -> StepLoop, 20), (test_and_branches, 12)] {
            let steps = program(9600);
            let all: Vec<_> = Decoder::new(64, &steps.body, DecoderOptions::NONE).iter().collect();
            let branches: Vec<_> =
                all.iter().filter(|instruction| instruction.flow_control() == FlowControl::ConditionalBranch).collect();
            assert_eq!((all.len(), branches.len(), steps.steps_per_iteration), (9600, 9600 / each, 9600 / each));
            assert!(branches.iter().all(|branch| branch.near_branch_target() == branch.next_ip()));
            assert!(steps.body.len() < 32 << 10, "{}", steps.body.len());
        }
    }

    #[test]
    fn each_block_jumps_to_the_next_and_fits_a_window() {
        for (before, instruction) in
            [(0, zeroing_instruction as fn(usize) -> Vec<u8>), (BEFORE, zeroing_instruction), (0, mov_instruction)]
        {
            let steps = jump_blocks(7, before, SETS, instruction);
            for block in 0..before + 6 {
                let begin = block * SETS;
                let code = &steps.body[begin..begin + 32];
                let number = if block < before { MANY } else { FEW };
                let all: Vec<_> =
                    Decoder::with_ip(64, code, begin as u64, DecoderOptions::NONE).iter().take(number + 1).collect();
                let jump = all[number];
                assert_eq!(jump.flow_control(), FlowControl::UnconditionalBranch);
                assert_eq!(jump.near_branch_target(), (begin + SETS) as u64);
                assert!(jump.next_ip() <= begin as u64 + 32);
            }
            assert_eq!(steps.steps_per_iteration, before + 7);
        }
    }
    /// The largest window of code with entries of its own, in bytes (Zen 4, as above).
    const WINDOW: usize = 64;
    /// The largest number of sets (Zen 4, as above).
    const SETS_MOST: usize = 64;
    /// The least and the largest number of instructions in an entry, over all cores.
    const HELD: [usize; 2] = [6, 9];

    /// The offset of each block, and its number of instructions before the jump.
    fn begins(steps: &StepLoop) -> Vec<(usize, usize)> {
        let (mut begins, mut number) = (vec![0], 0);
        let mut numbers = Vec::new();
        for instruction in Decoder::with_ip(64, &steps.body, 0, DecoderOptions::NONE).iter() {
            match instruction.flow_control() {
                FlowControl::UnconditionalBranch => {
                    begins.push(instruction.near_branch_target() as usize);
                    numbers.push(number);
                    number = 0;
                }
                FlowControl::Interrupt => {}
                _ => number += 1,
            }
        }
        numbers.push(number);
        begins.into_iter().zip(numbers).collect()
    }

    #[test]
    fn blocks_share_a_set_and_control_blocks_do_not() {
        let Experiment::Batches(batches) = &find_test("uop_cache_ways").experiment else {
            unreachable!("it is one of batches")
        };
        let most = batches.counts[batches.counts.len() - 1];
        for family in batches.programs.iter().chain([&batches.witness.family]) {
            let sets = |steps: &StepLoop| -> BTreeSet<usize> {
                begins(steps).iter().map(|(begin, _)| begin / WINDOW % SETS_MOST).collect()
            };
            let (own, control) = (family.program(most), family.control(most).expect("it subtracts"));
            assert_eq!((sets(&own).len(), sets(&control).len()), (1, begins(&control).len()), "{}", family.name);
        }
    }

    #[test]
    fn blocks_take_one_entry_and_witness_blocks_two() {
        let Experiment::Batches(batches) = &find_test("uop_cache_ways").experiment else {
            unreachable!("it is one of batches")
        };
        let entries = |family: &ProgramFamily| {
            let each = |(_, number): (usize, usize)| match number + 1 {
                few if few <= HELD[0] => 1,
                many if many > HELD[1] => 2,
                _ => panic!("it may be either"),
            };
            begins(&family.program(7)).into_iter().map(each).sum::<usize>()
        };
        assert!(batches.programs.iter().all(|family| entries(family) == 7));
        assert_eq!(entries(&batches.witness.family), 7 + batches.witness.occupied);
    }
}
