//! Which loads take their bytes from a store before, by where they begin.

use crate::spec::cost_map::{CostMapSpec, MapRow};
use crate::spec::program_family::{ProgramFamily, StepLoop};
use crate::spec::text_loop::repeat_text;
use crate::spec::{Experiment, TestSpec, TestedPart};
use iced_x86::CpuidFeature::{self, AVX, AVX512F};

/// The lines of the store in both programs. One of up to 16 bytes begins so far behind the line's begin that no load crosses its ends.
const AT: [usize; 2] = [64, 64 + 320];
const INSIDE: usize = 24;
/// Bytes before the end of a line, and of a page, at which its first one is.
const END: usize = 12;

/// Iterations of the shorter call: there are many places.
const ITERATIONS: u64 = 48;

/// Where a store and a load are.
#[derive(Clone, Copy)]
enum AccessPlacement {
    /// The store stays, and the load goes from the first place at which they have a byte in common to the last one, by steps of so many bytes.
    Load { step: usize },
    /// Both are at the same place, which goes across the end of so many bytes.
    Both { end: usize },
}

/// A store and a load of so many bytes.
struct StoreLoadPair {
    store: usize,
    load: usize,
    placement: AccessPlacement,
}

/// The name of a register, by program, for so many bytes; vectors where the store is one.
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

/// A load of so many bytes into the register that is stored, and the store.
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

/// Multiplications of a general register behind the load, which are subtracted: without them loads of a part that some cores take for renamed at first come late now and
/// then, by the place of the code.
fn multiply_links(pair: &StoreLoadPair, program: usize) -> &'static str {
    match (pair.store > 8, program) {
        (true, _) => "",
        (false, 0) => "imul rax, rax; imul rax, rax",
        (false, _) => "imul rsi, rsi, 5; imul rsi, rsi, 5",
    }
}

fn links_loop(pair: &StoreLoadPair, program: usize) -> StepLoop {
    StepLoop { iterations: ITERATIONS, ..repeat_text("", multiply_links(pair, program)) }
}

fn forwarding_loop(pair: &StoreLoadPair, program: usize, number: usize) -> StepLoop {
    let places = match pair.placement {
        // The first load ends with the first byte of the store.
        AccessPlacement::Load { step } => {
            let to = AT[program] + if pair.store <= 16 { INSIDE } else { 0 };
            [to, to + number * step + step - pair.load]
        }
        AccessPlacement::Both { end } => [end * (1 + program) - END + number; 2],
    };
    let [store, load] = store_and_load(pair, program, places);
    StepLoop {
        iterations: ITERATIONS,
        ..repeat_text("", &format!("{store}; {load}; {}", multiply_links(pair, program)))
    }
}

/// Rows by what is stored and loaded.
macro_rules! rows {
    ($($name:literal $store:literal $load:literal $wher:expr, $first:expr, $places:expr, $apart:expr, $needs:expr;)+) => {
        &[$(
            MapRow {
                name: $name,
                first_place: $first,
                place_count: $places,
                stride: $apart,
                programs: [
                    ProgramFamily {
                        name: "one place",
                        program: |number| forwarding_loop(&StoreLoadPair { store: $store, load: $load, placement: $wher }, 0, number),
                        control: if $store > 8 { None } else { Some(|_| links_loop(&StoreLoadPair { store: $store, load: $load, placement: $wher }, 0)) },
                    },
                    ProgramFamily {
                        name: "another place",
                        program: |number| forwarding_loop(&StoreLoadPair { store: $store, load: $load, placement: $wher }, 1, number),
                        control: if $store > 8 { None } else { Some(|_| links_loop(&StoreLoadPair { store: $store, load: $load, placement: $wher }, 1)) },
                    },
                ],
                required_features: $needs,
            }
        ),+]
    };
    ($($name:literal $store:literal $load:literal by $step:literal $needs:expr;)+) => {
        rows! { $($name $store $load AccessPlacement::Load { step: $step }, $step - $load, ($store + $load) / $step - 1, $step, $needs;)+ }
    };
    ($($name:literal $store:literal end $end:literal $needs:expr;)+) => {
        rows! { $($name $store $store AccessPlacement::Both { end: $end }, -(END as isize), 2 * END, 1, $needs;)+ }
    };
}

const NONE: &[CpuidFeature] = &[];
const WHOLE: &[CpuidFeature] = &[AVX, AVX512F];

