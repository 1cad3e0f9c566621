//! Jumps, conditional branches and calls that the core predicts before it decodes them.

use crate::spec::*;

// Targets of direct jumps, by the distance from one jump to the next.

/// Opcodes of a jump with a distance of four bytes, and of one byte.
const JMP_NEAR: [u8; 1] = [0xe9];
const JMP_SHORT: [u8; 1] = [0xeb];

/// int3, which never runs.
const TRAP: u8 = 0xcc;

/// Jumps in a row, each to the next one, this many bytes apart. The distance is encoded in four
/// bytes.
pub(super) fn near_branches(opcode: &[u8], number: usize, apart: usize) -> Vec<u8> {
    let distance = (apart - opcode.len() - 4) as i32;
    pad_branches([opcode, &distance.to_le_bytes()].concat(), number, apart)
}

/// The same with the distance encoded in one byte.
pub(super) fn short_branches(opcode: &[u8], number: usize, apart: usize) -> Vec<u8> {
    pad_branches([opcode, &[(apart - opcode.len() - 1) as u8]].concat(), number, apart)
}

fn pad_branches(mut branch: Vec<u8>, number: usize, apart: usize) -> Vec<u8> {
    branch.resize(apart, TRAP);
    branch.repeat(number)
}

const JUMP_COST: &str = "core cycles of a taken jump to the next one";
/// The least rise from one level to the next, in core cycles and as a ratio. Among many jumps,
/// known ones cost more too (Zen 4: 1.0, 1.55 and 2.05 cycles, 16 bytes apart; 1.0 to 3.1 without
/// clear steps, 32 bytes apart).
pub(super) const LEVELS: [f64; 2] = [0.3, 1.45];
/// The least rise where jumps become unknown.
pub(super) const UNKNOWN: [f64; 2] = [2.0, 4.0];

/// A test of branch targets. `cost` says what a step costs.
pub(super) const fn target_levels(
    programs: &'static [ProgramFamily],
    takes: &'static [(&'static str, usize)],
    [rise, ratio]: [f64; 2],
    cost: &'static str,
) -> Experiment {
    Experiment::Levels(LevelsSpec {
        programs,
        also_occupies: takes,
        count_range: [64, 24576],
        min_rise: rise,
        min_ratio: ratio,
        cost_definition: Some(cost),
        ..LevelsSpec::COUNTS
    })
}

// Targets of conditional branches, by the distance from one branch to the next.

/// Opcodes of jc with a distance of four bytes, and of one byte.
const JC_NEAR: [u8; 2] = [0x0f, 0x82];
const JC_SHORT: [u8; 1] = [0x72];

/// Branches that are always taken.
fn always_taken(branches: Vec<u8>, number: usize) -> StepLoop {
    straight_loop([assemble("stc"), branches].concat(), number)
}

const CONDITIONAL_COST: &str = "core cycles of a taken conditional branch to the next one";

// Targets of direct calls.

/// This many calls, each to the next one, this many bytes apart. Each callee pops its return
/// address, and no return has to be predicted.
fn calls_without_returns(number: usize, take_off: &str) -> StepLoop {
    const CALL: usize = 5;
    let target = assemble(take_off);
    // Some cores do not treat a call of the very next instruction as a call.
    let between = CALL_DISTANCE - CALL - target.len();
    let call = [&[0xe8][..], &(between as i32).to_le_bytes(), &vec![TRAP; between], &target].concat();
    // Calls need a stack.
    StepLoop { init: assemble("lea rsp, [r14 + 2048]"), ..loop_in_pages(call.repeat(number), number, 1) }
}

/// Bytes from a call to the next one. Nearer calls share lines, and their cost rises slowly when
/// the lines no longer fit.
const CALL_DISTANCE: usize = 64;
fn add_calls(number: usize) -> StepLoop {
    calls_without_returns(number, "add rsp, 8")
}

fn lea_calls(number: usize) -> StepLoop {
    calls_without_returns(number, "lea rsp, [rsp + 8]")
}

// Targets of indirect jumps with one target each.

/// Repeats the code `number` times. Copies begin `apart` bytes from each other.
fn repeat_padded(code: &[u8], number: usize, apart: usize) -> Vec<u8> {
    let between = apart - code.len();
    [code, &nop_of_length(between / 2), &nop_of_length(between.div_ceil(2))].concat().repeat(number)
}

