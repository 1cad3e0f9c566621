//! Names the faults that a worker reports.

use crate::Layout;
use crate::fault::{FaultReport, SavedIpPosition, describe_instruction, locate_fault};
use cyclescope_code::program::Program;
use cyclescope_core::error::FaultCause;
use cyclescope_worker::command::WorkerAnswer;
use cyclescope_worker::kernel::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGKILL, SIGSEGV, SIGSYS, SIGTERM, SIGTRAP};
use iced_x86::{Decoder, DecoderOptions, FlowControl};

/// `si_code` of a signal that the kernel raised without an address of its own.
const SI_KERNEL: i32 = 0x80;
/// `si_code` of an alignment check, which has no address either.
const BUS_ADRALN: i32 = 1;

/// `si_code` of INT1; a single step has TRAP_TRACE (`get_si_code` in the kernel's
/// `arch/x86/kernel/ptrace.c`).
const TRAP_BRKPT: i32 = 1;
/// The vector of the overflow exception. INT 4 raises it after itself (Intel SDM vol. 3A, 6.15).
/// The kernel sends SIGSEGV, as for a general protection fault.
const OVERFLOW: u32 = 4;

/// Bit of a page fault's error code: instruction fetch (Intel SDM vol. 3A, 4.7). The address alone
/// does not tell it from an access to the instruction itself.
const FETCH_FAULT_BIT: u32 = 1 << 4;

/// Position of the instruction pointer that a signal saved.
fn find_ip_position(signal: i32, code: i32, vector: u32) -> SavedIpPosition {
    match signal {
        SIGTRAP if code == TRAP_BRKPT => SavedIpPosition::AroundInt1,
        SIGTRAP | SIGSYS => SavedIpPosition::Behind,
        SIGSEGV if vector == OVERFLOW => SavedIpPosition::Behind,
        _ => SavedIpPosition::AtInstruction,
    }
}

/// Names a fault. Programs of the layouts do not overlap; `arena` is the arena's address in the
/// worker.
pub(super) fn report_fault(answer: &WorkerAnswer, arena: u64, programs: &[Program], layouts: &[Layout]) -> FaultReport {
    let WorkerAnswer { signal, code, rip, .. } = *answer;
    let saved = find_ip_position(signal, code, answer.vector);
    let place = rip.checked_sub(arena).and_then(|at| locate_fault(at as usize, saved, programs, layouts));
    let start = place.map_or(rip, |(_, _, start)| arena + start as u64);
    let own_address = match signal {
        SIGSEGV => code != SI_KERNEL,
        SIGBUS => code != SI_KERNEL && code != BUS_ADRALN,
        _ => false,
    };
    let system_call = (signal == SIGSYS).then_some(answer.address as i32);
    let (program, offset, instruction) = match place {
        Some((program, code_at, at)) => {
            let offset = at - code_at as usize;
            let number = system_call.map_or(String::new(), |number| format!(" (system call {number})"));
            let text = describe_instruction(&programs[program], offset, &number);
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

/// Distance from an instruction within which addresses are code: guard pages keep memory areas
/// further away.
const NEAR_CODE_BYTES: u64 = 4096;

/// Why the instruction of a report did not complete.
pub(super) fn find_cause(answer: &WorkerAnswer, report: &FaultReport, programs: &[Program]) -> FaultCause {
    let cause = match (answer.signal, answer.code) {
        (SIGTRAP, _) => FaultCause::Trap,
        (SIGSEGV, _) if answer.vector == OVERFLOW => FaultCause::Trap,
        (SIGSEGV, SI_KERNEL) => FaultCause::Protection,
        (SIGSEGV, _) if answer.error & FETCH_FAULT_BIT != 0 => FaultCause::Fetch,
        (SIGSEGV, _) => FaultCause::Access,
        (SIGBUS, BUS_ADRALN) => FaultCause::Alignment,
        // A stack segment exception, which a non-canonical address in RSP or RBP raises (Intel SDM
        // vol. 3A, 6.15).
        (SIGBUS, SI_KERNEL) => FaultCause::Protection,
        (SIGBUS, _) => FaultCause::Access,
        _ => FaultCause::Other,
    };
    let Some((program, offset)) = report.program.zip(report.offset) else { return cause };
    let code = programs[program].code().get(offset..).unwrap_or_default();
    let instruction = Decoder::new(programs[program].mode().bits(), code, DecoderOptions::NONE).decode();
    let is_access =
        matches!(cause, FaultCause::Access | FaultCause::Fetch) && instruction.flow_control() == FlowControl::Next;
    if is_access && answer.address.abs_diff(answer.rip) < NEAR_CODE_BYTES {
        return FaultCause::CodeWrite;
    }
    cause.refine_by_instruction(&instruction)
}

/// The usual name of a signal that ends a process.
pub fn signal_name(signal: i32) -> &'static str {
    match signal {
        SIGILL => "SIGILL",
        SIGSEGV => "SIGSEGV",
        SIGBUS => "SIGBUS",
        SIGFPE => "SIGFPE",
        SIGTRAP => "SIGTRAP",
        SIGSYS => "SIGSYS",
        SIGKILL => "SIGKILL",
        SIGABRT => "SIGABRT",
        SIGTERM => "SIGTERM",
        _ => "another signal",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traps_and_faults_are_distinguished() {
        let stepped = 2;
        assert_eq!(find_ip_position(SIGTRAP, TRAP_BRKPT, 1), SavedIpPosition::AroundInt1);
        assert_eq!(find_ip_position(SIGTRAP, stepped, 1), SavedIpPosition::Behind);
        assert_eq!(find_ip_position(SIGTRAP, SI_KERNEL, 3), SavedIpPosition::Behind);
        assert_eq!(find_ip_position(SIGSEGV, SI_KERNEL, OVERFLOW), SavedIpPosition::Behind);
        assert_eq!(find_ip_position(SIGSEGV, SI_KERNEL, 13), SavedIpPosition::AtInstruction);
        // A refused system call raises no exception: the vector belongs to an earlier one.
        assert_eq!(find_ip_position(SIGSYS, 1, 14), SavedIpPosition::Behind);
        assert_eq!(find_ip_position(SIGILL, 2, 6), SavedIpPosition::AtInstruction);
    }
}
