//! Instructions that retire in a cycle.
//!
//! A chain of slow instructions goes before others, which are fetched and executed beside it and can't retire. When it has
//! ended they retire as fast as the core can, and the fence behind them waits for the last one. So each further one makes it
//! later by what one takes to retire.

use crate::test::chain::SQRTSD;
use crate::test::rate::{Rates, Row, Way};
use crate::test::walk::{Steps, code, straight};
use crate::test::{Look, Part, Test};
use cyclescope_core::unit::Unit;

/// Instructions between the chain and the fence: so few that cores of the last fifteen years hold them, but the smallest.
const MANY: usize = 144;
/// The part of them with which it is compared. The rest is a whole number of times what any known core retires in a cycle.
const FEW_PART: usize = 6;
/// Links of the chain: with so many it lasts longer than the slowest core takes to fetch the instructions, and not much longer.
const LINKS: usize = SQRTSD.links / 2;
/// Fences of the shorter call.
const ITERATIONS: u64 = 120;

/// These instructions in turn, up to a number, between the chain and a fence. A step is an instruction of which the longer
/// program has more.
fn behind(number: usize, period: &[&str]) -> Steps {
    let mut body = code(SQRTSD.link[0]).repeat(LINKS);
    let period: Vec<Vec<u8>> = period.iter().map(|instruction| code(instruction)).collect();
    body.extend(period.iter().cycle().take(number).flatten());
    body.extend(code("lfence"));
    Steps { iterations: ITERATIONS, ..straight(body, MANY - MANY / FEW_PART) }
}

const NOPS: &[&str] = &["nop dword ptr [rax]"];
const ADDRESSES: &[&str] =
    &["lea rbx, [rcx + rdx]", "lea r8, [rcx + rdx]", "lea r9, [rcx + rdx]", "lea r10, [rcx + rdx]"];
const VECTORS: &[&str] =
    &["paddd xmm2, xmm15", "paddd xmm3, xmm15", "paddd xmm4, xmm15", "paddd xmm5, xmm15"];
const MIXED: &[&str] = &[
    "nop dword ptr [rax]",
    "lea rbx, [rcx + rdx]",
    "paddd xmm4, xmm15",
    "test r8, r9",
    "lea r10, [rcx + rdx]",
    "mov r11, [r14]",
];

pub(crate) const TEST: Test = Test {
    name: "retire_rate",
    about: "how many instructions the core retires in a cycle",
    definition: "instructions that retire in a core cycle, of 120 that were executed while an older one had not retired",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    part: Part::FrontEnd,
    look: Look::Rates(Rates {
        rows: &[Row::new(
            "instructions",
            MANY,
            1.0,
            &[
                Way::less("no-operations", |many| behind(many, NOPS), |many| behind(many / FEW_PART, NOPS)),
                Way::less("lea", |many| behind(many, ADDRESSES), |many| behind(many / FEW_PART, ADDRESSES)),
                Way::less("paddd", |many| behind(many, VECTORS), |many| behind(many / FEW_PART, VECTORS)),
                Way::less("mixed", |many| behind(many, MIXED), |many| behind(many / FEW_PART, MIXED)),
            ],
        )],
        unit: Unit::PerCycle,
        bytes: 0,
        apart: 0.05,
        alone: true,
        // The chain and the fence are among them.
        within: Some(("rob", MANY + LINKS + 1)),
    }),
};

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    #[test]
    fn a_step_is_an_instruction_that_the_longer_program_has_more() {
        let Look::Rates(rates) = &TEST.look else { panic!("it is a test of rates") };
        let [row] = rates.rows else { panic!("it has one row") };
        for way in row.ways {
            let many = (way.walk.program)(row.n);
            let few = way.walk.without.expect("it is compared")(row.n);
            let count = |steps: &Steps| Decoder::new(64, &steps.body, DecoderOptions::NONE).iter().count();
            let more = count(&many) - count(&few);
            assert_eq!(
                (more, more, many.iterations),
                (many.steps, few.steps, few.iterations),
                "{}",
                way.walk.name
            );
        }
    }
}
