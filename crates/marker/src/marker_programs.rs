//! The programs that run markers in the worker: settings, then a call of a loop. The program's loop
//! count gives the iterations.

use super::bench::{CaseVisit, call};
use super::compiled_design::ProbeSet;
use cyclescope_code::asm::CodeMode;
use cyclescope_code::clock::{Clock, ClockStep, OrderingPromises};
use cyclescope_code::program::{Program, ProgramRecipe};
use cyclescope_core::unit::Unit;
use cyclescope_exec::ProgramCall;
use cyclescope_measure::schedule::ruler_calls;

/// The ruler's programs come first in a layout.
pub(super) use call::RULERS;

/// A setting that a program applies before its loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkerSetting {
    /// Stores a value of `bytes` bytes.
    Store { address: u64, value: u64, bytes: usize },
    /// Calls a function with a number.
    Call { function: u64, number: u32 },
}

/// `mov rdi, r15; mov rsi, rbx; mov r15d, 1; call r12`: the program's counter becomes the
/// function's first argument, and the program's own loop runs once.
const CALL_LOOP: [u8; 15] = [0x4c, 0x89, 0xff, 0x48, 0x89, 0xde, 0x41, 0xbf, 1, 0, 0, 0, 0x41, 0xff, 0xd4];

/// The same in 32-bit code, with arguments on the stack:
/// `push ebx; push ebp; mov ebp, 1; call edi; add esp, 8`.
const CALL_NARROW_LOOP: [u8; 12] = [0x53, 0x55, 0xbd, 1, 0, 0, 0, 0xff, 0xd7, 0x83, 0xc4, 0x08];

/// `mov [address], value` in 32-bit code, of at most four bytes.
fn encode_narrow_store(address: u64, value: u64, bytes: usize, code: &mut Vec<u8>) {
    code.extend(match bytes {
        1 => &[0xc6, 0x05][..],
        2 => &[0x66, 0xc7, 0x05],
        _ => &[0xc7, 0x05],
    });
    code.extend((address as u32).to_le_bytes());
    code.extend(&value.to_le_bytes()[..bytes]);
}

/// `mov rax, address; mov rcx, value; mov [rax], (r)cx`
fn encode_store(address: u64, value: u64, bytes: usize, code: &mut Vec<u8>) {
    code.extend([0x48, 0xb8]);
    code.extend(address.to_le_bytes());
    code.extend([0x48, 0xb9]);
    code.extend(value.to_le_bytes());
    code.extend(match bytes {
        1 => &[0x88, 0x08][..],
        2 => &[0x66, 0x89, 0x08],
        4 => &[0x89, 0x08],
        _ => &[0x48, 0x89, 0x08],
    });
}

/// The code before a loop's first reading. It moves RSI, which points into a memory area, to RBX,
/// applies the settings, and loads the loop's entry into R12.
fn encode_prelude(entry: u64, settings: &[MarkerSetting]) -> Vec<u8> {
    let mut code = vec![0x48, 0x89, 0xf3];
    for setting in settings {
        match setting {
            MarkerSetting::Store { address, value, bytes } => encode_store(*address, *value, *bytes, &mut code),
            // mov edi, number; mov rax, function; call rax
            MarkerSetting::Call { function, number } => {
                code.push(0xbf);
                code.extend(number.to_le_bytes());
                code.extend([0x48, 0xb8]);
                code.extend(function.to_le_bytes());
                code.extend([0xff, 0xd0]);
            }
        }
    }
    code.extend([0x49, 0xbc]);
    code.extend(entry.to_le_bytes());
    code
}

/// The same in 32-bit code: ESI moves to EBX, and the entry is loaded into EDI. Libraries with
/// switches have no 32-bit code.
fn encode_narrow_prelude(entry: u64, settings: &[MarkerSetting]) -> Vec<u8> {
    let mut code = vec![0x89, 0xf3];
    for setting in settings {
        if let MarkerSetting::Store { address, value, bytes } = setting {
            encode_narrow_store(*address, *value, *bytes, &mut code);
        }
    }
    code.push(0xbf);
    code.extend((entry as u32).to_le_bytes());
    code
}

/// A program that calls a loop of a mode. The program's loop count gives the iterations.
pub(super) fn build_program(clock: &Clock, mode: CodeMode, entry: u64, settings: &[MarkerSetting]) -> Program {
    let init = match mode {
        CodeMode::Bits64 => encode_prelude(entry, settings),
        CodeMode::Bits32 => encode_narrow_prelude(entry, settings),
    };
    let call = mode.choose([&CALL_LOOP[..], &CALL_NARROW_LOOP]);
    ProgramRecipe { init: &init, ..ProgramRecipe::with_loop(clock, call, 1) }.for_mode(mode).build()
}

/// Not a clock: its second reading is EDX:EAX after the body, to return a number from the worker.
pub(super) const REGISTER_READER: Clock = Clock {
    name: "registers",
    also: &[],
    about: "the unchanged EDX:EAX",
    source: "",
    counts: Unit::Calls,
    promises: OrderingPromises {
        leading_done: false,
        body_waits: false,
        body_done: false,
        following_waits: false,
        stores_drained: false,
    },
    start: &[ClockStep::Store],
    end: &[ClockStep::Store],
};

/// A program whose reading is the number of calls of the counting probe.
pub(super) fn build_counting_program(probes: &ProbeSet, entry: u64, settings: &[MarkerSetting]) -> Program {
    let (mut init, mut snippet) = (Vec::new(), Vec::new());
    match probes.mode {
        CodeMode::Bits64 => {
            encode_store(probes.hits, 0, 8, &mut init);
            init.extend(encode_prelude(entry, settings));
            snippet.extend(CALL_LOOP);
            // mov rax, hits; mov rax, [rax]; mov rdx, rax; shr rdx, 32
            snippet.extend([0x48, 0xb8]);
            snippet.extend(probes.hits.to_le_bytes());
            snippet.extend([0x48, 0x8b, 0x00, 0x48, 0x89, 0xc2, 0x48, 0xc1, 0xea, 0x20]);
        }
        CodeMode::Bits32 => {
            encode_narrow_store(probes.hits, 0, 4, &mut init);
            init.extend(encode_narrow_prelude(entry, settings));
            snippet.extend(CALL_NARROW_LOOP);
            // mov eax, [hits]; xor edx, edx
            snippet.push(0xa1);
            snippet.extend((probes.hits as u32).to_le_bytes());
            snippet.extend([0x31, 0xd2]);
        }
    }
    let recipe = ProgramRecipe { init: &init, ..ProgramRecipe::with_loop(&REGISTER_READER, &snippet, 1) };
    recipe.for_mode(probes.mode).build()
}

/// The calls of one layout: their places and iterations.
pub(super) fn layout_calls(visit: &CaseVisit, sentinel: u64) -> [ProgramCall; call::COUNT] {
    let [few, many] = visit.loops;
    let mut calls = [ProgramCall { place: 0, loop_count: 0 }; call::COUNT];
    calls[..RULERS].copy_from_slice(&ruler_calls::<RULERS>(visit.ruler_loops, sentinel));
    for (column, place, loop_count) in [
        (call::BASE_FEW, RULERS, few),
        (call::BASE_MANY, RULERS, many),
        (call::SITE_FEW, RULERS + 1, few),
        (call::SITE_MANY, RULERS + 1, many),
    ] {
        calls[column] = ProgramCall { place, loop_count };
    }
    calls
}
