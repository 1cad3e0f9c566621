//! Loops: instructions and branches per cycle.

use crate::spec::*;

// Instructions of a loop per cycle, by the loop's length.

const WAYS: &[ProgramVariant] = &[
    ProgramVariant::new("no-operations", nop_loop),
    ProgramVariant::new("xor r32, same", zeroing_loop),
    ProgramVariant::new("mov r32, immediate", mov_imm_loop),
    ProgramVariant::new("mov r32, r32", mov_reg_loop),
];

// The buffer for short loops.
//
// It delivers a loop at the core's full width, whatever the length of its instructions. The cache
// of decoded instructions and the decoders deliver instructions of the greatest length more slowly:
// a few fill a window of code.

/// Bytes of an instruction: the most that x86 allows (Intel SDM vol. 2, 2.3.11).
const LENGTH: usize = 15;

/// The two instructions that count iterations. Many cores fuse them.
const COUNTING: usize = 1;

/// A loop of this number of instructions.
fn counted_loop(number: usize, instruction: fn(usize) -> Vec<u8>) -> StepLoop {
    StepLoop {
        steps_per_iteration: number + COUNTING,
        ..straight_loop((0..number).flat_map(instruction).collect(), number)
    }
}

// Instructions per cycle.

/// Instructions in turn, each for other units than the one before.
fn cycle_through(number: usize, period: &[&str]) -> StepLoop {
    let all: Vec<&str> = period.iter().copied().cycle().take(number).collect();
    loop_in_pages(assemble(&all.join("; ")), number, 1)
}

fn adds_and_loads(number: usize) -> StepLoop {
    cycle_through(
        number,
        &[
            "add rax, r14",
            "mov r8, [r14]",
            "add rcx, r14",
            "nop dword ptr [rax]",
            "add rdx, r14",
            "mov r9, [r14 + 64]",
            "add rbx, r14",
            "paddd xmm0, xmm15",
            "add rsi, r14",
            "mov r10, [r14 + 128]",
            "add rdi, r14",
            "nop dword ptr [rax]",
            "add r11, r14",
            "mov r9, [r14 + 192]",
            "add r12, r14",
            "paddd xmm1, xmm15",
        ],
    )
}

fn vectors_and_loads(number: usize) -> StepLoop {
    cycle_through(
        number,
        &[
            "paddd xmm1, xmm15",
            "movups xmm8, [r14]",
            "and rax, r14",
            "or rcx, r14",
            "mov r8, [r14 + 320]",
            "andps xmm2, xmm15",
            "mov r9, [r14 + 128]",
            "sub rdx, r14",
            "paddd xmm3, xmm15",
            "movups xmm9, [r14 + 192]",
            "and rbx, r14",
            "or rsi, r14",
            "xor r11, r14",
            "andps xmm4, xmm15",
            "mov r10, [r14 + 256]",
            "sub rdi, r14",
        ],
    )
}

// Branches per cycle.

/// Branches per iteration. All are not taken, or every other one.
const BRANCHES: usize = 64;

/// Conditional branches that are not taken, with a no-operation behind each.
fn untaken_branches(number: usize, condition: u8) -> Vec<u8> {
    let branch = [&[0x0f, condition, 0, 0, 0, 0][..], &nop_of_length(2)].concat();
    [assemble("test r14, r14"), branch.repeat(number)].concat()
}

/// The same, each behind its own comparison.
fn untaken_je(number: usize) -> StepLoop {
    let branch = [&assemble("test r14, r14"), &[0x0f, 0x84, 0, 0, 0, 0][..], &nop_of_length(7)].concat();
    straight_loop(branch.repeat(number), number + 1)
}

/// Jumps, each behind a conditional branch that is not taken, and the loop's own branch.
fn untaken_and_jmp(number: usize, condition: u8) -> StepLoop {
    // jmp over five bytes.
    let jump = [0xe9, 5, 0, 0, 0, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc];
    let pair = [&[0x0f, condition, 0, 0, 0, 0][..], &jump].concat();
    straight_loop([assemble("test r14, r14"), pair.repeat(number / 2)].concat(), number / 2 * 2 + 1)
}

const fn branch_row(name: &'static str, n: usize, variants: &'static [ProgramVariant]) -> TestRow {
    TestRow::for_n(name, n, variants)
}

