//! Loads that a core knows to be of a store before them without their addresses.
//!
//! A chain goes from a register through a store and a load of it, and through multiplications, so that nothing but the chain limits it. Renaming
//! can give the load what the store has where it loads the same; a load that begins behind the store's first byte has to wait for
//! memory. What is between the two and how their addresses are written is the same in both programs.

use crate::spec::data_moves::loop_in_pages;
use crate::spec::program_family::{StepLoop, assemble};
use crate::spec::rate::{ContrastSpec, ProgramVariant, TestRow};
use crate::spec::{Experiment, TestSpec, TestedPart};

/// Pages of the areas. The stack is at the end of the last one.
const PAGES: u64 = 2;
/// Steps of an iteration: few, as cores know by the instructions which loads are of which stores.
const STEPS: usize = 4;
/// Iterations of the shorter call.
const ITERATIONS: u64 = 60;

/// Multiplications of a step at least.
const LINKS: usize = 2;
/// Stores or instructions that every core takes while one multiplication lasts.
const STORES: usize = 2;
const INSTRUCTIONS: usize = 6;

/// A loop over a text. RBP is R14, R13 is one, and R12 zero.
fn chain_loop(text: &str) -> StepLoop {
    let before = "mov rbp, r14; mov r13d, 1; xor r12d, r12d; lea rsp, [r14 + 8192]; mov eax, 1; mov esi, 1";
    let steps = loop_in_pages(assemble(text).repeat(STEPS), STEPS, PAGES);
    StepLoop { init: assemble(before), iterations: ITERATIONS, ..steps }
}

/// What is between a store and its load.
type BetweenText = fn(usize) -> String;

/// Bytes in which no store between is at the address of the load: some cores take a load for one of a store that is a multiple of as many bytes away, and begin again
/// when they see that it is not (31 cycles on Genoa, family 25, model 17).
const ALIAS: usize = 1024;
/// Where the stores between begin: behind all that is stored and loaded by offsets of less than half of these bytes.
const BETWEEN: usize = ALIAS + ALIAS / 2;

fn stores_between(number: usize) -> String {
    (0..number).map(|place| format!("mov [r14 + {}], rbx; ", BETWEEN + 8 * place)).collect()
}

fn nops_between(number: usize) -> String {
    "nop; ".repeat(number)
}

/// A chain whose load is behind so many of something, and multiplications that last longer than these.
fn chain_across(number: usize, between: BetweenText, each: usize, [store, load, link]: [&str; 3]) -> StepLoop {
    let links = format!("; {link}").repeat(LINKS + number / each);
    chain_loop(&format!("{store}; {}{load}{links}", between(number)))
}

/// A program through a load of a part, less one through a load of what was stored.
macro_rules! renamed {
    ($part:expr, $whole:expr) => {
        ProgramVariant::with_control(concat!($part, ", less ", $whole), |_| chain_loop($part), |_| chain_loop($whole))
    };
}

/// Two such programs of 64 bits: what is between, and of each the address of the store, that of the load, and that of the load of a part.
macro_rules! of_64 {
    ($name:literal, $between:literal, $one:literal $one_load:literal $one_part:literal, $other:literal $other_load:literal $other_part:literal) => {
        TestRow::new(
            $name,
            1,
            1.0,
            &[
                renamed!(
                    concat!("mov [", $one, "], rax; ", $between, "mov eax, [", $one_part, "]; imul rax, rax"),
                    concat!("mov [", $one, "], rax; ", $between, "mov rax, [", $one_load, "]; imul rax, rax")
                ),
                renamed!(
                    concat!("mov [", $other, "], rsi; ", $between, "mov esi, [", $other_part, "]; imul rsi, rsi, 5"),
                    concat!("mov [", $other, "], rsi; ", $between, "mov rsi, [", $other_load, "]; imul rsi, rsi, 5")
                ),
            ],
        )
    };
}

/// Two such programs of which so many of something are between store and load.
macro_rules! reach_row {
    ($name:literal, $number:literal, $between:ident, $each:ident) => {
        TestRow::new(
            $name,
            $number,
            1.0,
            &[
                ProgramVariant::with_control(
                    "through [r14 + 64] and rax, less a load of the whole",
                    |number| {
                        chain_across(
                            number,
                            $between,
                            $each,
                            ["mov [r14 + 64], rax", "mov eax, [r14 + 68]", "imul rax, rax"],
                        )
                    },
                    |number| {
                        chain_across(
                            number,
                            $between,
                            $each,
                            ["mov [r14 + 64], rax", "mov rax, [r14 + 64]", "imul rax, rax"],
                        )
                    },
                ),
                ProgramVariant::with_control(
                    "through [rbp + 328] and rsi, less a load of the whole",
                    |number| {
                        chain_across(
                            number,
                            $between,
                            $each,
                            ["mov [rbp + 328], rsi", "mov esi, [rbp + 332]", "imul rsi, rsi, 5"],
                        )
                    },
                    |number| {
                        chain_across(
                            number,
                            $between,
                            $each,
                            ["mov [rbp + 328], rsi", "mov rsi, [rbp + 328]", "imul rsi, rsi, 5"],
                        )
                    },
                ),
            ],
        )
    };
}

