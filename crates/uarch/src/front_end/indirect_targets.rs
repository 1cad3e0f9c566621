//! Targets of indirect jumps that each have one.

use crate::test::lengths::nop_of;
use crate::test::walk::{Steps, Walk, Walks, straight};
use crate::test::{Look, Part, Test};
use cyclescope_core::unit::Unit;

/// Repeats the code `number` times. A copy begins `apart` bytes behind the one before.
fn row(one: &[u8], number: usize, apart: usize) -> Vec<u8> {
    let between = apart - one.len();
    [one, &nop_of(between / 2), &nop_of(between.div_ceil(2))].concat().repeat(number)
}

/// Each jump to the next one, whose address it gets by its own.
fn own_address(number: usize, apart: usize) -> Steps {
    // lea rcx, [rip + distance]; jmp rcx
    const LEA: [u8; 3] = [0x48, 0x8d, 0x0d];
    const LEA_BYTES: usize = 7;
    let distance = (apart - LEA_BYTES) as i32;
    let one = [&LEA[..], &distance.to_le_bytes(), &JMP_RCX].concat();
    straight(row(&one, number, apart), number)
}

/// Each jump to the next one, whose address it gets by that of the one before.
fn from_address(number: usize, apart: usize) -> Steps {
    // lea rcx, [rip], which is the address of the first step: add rcx, apart; jmp rcx
    const LEA: [u8; 7] = [0x48, 0x8d, 0x0d, 0, 0, 0, 0];
    let one = [&[0x48, 0x83, 0xc1, apart as u8][..], &JMP_RCX].concat();
    straight([&LEA[..], &row(&one, number, apart)].concat(), number)
}

const JMP_RCX: [u8; 2] = [0xff, 0xe1];

/// Bytes from a jump to the next one: so few are in a line that the cost has a level of its own behind the end of the instruction cache.
const APART: usize = 32;

fn own(number: usize) -> Steps {
    own_address(number, APART)
}

fn from_last(number: usize) -> Steps {
    from_address(number, APART)
}

pub(crate) const TEST: Test = Test {
    name: "indirect_targets",
    about: "how many indirect jumps, each with one target, the core knows before it has executed them",
    definition: "indirect jumps, one in 32 bytes, each always to the next one, of which about half are still known: tables that are found by \
                 hashes fill by chance",
    source: "M. Godbolt, The BTB in contemporary Intel chips (2016)",
    part: Part::FrontEnd,
    look: Look::Levels(Walks {
        walks: &[
            Walk { name: "lea and jmp r64", program: own, without: None },
            Walk { name: "add and jmp r64", program: from_last, without: None },
        ],
        others: &[],
        takes: &[("instruction_cache", APART)],
        beside: None,
        counts: [64, 12288],
        unit: Unit::Count,
        rise: 0.5,
        ratio: 1.3,
        by_chance: true,
        one: false,
        always: false,
        cost: Some("core cycles of an indirect jump to the next one"),
        bytes: 0,
    }),
};

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Mnemonic};

    #[test]
    fn each_jump_goes_to_the_next_one() {
        let own = own(10).body;
        let all: Vec<_> = Decoder::new(64, &own, DecoderOptions::NONE).iter().collect();
        let ends: Vec<u64> = (1..=10).map(|place| 32 * place).collect();
        let addresses = all.iter().filter(|one| one.mnemonic() == Mnemonic::Lea);
        assert_eq!(addresses.map(|lea| lea.ip_rel_memory_address()).collect::<Vec<_>>(), ends);
        let from = from_last(10).body;
        let all: Vec<_> = Decoder::new(64, &from, DecoderOptions::NONE).iter().collect();
        let mut at = all[0].ip_rel_memory_address();
        for one in all.iter().filter(|one| one.mnemonic() == Mnemonic::Add) {
            assert_eq!(one.ip(), at, "the jump before it goes here");
            at += one.immediate(1);
        }
        assert_eq!(at, from.len() as u64);
    }
}
