//! The return address stack.
//!
//! If nested calls are deeper than the stack, each further return is mispredicted. The last call of
//! a nest then costs as much as a misprediction. Some cores predict such a return from the branch
//! history, and then it costs no more than any other. For these cores, one return is measured that
//! the history does not predict.

use super::misprediction::{GENERATE, random_loop};
use crate::spec::*;

/// Nests of the shorter call.
const ITERATIONS: u64 = 1800;
/// Nests of the shorter call of a program without random branches. Background load adds a share of
/// a call's time; in a longer call, that share exceeds the cost of the last return (Zen 4).
const FEW_ITERATIONS: u64 = 120;
/// int3, which never runs.
const TRAP: u8 = 0xcc;

/// Functions `apart` bytes from each other. They call each other down to this depth, each from one
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
/// selects one of `places` for the first call, and more bits decide branches in between: the branch
/// history does not show where the first function returns to. The stack loses this address first.
///
/// Both sides of a branch call the same functions: wrong-path fetches push the same addresses.
fn random_nest(depth: usize, apart: usize, places: CallerCount) -> StepLoop {
    // RAX holds the bits, the highest first.
    let mut body = assemble(&format!("{GENERATE}; mov rax, rbp; shl rax, 1"));
    let first = (body.len() + 2 + 2 * PLACE).next_multiple_of(apart);
    let second = (first + BITS * BIT + PLACE).next_multiple_of(apart);
    let place = |function: usize| if function == 0 { first } else { second + (function - 1) * apart };
    let end = place(depth);
    body.extend([JC, PLACE as u8]);
    let other = body.len() + PLACE;
    for number in 0..2 {
        // With one place, the first side jumps to it over as many bytes.
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

/// Number of places that call the first function.
#[derive(Clone, Copy)]
enum CallerCount {
    One,
    Two,
}

/// Number of random branches in between.
const BITS: usize = 8;
/// Bytes of each of these branches.
const BIT: usize = 8;
/// jc over less than 128 bytes.
const JC: u8 = 0x72;
/// Opcode of a call.
const CALL: u8 = 0xe8;
/// Opcode of a jump.
const JUMP: u8 = 0xe9;
/// Bytes of a call and a jump together.
const PLACE: usize = 10;

/// A call or a jump from one place to another.
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
