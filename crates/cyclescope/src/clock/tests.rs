//! Pins the machine code of every timing method.

use super::*;
use crate::program::{Cold, Recipe, World};
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};

/// The instructions that a clock puts around an empty body, one a line.
fn listing(clock: &Clock) -> String {
    let program = Recipe {
        clock,
        world: World::default(),
        init: &[],
        snippet: &[],
        copies: 0,
        looped: false,
        cold: Cold::default(),
    }
    .build();
    let mut code = vec![0; program.len()];
    program.place(0, 0x1000_0000, &mut code);
    let mut formatter = IntelFormatter::new();
    let mut text = String::new();
    let start = code.len();
    for instruction in Decoder::new(64, &code, DecoderOptions::NONE) {
        if instruction.next_ip() as usize <= start {
            let mut line = String::new();
            formatter.format(&instruction, &mut line);
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

#[test]
fn names_are_sorted_and_unique() {
    assert!(ALL.windows(2).all(|pair| pair[0].name < pair[1].name));
}

#[test]
fn each_side_stores_one_reading() {
    for clock in ALL {
        for side in [clock.start, clock.end] {
            assert_eq!(side.iter().filter(|step| **step == Step::Store).count(), 1, "{}", clock.name);
        }
    }
}

#[test]
fn emitted_code_has_the_steps_in_order() {
    for clock in ALL {
        let text = listing(clock);
        let mut rest = text.as_str();
        for step in clock.steps() {
            let mnemonic = match step {
                Step::Lfence => "lfence\n",
                Step::Mfence => "mfence\n",
                Step::Serialize => "serialize\n",
                Step::Cpuid => "cpuid\n",
                Step::RewriteCr0 => "mov cr0,rax\n",
                Step::Rdtsc => "rdtsc\n",
                Step::Rdtscp => "rdtscp\n",
                Step::Rdpru => "rdpru\n",
                Step::Rdpmc => "rdpmc\n",
                Step::ClockGettime => "call ",
                Step::Store => "eax\n",
            };
            let at =
                rest.find(mnemonic).unwrap_or_else(|| panic!("{}: no {mnemonic} in\n{text}", clock.name));
            rest = &rest[at + mnemonic.len()..];
        }
    }
}

/// The fences are what a method is: their number is pinned, so that none is lost or added unnoticed.
#[test]
fn fences_are_neither_lost_nor_added() {
    let fences = |clock: &Clock| {
        let text = listing(clock);
        ["lfence\n", "mfence\n", "cpuid\n", "serialize\n"].map(|fence| text.matches(fence).count())
    };
    let expected: [(&str, [usize; 4]); 14] = [
        ("clock-gettime", [4, 0, 0, 0]),
        ("cpuid-rdtsc", [0, 0, 2, 0]),
        ("cpuid-rdtsc-cr0-rdtsc", [0, 0, 1, 0]),
        ("cpuid-rdtsc-rdtscp-cpuid", [0, 0, 2, 0]),
        ("lfence-rdtsc-lfence", [4, 0, 0, 0]),
        ("lfence-rdtsc-rdtscp-lfence", [2, 0, 0, 0]),
        ("mfence-lfence-rdtsc", [4, 2, 0, 0]),
        ("rdpmc", [4, 0, 0, 0]),
        ("rdpru", [4, 0, 0, 0]),
        ("rdtsc", [0, 0, 0, 0]),
        ("rdtscp", [0, 0, 0, 0]),
        ("rdtscp-cpuid", [0, 0, 2, 0]),
        ("rdtscp-lfence", [2, 0, 0, 0]),
        ("serialize-rdtsc", [2, 0, 0, 2]),
    ];
    for (clock, (name, count)) in ALL.iter().zip(expected) {
        assert_eq!(clock.name, name);
        assert_eq!(fences(clock), count, "{name}");
    }
}

#[test]
fn clobbered_registers_are_saved_before_and_loaded_after() {
    for clock in ALL {
        assert!(clock.clobbers().len() <= 10, "{}", clock.name);
        for register in clock.clobbers() {
            let name = format!("{register:?}").to_lowercase();
            let saves = listing(clock).matches(&format!("],{name}\n")).count();
            assert!(saves >= 1, "{} does not save {name}", clock.name);
        }
    }
}
