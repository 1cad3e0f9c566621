//! Which loads get their bytes from an earlier store, by the place of the load.

use crate::spec::*;
use iced_x86::CpuidFeature::{AVX, AVX512F};

/// The lines of the store in the two programs.
const AT: [usize; 2] = [64, 64 + 320];
/// The offset of a store of up to 16 bytes in its line: no load crosses the line's ends.
const INSIDE: usize = 24;
/// The line begins this many bytes before the end of a line or a page.
const END: usize = 12;

/// Iterations of the shorter call: few, as there are many places.
const ITERATIONS: u64 = 48;

/// A store and a load, with their sizes in bytes.
struct StoreLoadPair {
    store: usize,
    load: usize,
    /// Either the step of the load in bytes, which moves across the store while they overlap; or
    /// the boundary in bytes which both cross together.
    step_or_end: usize,
}

impl StoreLoadPair {
    /// Whether both are at the same place and cross a boundary of lines or pages.
    fn is_together(&self) -> bool {
        self.step_or_end >= LINE
    }
}

/// The name of a program's register for this many bytes; a vector register if the store uses one.
fn register_name(program: usize, vector: bool, bytes: usize) -> String {
    let general = [["al", "ax", "eax", "rax"], ["sil", "si", "esi", "rsi"]][program];
    let letter = match bytes {
        32 => 'y',
        64 => 'z',
        _ => 'x',
    };
    match vector {
        true => format!("{letter}mm{}", 2 + program),
        false => general[bytes.trailing_zeros() as usize].to_string(),
    }
}

/// The store, and the load into the register that is stored.
fn store_and_load(pair: &StoreLoadPair, program: usize, [to, from]: [usize; 2]) -> [String; 2] {
    let vector = pair.store > 8;
    let vex = if pair.store > 16 { "v" } else { "" };
    let at = |place: usize| format!("[r14 + r12 + {place}]");
    let full = register_name(program, vector, pair.store);
    let name = match (vector, pair.store) {
        (false, _) => "mov".to_string(),
        (true, _) => format!("{vex}movups"),
    };
    let store = format!("{name} {}, {full}", at(to));
    let load = match (vector, pair.load) {
        (false, 1) => format!("movzx {}, byte ptr {}", register_name(program, false, 4), at(from)),
        (false, 2) => format!("movzx {}, word ptr {}", register_name(program, false, 4), at(from)),
        (true, 4) => format!("{vex}movd {}, {}", register_name(program, true, 4), at(from)),
        (true, 8) => format!("{vex}movq {}, {}", register_name(program, true, 8), at(from)),
        (_, bytes) => format!("{name} {}, {}", register_name(program, vector, bytes), at(from)),
    };
    [store, load]
}

/// Multiplications of a general register behind the load, which are subtracted. Without them,
/// partial loads that some cores first take for renamed are late at times, depending on the place
/// of the code.
fn multiply_links(pair: &StoreLoadPair, program: usize) -> &'static str {
    match (pair.store > 8, program) {
        (true, _) => "",
        (false, 0) => "imul rax, rax; imul rax, rax",
        (false, _) => "imul rsi, rsi, 5; imul rsi, rsi, 5",
    }
}

/// The numbers: bytes of the store, bytes of the load, its step or their boundary, and the program.
fn forwarding_loop(number: usize, inputs: &Inputs) -> StepLoop {
    let [store, load, step_or_end, program] = inputs.numbers;
    let pair = StoreLoadPair { store, load, step_or_end };
    let places = if pair.is_together() {
        [step_or_end * (1 + program) - END + number; 2]
    } else {
        // The first load ends with the first byte of the store.
        let to = AT[program] + if store <= 16 { INSIDE } else { 0 };
        [to, to + number * step_or_end + step_or_end - load]
    };
    let [store, load] = store_and_load(&pair, program, places);
    repeated(&format!("{store}; {load}; {}", multiply_links(&pair, program)))
}

fn links_loop(_: usize, inputs: &Inputs) -> StepLoop {
    let [store, load, step_or_end, program] = inputs.numbers;
    repeated(multiply_links(&StoreLoadPair { store, load, step_or_end }, program))
}

fn repeated(text: &str) -> StepLoop {
    StepLoop { iterations: ITERATIONS, ..AsmLoop::REPEATED.assemble(text, 0) }
}

/// Two programs of a store and a load. Chains of general registers have extra links, which are
/// subtracted.
const fn chains(store: usize, load: usize, step_or_end: usize) -> [ProgramFamily; 2] {
    [chain("one place", [store, load, step_or_end, 0]), chain("another place", [store, load, step_or_end, 1])]
}

const fn chain(name: &'static str, numbers: [usize; 4]) -> ProgramFamily {
    let inputs = Inputs { texts: [""; 4], numbers };
    let control = if numbers[0] > 8 { None } else { Some(ProgramSource::Built(links_loop, inputs)) };
    ProgramFamily { name, program: ProgramSource::Built(forwarding_loop, inputs), control }
}

/// A row of loads whose places are this many bytes apart.
const fn by_steps(
    name: &'static str,
    store: usize,
    load: usize,
    step: usize,
    required_features: &'static [CpuidFeature],
) -> MapRow {
    MapRow {
        name,
        first_place: step as isize - load as isize,
        place_count: (store + load) / step - 1,
        stride: step,
        programs: chains(store, load, step),
        required_features,
    }
}

