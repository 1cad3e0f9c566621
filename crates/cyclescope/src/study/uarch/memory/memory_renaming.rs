//! Loads that a core knows to be of a store before them without their addresses.

use crate::study::uarch::test::rate::{Rates, Row, Way};
use crate::study::uarch::test::text::{repeated, way};
use crate::study::uarch::test::{Look, Part, Test};
use crate::unit::Unit;

pub(in crate::study::uarch) const TEST: Test = Test {
    name: "memory_renaming",
    about: "what a value takes through memory whose address is written alike, by how it is written",
    definition: "core cycles from a register through a store of 64 bits and a load of it, and back; less than the nearest cache takes where the core does not wait for it",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::Memory,
    look: Look::Rates(Rates {
        rows: &[
            Row::new(
                "base",
                1,
                1.0,
                &[way!("mov [r14], rax; mov rax, [r14]"), way!("mov [r14], rsi; mov rsi, [r14]")],
            ),
            Row::new(
                "base_and_offset",
                1,
                1.0,
                &[
                    way!("mov [r14 + 64], rax; mov rax, [r14 + 64]"),
                    way!("mov [r14 + 328], rsi; mov rsi, [r14 + 328]"),
                ],
            ),
            Row::new(
                "rbp_and_offset",
                1,
                1.0,
                &[
                    way!("mov rbp, r14", "mov [rbp + 64], rax; mov rax, [rbp + 64]"),
                    way!("mov rbp, r14", "mov [rbp + 328], rsi; mov rsi, [rbp + 328]"),
                ],
            ),
            Row::new(
                "rsp_and_offset",
                1,
                1.0,
                &[
                    way!("mov [rsp - 64], rax; mov rax, [rsp - 64]"),
                    way!("mov [rsp - 120], rsi; mov rsi, [rsp - 120]"),
                ],
            ),
            Row::new("push_and_pop", 1, 1.0, &[way!("push rax; pop rax"), way!("push rsi; pop rsi")]),
            Row::new(
                "index",
                1,
                1.0,
                &[
                    way!("mov [r14 + r12], rax; mov rax, [r14 + r12]"),
                    way!("mov [r14 + r12*8], rsi; mov rsi, [r14 + r12*8]"),
                ],
            ),
        ],
        unit: Unit::CoreCycles,
        bytes: 0,
        apart: 0.05,
        alone: false,
        within: None,
    }),
};
