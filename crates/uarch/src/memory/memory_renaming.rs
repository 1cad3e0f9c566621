//! Loads that a core matches with an earlier store without knowing their addresses.
//!
//! A chain goes from a register through a store and a load of it, and through multiplications;
//! nothing but the chain limits it. If the load reads the same bytes as the store, renaming can
//! give it the stored value. A load that begins behind the store's first byte has to wait for
//! memory. Both programs have the same instructions in between and the same form of addresses.

use crate::spec::*;

/// Steps per iteration.
const STEPS: usize = 4;
/// The least number of multiplications per step.
const LINKS: usize = 2;
/// Stores that every core completes during one multiplication.
const STORES_EACH: usize = 2;
/// Instructions that every core completes during one multiplication.
const INSTRUCTIONS_EACH: usize = 6;

/// RBP equals R14, R13 is one, R12 zero, and RSP points to the end of the pages. Steps are few, as
/// cores match loads with stores by their instructions.
const CHAIN: AsmLoop = AsmLoop {
    setup: "mov rbp, r14; mov r13d, 1; xor r12d, r12d; lea rsp, [r14 + 8192]; mov eax, 1; mov esi, 1",
    iterations: Some(60),
    ..AsmLoop::bare(STEPS, 2)
};

/// No store in between has the load's address modulo this many bytes. Some cores match a load with
/// a store that is a multiple of this away. They start over when they detect the error (31 cycles
/// on Genoa, family 25, model 17).
const ALIAS: usize = 1024;
/// Where the stores in between begin: behind all bytes that the chain accesses, at offsets of less
/// than half of these bytes.
const BETWEEN: usize = ALIAS + ALIAS / 2;

/// A chain with stores or no-operations between its store and its load, and multiplications that
/// last longer than these. The first number is how many of them one multiplication covers. The
/// texts: the store, the load and the multiplication.
fn chain_across(number: usize, inputs: &Inputs) -> StepLoop {
    let Inputs { texts: [store, load, link, between], numbers: [each, ..] } = *inputs;
    let between: String = match between {
        "stores" => (0..number).map(|place| format!("mov [r14 + {}], rbx; ", BETWEEN + 8 * place)).collect(),
        _ => "nop; ".repeat(number),
    };
    let links = format!("; {link}").repeat(LINKS + number / each);
    CHAIN.assemble(&format!("{store}; {between}{load}{links}"), 0)
}

/// A program with a partial load, less a program that loads all of the stored bytes.
const fn renamed(part: &'static str, whole: &'static str) -> ProgramVariant {
    CHAIN.asm(part).less(whole)
}

/// A chain through `rax` and one through `rsi`. The texts: the address of each store, of its load,
/// of the partial load, and the instructions in between.
const fn of_64(one: Texts, other: Texts) -> [ProgramVariant; 2] {
    [
        CHAIN
            .with(one)
            .asm("mov [{a}], rax; {d}mov eax, [{c}]; imul rax, rax")
            .less("mov [{a}], rax; {d}mov rax, [{b}]; imul rax, rax"),
        CHAIN
            .with(other)
            .asm("mov [{a}], rsi; {d}mov esi, [{c}]; imul rsi, rsi, 5")
            .less("mov [{a}], rsi; {d}mov rsi, [{b}]; imul rsi, rsi, 5"),
    ]
}

/// Two such programs with stores or no-operations in between.
const fn across(between: &'static str, each: usize) -> [ProgramVariant; 2] {
    let [link, other] = ["imul rax, rax", "imul rsi, rsi, 5"];
    let numbers = [each, 0, 0, 0];
    [
        ProgramVariant::built(
            "through [r14 + 64] and rax, less a load of the whole",
            chain_across,
            ["mov [r14 + 64], rax", "mov eax, [r14 + 68]", link, between],
            numbers,
        )
        .less_built(["mov [r14 + 64], rax", "mov rax, [r14 + 64]", link, between], numbers),
        ProgramVariant::built(
            "through [rbp + 328] and rsi, less a load of the whole",
            chain_across,
            ["mov [rbp + 328], rsi", "mov esi, [rbp + 332]", other, between],
            numbers,
        )
        .less_built(["mov [rbp + 328], rsi", "mov rsi, [rbp + 328]", other, between], numbers),
    ]
}
const STORES: &[ProgramVariant] = &across("stores", STORES_EACH);
const NOPS: &[ProgramVariant] = &across("nops", INSTRUCTIONS_EACH);