pub(crate) const TEST: TestSpec = TestSpec {
    name: "memory_renaming",
    about: "whether a load has what a store before it stored without waiting for memory, by address, width and distance",
    definition: "core cycles that a chain through a store and a load of the same bytes is shorter than one through a load of a part behind the store's first byte, which renaming can't know (forwarding that is slower from there shows the same: see forwarding_map); none where the core waits for memory",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024), memory mirroring",
    part: TestedPart::Memory,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[
            of_64!("base", "", "r14" "r14" "r14 + 4", "rbp" "rbp" "rbp + 4"),
            of_64!("base_and_offset", "", "r14 + 64" "r14 + 64" "r14 + 68", "rbp + 120" "rbp + 120" "rbp + 124"),
            of_64!("base_and_long_offset", "", "r14 + 1024" "r14 + 1024" "r14 + 1028", "rbp + 328" "rbp + 328" "rbp + 332"),
            of_64!("stack_pointer", "", "rsp - 64" "rsp - 64" "rsp - 60", "rsp - 120" "rsp - 120" "rsp - 116"),
            of_64!("index", "", "r14 + r12 + 64" "r14 + r12 + 64" "r14 + r12 + 68", "rbp + 8*r12 + 120" "rbp + 8*r12 + 120" "rbp + 8*r12 + 124"),
            of_64!("index_in_load", "", "r14 + 64" "r14 + r12 + 64" "r14 + r12 + 68", "rbp + 120" "rbp + 8*r12 + 120" "rbp + 8*r12 + 124"),
            of_64!("another_base", "", "r14 + 64" "rbp + 64" "rbp + 68", "rbp + 120" "r14 + 120" "r14 + 124"),
            of_64!("base_written_again", "mov rbp, r14; ", "rbp + 64" "rbp + 64" "rbp + 68", "rbp + 120" "rbp + 120" "rbp + 124"),
            of_64!("base_added_to", "add rbp, 8; sub rbp, 8; ", "rbp + 64" "rbp + 64" "rbp + 68", "rbp + 120" "rbp + 120" "rbp + 124"),
            of_64!("base_multiplied", "imul rbp, r13; ", "rbp + 64" "rbp + 64" "rbp + 68", "rbp + 120" "rbp + 120" "rbp + 124"),
            TestRow::new(
                "push_and_pop",
                1,
                1.0,
                &[
                    renamed!(
                        "push rax; mov eax, [rsp + 4]; add rsp, 8; imul rax, rax",
                        "push rax; pop rax; imul rax, rax"
                    ),
                    renamed!(
                        "push rsi; mov esi, [rsp + 4]; add rsp, 8; imul rsi, rsi, 5",
                        "push rsi; pop rsi; imul rsi, rsi, 5"
                    ),
                ],
            ),
            TestRow::new(
                "32_bits",
                1,
                1.0,
                &[
                    renamed!(
                        "mov [r14 + 64], rax; mov eax, [r14 + 68]; imul rax, rax",
                        "mov [r14 + 64], eax; mov eax, [r14 + 64]; imul rax, rax"
                    ),
                    renamed!(
                        "mov [rbp + 120], rsi; mov esi, [rbp + 124]; imul rsi, rsi, 5",
                        "mov [rbp + 120], esi; mov esi, [rbp + 120]; imul rsi, rsi, 5"
                    ),
                ],
            ),
            TestRow::new(
                "8_bits",
                1,
                1.0,
                &[
                    renamed!(
                        "mov [r14 + 64], rax; movzx eax, byte ptr [r14 + 65]; imul rax, rax",
                        "mov [r14 + 64], al; movzx eax, byte ptr [r14 + 64]; imul rax, rax"
                    ),
                    renamed!(
                        "mov [rbp + 120], rsi; movzx esi, byte ptr [rbp + 121]; imul rsi, rsi, 5",
                        "mov [rbp + 120], sil; movzx esi, byte ptr [rbp + 120]; imul rsi, rsi, 5"
                    ),
                ],
            ),
            TestRow::new(
                "first_32_bits",
                1,
                1.0,
                &[
                    renamed!(
                        "mov [r14 + 64], rax; mov eax, [r14 + 68]; imul rax, rax",
                        "mov [r14 + 64], rax; mov eax, [r14 + 64]; imul rax, rax"
                    ),
                    renamed!(
                        "mov [rbp + 120], rsi; mov esi, [rbp + 124]; imul rsi, rsi, 5",
                        "mov [rbp + 120], rsi; mov esi, [rbp + 120]; imul rsi, rsi, 5"
                    ),
                ],
            ),
            TestRow::new(
                "operand",
                1,
                1.0,
                &[
                    renamed!(
                        "mov [r14 + 64], rax; add eax, [r14 + 68]; imul rax, rax",
                        "mov [r14 + 64], rax; add rax, [r14 + 64]; imul rax, rax"
                    ),
                    renamed!(
                        "mov [rbp + 120], rsi; or esi, [rbp + 124]; imul rsi, rsi, 5",
                        "mov [rbp + 120], rsi; or rsi, [rbp + 120]; imul rsi, rsi, 5"
                    ),
                ],
            ),
            TestRow::new(
                "xmm",
                1,
                1.0,
                &[
                    renamed!(
                        "movups [r14 + 64], xmm0; movq xmm0, [r14 + 72]; pmuludq xmm0, xmm0",
                        "movups [r14 + 64], xmm0; movups xmm0, [r14 + 64]; pmuludq xmm0, xmm0"
                    ),
                    renamed!(
                        "movdqu [rbp + 112], xmm1; movq xmm1, [rbp + 120]; pmaddwd xmm1, xmm15",
                        "movdqu [rbp + 112], xmm1; movdqu xmm1, [rbp + 112]; pmaddwd xmm1, xmm15"
                    ),
                ],
            ),
        ],
        tolerance: 1.0,
        tolerance_share: 0.2,
    }),
};