/// A row of stores and loads across boundaries of this many bytes.
const fn across_end(name: &'static str, bytes: usize, end: usize) -> MapRow {
    MapRow {
        name,
        first_place: -(END as isize),
        place_count: 2 * END,
        stride: 1,
        programs: chains(bytes, bytes, end),
        required_features: &[],
    }
}

const WHOLE: &[CpuidFeature] = &[AVX, AVX512F];

const OFFSETS: &[MapRow] = &[
    by_steps("4_to_4_bytes", 4, 4, 1, &[]),
    by_steps("4_to_8_bytes", 4, 8, 1, &[]),
    by_steps("8_to_1_bytes", 8, 1, 1, &[]),
    by_steps("8_to_2_bytes", 8, 2, 1, &[]),
    by_steps("8_to_4_bytes", 8, 4, 1, &[]),
    by_steps("8_to_8_bytes", 8, 8, 1, &[]),
    by_steps("16_to_4_bytes", 16, 4, 1, &[]),
    by_steps("16_to_8_bytes", 16, 8, 1, &[]),
    by_steps("16_to_16_bytes", 16, 16, 2, &[]),
    by_steps("32_to_8_bytes", 32, 8, 2, &[AVX]),
    by_steps("32_to_16_bytes", 32, 16, 4, &[AVX]),
    by_steps("32_to_32_bytes", 32, 32, 8, &[AVX]),
    by_steps("64_to_8_bytes", 64, 8, 4, WHOLE),
    by_steps("64_to_32_bytes", 64, 32, 8, WHOLE),
    by_steps("64_to_64_bytes", 64, 64, 16, WHOLE),
];

const ENDS: &[MapRow] = &[
    across_end("8_bytes_at_line_end", 8, 64),
    across_end("16_bytes_at_line_end", 16, 64),
    across_end("8_bytes_at_page_end", 8, 4096),
];

const fn forwarding_test(
    name: &'static str,
    about: &'static str,
    definition: &'static str,
    answers: &'static [&'static str],
    rows: &'static [MapRow],
) -> TestSpec {
    TestSpec {
        name,
        about,
        definition,
        source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024); H. Wong, Store-to-Load \
                 Forwarding and Memory Disambiguation in x86 Processors (2014)",
        answers,
        part: TestedPart::Memory,
        experiment: Experiment::CostMap(CostMapSpec { rows, tolerance: 0.3, tolerance_share: 0.06 }),
    }
}

pub(crate) const TESTS: &[TestSpec] = &[
    forwarding_test(
        "forwarding_map",
        "which loads take their bytes from a store before, by their sizes and by where the load begins",
        "core cycles from a register through a store and a load that begins this many bytes behind it, and back, \
         where that takes least; of a general register what a chain with two multiplications takes longer than these",
        &["store_forwarding"],
        OFFSETS,
    ),
    forwarding_test(
        "forwarding_ends",
        "what a value takes through memory across ends of lines and pages, by where it begins",
        "core cycles from a register through a store and a load at the same address, this many bytes behind the end \
         of a line or page, and back, where that takes least; of a general register as in forwarding_map",
        &[],
        ENDS,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Instruction, Register};

    /// The places of the first store and the first load.
    fn places(steps: &StepLoop) -> [i64; 2] {
        let mut decoder = Decoder::new(64, &steps.body, DecoderOptions::NONE);
        [(); 2].map(|()| decoder.decode().memory_displacement64() as i64)
    }

    #[test]
    fn places_are_the_starts_of_loads() {
        for row in OFFSETS {
            for number in [0, row.place_count - 1] {
                for family in &row.programs {
                    let [store, load] = places(&family.program(number));
                    assert_eq!(load - store, row.place_at(number) as i64, "{}", row.name);
                }
            }
        }
        let first = |row: &MapRow| [row.first_place, row.place_at(row.place_count - 1)];
        assert_eq!(OFFSETS.iter().take(2).map(first).collect::<Vec<_>>(), [[-3, 3], [-7, 3]]);
    }

    #[test]
    fn boundaries_are_of_lines_and_pages() {
        for (row, end) in ENDS.iter().zip([64, 64, 4096]) {
            for number in [0, row.place_count - 1] {
                for family in &row.programs {
                    let [store, load] = places(&family.program(number));
                    let behind = store - row.place_at(number) as i64;
                    assert!(store == load && behind % end == 0 && behind > 0, "{}", row.name);
                }
            }
        }
    }
    #[test]
    fn a_control_lacks_the_store_and_the_load() {
        let mut controls = 0;
        for family in OFFSETS.iter().chain(ENDS).flat_map(|row| &row.programs) {
            let Some(without) = family.control(1) else { continue };
            let decoded = |steps: StepLoop| -> Vec<Instruction> {
                Decoder::new(64, &steps.body, DecoderOptions::NONE).into_iter().collect()
            };
            let [mut own, rest] = [family.program(1), without].map(decoded);
            own.retain(|instruction| instruction.memory_base() != Register::R14);
            let texts = |all: &[Instruction]| all.iter().map(Instruction::to_string).collect::<Vec<_>>();
            assert_eq!(texts(&own), texts(&rest), "{}", family.name);
            assert!(!rest.is_empty());
            controls += 1;
        }
        assert!(controls > 0);
    }
}
