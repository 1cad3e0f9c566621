//! Reads of the stack pointer behind pushes.

use crate::spec::data_moves::loop_in_pages;
use crate::spec::program_family::{StepLoop, assemble};
use crate::spec::rate::{ContrastSpec, ProgramVariant, TestRow};
use crate::spec::{Experiment, TestSpec, TestedPart};
use cyclescope_code::program::memory::PAGE_BYTES;

/// Pushes of a step, and as many pops.
const PUSHES: usize = 4;
/// Cheap instructions behind each push, and behind the pops.
const BETWEEN: usize = 5;
const BEHIND: usize = 16;
/// Steps of an iteration, and pages for the stack.
const STEPS: usize = 16;
const PAGES: u64 = 2;

/// Pushes and pops with a read behind each push, or all of these behind the last one. The read behind the pops is in both, so that neither ends where
/// it began.
fn push_loop(read: &str, cheap: fn(usize) -> String, each: bool) -> StepLoop {
    let others = |from: usize, number: usize| (from..from + number).map(cheap);
    let mut all: Vec<String> = Vec::new();
    for place in 0..PUSHES {
        all.push("push rdi".to_string());
        if each {
            all.push(read.to_string());
        }
        all.extend(others(place * BETWEEN, BETWEEN));
    }
    if !each {
        all.extend(vec![read.to_string(); PUSHES]);
    }
    all.extend(vec!["pop rsi".to_string(); PUSHES]);
    all.extend(others(PUSHES * BETWEEN, BEHIND));
    all.push(read.to_string());
    let init = assemble(&format!("lea rsp, [r14 + {}]; mov rbp, rsp", PAGES * PAGE_BYTES));
    StepLoop { init, ..loop_in_pages(assemble(&all.join("; ")).repeat(STEPS), STEPS, PAGES) }
}

fn not_text(place: usize) -> String {
    const REGISTERS: [&str; 9] = ["rbx", "rcx", "rdx", "r13", "r8", "r9", "r10", "r11", "r12"];
    format!("not {}", REGISTERS[place % REGISTERS.len()])
}

fn nop_text(_: usize) -> String {
    "nop".to_string()
}

/// Reads by an instruction, among two kinds of cheap ones.
macro_rules! read {
    ($name:literal, $text:literal) => {
        TestRow::new(
            $name,
            1,
            (PUSHES - 1) as f64,
            &[
                ProgramVariant::with_control(
                    concat!($text, " behind each push, less behind all, among not"),
                    |_| push_loop($text, not_text, true),
                    |_| push_loop($text, not_text, false),
                ),
                ProgramVariant::with_control(
                    concat!($text, " behind each push, less behind all, among nop"),
                    |_| push_loop($text, nop_text, true),
                    |_| push_loop($text, nop_text, false),
                ),
            ],
        )
    };
}

pub(crate) const TEST: TestSpec = TestSpec {
    name: "stack_engine",
    about: "what it costs to read the stack pointer behind a push",
    definition: "core cycles by which a read behind each push takes longer than all reads behind the last one, where the core is busy with cheap instructions",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: TestedPart::Execution,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[
            read!("move", "mov rax, rsp"),
            read!("add", "lea rax, [rsp + 8]"),
            read!("compare", "cmp rdi, rsp"),
            read!("other_register", "lea rax, [rbp + 8]"),
        ],
        tolerance: 0.05,
        tolerance_share: 0.3,
    }),
};

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    #[test]
    fn the_control_has_the_same_instructions_in_another_order() {
        for way in TEST.rows().iter().flat_map(|row| row.variants) {
            let decoded = |steps: StepLoop| -> Vec<String> {
                Decoder::new(64, &steps.body, DecoderOptions::NONE).iter().map(|one| one.to_string()).collect()
            };
            let [mut each, mut last] =
                [(way.family.program)(1), way.family.control.expect("it has a control")(1)].map(decoded);
            assert_ne!(each, last, "{}", way.family.name);
            each.sort();
            last.sort();
            assert_eq!(each, last, "{}", way.family.name);
        }
    }
}
