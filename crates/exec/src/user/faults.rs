//! Faults that a worker has reported, named.

use crate::Layout;
use crate::fault::{FaultReport, Saved, describe, find};
use cyclescope_code::program::Program;
use cyclescope_core::error::Cause;
use cyclescope_worker::command::Answer;
use iced_x86::{Decoder, DecoderOptions};

/// `si_code` of a signal that the kernel raised without an address of its own.
const SI_KERNEL: i32 = 0x80;
/// `si_code` of an alignment check, which has no address either.
const BUS_ADRALN: i32 = 1;

/// `si_code` of INT1; a single step has TRAP_TRACE (`get_si_code` in the kernel's `arch/x86/kernel/ptrace.c`).
const TRAP_BRKPT: i32 = 1;
/// The vector of the overflow exception, which INT 4 raises behind itself (Intel SDM vol. 3A, 6.15). The kernel sends
/// SIGSEGV, as for a general protection fault.
const OVERFLOW: u32 = 4;

/// Position of the instruction pointer that a signal saved.
fn saved(signal: i32, code: i32, vector: u32) -> Saved {
    match signal {
        libc::SIGTRAP if code == TRAP_BRKPT => Saved::AroundInt1,
        libc::SIGTRAP | libc::SIGSYS => Saved::Behind,
        libc::SIGSEGV if vector == OVERFLOW => Saved::Behind,
        _ => Saved::At,
    }
}

/// Names a fault. Programs of the layouts do not overlap; `arena` is the arena's address in the worker.
pub(super) fn name(answer: &Answer, arena: u64, programs: &[Program], layouts: &[Layout]) -> FaultReport {
    let Answer { signal, code, rip, .. } = *answer;
    let saved = saved(signal, code, answer.vector);
    let place = rip.checked_sub(arena).and_then(|at| find(at as usize, saved, programs, layouts));
    let start = place.map_or(rip, |(_, _, start)| arena + start as u64);
    let own_address = match signal {
        libc::SIGSEGV => code != SI_KERNEL,
        libc::SIGBUS => code != SI_KERNEL && code != BUS_ADRALN,
        _ => false,
    };
    let system_call = (signal == libc::SIGSYS).then_some(answer.address as i32);
    let (program, offset, instruction) = match place {
        Some((program, code_at, at)) => {
            let offset = at - code_at as usize;
            let number = system_call.map_or(String::new(), |number| format!(" (system call {number})"));
            let text = describe(&programs[program], offset, &number);
            (Some(program), Some(offset), text)
        }
        None => (None, None, None),
    };
    FaultReport {
        signal: signal_name(signal),
        code,
        address: if own_address { answer.address } else { start },
        rip,
        system_call,
        program,
        offset,
        instruction,
    }
}

/// Why the instruction of a report was not completed.
pub(super) fn cause(answer: &Answer, report: &FaultReport, programs: &[Program]) -> Cause {
    let cause = match (answer.signal, answer.code) {
        (libc::SIGTRAP, _) => Cause::Trap,
        (libc::SIGSEGV, _) if answer.vector == OVERFLOW => Cause::Trap,
        (libc::SIGSEGV, SI_KERNEL) => Cause::Protection,
        (libc::SIGSEGV, _) if answer.address == answer.rip => Cause::Fetch,
        (libc::SIGSEGV, _) => Cause::Access,
        (libc::SIGBUS, BUS_ADRALN) => Cause::Alignment,
        // A stack segment exception, which a non-canonical address in RSP or RBP raises (Intel SDM vol. 3A, 6.15).
        (libc::SIGBUS, SI_KERNEL) => Cause::Protection,
        (libc::SIGBUS, _) => Cause::Access,
        _ => Cause::Other,
    };
    let Some((program, offset)) = report.program.zip(report.offset) else { return cause };
    let code = programs[program].code().get(offset..).unwrap_or_default();
    cause.of_instruction(&Decoder::new(64, code, DecoderOptions::NONE).decode())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_traps_is_told_from_what_faults() {
        let stepped = 2;
        assert_eq!(saved(libc::SIGTRAP, TRAP_BRKPT, 1), Saved::AroundInt1);
        assert_eq!(saved(libc::SIGTRAP, stepped, 1), Saved::Behind);
        assert_eq!(saved(libc::SIGTRAP, SI_KERNEL, 3), Saved::Behind);
        assert_eq!(saved(libc::SIGSEGV, SI_KERNEL, OVERFLOW), Saved::Behind);
        assert_eq!(saved(libc::SIGSEGV, SI_KERNEL, 13), Saved::At);
        // A refused system call raises no exception: the vector is that of an earlier one.
        assert_eq!(saved(libc::SIGSYS, 1, 14), Saved::Behind);
        assert_eq!(saved(libc::SIGILL, 2, 6), Saved::At);
    }
}
