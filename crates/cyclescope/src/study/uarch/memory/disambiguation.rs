//! How many loads past stores to other addresses it takes until the core lets a load go before a store.
//!
//! One load goes past a store whose address comes late. Once in so many times the store is to the load's own address. A core that has learnt
//! to let the load wait goes on to do so for a while, and nothing is lost; where this comes more seldom than it remembers, the load went
//! before the store and is done again, with all behind it.

use crate::program::memory::{Area, At, Fill, Lifetime, Memory, PAGE, Pointer, Present};
use crate::study::uarch::test::walk::{Steps, Walk, Walks, code};
use crate::study::uarch::test::{Look, Part, Test};
use crate::unit::Unit;

/// Times that a load and a store are done in a call.
const EXECUTED: usize = 600;

/// Iterations of the shorter call at least.
const ITERATIONS_LEAST: usize = 4;
/// What takes longer than a load that waits for the store: to wait costs nothing, and only what is done again does.
const BESIDE: &str = "imul rdx, rdx; imul rdx, rdx; imul rdx, rdx; imul rdx, rdx; imul rdx, rdx; imul rdx, rdx; imul rdx, rdx; imul rdx, rdx; imul rdx, rdx; imul rdx, rdx; imul rdx, rdx; imul rdx, rdx; imul rdx, rdx; imul rdx, rdx";

/// So many calls of one function with a store and a load, of which the first one stores where it loads, or none does. A step is all of
/// these calls.
fn going_by(times: usize, same: bool, late: &str, load: &str) -> Steps {
    // RBX is zero and comes late; R14 points to what is loaded, and R12 elsewhere.
    let function = code(&format!("{BESIDE}; {late}; mov [rax + rbx], rdi; {load}; lfence; ret"));
    let mut body = [&[0xe9][..], &(function.len() as i32).to_le_bytes(), &function].concat();
    let begin = body.len() - function.len();
    for time in 0..times {
        body.extend(code(if time == 0 && same { "mov rax, r14" } else { "mov rax, r12" }));
        body.push(0xe8);
        let back = begin as i32 - (body.len() as i32 + 4);
        body.extend(back.to_le_bytes());
    }
    let area = Area {
        lifetime: Lifetime::Kept,
        present: Present::Everywhere,
        pointer: Some(Pointer { register: 14, at: At::Start }),
        ..Area::new(4 * PAGE, Fill::Bytes(vec![0]))
    };
    let init = format!("xor ebx, ebx; lea r12, [r14 + 640]; lea rsp, [r14 + {}]", 3 * PAGE);
    Steps {
        init: code(&init),
        body,
        following: Vec::new(),
        steps: 1,
        iterations: (EXECUTED / times).max(ITERATIONS_LEAST) as u64,
        memory: Memory { areas: vec![area], ..Memory::default() },
    }
}

const MULTIPLY: &str =
    "imul rbx, rbx; imul rbx, rbx; imul rbx, rbx; imul rbx, rbx; imul rbx, rbx; imul rbx, rbx";
const CONVERT: &str = "cvtsi2sd xmm2, rbx; cvttsd2si rbx, xmm2; cvtsi2sd xmm2, rbx; cvttsd2si rbx, xmm2";

pub(in crate::study::uarch) const TEST: Test = Test {
    name: "disambiguation",
    about: "how many loads past stores to other addresses it takes until the core lets a load go before a store",
    definition: "times of which one stores where the load loads, up to which the load waits each time: where it is one of more, the core has let it go before the store and does it again; a function with one such load, and the load of its return",
    source: "H. Wong, Store-to-Load Forwarding and Memory Disambiguation in x86 Processors (2014)",
    part: Part::Memory,
    look: Look::Levels(Walks {
        walks: &[
            Walk {
                name: "multiplications, then a load of 8 bytes",
                program: |times| going_by(times, true, MULTIPLY, "mov rcx, [r14]"),
                without: Some(|times| going_by(times, false, MULTIPLY, "mov rcx, [r14]")),
            },
            Walk {
                name: "conversions, then a load of a vector",
                program: |times| going_by(times, true, CONVERT, "movq xmm3, [r14]"),
                without: Some(|times| going_by(times, false, CONVERT, "movq xmm3, [r14]")),
            },
        ],
        beside: None,
        counts: [2, 200],
        unit: Unit::Count,
        rise: 6.0,
        ratio: 1.2,
        by_chance: false,
        one: true,
        cost: None,
        bytes: 0,
    }),
};

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Mnemonic};

    #[test]
    fn every_call_is_of_the_one_function_and_one_alone_stores_where_it_loads() {
        let steps = going_by(5, true, MULTIPLY, "mov rcx, [r14]");
        let all: Vec<_> = Decoder::new(64, &steps.body, DecoderOptions::NONE).iter().collect();
        let calls: Vec<_> = all.iter().filter(|one| one.mnemonic() == Mnemonic::Call).collect();
        let places = |text: &str| all.iter().filter(|one| one.to_string() == text).count();
        assert_eq!((calls.len(), places("mov rax,r14"), places("mov rax,r12")), (5, 1, 4));
        assert!(calls.iter().all(|call| call.near_branch_target() == all[1].ip()), "{all:?}");
        let returned = all.iter().position(|one| one.mnemonic() == Mnemonic::Ret).expect("it returns");
        assert_eq!(all[0].near_branch_target(), all[returned].next_ip());
    }
}
