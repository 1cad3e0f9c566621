//! The reorder buffer: all instructions from allocation to retirement.

use crate::spec::*;

/// A no-operation takes no other structure, but Zen 4 and 5 pack several of them into an entry.
pub(crate) const NOP: FillerSpec = FillerSpec::new("nop", &["nop"], &[]).may_pack();
const LONG_NOP: FillerSpec = FillerSpec::new("long nop", &["nop dword ptr [rax]"], &[]).may_pack();

/// A result of zero is known at once and takes no register. Exception: zeroing a vector register in
/// legacy code keeps its upper half and takes one on Zen 4.
const ZEROS: FillerSpec = FillerSpec::new(
    "zeros",
    &["xor ebx, ebx", "xor r8d, r8d", "xor r9d, r9d", "xor r10d, r10d", "xor r11d, r11d", "xor r12d, r12d"],
    &[],
);

/// Some of each class: none of their structures is full first. If zeros took registers, those would
/// fill at a different number of this mixture than of zeros, as other instructions of it take both.
/// It has no vectors, flags alone or no-operations, since Zen 4 packs one of these and its
/// neighbour into one entry: 376 zeros with every fourth of a vector register, 420 with every
/// fourth a comparison, but 318 zeros alone or with copies, loads and stores.
const MIXED: FillerSpec = FillerSpec::new(
    "mixed",
    &[
        "xor ebx, ebx",
        "lea r8, [rcx + rdx]",
        "xor r9d, r9d",
        "mov [r14], rcx",
        "xor r10d, r10d",
        "mov r11, [r14 + 64]",
        "xor r12d, r12d",
        "xor r13d, r13d",
    ],
    &[],
);

// Instructions that retire per cycle.
//
// A chain of slow instructions precedes others, which complete meanwhile and can't retire. When the
// chain ends, they retire as fast as the core can, and the fence behind them waits for the last
// one. So each further instruction delays the fence by the time of one retirement.

/// Instructions between the chain and the fence. Cores of the last fifteen years hold them, except
/// the smallest.
const MANY: usize = 144;
/// The control has this part of them. The rest is a multiple of what any known core retires per
/// cycle.
const FEW_PART: usize = 6;
/// Links of the chain: it lasts a little longer than the slowest core needs to fetch the
/// instructions.
const LINKS: usize = SQRTSD.link_count / 2;
/// Fences of the shorter call.
const ITERATIONS: u64 = 120;

/// These instructions in turn, up to a number, between the chain and a fence. A step is an
/// instruction that only the longer program has.
fn retire_behind_chain(number: usize, period: &[&str]) -> StepLoop {
    let mut body = assemble(SQRTSD.link[0]).repeat(LINKS);
    let period: Vec<Vec<u8>> = period.iter().map(|instruction| assemble(instruction)).collect();
    body.extend(period.iter().cycle().take(number).flatten());
    body.extend(assemble("lfence"));
    StepLoop { iterations: ITERATIONS, ..straight_loop(body, MANY - MANY / FEW_PART) }
}

const RETIRED_NOPS: &[&str] = &["nop dword ptr [rax]"];
const RETIRED_LEAS: &[&str] =
    &["lea rbx, [rcx + rdx]", "lea r8, [rcx + rdx]", "lea r9, [rcx + rdx]", "lea r10, [rcx + rdx]"];
const RETIRED_VECTORS: &[&str] = &["paddd xmm2, xmm15", "paddd xmm3, xmm15", "paddd xmm4, xmm15", "paddd xmm5, xmm15"];
const RETIRED_MIXED: &[&str] = &[
    "nop dword ptr [rax]",
    "lea rbx, [rcx + rdx]",
    "paddd xmm4, xmm15",
    "test r8, r9",
    "lea r10, [rcx + rdx]",
    "mov r11, [r14]",
];

pub(crate) const TESTS: &[TestSpec] = &[
    TestSpec {
        name: "rob",
        about: "how many instructions the core holds until they retire",
        definition: "instructions between the oldest one that has not retired and the youngest one, both included",
        source: WONG,
        answers: &["out_of_order"],
        part: TestedPart::Window,
        experiment: Experiment::Overlap(OverlapSpec {
            chain_entries: 2,
            lead_nops: &[0, 1, 2, 3, 4, 5, 6, 7],
            ..OverlapSpec::new(&[[SQRTSD, FSQRT]], &[ZEROS, MIXED, NOP, LONG_NOP], 900)
        }),
    },
    TestSpec {
        name: "retire_rate",
        about: "how many instructions the core retires in a cycle",
        definition: "instructions that retire in a core cycle, of 120 that were executed while an older one had not \
                     retired",
        source: WONG,
        answers: &[],
        part: TestedPart::FrontEnd,
        experiment: Experiment::Rates(RatesSpec {
            allow_outlier: true,
            // The chain and the fence need entries too.
            required_entries: Some(("rob", MANY + LINKS + 1)),
            ..RatesSpec::new(
                Unit::PerCycle,
                &[TestRow::for_n(
                    "instructions",
                    MANY,
                    &[
                        ProgramVariant::new("no-operations", |many| retire_behind_chain(many, RETIRED_NOPS))
                            .less_generated(|many| retire_behind_chain(many / FEW_PART, RETIRED_NOPS)),
                        ProgramVariant::new("lea", |many| retire_behind_chain(many, RETIRED_LEAS))
                            .less_generated(|many| retire_behind_chain(many / FEW_PART, RETIRED_LEAS)),
                        ProgramVariant::new("paddd", |many| retire_behind_chain(many, RETIRED_VECTORS))
                            .less_generated(|many| retire_behind_chain(many / FEW_PART, RETIRED_VECTORS)),
                        ProgramVariant::new("mixed", |many| retire_behind_chain(many, RETIRED_MIXED))
                            .less_generated(|many| retire_behind_chain(many / FEW_PART, RETIRED_MIXED)),
                    ],
                )],
            )
        }),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_list::find_test;
    use iced_x86::{Decoder, DecoderOptions};

    #[test]
    fn a_step_is_one_extra_instruction_of_the_longer_program() {
        let Experiment::Rates(rates) = &find_test("retire_rate").experiment else { panic!("it is a test of rates") };
        let [row] = rates.rows else { panic!("it has one row") };
        for variant in row.variants {
            let many = variant.family.program(row.n);
            let few = variant.family.control(row.n).expect("it is compared");
            let count = |steps: &StepLoop| Decoder::new(64, &steps.body, DecoderOptions::NONE).iter().count();
            let more = count(&many) - count(&few);
            assert_eq!(
                (more, more, many.iterations),
                (many.steps_per_iteration, few.steps_per_iteration, few.iterations),
                "{}",
                variant.family.label()
            );
        }
    }
}