/// Jumps, each to the next one. Each computes its target from its own address.
fn own_address(number: usize, apart: usize) -> StepLoop {
    // lea rcx, [rip + distance]; jmp rcx
    const LEA: [u8; 3] = [0x48, 0x8d, 0x0d];
    const LEA_BYTES: usize = 7;
    let distance = (apart - LEA_BYTES) as i32;
    let step = [&LEA[..], &distance.to_le_bytes(), &JMP_RCX].concat();
    straight_loop(repeat_padded(&step, number, apart), number)
}

/// Jumps, each to the next one. Each computes its target from the previous target.
fn from_address(number: usize, apart: usize) -> StepLoop {
    // lea rcx, [rip], which is the address of the first step: add rcx, apart; jmp rcx
    const LEA: [u8; 7] = [0x48, 0x8d, 0x0d, 0, 0, 0, 0];
    let step = [&[0x48, 0x83, 0xc1, apart as u8][..], &JMP_RCX].concat();
    straight_loop([&LEA[..], &repeat_padded(&step, number, apart)].concat(), number)
}

const JMP_RCX: [u8; 2] = [0xff, 0xe1];

/// Bytes from a jump to the next one. Few fit in a line: the cost then has a level of its own
/// beyond the end of the instruction cache.
const INDIRECT_DISTANCE: usize = 32;

fn lea_and_jmp(number: usize) -> StepLoop {
    own_address(number, INDIRECT_DISTANCE)
}

fn add_and_jmp(number: usize) -> StepLoop {
    from_address(number, INDIRECT_DISTANCE)
}

