//! Reads of the stack pointer behind pushes.

use crate::test::moves::in_pages;
use crate::test::rate::{Contrast, Row, Way};
use crate::test::walk::{Steps, code};
use crate::test::{Look, Part, Test};
use cyclescope_code::program::memory::PAGE;

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
fn pushing(read: &str, cheap: fn(usize) -> String, each: bool) -> Steps {
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
    let init = code(&format!("lea rsp, [r14 + {}]; mov rbp, rsp", PAGES * PAGE));
    Steps { init, ..in_pages(code(&all.join("; ")).repeat(STEPS), STEPS, PAGES) }
}

fn not(place: usize) -> String {
    const REGISTERS: [&str; 9] = ["rbx", "rcx", "rdx", "r13", "r8", "r9", "r10", "r11", "r12"];
    format!("not {}", REGISTERS[place % REGISTERS.len()])
}

fn nop(_: usize) -> String {
    "nop".to_string()
}

/// Reads by an instruction, among two kinds of cheap ones.
macro_rules! read {
    ($name:literal, $text:literal) => {
        Row::new(
            $name,
            1,
            (PUSHES - 1) as f64,
            &[
                Way::less(
                    concat!($text, " behind each push, less behind all, among not"),
                    |_| pushing($text, not, true),
                    |_| pushing($text, not, false),
                ),
                Way::less(
                    concat!($text, " behind each push, less behind all, among nop"),
                    |_| pushing($text, nop, true),
                    |_| pushing($text, nop, false),
                ),
            ],
        )
    };
}

pub(crate) const TEST: Test = Test {
    name: "stack_engine",
    about: "what it costs to read the stack pointer behind a push",
    definition: "core cycles by which a read behind each push takes longer than all reads behind the last one, where the core is busy with cheap instructions",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::Execution,
    look: Look::Contrast(Contrast {
        rows: &[
            read!("move", "mov rax, rsp"),
            read!("add", "lea rax, [rsp + 8]"),
            read!("compare", "cmp rdi, rsp"),
            read!("other_register", "lea rax, [rbp + 8]"),
        ],
        apart: 0.05,
        apart_share: 0.3,
    }),
};

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    #[test]
    fn the_control_has_the_same_instructions_in_another_order() {
        for way in TEST.rows().iter().flat_map(|row| row.ways) {
            let decoded = |steps: Steps| -> Vec<String> {
                Decoder::new(64, &steps.body, DecoderOptions::NONE)
                    .iter()
                    .map(|one| one.to_string())
                    .collect()
            };
            let [mut each, mut last] =
                [(way.walk.program)(1), way.walk.without.expect("it has a control")(1)].map(decoded);
            assert_ne!(each, last, "{}", way.walk.name);
            each.sort();
            last.sort();
            assert_eq!(each, last, "{}", way.walk.name);
        }
    }
}
