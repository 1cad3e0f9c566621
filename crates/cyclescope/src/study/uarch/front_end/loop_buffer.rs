//! The buffer of short loops.
//!
//! From it a loop runs as fast as the core is wide, however long its instructions are. From the cache of decoded instructions and from the
//! decoders those of the greatest length come more slowly: a few fill a window of code.

use crate::study::uarch::test::lengths::{copy_of, move_of, nop_of, zero_of};
use crate::study::uarch::test::walk::{Steps, Walk, Walks, straight};
use crate::study::uarch::test::{Look, Part, Test};
use crate::unit::Unit;

/// Bytes of an instruction: the most that x86 allows (Intel SDM vol. 2, 2.3.11).
const LENGTH: usize = 15;

/// The two that count a loop's iterations, of which many cores make one.
const COUNTING: usize = 1;

/// A loop of this number of instructions.
fn looped(number: usize, one: fn(usize) -> Vec<u8>) -> Steps {
    Steps { steps: number + COUNTING, ..straight((0..number).flat_map(one).collect(), number) }
}

fn nops(number: usize) -> Steps {
    looped(number, |_| nop_of(LENGTH))
}

fn zeros(number: usize) -> Steps {
    looped(number, |place| zero_of(LENGTH, place))
}

fn moves(number: usize) -> Steps {
    looped(number, |place| move_of(LENGTH, place))
}

fn copies(number: usize) -> Steps {
    looped(number, |place| copy_of(LENGTH, place))
}

pub(in crate::study::uarch) const TEST: Test = Test {
    name: "loop_buffer",
    about: "how many instructions a loop may have that the core keeps in a buffer of its own",
    definition: "instructions of 15 bytes of a loop in which each comes as fast as in a shorter one, without those that count it; none where loops that \
                 only a cache of decoded instructions holds are as fast",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::FrontEnd,
    look: Look::Levels(Walks {
        walks: &[
            Walk { name: "nop", program: nops, without: None },
            Walk { name: "xor r32, same", program: zeros, without: None },
            Walk { name: "mov r32, immediate", program: moves, without: None },
            Walk { name: "mov r32, r32", program: copies, without: None },
        ],
        others: &[],
        takes: &[],
        beside: None,
        // Loop buffers hold from 18 instructions (Core 2: A. Fog, as above) to 144 (Zen 4, where none is used any more: Chips and Cheese, 2024).
        counts: [8, 320],
        unit: Unit::Count,
        rise: 0.03,
        // Windows of code give two thirds of a width of six, or half of one of four.
        ratio: 1.3,
        by_chance: false,
        one: true,
        always: false,
        cost: None,
        bytes: 0,
    }),
};
