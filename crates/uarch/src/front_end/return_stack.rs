//! The stack of return addresses.
//!
//! Where a nest of calls is deeper than the stack, each return more is mispredicted, and the last
//! call of a nest costs as much as that. Some cores know from the history of branches where such a
//! return goes to, and then it costs no more than another. On these one return is measured that no
//! history tells.

use super::misprediction::{GENERATE, random_loop};
use crate::spec::*;

/// Nests of the shorter call.
const ITERATIONS: u64 = 1800;
/// Nests of that of a program without random branches. What background load does meanwhile is a
/// part of all calls together, which in a longer time is more than the last one costs (Zen 4).
const FEW_ITERATIONS: u64 = 120;
/// int3, which is never reached.
const TRAP: u8 = 0xcc;

/// Functions `apart` bytes from each other, which call each other down to this depth, each from one
/// place.
fn nested_calls(depth: usize, apart: usize) -> StepLoop {
    let place = |function: usize| (1 + function) * apart;
    let mut body = encode_branch(CALL, 0, place(0));
    body.extend(encode_branch(JUMP, body.len(), place(depth)));
    for function in 0..depth {
        body.resize(place(function), TRAP);
        if function + 1 < depth {
            body.extend(encode_branch(CALL, body.len(), place(function + 1)));
        }
        body.extend(assemble("ret"));
    }
    body.resize(place(depth), TRAP);
    random_loop(body, FEW_ITERATIONS)
}

/// Functions `apart` bytes from each other, which call each other down to this depth. A random bit
/// decides which of `places` calls the first one, and more bits decide branches between: no branch
/// history shows where it returns to. Its address is lost first.
///
/// A mispredicted branch on the way calls the same functions as the right one, so that wrong
/// fetches push the same addresses.
fn random_nest(depth: usize, apart: usize, places: CallerCount) -> StepLoop {
    // The bits are RAX's, the highest first.
    let mut body = assemble(&format!("{GENERATE}; mov rax, rbp; shl rax, 1"));
    let first = (body.len() + 2 + 2 * PLACE).next_multiple_of(apart);
    let second = (first + BITS * BIT + PLACE).next_multiple_of(apart);
    let place = |function: usize| if function == 0 { first } else { second + (function - 1) * apart };
    let end = place(depth);
    body.extend([JC, PLACE as u8]);
    let other = body.len() + PLACE;
    for number in 0..2 {
        // Where there is one place, the first way jumps to it over as many bytes.
        let (opcode, to) = match (places, number) {
            (CallerCount::One, 0) => (JUMP, other),
            _ => (CALL, first),
        };
        body.extend(encode_branch(opcode, body.len(), to));
        body.extend(encode_branch(JUMP, body.len(), end));
    }
    for function in 0..depth {
        body.resize(place(function), TRAP);
        if function == 0 {
            body.extend(
                [&assemble("shl rax, 1")[..], &[JC, 3], &assemble("nop dword ptr [rax]")].concat().repeat(BITS),
            );
        }
        if function + 1 < depth {
            body.extend(encode_branch(CALL, body.len(), place(function + 1)));
        }
        body.extend(assemble("ret"));
    }
    body.resize(end, TRAP);
    random_loop(body, ITERATIONS)
}

/// How many places call the first function.
#[derive(Clone, Copy)]
enum CallerCount {
    One,
    Two,
}

/// Random branches between, and bytes of each.
const BITS: usize = 8;
const BIT: usize = 8;
/// jc over less than 128 bytes.
const JC: u8 = 0x72;
/// Opcodes of a call and of a jump, and bytes of both together.
const CALL: u8 = 0xe8;
const JUMP: u8 = 0xe9;
const PLACE: usize = 10;

/// A call or a jump at a place to another one.
fn encode_branch(opcode: u8, from: usize, to: usize) -> Vec<u8> {
    let distance = to as i32 - (from + PLACE / 2) as i32;
    [&[opcode][..], &distance.to_le_bytes()].concat()
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "return_stack",
    about: "how deep calls may be nested until a return is mispredicted",
    definition: "calls within each other that all return without a misprediction; on cores that know from other \
                 branches where returns go to, the same beside mispredicted branches, which may cost entries",
    source: FOG,
    answers: &["returnstack"],
    part: TestedPart::FrontEnd,
    experiment: Experiment::Levels(LevelsSpec {
        programs: &[
            ProgramFamily::new("a call more, 32 bytes apart", |depth| nested_calls(depth, 32))
                .less(|depth| nested_calls(depth - 1, 32)),
            ProgramFamily::new("a call more, 64 bytes apart", |depth| nested_calls(depth, 64))
                .less(|depth| nested_calls(depth - 1, 64)),
        ],
        fallback_programs: &[
            ProgramFamily::new("functions 32 bytes apart", |depth| random_nest(depth, 32, CallerCount::Two))
                .less(|depth| random_nest(depth, 32, CallerCount::One)),
            ProgramFamily::new("functions 64 bytes apart", |depth| random_nest(depth, 64, CallerCount::Two))
                .less(|depth| random_nest(depth, 64, CallerCount::One)),
        ],
        count_range: [6, 64],
        min_rise: 5.0,
        min_ratio: 1.2,
        single_structure: true,
        always_ends: true,
        ..LevelsSpec::COUNTS
    }),
}];
