//! What caused a failure, and what the user can do about it.

use iced_x86::{Instruction, Mnemonic};
use serde::{Deserialize, Serialize};

/// Why the processor did not complete an instruction. It decides what helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultCause {
    /// An access to an address without memory, or with memory that may not be accessed so.
    Access,
    /// A branch to an address without code.
    Fetch,
    /// A privileged instruction in user mode.
    Privileged,
    /// A protection exception, for which the processor reports no address.
    Protection,
    /// A misaligned access while the flag AC is set.
    Alignment,
    /// A trap: INT1, INT3, INT 4, or a single step.
    Trap,
    /// UD0, UD1 or UD2, which raise an exception by definition.
    Undefined,
    /// What the signal's name says.
    #[default]
    Other,
}

impl FaultCause {
    /// The cause where this instruction was not completed.
    pub fn refine_by_instruction(self, instruction: &Instruction) -> FaultCause {
        match (self, instruction.mnemonic()) {
            (FaultCause::Protection, _) if instruction.is_privileged() => FaultCause::Privileged,
            (FaultCause::Other, Mnemonic::Ud0 | Mnemonic::Ud1 | Mnemonic::Ud2) => FaultCause::Undefined,
            _ => self,
        }
    }
}

/// What helps where a system call is refused.
pub(super) const REFUSED_CALL: &str = "a filter of the container or service refuses it: allow it in the seccomp profile (Docker \
    and Podman: --security-opt seccomp=FILE, or seccomp=unconfined; systemd: SystemCallFilter=), or run outside";
/// What helps where the worker was lost.
pub(super) const WORKER_LOST: &str = "something outside ended it (kill, or the kernel where memory is used up: see `dmesg`), or \
    the snippet wrote over it; run it again";
const ACCESS: &str = "address memory through R14, RDI, RSI, RSP or RBP, which point into areas of 1 MiB";
const FETCHED: &str = "a branch led there, where no code is: calls and jumps have to stay within the snippet";
const PRIVILEGED: &str = "only ring 0 may execute it: add --executor kernel";
const PROTECTION: &str = "the processor names no address: an operand that has to be aligned is not (MOVAPS and \
    CMPXCHG16B need a multiple of 16, which R14 is), an address is not canonical, or the system forbids the \
    instruction here";
const ALIGNMENT: &str = "the snippet sets the flag AC, with which every misaligned access raises this: clear it \
    (bit 18 of the flags), or align the access; R14 is a multiple of 64";
const DIVIDE: &str = "divide RDX:RAX by what its quotient fits; init code can set registers";
const UNDEFINED: &str = "this processor, or its operating system, does not have the instruction";
const TRAPPED: &str = "INT1, INT3, INT 4 and the flag TF call a debugger or the system: leave them out";

const BY_DEFINITION: &str = "UD0, UD1 and UD2 raise this by definition; compilers put UD2 where code must not come, as \
    for `__builtin_trap()`";

/// What helps after a signal.
pub(super) fn fault_remedy(signal: &str, cause: FaultCause) -> &'static str {
    match (cause, signal) {
        (FaultCause::Privileged, _) => PRIVILEGED,
        (FaultCause::Protection, _) => PROTECTION,
        (FaultCause::Alignment, _) => ALIGNMENT,
        (FaultCause::Trap, _) => TRAPPED,
        (FaultCause::Undefined, _) => BY_DEFINITION,
        (FaultCause::Fetch, _) => FETCHED,
        (FaultCause::Access, _) | (_, "SIGSEGV" | "SIGBUS") => ACCESS,
        (_, "SIGFPE") => DIVIDE,
        (_, "SIGILL") => UNDEFINED,
        (_, "SIGSYS") => "system calls are refused to measured code",
        _ => "",
    }
}

/// Bit of a page fault's error code: an instruction was to be fetched there.
const FETCH_FAULT_BIT: u64 = 1 << 4;

/// What helps after an exception in ring 0.
pub(super) fn exception_remedy(vector: u8, error_code: u64) -> &'static str {
    match vector {
        14 if error_code & FETCH_FAULT_BIT != 0 => FETCHED,
        0 => DIVIDE,
        1 | 3 | 4 => TRAPPED,
        6 => UNDEFINED,
        13 => PROTECTION,
        14 => {
            "address memory through R14, RDI, RSI, RSP or RBP, which point into areas of 1 MiB; nothing else is \
             mapped, of the kernel or of any process"
        }
        17 => ALIGNMENT,
        _ => "",
    }
}

/// What helps after a system call that failed with this error.
pub(super) fn system_remedy(errno: i32) -> &'static str {
    match errno {
        libc::ENOMEM => {
            "give it more memory: a snippet takes up to 256 MB of addresses (`ulimit -v 262144`), larger areas and \
             libraries come on top; see the container's limit too"
        }
        libc::EMFILE | libc::ENFILE => "allow more open files; see `ulimit -n`",
        libc::EFBIG => "allow larger files, for shared memory counts as one; see `ulimit -f`",
        libc::EAGAIN => "allow more processes; see `ulimit -u` and the container's limit",
        libc::EBUSY => "another run uses it; wait until that has ended",
        libc::ESTALE => "the CPU went offline, or something moved the process; see --cpu",
        libc::EPERM | libc::EACCES => "the system or its container forbids it; try outside of the container",
        _ => "",
    }
}