pub(crate) const TESTS: &[TestSpec] = &[
    TestSpec {
        name: "memory_renaming",
        about: "whether a load has what a store before it stored without waiting for memory, by address, width and \
                distance",
        definition: "core cycles that a chain through a store and a load of the same bytes is shorter than one \
                     through a load of a part behind the store's first byte, which renaming can't know (forwarding \
                     that is slower from there shows the same: see forwarding_map); none where the core waits for \
                     memory",
        source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024), memory mirroring",
        answers: &["memory_mirror"],
        part: TestedPart::Memory,
        experiment: Experiment::Contrast(ContrastSpec {
            rows: &[
                TestRow::new("base", &of_64(["r14", "r14", "r14 + 4", ""], ["rbp", "rbp", "rbp + 4", ""])),
                TestRow::new(
                    "base_and_offset",
                    &of_64(["r14 + 64", "r14 + 64", "r14 + 68", ""], ["rbp + 120", "rbp + 120", "rbp + 124", ""]),
                ),
                TestRow::new(
                    "base_and_long_offset",
                    &of_64(["r14 + 1024", "r14 + 1024", "r14 + 1028", ""], ["rbp + 328", "rbp + 328", "rbp + 332", ""]),
                ),
                TestRow::new(
                    "stack_pointer",
                    &of_64(["rsp - 64", "rsp - 64", "rsp - 60", ""], ["rsp - 120", "rsp - 120", "rsp - 116", ""]),
                ),
                TestRow::new(
                    "index",
                    &of_64(
                        ["r14 + r12 + 64", "r14 + r12 + 64", "r14 + r12 + 68", ""],
                        ["rbp + 8*r12 + 120", "rbp + 8*r12 + 120", "rbp + 8*r12 + 124", ""],
                    ),
                ),
                TestRow::new(
                    "index_in_load",
                    &of_64(
                        ["r14 + 64", "r14 + r12 + 64", "r14 + r12 + 68", ""],
                        ["rbp + 120", "rbp + 8*r12 + 120", "rbp + 8*r12 + 124", ""],
                    ),
                ),
                TestRow::new(
                    "another_base",
                    &of_64(["r14 + 64", "rbp + 64", "rbp + 68", ""], ["rbp + 120", "r14 + 120", "r14 + 124", ""]),
                ),
                TestRow::new(
                    "base_written_again",
                    &of_64(
                        ["rbp + 64", "rbp + 64", "rbp + 68", "mov rbp, r14; "],
                        ["rbp + 120", "rbp + 120", "rbp + 124", "mov rbp, r14; "],
                    ),
                ),
                TestRow::new(
                    "base_added_to",
                    &of_64(
                        ["rbp + 64", "rbp + 64", "rbp + 68", "add rbp, 8; sub rbp, 8; "],
                        ["rbp + 120", "rbp + 120", "rbp + 124", "add rbp, 8; sub rbp, 8; "],
                    ),
                ),
                TestRow::new(
                    "base_multiplied",
                    &of_64(
                        ["rbp + 64", "rbp + 64", "rbp + 68", "imul rbp, r13; "],
                        ["rbp + 120", "rbp + 120", "rbp + 124", "imul rbp, r13; "],
                    ),
                ),
                TestRow::new(
                    "push_and_pop",
                    &[
                        renamed(
                            "push rax; mov eax, [rsp + 4]; add rsp, 8; imul rax, rax",
                            "push rax; pop rax; imul rax, rax",
                        ),
                        renamed(
                            "push rsi; mov esi, [rsp + 4]; add rsp, 8; imul rsi, rsi, 5",
                            "push rsi; pop rsi; imul rsi, rsi, 5",
                        ),
                    ],
                ),
                TestRow::new(
                    "32_bits",
                    &[
                        renamed(
                            "mov [r14 + 64], rax; mov eax, [r14 + 68]; imul rax, rax",
                            "mov [r14 + 64], eax; mov eax, [r14 + 64]; imul rax, rax",
                        ),
                        renamed(
                            "mov [rbp + 120], rsi; mov esi, [rbp + 124]; imul rsi, rsi, 5",
                            "mov [rbp + 120], esi; mov esi, [rbp + 120]; imul rsi, rsi, 5",
                        ),
                    ],
                ),
                TestRow::new(
                    "8_bits",
                    &[
                        renamed(
                            "mov [r14 + 64], rax; movzx eax, byte ptr [r14 + 65]; imul rax, rax",
                            "mov [r14 + 64], al; movzx eax, byte ptr [r14 + 64]; imul rax, rax",
                        ),
                        renamed(
                            "mov [rbp + 120], rsi; movzx esi, byte ptr [rbp + 121]; imul rsi, rsi, 5",
                            "mov [rbp + 120], sil; movzx esi, byte ptr [rbp + 120]; imul rsi, rsi, 5",
                        ),
                    ],
                ),
                TestRow::new(
                    "first_32_bits",
                    &[
                        renamed(
                            "mov [r14 + 64], rax; mov eax, [r14 + 68]; imul rax, rax",
                            "mov [r14 + 64], rax; mov eax, [r14 + 64]; imul rax, rax",
                        ),
                        renamed(
                            "mov [rbp + 120], rsi; mov esi, [rbp + 124]; imul rsi, rsi, 5",
                            "mov [rbp + 120], rsi; mov esi, [rbp + 120]; imul rsi, rsi, 5",
                        ),
                    ],
                ),
                TestRow::new(
                    "operand",
                    &[
                        renamed(
                            "mov [r14 + 64], rax; add eax, [r14 + 68]; imul rax, rax",
                            "mov [r14 + 64], rax; add rax, [r14 + 64]; imul rax, rax",
                        ),
                        renamed(
                            "mov [rbp + 120], rsi; or esi, [rbp + 124]; imul rsi, rsi, 5",
                            "mov [rbp + 120], rsi; or rsi, [rbp + 120]; imul rsi, rsi, 5",
                        ),
                    ],
                ),
                TestRow::new(
                    "xmm",
                    &[
                        renamed(
                            "movups [r14 + 64], xmm0; movq xmm0, [r14 + 72]; pmuludq xmm0, xmm0",
                            "movups [r14 + 64], xmm0; movups xmm0, [r14 + 64]; pmuludq xmm0, xmm0",
                        ),
                        renamed(
                            "movdqu [rbp + 112], xmm1; movq xmm1, [rbp + 120]; pmaddwd xmm1, xmm15",
                            "movdqu [rbp + 112], xmm1; movdqu xmm1, [rbp + 112]; pmaddwd xmm1, xmm15",
                        ),
                    ],
                ),
            ],
            tolerance: 1.0,
            tolerance_share: 0.2,
            slot_costs: &[],
        }),
    },
    TestSpec {
        name: "memory_renaming_reach",
        about: "how far behind a store a load may be and have what it stored without waiting for memory",
        definition: "core cycles that a chain through a store and a load of the same bytes is shorter than one \
                     through a load of a part behind the store's first byte, which renaming can't know (forwarding \
                     that is slower from there shows the same: see forwarding_map); none where the core waits for \
                     memory",
        source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024), memory mirroring",
        answers: &["memory_mirror"],
        part: TestedPart::Memory,
        experiment: Experiment::Contrast(ContrastSpec {
            rows: &[
                TestRow::for_n("4_stores", 4, STORES),
                TestRow::for_n("8_stores", 8, STORES),
                TestRow::for_n("16_stores", 16, STORES),
                TestRow::for_n("32_stores", 32, STORES),
                TestRow::for_n("64_stores", 64, STORES),
                TestRow::for_n("16_instructions", 16, NOPS),
                TestRow::for_n("64_instructions", 64, NOPS),
                TestRow::for_n("128_instructions", 128, NOPS),
                TestRow::for_n("256_instructions", 256, NOPS),
            ],
            // Renaming saves the path through memory, at least four cycles. Behind 32 stores, the
            // full load takes one cycle longer than the partial one, and neither is renamed (Genoa,
            // family 25, model 17).
            tolerance: 2.0,
            tolerance_share: 0.2,
            slot_costs: &[],
        }),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_list::find_test;
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

    #[test]
    fn no_store_between_aliases_the_load() {
        for (row, variant) in find_test("memory_renaming_reach")
            .rows()
            .iter()
            .flat_map(|row| row.variants.iter().map(move |variant| (row, variant)))
        {
            for steps in std::iter::once(variant.family.program(row.n)).chain(variant.family.control(row.n)) {
                let [stored, loaded] = accesses(&steps);
                let (load, width) = loaded[0];
                for (store, _) in &stored[1..] {
                    let apart = (store % ALIAS as u64).abs_diff(load % ALIAS as u64);
                    assert!(apart >= width as u64, "{}, {}: {store} and {load}", row.name, variant.family.label());
                }
            }
        }
    }

    #[test]
    fn the_control_loads_from_the_first_stored_byte() {
        let rows = find_test("memory_renaming").rows().iter().chain(find_test("memory_renaming_reach").rows());
        for (row, variant) in rows.flat_map(|row| row.variants.iter().map(move |variant| (row, variant))) {
            let name = format!("{}, {}", row.name, variant.family.label());
            let part = accesses(&variant.family.program(row.n));
            let whole = accesses(&variant.family.control(row.n).expect("it has a control"));
            let [[(stored, width), ..], [(part, part_width)]] = [&part[0][..], &part[1][..]] else { panic!("{name}") };
            let [[(place, _), ..], [(begin, _)]] = [&whole[0][..], &whole[1][..]] else { panic!("{name}") };
            // A push stores below the address in its register.
            let from = if row.name == "push_and_pop" { 0 } else { *stored };
            assert!((from + 1..from.wrapping_add(*width as u64)).contains(part), "{name}");
            assert!(part + *part_width as u64 <= from.wrapping_add(*width as u64), "{name}");
            assert_eq!(*place, if row.name == "push_and_pop" { *stored } else { *begin }, "{name}");
        }
    }
}
