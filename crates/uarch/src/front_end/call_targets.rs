//! Targets of direct calls.

use crate::spec::*;

/// This many calls, each to the next one, this many bytes apart. Each takes its return address off the stack again, so that no
/// return has to be predicted.
fn call_row(number: usize, take_off: &str) -> StepLoop {
    const CALL: usize = 5;
    let target = assemble(take_off);
    // A call of the very next instruction is no call to some cores.
    let between = APART - CALL - target.len();
    let one = [&[0xe8][..], &(between as i32).to_le_bytes(), &vec![TRAP; between], &target].concat();
    // Calls need a stack.
    StepLoop { init: assemble("lea rsp, [r14 + 2048]"), ..loop_in_pages(one.repeat(number), number, 1) }
}

/// Bytes from a call to the next one. Nearer ones are in fewer lines, and what they cost rises slowly where these have no room.
const APART: usize = 64;
/// int3, which is never reached.
const TRAP: u8 = 0xcc;

fn add_calls(number: usize) -> StepLoop {
    call_row(number, "add rsp, 8")
}

fn lea_calls(number: usize) -> StepLoop {
    call_row(number, "lea rsp, [rsp + 8]")
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "call_targets",
    about: "how many direct calls the core knows before it has decoded them",
    definition: "calls without returns, one in 64 bytes, of which about half are still known: tables that are found by hashes fill by chance",
    source: "M. Godbolt, The BTB in contemporary Intel chips (2016)",
    answers: &[],
    part: TestedPart::FrontEnd,
    experiment: Experiment::Levels(LevelsSpec {
        programs: &[
            ProgramFamily::new("call and add rsp", add_calls),
            ProgramFamily::new("call and lea rsp", lea_calls),
        ],
        also_occupies: &[("instruction_cache", APART)],
        count_range: [16, 12288],
        min_rise: 0.5,
        min_ratio: 1.3,
        fills_randomly: true,
        cost_definition: Some("core cycles of a call to the next one"),
        ..LevelsSpec::COUNTS
    }),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Mnemonic};

    #[test]
    fn each_call_goes_to_what_takes_its_address_away_and_never_to_the_next_byte() {
        for body in [add_calls(10).body, lea_calls(10).body] {
            let all: Vec<_> = Decoder::new(64, &body, DecoderOptions::NONE).iter().collect();
            let off = [Mnemonic::Add, Mnemonic::Lea];
            let targets: Vec<u64> =
                all.iter().filter(|one| off.contains(&one.mnemonic())).map(|one| one.ip()).collect();
            let calls: Vec<_> = all.iter().filter(|one| one.mnemonic() == Mnemonic::Call).collect();
            assert_eq!(calls.iter().map(|call| call.near_branch_target()).collect::<Vec<_>>(), targets);
            assert!(calls.len() == 10 && calls.iter().all(|call| call.near_branch_target() > call.next_ip()));
        }
    }
}