const OFFSETS: &[MapRow] = rows! {
    "4_to_4_bytes" 4 4 by 1 NONE;
    "4_to_8_bytes" 4 8 by 1 NONE;
    "8_to_1_bytes" 8 1 by 1 NONE;
    "8_to_2_bytes" 8 2 by 1 NONE;
    "8_to_4_bytes" 8 4 by 1 NONE;
    "8_to_8_bytes" 8 8 by 1 NONE;
    "16_to_4_bytes" 16 4 by 1 NONE;
    "16_to_8_bytes" 16 8 by 1 NONE;
    "16_to_16_bytes" 16 16 by 2 NONE;
    "32_to_8_bytes" 32 8 by 2 &[AVX];
    "32_to_16_bytes" 32 16 by 4 &[AVX];
    "32_to_32_bytes" 32 32 by 8 &[AVX];
    "64_to_8_bytes" 64 8 by 4 WHOLE;
    "64_to_32_bytes" 64 32 by 8 WHOLE;
    "64_to_64_bytes" 64 64 by 16 WHOLE;
};

const ENDS: &[MapRow] = rows! {
    "8_bytes_at_line_end" 8 end 64 NONE;
    "16_bytes_at_line_end" 16 end 64 NONE;
    "8_bytes_at_page_end" 8 end 4096 NONE;
};

const fn forwarding_test(
    name: &'static str,
    about: &'static str,
    definition: &'static str,
    rows: &'static [MapRow],
) -> TestSpec {
    TestSpec {
        name,
        about,
        definition,
        source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024); H. Wong, Store-to-Load Forwarding and Memory Disambiguation in x86 Processors (2014)",
        part: TestedPart::Memory,
        experiment: Experiment::CostMap(CostMapSpec { rows, tolerance: 0.3, tolerance_share: 0.06 }),
    }
}

pub(crate) const TEST: TestSpec = forwarding_test(
    "forwarding_map",
    "which loads take their bytes from a store before, by their sizes and by where the load begins",
    "core cycles from a register through a store and a load that begins so many bytes behind it, and back, where that takes least; of a general register what a chain with two multiplications takes longer than these",
    OFFSETS,
);

pub(crate) const AT_ENDS: TestSpec = forwarding_test(
    "forwarding_ends",
    "what a value takes through memory across ends of lines and pages, by where it begins",
    "core cycles from a register through a store and a load at the same address, so many bytes behind the end of a line or page, and back, where that takes least; of a general register as in forwarding_map",
    ENDS,
);

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
    fn places_are_those_of_the_loads_begin() {
        for row in OFFSETS {
            for number in [0, row.place_count - 1] {
                for walk in &row.programs {
                    let [store, load] = places(&(walk.program)(number));
                    assert_eq!(load - store, row.place_at(number) as i64, "{}", row.name);
                }
            }
        }
        let first = |row: &MapRow| [row.first_place, row.place_at(row.place_count - 1)];
        assert_eq!(OFFSETS.iter().take(2).map(first).collect::<Vec<_>>(), [[-3, 3], [-7, 3]]);
    }

    #[test]
    fn ends_are_of_lines_and_of_pages() {
        for (row, end) in ENDS.iter().zip([64, 64, 4096]) {
            for number in [0, row.place_count - 1] {
                for walk in &row.programs {
                    let [store, load] = places(&(walk.program)(number));
                    let behind = store - row.place_at(number) as i64;
                    assert!(store == load && behind % end == 0 && behind > 0, "{}", row.name);
                }
            }
        }
    }
    #[test]
    fn a_control_is_the_program_without_its_store_and_its_load() {
        let mut controls = 0;
        for walk in OFFSETS.iter().chain(ENDS).flat_map(|row| &row.programs) {
            let Some(without) = walk.control else { continue };
            let decoded = |steps: StepLoop| -> Vec<Instruction> {
                Decoder::new(64, &steps.body, DecoderOptions::NONE).into_iter().collect()
            };
            let [mut own, rest] = [(walk.program)(1), without(1)].map(decoded);
            own.retain(|one| one.memory_base() != Register::R14);
            let texts = |all: &[Instruction]| all.iter().map(Instruction::to_string).collect::<Vec<_>>();
            assert_eq!(texts(&own), texts(&rest), "{}", walk.name);
            assert!(!rest.is_empty());
            controls += 1;
        }
        assert!(controls > 0);
    }
}
