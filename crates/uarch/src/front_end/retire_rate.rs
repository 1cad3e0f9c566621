//! Instructions that retire in a cycle.
//!
//! A chain of slow instructions goes before others, which are fetched and executed beside it and can't retire. When it has
//! ended they retire as fast as the core can, and the fence behind them waits for the last one. So each further one makes it
//! later by what one takes to retire.

use crate::spec::*;

/// Instructions between the chain and the fence: so few that cores of the last fifteen years hold them, but the smallest.
const MANY: usize = 144;
/// The part of them with which it is compared. The rest is a whole number of times what any known core retires in a cycle.
const FEW_PART: usize = 6;
/// Links of the chain: with so many it lasts longer than the slowest core takes to fetch the instructions, and not much longer.
const LINKS: usize = SQRTSD.link_count / 2;
/// Fences of the shorter call.
const ITERATIONS: u64 = 120;

/// These instructions in turn, up to a number, between the chain and a fence. A step is an instruction of which the longer
/// program has more.
fn retire_behind_chain(number: usize, period: &[&str]) -> StepLoop {
    let mut body = assemble(SQRTSD.link[0]).repeat(LINKS);
    let period: Vec<Vec<u8>> = period.iter().map(|instruction| assemble(instruction)).collect();
    body.extend(period.iter().cycle().take(number).flatten());
    body.extend(assemble("lfence"));
    StepLoop { iterations: ITERATIONS, ..straight_loop(body, MANY - MANY / FEW_PART) }
}

const NOPS: &[&str] = &["nop dword ptr [rax]"];
const ADDRESSES: &[&str] =
    &["lea rbx, [rcx + rdx]", "lea r8, [rcx + rdx]", "lea r9, [rcx + rdx]", "lea r10, [rcx + rdx]"];
const VECTORS: &[&str] = &["paddd xmm2, xmm15", "paddd xmm3, xmm15", "paddd xmm4, xmm15", "paddd xmm5, xmm15"];
const MIXED: &[&str] = &[
    "nop dword ptr [rax]",
    "lea rbx, [rcx + rdx]",
    "paddd xmm4, xmm15",
    "test r8, r9",
    "lea r10, [rcx + rdx]",
    "mov r11, [r14]",
];

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "retire_rate",
    about: "how many instructions the core retires in a cycle",
    definition: "instructions that retire in a core cycle, of 120 that were executed while an older one had not retired",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    answers: &[],
    part: TestedPart::FrontEnd,
    experiment: Experiment::Rates(RatesSpec {
        allow_outlier: true,
        // The chain and the fence are among them.
        required_entries: Some(("rob", MANY + LINKS + 1)),
        ..RatesSpec::new(
            Unit::PerCycle,
            &[TestRow::for_n(
                "instructions",
                MANY,
                &[
                    ProgramVariant::new("no-operations", |many| retire_behind_chain(many, NOPS))
                        .less_generated(|many| retire_behind_chain(many / FEW_PART, NOPS)),
                    ProgramVariant::new("lea", |many| retire_behind_chain(many, ADDRESSES))
                        .less_generated(|many| retire_behind_chain(many / FEW_PART, ADDRESSES)),
                    ProgramVariant::new("paddd", |many| retire_behind_chain(many, VECTORS))
                        .less_generated(|many| retire_behind_chain(many / FEW_PART, VECTORS)),
                    ProgramVariant::new("mixed", |many| retire_behind_chain(many, MIXED))
                        .less_generated(|many| retire_behind_chain(many / FEW_PART, MIXED)),
                ],
            )],
        )
    }),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_list::find_test;
    use iced_x86::{Decoder, DecoderOptions};

    #[test]
    fn a_step_is_an_instruction_that_the_longer_program_has_more() {
        let Experiment::Rates(rates) = &find_test("retire_rate").experiment else { panic!("it is a test of rates") };
        let [row] = rates.rows else { panic!("it has one row") };
        for way in row.variants {
            let many = way.family.program(row.n);
            let few = way.family.control(row.n).expect("it is compared");
            let count = |steps: &StepLoop| Decoder::new(64, &steps.body, DecoderOptions::NONE).iter().count();
            let more = count(&many) - count(&few);
            assert_eq!(
                (more, more, many.iterations),
                (many.steps_per_iteration, few.steps_per_iteration, few.iterations),
                "{}",
                way.family.label()
            );
        }
    }
}
