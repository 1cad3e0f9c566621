//! Targets of direct calls.

use crate::study::uarch::test::lengths::nop_of;
use crate::study::uarch::test::moves::in_pages;
use crate::study::uarch::test::walk::{Steps, Walk, Walks, code};
use crate::study::uarch::test::{Look, Part, Test};
use crate::unit::Unit;

/// This many calls, each to the next one, this many bytes apart. Each takes its return address off the stack again, so that no
/// return has to be predicted.
fn calls(number: usize, apart: usize) -> Steps {
    const CALL: usize = 5;
    let target = code("add rsp, 8");
    // A call of the very next instruction is no call to some cores.
    let between = apart - CALL - target.len();
    let one = [&[0xe8][..], &(between as i32).to_le_bytes(), &nop_of(between), &target].concat();
    // Calls need a stack.
    Steps { init: code("lea rsp, [r14 + 2048]"), ..in_pages(one.repeat(number), number, 1) }
}

fn each_16(number: usize) -> Steps {
    calls(number, 16)
}

fn each_24(number: usize) -> Steps {
    calls(number, 24)
}

pub(in crate::study::uarch) const TEST: Test = Test {
    name: "call_targets",
    about: "how many direct calls the core knows before it has decoded them",
    definition: "calls without returns of which each is fetched as fast as in a shorter row of them",
    source: "M. Godbolt, The BTB in contemporary Intel chips (2016)",
    part: Part::FrontEnd,
    look: Look::Levels(Walks {
        walks: &[
            Walk { name: "call, 16 bytes apart", program: each_16, without: None },
            Walk { name: "call, 24 bytes apart", program: each_24, without: None },
        ],
        beside: None,
        counts: [16, 12288],
        unit: Unit::Count,
        rise: 0.5,
        ratio: 1.3,
        by_chance: false,
        one: false,
        cost: Some("core cycles of a call to the next one"),
        bytes: 0,
    }),
};

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Mnemonic};

    #[test]
    fn each_call_goes_to_what_takes_its_address_away_and_never_to_the_next_byte() {
        for body in [each_16(10).body, each_24(10).body] {
            let all: Vec<_> = Decoder::new(64, &body, DecoderOptions::NONE).iter().collect();
            let targets: Vec<u64> =
                all.iter().filter(|one| one.mnemonic() == Mnemonic::Add).map(|add| add.ip()).collect();
            let calls: Vec<_> = all.iter().filter(|one| one.mnemonic() == Mnemonic::Call).collect();
            assert_eq!(calls.iter().map(|call| call.near_branch_target()).collect::<Vec<_>>(), targets);
            assert!(calls.len() == 10 && calls.iter().all(|call| call.near_branch_target() > call.next_ip()));
        }
    }
}
