//! The buffer of short loops.
//!
//! From it a loop runs as fast as the core is wide, however long its instructions are. From the cache of decoded instructions and from the
//! decoders those of the greatest length come more slowly: a few fill a window of code.

use crate::test::lengths::{copy_of, move_of, nop_of, zero_of};
use crate::test::walk::{Steps, Walk, Walks, straight};
use crate::test::{Look, Part, Test};
use cyclescope_core::unit::Unit;

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

pub(crate) const TEST: Test = Test {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::climb::climb;
    use crate::cost::{CostPoint, Costs};
    use crate::verdict::Kind;
    use cyclescope_core::error::RunError;
    use cyclescope_core::random::Random;
    use iced_x86::{Decoder, DecoderOptions};

    /// The buffers that are published hold from 18 instructions to 144 (see the counts).
    const PUBLISHED: [usize; 2] = [18, 144];

    fn asked() -> &'static Walks {
        let test: &'static Test = &TEST;
        let Look::Levels(walks) = &test.look else { unreachable!("it is one of levels") };
        walks
    }

    #[test]
    fn each_instruction_is_as_long_as_any_and_those_that_count_are_part_of_a_loop() {
        for walk in asked().walks {
            let steps = (walk.program)(40);
            let lengths =
                Decoder::new(64, &steps.body, DecoderOptions::NONE).into_iter().map(|one| one.len());
            assert_eq!(lengths.collect::<Vec<_>>(), [15; 40], "{}", walk.name);
            assert_eq!(steps.steps, 41);
        }
    }

    /// A core that takes six instructions of a loop in a cycle, and behind the end of the buffer windows of two of them.
    struct Six {
        buffer: usize,
        behind: f64,
    }

    impl Costs for Six {
        fn cost(&mut self, _: &Walk, n: usize) -> Result<Option<CostPoint>, RunError> {
            let cost = if n <= self.buffer { 1.0 / 6.0 } else { 1.0 / self.behind };
            Ok(Some(CostPoint { n, cost, low: cost, high: cost }))
        }
    }

    #[test]
    fn buffers_of_all_published_sizes_are_seen_where_a_third_of_the_width_is_lost() {
        let found = |buffer, behind| {
            let mut core = Six { buffer, behind };
            let records = climb(&mut core, &TEST, asked(), asked().counts[1], &mut Random::new(5));
            let records = records.expect("it has costs");
            (records.len(), records[0].verdict, records[0].value.value)
        };
        for buffer in PUBLISHED {
            for behind in [3.0, 4.0] {
                assert_eq!(found(buffer, behind), (1, Kind::Found, Some(buffer as f64)), "{behind}");
            }
            assert_eq!(found(buffer, 5.5), (1, Kind::None, None), "what loses a little is no buffer");
        }
    }
}
