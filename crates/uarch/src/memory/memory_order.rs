//! Loads and earlier stores to other addresses.

use crate::spec::*;

// Loads that wait for a store to another address.

/// A chain of loads of a cell that holds its own address, with stores `{a}` bytes behind it. The
/// control's stores are one or two lines further away. Store and load get their addresses together:
/// the load meets the store before the full address is compared.
const fn offset(bytes: &'static str) -> [ProgramVariant; 2] {
    let texts = [bytes, "", "", ""];
    let one = AsmLoop { before: "lea rbp, [r14 + 256]; mov [rbp], rbp", ..AsmLoop::REPEATED };
    let other = AsmLoop { before: "lea rsi, [r14 + 648]; mov [rsi], rsi", ..AsmLoop::REPEATED };
    [
        one.with(texts).asm("mov [rbp + {a}], rdi; mov rbp, [rbp]").less("mov [rbp + 64 + {a}], rdi; mov rbp, [rbp]"),
        other
            .with(texts)
            .asm("mov [rsi + {a}], rdi; mov rsi, [rsi]")
            .less("mov [rsi + 128 + {a}], rdi; mov rsi, [rsi]"),
    ]
}

// Loads that bypass earlier stores of unknown address.
//
// A function stores and loads; the store's address is known later than the load's. It is called
// many times in turn. The first call has the load's own address, which teaches the core to let the
// load wait; all others have another address. In one of these clean runs the store's address
// arrives much later, and much work waits for the load. If the core lets the load bypass the store
// by then, this run costs less by that delay than the first clean run does. Programs and controls
// differ only in the place of that run.

/// Rows of the shorter call.
const ROWS: u64 = 4;
/// Multiplications before the late store's address, and behind the load.
const LATE: usize = 40;
/// Multiplications before the store's address in every run.
const ALWAYS: usize = 5;

/// The parts of a program.
struct RunTexts {
    /// Runs in a row, including the one with the alias. After an alias, cores let loads wait for
    /// some runs; a row has more.
    runs: usize,
    /// Sets the index of the store's address: to the load's own address, or to another one.
    index: [&'static str; 2],
    /// A link of a chain from the index to itself.
    address: &'static str,
    /// The store and the load.
    access: &'static str,
    /// A link of a chain from the loaded value to itself.
    behind: &'static str,
}

const ONE: RunTexts = RunTexts {
    runs: 128,
    index: ["mov rdx, -16", "mov edx, 0"],
    address: "imul rdx, rdi; ",
    access: "mov [r14 + 8*rdx + 256], rbx; mov rsi, [r14 + 128]",
    behind: "imul rsi, rdi; ",
};
const OTHER: RunTexts = RunTexts {
    runs: 144,
    index: ["mov rcx, -24", "xor ecx, ecx"],
    address: "imul rcx, rcx, 1; ",
    access: "mov [r14 + 8*rcx + 1000], rax; mov r9, [r14 + 448]; mov r8, [r14 + 808]",
    behind: "imul r8, r8, 3; ",
};

/// A row in which run `late` gets the store's address late. Each run waits for the end of the
/// previous one.
fn run_row(late: usize, texts: &RunTexts) -> StepLoop {
    let RunTexts { runs, index: [own, another], address, access, behind } = texts;
    let run = |number: usize| {
        let index = if number == 0 { own } else { another };
        let times = if number == late { LATE } else { 0 };
        format!("lfence; {index}; {}call 2f; {}", address.repeat(times), behind.repeat(times))
    };
    let calls: String = (0..*runs).map(run).collect();
    let body = assemble(&format!("{calls}jmp 3f; 2: {}{access}; ret; 3:", address.repeat(ALWAYS)));
    // The stack is at the end of the pages.
    let init = assemble("mov edi, 1; mov ebx, 3; mov eax, 5; lea rsp, [r14 + 8192]");
    StepLoop { init, iterations: ROWS, ..loop_in_pages(body, 1, 2) }
}

pub(crate) const TESTS: &[TestSpec] = &[
    TestSpec {
        name: "false_dependence",
        about: "what it costs to load behind a store to an address that ends in the same bits",
        definition: "core cycles by which a load takes longer in a chain than beside stores 64 or 128 bytes \
                     further; with the least and the most where that depends on the place of the code",
        source: FOG,
        answers: &[],
        part: TestedPart::Memory,
        experiment: Experiment::Contrast(ContrastSpec {
            // 1.5 or 25 cycles by the place of the code, in chains that differ only in their
            // register (Genoa, family 25, model 17).
            rows: &[
                TestRow::new("256_bytes", &offset("256")).varying_by_place(),
                TestRow::new("512_bytes", &offset("512")).varying_by_place(),
                TestRow::new("1_KiB", &offset("1024")).varying_by_place(),
                TestRow::new("2_KiB", &offset("2048")).varying_by_place(),
                TestRow::new("4_KiB", &offset("4096")).varying_by_place(),
                TestRow::new("8_KiB", &offset("8192")).varying_by_place(),
                TestRow::new("16_KiB", &offset("16384")).varying_by_place(),
                TestRow::new("64_KiB", &offset("65536")).varying_by_place(),
            ],
            tolerance: 0.5,
            tolerance_share: 0.2,
            slot_costs: &[],
        }),
    },
    TestSpec {
        name: "disambiguation",
        about: "how often a load must have had no store before it to its address until it goes ahead of stores \
                whose addresses come late",
        definition: "runs of one load, counted from one in which a store before it had its address, that wait for \
                     such a store; none where the load goes ahead at once, or never in that many runs",
        source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024); Intel 64 and IA-32 Architectures \
                 Optimization Reference Manual, memory disambiguation",
        answers: &[],
        part: TestedPart::Memory,
        experiment: Experiment::Levels(LevelsSpec {
            programs: &[
                ProgramFamily::new("one load", |_| run_row(1, &ONE)).less(|late| run_row(late, &ONE)),
                ProgramFamily::new("two loads", |_| run_row(1, &OTHER)).less(|late| run_row(late, &OTHER)),
            ],
            count_range: [1, 96],
            min_rise: 20.0,
            min_ratio: 1.2,
            single_structure: true,
            always_ends: true,
            ..LevelsSpec::COUNTS
        }),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Mnemonic};

    /// Rows with different late runs have the same instructions, except for the chains before and
    /// behind that run.
    #[test]
    fn rows_differ_only_in_the_place_of_one_run() {
        for texts in [&ONE, &OTHER] {
            let decoded = |late: usize| -> Vec<Mnemonic> {
                let body = run_row(late, texts).body;
                Decoder::new(64, &body, DecoderOptions::NONE)
                    .into_iter()
                    .map(|instruction| instruction.mnemonic())
                    .collect()
            };
            let [mut one, mut other] = [1, 96].map(decoded);
            assert!(96 < texts.runs && one != other);
            assert_eq!(one.iter().filter(|mnemonic| **mnemonic == Mnemonic::Call).count(), texts.runs);
            one.sort();
            other.sort();
            assert_eq!(one, other);
        }
    }
}