pub(crate) const TESTS: &[TestSpec] = &[
    TestSpec {
        name: "loop_rate",
        about: "how many instructions of a loop the core does in a cycle, by its length",
        definition: "instructions in a core cycle of a loop of this many, and of the two that count it, which are not \
                     counted",
        source: FOG,
        answers: &["loop_buffer", "loop_size"],
        part: TestedPart::FrontEnd,
        experiment: Experiment::Rates(RatesSpec {
            allow_outlier: true,
            ..RatesSpec::new(
                Unit::PerCycle,
                &[
                    TestRow::for_n("4_instructions", 4, WAYS),
                    TestRow::for_n("8_instructions", 8, WAYS),
                    TestRow::for_n("16_instructions", 16, WAYS),
                    TestRow::for_n("32_instructions", 32, WAYS),
                    TestRow::for_n("64_instructions", 64, WAYS),
                    TestRow::for_n("128_instructions", 128, WAYS),
                    TestRow::for_n("512_instructions", 512, WAYS),
                    TestRow::for_n("2048_instructions", 2048, WAYS),
                ],
            )
        }),
    },
    TestSpec {
        name: "loop_buffer",
        about: "how many instructions a loop may have that the core keeps in a buffer of its own",
        definition: "instructions of 15 bytes of a loop in which each comes as fast as in a shorter one, without \
                     those that count it; none where loops that only a cache of decoded instructions holds are as \
                     fast",
        source: FOG,
        answers: &["loop_buffer"],
        part: TestedPart::FrontEnd,
        experiment: Experiment::Levels(LevelsSpec {
            programs: &[
                ProgramFamily::new("nop", |number| counted_loop(number, |_| nop_of_length(LENGTH))),
                ProgramFamily::new("xor r32, same", |number| {
                    counted_loop(number, |place| zeroing_of_length(LENGTH, place))
                }),
                ProgramFamily::new("mov r32, immediate", |number| {
                    counted_loop(number, |place| mov_imm_of_length(LENGTH, place))
                }),
                ProgramFamily::new("mov r32, r32", |number| {
                    counted_loop(number, |place| mov_reg_of_length(LENGTH, place))
                }),
            ],
            // Loop buffers hold 18 instructions (Core 2: A. Fog, as above) to 144 (Zen 4, later
            // disabled: Chips and Cheese, 2024).
            count_range: [8, 320],
            min_rise: 0.03,
            // Windows of code deliver two thirds of a width of six, or half of a width of four.
            min_ratio: 1.3,
            single_structure: true,
            ..LevelsSpec::COUNTS
        }),
    },
    TestSpec {
        name: "dispatch_rate",
        about: "how many instructions the core takes in a cycle",
        definition: "instructions in a core cycle, of a short loop in which none waits for the one before it; kinds \
                     that some cores pack or end early count where two of them agree",
        source: FOG,
        answers: &[],
        part: TestedPart::FrontEnd,
        experiment: Experiment::Rates(RatesSpec {
            allow_outlier: true,
            ..RatesSpec::new(
                Unit::PerCycle,
                &[TestRow::for_n(
                    "instructions",
                    240,
                    &[
                        ProgramVariant::new("no-operations", nop_loop),
                        ProgramVariant::new("xor r32, same", zeroing_loop),
                        ProgramVariant::new("mov r32, immediate", mov_imm_loop),
                        ProgramVariant::new("additions with loads", adds_and_loads),
                        ProgramVariant::new("vectors with loads", vectors_and_loads),
                    ],
                )],
            )
        }),
    },
    TestSpec {
        name: "branch_rate",
        about: "how many branches the core does in a cycle, of those that it always predicts",
        definition: "branches in a core cycle of a loop of 64, its own taken one among them: jc and je that are not \
                     taken, or these and jmp in turn",
        source: FOG,
        answers: &["jmp"],
        part: TestedPart::FrontEnd,
        experiment: Experiment::Rates(RatesSpec::new(
            Unit::PerCycle,
            &[
                branch_row(
                    "not_taken",
                    BRANCHES,
                    &[
                        ProgramVariant::new("jc", |number| straight_loop(untaken_branches(number, 0x82), number + 1)),
                        ProgramVariant::new("test and je", untaken_je),
                    ],
                ),
                branch_row(
                    "in_turn",
                    BRANCHES,
                    &[
                        ProgramVariant::new("jc and jmp", |number| untaken_and_jmp(number, 0x82)),
                        ProgramVariant::new("je and jmp", |number| untaken_and_jmp(number, 0x84)),
                    ],
                ),
            ],
        )),
    },
];

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

    /// Published buffers hold 18 to 144 instructions (see the counts).
    const PUBLISHED: [usize; 2] = [18, 144];

    fn asked() -> &'static LevelsSpec {
        let test: &'static TestSpec = find_test("loop_buffer");
        let Experiment::Levels(spec) = &test.experiment else { unreachable!("it is one of levels") };
        spec
    }

    #[test]
    fn instructions_have_the_greatest_length_and_the_loop_counter_counts() {
        for family in asked().programs {
            let steps = family.program(40);
            let lengths =
                Decoder::new(64, &steps.body, DecoderOptions::NONE).into_iter().map(|instruction| instruction.len());
            assert_eq!(lengths.collect::<Vec<_>>(), [15; 40], "{}", family.name);
            assert_eq!(steps.steps_per_iteration, 41);
        }
    }

    /// A core that takes six instructions of a loop per cycle, and beyond the buffer windows of two
    /// instructions.
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
    fn loop_buffers_of_all_published_sizes_are_found() {
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
