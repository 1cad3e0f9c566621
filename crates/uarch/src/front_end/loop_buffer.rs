//! The buffer of short loops.
//!
//! From it a loop runs as fast as the core is wide, however long its instructions are. From the cache of decoded instructions and from the
//! decoders those of the greatest length come more slowly: a few fill a window of code.

use crate::spec::*;

/// Bytes of an instruction: the most that x86 allows (Intel SDM vol. 2, 2.3.11).
const LENGTH: usize = 15;

/// The two that count a loop's iterations, of which many cores make one.
const COUNTING: usize = 1;

/// A loop of this number of instructions.
fn counted_loop(number: usize, one: fn(usize) -> Vec<u8>) -> StepLoop {
    StepLoop { steps_per_iteration: number + COUNTING, ..straight_loop((0..number).flat_map(one).collect(), number) }
}

fn long_nops(number: usize) -> StepLoop {
    counted_loop(number, |_| nop_of_length(LENGTH))
}

fn long_zeroings(number: usize) -> StepLoop {
    counted_loop(number, |place| zeroing_of_length(LENGTH, place))
}

fn long_mov_imms(number: usize) -> StepLoop {
    counted_loop(number, |place| mov_imm_of_length(LENGTH, place))
}

fn long_mov_regs(number: usize) -> StepLoop {
    counted_loop(number, |place| mov_reg_of_length(LENGTH, place))
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "loop_buffer",
    about: "how many instructions a loop may have that the core keeps in a buffer of its own",
    definition: "instructions of 15 bytes of a loop in which each comes as fast as in a shorter one, without those that count it; none where loops that \
                 only a cache of decoded instructions holds are as fast",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    answers: &["loop_buffer"],
    part: TestedPart::FrontEnd,
    experiment: Experiment::Levels(LevelsSpec {
        programs: &[
            ProgramFamily::new("nop", long_nops),
            ProgramFamily::new("xor r32, same", long_zeroings),
            ProgramFamily::new("mov r32, immediate", long_mov_imms),
            ProgramFamily::new("mov r32, r32", long_mov_regs),
        ],
        // Loop buffers hold from 18 instructions (Core 2: A. Fog, as above) to 144 (Zen 4, where none is used any more: Chips and Cheese, 2024).
        count_range: [8, 320],
        min_rise: 0.03,
        // Windows of code give two thirds of a width of six, or half of one of four.
        min_ratio: 1.3,
        single_structure: true,
        ..LevelsSpec::COUNTS
    }),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{CostPoint, MeasureCosts};
    use crate::level_curves::run_levels;
    use crate::test_list::find_test;
    use crate::verdict::VerdictKind;
    use cyclescope_core::error::RunError;
    use cyclescope_core::random::Random;
    use iced_x86::{Decoder, DecoderOptions};

    /// The buffers that are published hold from 18 instructions to 144 (see the counts).
    const PUBLISHED: [usize; 2] = [18, 144];

    fn asked() -> &'static LevelsSpec {
        let test: &'static TestSpec = find_test("loop_buffer");
        let Experiment::Levels(walks) = &test.experiment else { unreachable!("it is one of levels") };
        walks
    }

    #[test]
    fn each_instruction_is_as_long_as_any_and_those_that_count_are_part_of_a_loop() {
        for walk in asked().programs {
            let steps = walk.program(40);
            let lengths = Decoder::new(64, &steps.body, DecoderOptions::NONE).into_iter().map(|one| one.len());
            assert_eq!(lengths.collect::<Vec<_>>(), [15; 40], "{}", walk.name);
            assert_eq!(steps.steps_per_iteration, 41);
        }
    }

    /// A core that takes six instructions of a loop in a cycle, and behind the end of the buffer windows of two of them.
    struct Six {
        buffer: usize,
        behind: f64,
    }

    impl MeasureCosts for Six {
        fn measure_cost(&mut self, _: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError> {
            let cost = if n <= self.buffer { 1.0 / 6.0 } else { 1.0 / self.behind };
            Ok(Some(CostPoint { n, cost, low: cost, high: cost }))
        }
    }

    #[test]
    fn buffers_of_all_published_sizes_are_seen_where_a_third_of_the_width_is_lost() {
        let found = |buffer, behind| {
            let mut core = Six { buffer, behind };
            let records =
                run_levels(&mut core, find_test("loop_buffer"), asked(), asked().count_range[1], &mut Random::new(5));
            let records = records.expect("it has costs");
            (records.len(), records[0].verdict, records[0].value.value)
        };
        for buffer in PUBLISHED {
            for behind in [3.0, 4.0] {
                assert_eq!(found(buffer, behind), (1, VerdictKind::Found, Some(buffer as f64)), "{behind}");
            }
            assert_eq!(found(buffer, 5.5), (1, VerdictKind::None, None), "what loses a little is no buffer");
        }
    }
}