pub(crate) const TESTS: &[TestSpec] = &[
    TestSpec {
        name: "branch_targets",
        about: "how many direct jumps the core knows before it has decoded them, one in 16 bytes",
        definition: "taken jumps, one in 16 bytes, of which each is fetched as fast as in a shorter row of them",
        source: GODBOLT,
        answers: &["jmp"],
        part: TestedPart::FrontEnd,
        experiment: target_levels(
            &[
                ProgramFamily::new("jmp rel32, 16 bytes apart", |number| {
                    straight_loop(near_branches(&JMP_NEAR, number, 16), number)
                }),
                ProgramFamily::new("jmp rel8, 16 bytes apart", |number| {
                    straight_loop(short_branches(&JMP_SHORT, number, 16), number)
                }),
            ],
            &[("instruction_cache", 16)],
            LEVELS,
            JUMP_COST,
        ),
    },
    TestSpec {
        name: "branch_targets_32",
        about: "how many direct jumps the core knows before it has decoded them, one in 32 bytes",
        definition: "taken jumps, one in 32 bytes, of which each is fetched in less than four times as long as in a \
                     short row of them: before it is decoded",
        experiment: target_levels(
            &[
                ProgramFamily::new("jmp rel32, 32 bytes apart", |number| {
                    straight_loop(near_branches(&JMP_NEAR, number, 32), number)
                }),
                ProgramFamily::new("jmp rel8, 32 bytes apart", |number| {
                    straight_loop(short_branches(&JMP_SHORT, number, 32), number)
                }),
            ],
            &[("instruction_cache", 32)],
            UNKNOWN,
            JUMP_COST,
        ),
        source: GODBOLT,
        answers: &[],
        part: TestedPart::FrontEnd,
    },
    TestSpec {
        name: "conditional_targets",
        about: "how many conditional branches the core knows before it has decoded them, one in 16 bytes",
        definition: "conditional branches, always taken, one in 16 bytes, of which each is fetched as fast as in a \
                     shorter row of them",
        source: GODBOLT,
        answers: &[],
        part: TestedPart::FrontEnd,
        experiment: target_levels(
            &[
                ProgramFamily::new("jc rel32, 16 bytes apart", |number| {
                    always_taken(near_branches(&JC_NEAR, number, 16), number)
                }),
                ProgramFamily::new("jc rel8, 16 bytes apart", |number| {
                    always_taken(short_branches(&JC_SHORT, number, 16), number)
                }),
            ],
            &[("instruction_cache", 16)],
            LEVELS,
            CONDITIONAL_COST,
        ),
    },
    TestSpec {
        name: "conditional_targets_32",
        about: "how many conditional branches the core knows before it has decoded them, one in 32 bytes",
        definition: "conditional branches, always taken, one in 32 bytes, of which each is fetched in less than \
                     four times as long as in a short row of them: before it is decoded",
        experiment: target_levels(
            &[
                ProgramFamily::new("jc rel32, 32 bytes apart", |number| {
                    always_taken(near_branches(&JC_NEAR, number, 32), number)
                }),
                ProgramFamily::new("jc rel8, 32 bytes apart", |number| {
                    always_taken(short_branches(&JC_SHORT, number, 32), number)
                }),
            ],
            &[("instruction_cache", 32)],
            UNKNOWN,
            CONDITIONAL_COST,
        ),
        source: GODBOLT,
        answers: &[],
        part: TestedPart::FrontEnd,
    },
    TestSpec {
        name: "call_targets",
        about: "how many direct calls the core knows before it has decoded them",
        definition: "calls without returns, one in 64 bytes, of which about half are still known: tables that are \
                     found by hashes fill by chance",
        source: GODBOLT,
        answers: &[],
        part: TestedPart::FrontEnd,
        experiment: Experiment::Levels(LevelsSpec {
            programs: &[
                ProgramFamily::new("call and add rsp", add_calls),
                ProgramFamily::new("call and lea rsp", lea_calls),
            ],
            also_occupies: &[("instruction_cache", CALL_DISTANCE)],
            count_range: [16, 12288],
            min_rise: 0.5,
            min_ratio: 1.3,
            fills_randomly: true,
            cost_definition: Some("core cycles of a call to the next one"),
            ..LevelsSpec::COUNTS
        }),
    },
    TestSpec {
        name: "indirect_targets",
        about: "how many indirect jumps, each with one target, the core knows before it has executed them",
        definition: "indirect jumps, one in 32 bytes, each always to the next one, of which about half are still \
                     known: tables that are found by hashes fill by chance",
        source: GODBOLT,
        answers: &[],
        part: TestedPart::FrontEnd,
        experiment: Experiment::Levels(LevelsSpec {
            programs: &[
                ProgramFamily::new("lea and jmp r64", lea_and_jmp),
                ProgramFamily::new("add and jmp r64", add_and_jmp),
            ],
            also_occupies: &[("instruction_cache", INDIRECT_DISTANCE)],
            count_range: [64, 12288],
            min_rise: 0.5,
            min_ratio: 1.3,
            fills_randomly: true,
            cost_definition: Some("core cycles of an indirect jump to the next one"),
            ..LevelsSpec::COUNTS
        }),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Mnemonic};

    #[test]
    fn each_jump_goes_to_the_next_one() {
        for apart in [16, 32] {
            for body in [near_branches(&JMP_NEAR, 9, apart), short_branches(&JMP_SHORT, 9, apart)] {
                for (number, step) in body.chunks(apart).enumerate() {
                    let ip = (number * apart) as u64;
                    let jump = Decoder::with_ip(64, step, ip, DecoderOptions::NONE).decode();
                    assert!(jump.is_jmp_short_or_near() && jump.near_branch_target() == ip + apart as u64);
                }
            }
        }
    }

    #[test]
    fn each_call_goes_to_the_code_that_pops_its_address() {
        for body in [add_calls(10).body, lea_calls(10).body] {
            let all: Vec<_> = Decoder::new(64, &body, DecoderOptions::NONE).iter().collect();
            let off = [Mnemonic::Add, Mnemonic::Lea];
            let targets: Vec<u64> = all
                .iter()
                .filter(|instruction| off.contains(&instruction.mnemonic()))
                .map(|instruction| instruction.ip())
                .collect();
            let calls: Vec<_> = all.iter().filter(|instruction| instruction.mnemonic() == Mnemonic::Call).collect();
            assert_eq!(calls.iter().map(|call| call.near_branch_target()).collect::<Vec<_>>(), targets);
            assert!(calls.len() == 10 && calls.iter().all(|call| call.near_branch_target() > call.next_ip()));
        }
    }

    #[test]
    fn each_indirect_jump_goes_to_the_next_one() {
        let own = lea_and_jmp(10).body;
        let all: Vec<_> = Decoder::new(64, &own, DecoderOptions::NONE).iter().collect();
        let ends: Vec<u64> = (1..=10).map(|place| 32 * place).collect();
        let addresses = all.iter().filter(|instruction| instruction.mnemonic() == Mnemonic::Lea);
        assert_eq!(addresses.map(|lea| lea.ip_rel_memory_address()).collect::<Vec<_>>(), ends);
        let from = add_and_jmp(10).body;
        let all: Vec<_> = Decoder::new(64, &from, DecoderOptions::NONE).iter().collect();
        let mut at = all[0].ip_rel_memory_address();
        for instruction in all.iter().filter(|instruction| instruction.mnemonic() == Mnemonic::Add) {
            assert_eq!(instruction.ip(), at, "the jump before it goes here");
            at += instruction.immediate(1);
        }
        assert_eq!(at, from.len() as u64);
    }
}
