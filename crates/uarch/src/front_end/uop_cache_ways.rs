//! The ways of the cache of decoded instructions.
//!
//! Small blocks of code, each of which jumps to the next, lie so far from each other that all are in one set. The same blocks in sets of their own are
//! subtracted. The instruction cache has sets, and so has what knows jumps: in the witness two blocks take two entries of decoded instructions each, but one
//! line and one jump, and have to end the row by four earlier.

use crate::spec::*;

/// Bytes after which the sets of any such cache begin again: 64 sets of 64 bytes are the most that are published (Zen 4: AMD, Software Optimization Guide,
/// 57647).
const SETS: usize = 8 << 10;
/// Instructions of a block beside its jump: of one entry, as none holds less than six, and of two, as none holds more than nine operations (Zen 4, as
/// above) and a window of 32 bytes has room for all of them.
const FEW: usize = 4;
const MANY: usize = 10;
/// Blocks of two entries in the witness.
const BEFORE: usize = 2;
/// int3, which is never reached.
const TRAP: u8 = 0xcc;
/// Bytes of a jump.
const JUMP: usize = 5;

/// So many blocks so far from each other, behind some of two entries; each of the others is of instructions of this kind.
fn jump_blocks(number: usize, before: usize, apart: usize, one: fn(usize) -> Vec<u8>) -> StepLoop {
    let mut body = Vec::new();
    let last = before + number - 1;
    for block in 0..=last {
        let begin = body.len();
        match block < before {
            true => (0..MANY).for_each(|place| body.extend(zeroing_of_length(2, place))),
            false => (0..FEW).for_each(|place| body.extend(one(place))),
        }
        // The last one goes on to the loop's own jump.
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

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "uop_cache_ways",
    about: "how many entries a set of the cache of decoded instructions holds",
    definition: "blocks of five instructions with the same address modulo 8 KiB that are all in the cache of decoded instructions, one in each entry",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    answers: &["ucache_size"],
    part: TestedPart::FrontEnd,
    experiment: Experiment::Batches(BatchesSpec {
        programs: &[
            ProgramFamily::new("xor r32, same", |number| jump_blocks(number, 0, SETS, zeroing_instruction))
                .less(|number| jump_blocks(number, 0, SETS + LINE, zeroing_instruction)),
            ProgramFamily::new("mov r32, r32", |number| jump_blocks(number, 0, SETS, mov_instruction))
                .less(|number| jump_blocks(number, 0, SETS + LINE, mov_instruction)),
        ],
        single_event: ProgramFamily::new("a block", |_| jump_blocks(2, 0, SETS + LINE, zeroing_instruction)),
        witness: WitnessProgram {
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
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_list::find_test;
    use iced_x86::{Decoder, DecoderOptions, FlowControl};
    use std::collections::BTreeSet;

    #[test]
    fn each_block_jumps_to_the_next_and_lies_in_a_window() {
        for (before, one) in
            [(0, zeroing_instruction as fn(usize) -> Vec<u8>), (BEFORE, zeroing_instruction), (0, mov_instruction)]
        {
            let steps = jump_blocks(7, before, SETS, one);
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
    /// Bytes of a part of code that has entries of its own at most, and sets of the largest cache (Zen 4, as above).
    const WINDOW: usize = 64;
    const SETS_MOST: usize = 64;
    /// Instructions that an entry holds at least, on all cores, and at most.
    const HELD: [usize; 2] = [6, 9];

    /// Where blocks begin, by the jumps to them, and instructions of each before its jump.
    fn begins(steps: &StepLoop) -> Vec<(usize, usize)> {
        let (mut begins, mut number) = (vec![0], 0);
        let mut numbers = Vec::new();
        for one in Decoder::with_ip(64, &steps.body, 0, DecoderOptions::NONE).iter() {
            match one.flow_control() {
                FlowControl::UnconditionalBranch => {
                    begins.push(one.near_branch_target() as usize);
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
    fn blocks_are_in_one_set_and_those_of_the_control_in_sets_of_their_own() {
        let Experiment::Batches(batches) = &find_test("uop_cache_ways").experiment else {
            unreachable!("it is one of batches")
        };
        let most = batches.counts[batches.counts.len() - 1];
        for walk in batches.programs.iter().chain([&batches.witness.family]) {
            let sets = |steps: &StepLoop| -> BTreeSet<usize> {
                begins(steps).iter().map(|(begin, _)| begin / WINDOW % SETS_MOST).collect()
            };
            let (own, control) = (walk.program(most), walk.control(most).expect("it subtracts"));
            assert_eq!((sets(&own).len(), sets(&control).len()), (1, begins(&control).len()), "{}", walk.name);
        }
    }

    #[test]
    fn blocks_have_an_entry_each_and_those_of_the_witness_two() {
        let Experiment::Batches(batches) = &find_test("uop_cache_ways").experiment else {
            unreachable!("it is one of batches")
        };
        let entries = |walk: &ProgramFamily| {
            let each = |(_, number): (usize, usize)| match number + 1 {
                few if few <= HELD[0] => 1,
                many if many > HELD[1] => 2,
                _ => panic!("it may be either"),
            };
            begins(&walk.program(7)).into_iter().map(each).sum::<usize>()
        };
        assert!(batches.programs.iter().all(|walk| entries(walk) == 7));
        assert_eq!(entries(&batches.witness.family), 7 + batches.witness.occupied);
    }
}
