//! Tests that fix the machine code of every timing method.

use super::*;
use crate::asm::Emitter;
use crate::program::ProgramRecipe;
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};

/// Instructions that a clock puts around an empty body, one per line.
fn listing(clock: &Clock) -> String {
    let program = ProgramRecipe::empty(clock).build();
    let mut code = vec![0; program.len()];
    program.relocate_into(0, 0x1000_0000, &mut code);
    let mut formatter = IntelFormatter::new();
    let mut text = String::new();
    let start = code.len();
    for instruction in Decoder::new(64, &code, DecoderOptions::NONE) {
        if instruction.next_ip() as usize <= start {
            let mut line = String::new();
            formatter.format(&instruction, &mut line);
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

#[test]
fn names_are_sorted_and_unique() {
    assert!(ALL_CLOCKS.windows(2).all(|pair| pair[0].name < pair[1].name));
    let mut names: Vec<&str> =
        ALL_CLOCKS.iter().flat_map(|clock| clock.also.iter().chain([&clock.name])).copied().collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn names_from_the_literature_are_accepted() {
    assert_eq!(Clock::find_named("paper-improved").unwrap().name, "cpuid-rdtsc-rdtscp-cpuid");
    assert_eq!(Clock::find_named("notes-rdtscp-lfence").unwrap().name, "rdtscp-lfence");
}

#[test]
fn each_side_stores_one_reading() {
    for clock in ALL_CLOCKS {
        for side in [clock.start, clock.end] {
            assert_eq!(side.iter().filter(|step| **step == ClockStep::Store).count(), 1, "{}", clock.name);
        }
    }
}

#[test]
fn emitted_code_contains_the_steps_in_order() {
    for clock in ALL_CLOCKS {
        let text = listing(clock);
        let mut rest = text.as_str();
        for step in clock.steps() {
            let mnemonic = match step {
                ClockStep::Lfence => "lfence\n",
                ClockStep::Mfence => "mfence\n",
                ClockStep::Serialize => "serialize\n",
                ClockStep::Cpuid => "cpuid\n",
                ClockStep::RewriteCr0 => "mov cr0,rax\n",
                ClockStep::Rdtsc => "rdtsc\n",
                ClockStep::Rdtscp => "rdtscp\n",
                ClockStep::Rdpru => "rdpru\n",
                ClockStep::Rdpmc => "rdpmc\n",
                ClockStep::ClockGettime => "call ",
                ClockStep::Store => "eax\n",
            };
            let at = rest.find(mnemonic).unwrap_or_else(|| panic!("{}: no {mnemonic} in\n{text}", clock.name));
            rest = &rest[at + mnemonic.len()..];
        }
    }
}

#[test]
fn clobbered_registers_are_saved_and_restored() {
    for clock in ALL_CLOCKS {
        assert!(clock.clobbers().len() <= 10, "{}", clock.name);
        for register in clock.clobbers() {
            let name = format!("{register:?}").to_lowercase();
            let text = listing(clock);
            let (save, load) = (format!("],{name}\n"), format!("mov {name},["));
            assert!(text.contains(&save), "{} does not save {name}", clock.name);
            // Once for the register's image and once for the copy saved before the start.
            assert!(text.matches(&load).count() >= 2, "{} does not load {name}", clock.name);
        }
    }
}

/// Code of a clock's start and end, without addresses: the bytes between the entry and the exit of
/// an empty program. References to the context are zeroed.
fn side_code(clock: &Clock) -> [String; 2] {
    let hex = |side| {
        let mut emitter = Emitter::starting_at(0, crate::asm::CodeMode::Bits64);
        clock.emit_side(side, None, &mut emitter);
        let (mut bytes, relocations) = emitter.finish();
        for offset in relocations {
            bytes[offset as usize..offset as usize + 4].fill(0);
        }
        crate::asm::to_hex(&bytes)
    };
    ClockSide::BOTH.map(hex)
}

/// Written by hand from the manuals' encodings, so that every change of a step or of an encoder is
/// noticed.
#[test]
fn machine_code_matches_the_manuals() {
    // mov [start], eax; mov [start+4], edx
    const STORE: &str = "89 05 00 00 00 00 89 15 00 00 00 00";
    const LFENCE: &str = "0f ae e8";
    const MFENCE: &str = "0f ae f0";
    const SERIALIZE: &str = "0f 01 e8";
    const CPUID: &str = "b8 00 00 00 00 0f a2";
    const RDTSC: &str = "0f 31";
    const RDTSCP: &str = "0f 01 f9";
    const CR0: &str = "0f 20 c0 0f 22 c0";
    const RDPRU: &str = "b9 01 00 00 00 0f 01 fd";
    const RDPMC: &str = "8b 0d 00 00 00 00 0f 33";
    // mov rsp, [return_rsp]; and rsp, -16; sub rsp, 128; mov edi, 4; lea rsi, [timespec]; call
    // [clock_gettime]; mov rax, [timespec]; imul rax, rax, 1000000000; add rax, [timespec+8]; mov
    // rdx, rax; shr rdx, 32
    const SYSTEM: &str = "48 8b 25 00 00 00 00 48 83 e4 f0 48 81 ec 80 00 00 00 bf 04 00 00 00 48 8d 35 00 00 00 00 \
         ff 15 00 00 00 00 48 8b 05 00 00 00 00 48 69 c0 00 ca 9a 3b 48 03 05 00 00 00 00 48 8b d0 48 c1 ea 20";
    let golden: [(&str, &[&str], &[&str]); 18] = [
        ("clock-gettime", &[LFENCE, SYSTEM, LFENCE, STORE], &[LFENCE, SYSTEM, LFENCE, STORE]),
        ("cpuid-rdtsc", &[CPUID, RDTSC, STORE], &[CPUID, RDTSC, STORE]),
        ("cpuid-rdtsc-cpuid", &[CPUID, RDTSC, STORE, CPUID], &[CPUID, RDTSC, STORE, CPUID]),
        ("cpuid-rdtsc-cr0-rdtsc", &[CPUID, RDTSC, STORE], &[CR0, RDTSC, STORE]),
        ("cpuid-rdtsc-rdtscp", &[CPUID, RDTSC, STORE], &[RDTSCP, STORE]),
        ("cpuid-rdtsc-rdtscp-cpuid", &[CPUID, RDTSC, STORE], &[RDTSCP, STORE, CPUID]),
        ("lfence-rdtsc", &[LFENCE, RDTSC, STORE], &[LFENCE, RDTSC, STORE]),
        ("lfence-rdtsc-lfence", &[LFENCE, RDTSC, LFENCE, STORE], &[LFENCE, RDTSC, LFENCE, STORE]),
        ("lfence-rdtsc-rdtscp-lfence", &[LFENCE, RDTSC, STORE], &[RDTSCP, LFENCE, STORE]),
        ("mfence-lfence-rdtsc", &[MFENCE, LFENCE, RDTSC, LFENCE, STORE], &[MFENCE, LFENCE, RDTSC, LFENCE, STORE]),
        ("mfence-rdtscp-lfence", &[MFENCE, RDTSCP, LFENCE, STORE], &[MFENCE, RDTSCP, LFENCE, STORE]),
        ("rdpmc", &[LFENCE, RDPMC, LFENCE, STORE], &[LFENCE, RDPMC, LFENCE, STORE]),
        ("rdpru", &[LFENCE, RDPRU, LFENCE, STORE], &[LFENCE, RDPRU, LFENCE, STORE]),
        ("rdtsc", &[RDTSC, STORE], &[RDTSC, STORE]),
        ("rdtscp", &[RDTSCP, STORE], &[RDTSCP, STORE]),
        ("rdtscp-cpuid", &[RDTSCP, STORE, CPUID], &[RDTSCP, STORE, CPUID]),
        ("rdtscp-lfence", &[RDTSCP, LFENCE, STORE], &[RDTSCP, LFENCE, STORE]),
        ("serialize-rdtsc", &[SERIALIZE, RDTSC, LFENCE, STORE], &[SERIALIZE, RDTSC, LFENCE, STORE]),
    ];
    assert_eq!(ALL_CLOCKS.len(), golden.len());
    for (clock, (name, start, end)) in ALL_CLOCKS.iter().zip(golden) {
        assert_eq!(clock.name, name);
        assert_eq!(side_code(clock), [start.join(" "), end.join(" ")], "{name}");
    }
}
