//! Targets of indirect jumps that each have one.

use crate::spec::*;

/// Repeats the code `number` times. A copy begins `apart` bytes behind the one before.
fn repeat_padded(one: &[u8], number: usize, apart: usize) -> Vec<u8> {
    let between = apart - one.len();
    [one, &nop_of_length(between / 2), &nop_of_length(between.div_ceil(2))].concat().repeat(number)
}

/// Each jump to the next one, whose address it gets by its own.
fn own_address(number: usize, apart: usize) -> StepLoop {
    // lea rcx, [rip + distance]; jmp rcx
    const LEA: [u8; 3] = [0x48, 0x8d, 0x0d];
    const LEA_BYTES: usize = 7;
    let distance = (apart - LEA_BYTES) as i32;
    let one = [&LEA[..], &distance.to_le_bytes(), &JMP_RCX].concat();
    straight_loop(repeat_padded(&one, number, apart), number)
}

/// Each jump to the next one, whose address it gets by that of the one before.
fn from_address(number: usize, apart: usize) -> StepLoop {
    // lea rcx, [rip], which is the address of the first step: add rcx, apart; jmp rcx
    const LEA: [u8; 7] = [0x48, 0x8d, 0x0d, 0, 0, 0, 0];
    let one = [&[0x48, 0x83, 0xc1, apart as u8][..], &JMP_RCX].concat();
    straight_loop([&LEA[..], &repeat_padded(&one, number, apart)].concat(), number)
}

const JMP_RCX: [u8; 2] = [0xff, 0xe1];

/// Bytes from a jump to the next one: so few are in a line that the cost has a level of its own behind the end of the instruction cache.
const APART: usize = 32;

fn lea_and_jmp(number: usize) -> StepLoop {
    own_address(number, APART)
}

fn add_and_jmp(number: usize) -> StepLoop {
    from_address(number, APART)
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "indirect_targets",
    about: "how many indirect jumps, each with one target, the core knows before it has executed them",
    definition: "indirect jumps, one in 32 bytes, each always to the next one, of which about half are still known: tables that are found by \
                 hashes fill by chance",
    source: "M. Godbolt, The BTB in contemporary Intel chips (2016)",
    answers: &[],
    part: TestedPart::FrontEnd,
    experiment: Experiment::Levels(LevelsSpec {
        programs: &[
            ProgramFamily::new("lea and jmp r64", lea_and_jmp),
            ProgramFamily::new("add and jmp r64", add_and_jmp),
        ],
        also_occupies: &[("instruction_cache", APART)],
        count_range: [64, 12288],
        min_rise: 0.5,
        min_ratio: 1.3,
        fills_randomly: true,
        cost_definition: Some("core cycles of an indirect jump to the next one"),
        ..LevelsSpec::COUNTS
    }),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Mnemonic};

    #[test]
    fn each_jump_goes_to_the_next_one() {
        let own = lea_and_jmp(10).body;
        let all: Vec<_> = Decoder::new(64, &own, DecoderOptions::NONE).iter().collect();
        let ends: Vec<u64> = (1..=10).map(|place| 32 * place).collect();
        let addresses = all.iter().filter(|one| one.mnemonic() == Mnemonic::Lea);
        assert_eq!(addresses.map(|lea| lea.ip_rel_memory_address()).collect::<Vec<_>>(), ends);
        let from = add_and_jmp(10).body;
        let all: Vec<_> = Decoder::new(64, &from, DecoderOptions::NONE).iter().collect();
        let mut at = all[0].ip_rel_memory_address();
        for one in all.iter().filter(|one| one.mnemonic() == Mnemonic::Add) {
            assert_eq!(one.ip(), at, "the jump before it goes here");
            at += one.immediate(1);
        }
        assert_eq!(at, from.len() as u64);
    }
}
