//! Faults: reported by the worker's signal handler, named by the caller.
//!
//! A worker that faulted ends. Its registers could be restored, but not what else the snippet may have
//! written in it, and a new worker takes well under a millisecond.

use super::command::{Status, outcome};
use super::worker;
use crate::executor::Layout;
use crate::program::Program;
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
use std::ptr;

/// Runs on the signal stack, after [`super::stub::signal_entry`].
pub(super) unsafe extern "C" fn report(
    signal: i32,
    info: *const libc::siginfo_t,
    ucontext: *const libc::ucontext_t,
) -> ! {
    // SAFETY: the kernel passes both structures on the signal stack.
    let (code, address, rip) = unsafe {
        let address = match signal {
            libc::SIGSYS => (*info.cast::<SigsysInfo>()).number as u64,
            _ => (*info).si_addr() as u64,
        };
        ((*info).si_code, address, (*ucontext).uc_mcontext.gregs[libc::REG_RIP as usize] as u64)
    };
    // SAFETY: handlers are installed after the shared memory was mapped.
    unsafe {
        worker::give_up(outcome::FAULT, |status| {
            ptr::addr_of_mut!((*status).signal).write_volatile(signal);
            ptr::addr_of_mut!((*status).code).write_volatile(code);
            ptr::addr_of_mut!((*status).address).write_volatile(address);
            ptr::addr_of_mut!((*status).rip).write_volatile(rip);
        })
    }
}

/// The start of `siginfo_t` for SIGSYS.
#[repr(C)]
struct SigsysInfo {
    signal: i32,
    errno: i32,
    code: i32,
    padding: i32,
    call_address: u64,
    number: i32,
    arch: u32,
}

/// A fault in full: what [`crate::error::RunError::Fault`] says, and where it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultReport {
    /// The signal's usual name.
    pub signal: &'static str,
    /// The signal's `si_code`.
    pub code: i32,
    /// The address that was accessed, if the signal tells, else that of the instruction.
    pub address: u64,
    /// The instruction pointer.
    pub rip: u64,
    /// The number of the system call that was refused.
    pub system_call: Option<i32>,
    /// The program that it happened in, by its index in the batch; none if control had left every program.
    pub program: Option<usize>,
    /// The offset of the instruction in that program.
    pub offset: Option<usize>,
    /// The instruction as text, with its place.
    pub instruction: Option<String>,
}

/// `si_code` of a signal that the kernel raised without an address of its own.
const SI_KERNEL: i32 = 0x80;
/// `si_code` of an alignment check, which has no address either.
const BUS_ADRALN: i32 = 1;

/// Names a fault. Programs of the layouts do not overlap; `arena` is the arena's address in the worker.
pub(super) fn name(status: &Status, arena: u64, programs: &[Program], layouts: &[Layout]) -> FaultReport {
    let Status { signal, code, rip, .. } = *status;
    let place = rip.checked_sub(arena).and_then(|at| find(at as usize, signal, programs, layouts));
    let start = place.map_or(rip, |(_, _, start)| arena + start as u64);
    let own_address = match signal {
        libc::SIGSEGV => code != SI_KERNEL,
        libc::SIGBUS => code != SI_KERNEL && code != BUS_ADRALN,
        _ => false,
    };
    let system_call = (signal == libc::SIGSYS).then_some(status.address as i32);
    let (program, offset, instruction) = match place {
        Some((program, code_at, at)) => {
            let offset = at - code_at as usize;
            (Some(program), Some(offset), describe(&programs[program], offset, system_call))
        }
        None => (None, None, None),
    };
    FaultReport {
        signal: signal_name(signal),
        code,
        address: if own_address { status.address } else { start },
        rip,
        system_call,
        program,
        offset,
        instruction,
    }
}

/// The program at an offset in the arena, where its code starts, and where the guilty instruction starts.
fn find(at: usize, signal: i32, programs: &[Program], layouts: &[Layout]) -> Option<(usize, u32, usize)> {
    // These signals come with the address of the next instruction.
    let after = matches!(signal, libc::SIGTRAP | libc::SIGSYS);
    let last_byte = if after { at.checked_sub(1)? } else { at };
    for layout in layouts {
        for place in &layout.code {
            let program = &programs[place.program];
            let code = place.offset as usize;
            let inside = last_byte.checked_sub(code).filter(|offset| *offset < program.len());
            if let Some(offset) = inside {
                let start = if after { instruction_before(program, offset + 1) } else { offset };
                return Some((place.program, place.offset, code + start));
            }
        }
    }
    None
}

/// Where the part of a program around an offset starts, and how it is called.
fn part(program: &Program, offset: usize) -> (usize, &'static str) {
    let body = program.body();
    let copies = body.start + program.snippet().len() * program.copies();
    if offset >= copies {
        (copies, "behind the snippet")
    } else if offset >= body.start {
        let copy = (offset - body.start) / program.snippet().len();
        (body.start + copy * program.snippet().len(), "in the snippet")
    } else {
        (0, "before the snippet")
    }
}

/// The start of the instruction that ends at an offset.
fn instruction_before(program: &Program, end: usize) -> usize {
    let (start, _) = part(program, end - 1);
    let mut decoder = Decoder::new(64, &program.code()[start..], DecoderOptions::NONE);
    while decoder.can_decode() {
        let at = start + decoder.position();
        let instruction = decoder.decode();
        if at + instruction.len() >= end {
            return at;
        }
    }
    end - 1
}

fn describe(program: &Program, offset: usize, system_call: Option<i32>) -> Option<String> {
    let (start, called) = part(program, offset);
    let bytes = program.code().get(offset..)?;
    let mut decoder = Decoder::with_ip(64, bytes, (offset - start) as u64, DecoderOptions::NONE);
    let instruction = decoder.decode();
    let mut text = String::new();
    if instruction.is_invalid() {
        text.push_str("invalid bytes");
    } else {
        let mut formatter = IntelFormatter::new();
        formatter.options_mut().set_hex_prefix("0x");
        formatter.options_mut().set_hex_suffix("");
        formatter.options_mut().set_space_after_operand_separator(true);
        formatter.format(&instruction, &mut text);
    }
    let number = system_call.map_or(String::new(), |number| format!(" (system call {number})"));
    Some(format!("{text}{number} at +{:#x} {called}", offset - start))
}

/// The usual name of a signal that ends a process.
pub fn signal_name(signal: i32) -> &'static str {
    match signal {
        libc::SIGILL => "SIGILL",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGSYS => "SIGSYS",
        libc::SIGKILL => "SIGKILL",
        libc::SIGABRT => "SIGABRT",
        libc::SIGTERM => "SIGTERM",
        _ => "another signal",
    }
}