pub(crate) const REACH: TestSpec = TestSpec {
    name: "memory_renaming_reach",
    about: "how far behind a store a load may be and have what it stored without waiting for memory",
    definition: TEST.definition,
    source: TEST.source,
    part: TestedPart::Memory,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[
            reach_row!("4_stores", 4, stores_between, STORES),
            reach_row!("8_stores", 8, stores_between, STORES),
            reach_row!("16_stores", 16, stores_between, STORES),
            reach_row!("32_stores", 32, stores_between, STORES),
            reach_row!("64_stores", 64, stores_between, STORES),
            reach_row!("16_instructions", 16, nops_between, INSTRUCTIONS),
            reach_row!("64_instructions", 64, nops_between, INSTRUCTIONS),
            reach_row!("128_instructions", 128, nops_between, INSTRUCTIONS),
            reach_row!("256_instructions", 256, nops_between, INSTRUCTIONS),
        ],
        // Renaming saves the way through memory, of four cycles at least. Behind 32 stores the whole takes one cycle more than the part, where neither is renamed
        // (Genoa, family 25, model 17).
        tolerance: 2.0,
        tolerance_share: 0.2,
    }),
};

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, OpAccess};

    /// Bytes that a program stores and loads, as places and widths.
    fn accesses(steps: &StepLoop) -> [Vec<(u64, usize)>; 2] {
        let mut factory = InstructionInfoFactory::new();
        let mut all = [Vec::new(), Vec::new()];
        let body: Vec<Instruction> =
            Decoder::new(64, &steps.body[..steps.body.len() / STEPS], DecoderOptions::NONE).into_iter().collect();
        for instruction in &body {
            for used in factory.info(instruction).used_memory() {
                let place = (used.displacement(), used.memory_size().size());
                match used.access() {
                    OpAccess::Write => all[0].push(place),
                    OpAccess::Read => all[1].push(place),
                    other => panic!("{instruction}: {other:?}"),
                }
            }
        }
        all
    }

    /// No program has an event in it that is another one's.
    #[test]
    fn no_store_between_is_taken_for_that_of_the_load() {
        for (row, way) in REACH.rows().iter().flat_map(|row| row.variants.iter().map(move |way| (row, way))) {
            for program in [Some(way.family.program), way.family.control].into_iter().flatten() {
                let [stored, loaded] = accesses(&program(row.n));
                let (load, width) = loaded[0];
                for (store, _) in &stored[1..] {
                    let apart = (store % ALIAS as u64).abs_diff(load % ALIAS as u64);
                    assert!(apart >= width as u64, "{}, {}: {store} and {load}", row.name, way.family.name);
                }
            }
        }
    }

    /// The program loads a part behind the first byte of what was stored, and the control from that byte on.
    #[test]
    fn the_control_loads_what_was_stored_from_its_first_byte_on() {
        let rows = TEST.rows().iter().chain(REACH.rows());
        for (row, way) in rows.flat_map(|row| row.variants.iter().map(move |way| (row, way))) {
            let name = format!("{}, {}", row.name, way.family.name);
            let part = accesses(&(way.family.program)(row.n));
            let whole = accesses(&way.family.control.expect("it has a control")(row.n));
            let [[(stored, width), ..], [(part, part_width)]] = [&part[0][..], &part[1][..]] else { panic!("{name}") };
            let [[(place, _), ..], [(begin, _)]] = [&whole[0][..], &whole[1][..]] else { panic!("{name}") };
            // A push stores before where it points to.
            let from = if row.name == "push_and_pop" { 0 } else { *stored };
            assert!((from + 1..from.wrapping_add(*width as u64)).contains(part), "{name}");
            assert!(part + *part_width as u64 <= from.wrapping_add(*width as u64), "{name}");
            assert_eq!(*place, if row.name == "push_and_pop" { *stored } else { *begin }, "{name}");
        }
    }
}
