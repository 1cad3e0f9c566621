//! Causes of faults and exceptions, and what the user can do about them.

use cyclescope_platform::error_code;
use iced_x86::{Instruction, Mnemonic, OpKind};
use serde::{Deserialize, Serialize};

/// Why the processor did not complete an instruction; selects the remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultCause {
    /// Access to an unmapped address, or one that forbids this kind of access.
    Access,
    /// Branch to an address without code.
    Fetch,
    /// Privileged instruction in user mode.
    Privileged,
    /// Protection exception; the processor reports no address.
    Protection,
    /// Misaligned access while the AC flag is set.
    Alignment,
    /// Trap: INT1, INT3, INT 4, or a single step.
    Trap,
    /// UD0, UD1 or UD2, which raise an exception by definition.
    Undefined,
    /// Return to an address that the code did not push.
    Return,
    /// LEAVE with a frame that the code did not set up.
    Leave,
    /// RDPMC without permission.
    CounterRead,
    /// Load of a segment register with a value that is no selector.
    SegmentLoad,
    /// Gather or scatter whose indices lead outside of the memory areas.
    Indices,
    /// Write to code.
    CodeWrite,
    /// Only the signal's name is known.
    #[default]
    Other,
}

impl FaultCause {
    /// Refines the cause from the instruction that faulted.
    pub fn refine_by_instruction(self, instruction: &Instruction) -> FaultCause {
        let is_access = matches!(self, FaultCause::Protection | FaultCause::Access);
        let loads_segment =
            instruction.op0_kind() == OpKind::Register && instruction.op0_register().is_segment_register();
        match (self, instruction.mnemonic()) {
            (FaultCause::Protection, Mnemonic::Rdpmc) => FaultCause::CounterRead,
            (FaultCause::Protection, _) if instruction.is_privileged() => FaultCause::Privileged,
            (FaultCause::Protection, Mnemonic::Mov | Mnemonic::Pop) if loads_segment => FaultCause::SegmentLoad,
            (_, Mnemonic::Ret) if is_access => FaultCause::Return,
            (_, Mnemonic::Leave) if is_access => FaultCause::Leave,
            _ if is_access && instruction.is_vsib() => FaultCause::Indices,
            (FaultCause::Other, Mnemonic::Ud0 | Mnemonic::Ud1 | Mnemonic::Ud2) => FaultCause::Undefined,
            _ => self,
        }
    }
}

/// Remedy for a blocked system call.
pub(super) const REFUSED_CALL: &str = "a filter of the container or service blocks it: allow it in the seccomp profile \
    (Docker and Podman: --security-opt seccomp=FILE, or seccomp=unconfined; systemd: SystemCallFilter=), or run outside";
/// Remedy for a lost worker.
pub(super) const WORKER_LOST: &str = "if memory ran out (see `dmesg`), allow more, or take smaller areas; otherwise \
    something outside killed it, or the snippet overwrote it: run it again";
const ACCESS: &str = "address memory through R14, RDI, RSI, RSP or RBP, which point into areas of 1 MiB; in 32-bit \
    code through EBX, EDI, ESI, ESP or EBP";
const FETCHED: &str = "a branch led there, where no code is: calls and jumps must stay within the snippet";
const PRIVILEGED: &str = "only ring 0 may execute it: add --executor kernel, which takes 64-bit code";
const PROTECTION: &str = "the processor names no address: an operand is not aligned as required (MOVAPS and \
    CMPXCHG16B need a multiple of 16, which R14 is), an address is not canonical, or the system forbids the \
    instruction here";
const RETURNED: &str = "it returns to an address that no call pushed: leave the return out of a snippet, which has no \
    caller; a function must keep its return address and stack";
const LEFT: &str = "LEAVE copies RBP to RSP and pops RBP, and the next copy does so with that RBP: put \
    `push rbp; mov rbp, rsp` in front, or leave it out";
const COUNTER_READ: &str = "RDPMC needs permission: write 2 to /sys/bus/event_source/devices/cpu/rdpmc as root, or \
    read the clock with RDTSC; virtual machines may have no counters";
const SEGMENT_LOAD: &str = "the value is no selector: take the register's own, as in `mov ss, eax` with \
    --init 'mov eax, ss'";
const INDICES: &str = "the index register holds floating point numbers by default: set it, as in \
    --init 'vpxor xmm1, xmm1, xmm1', and take a base such as R14";
const CODE_WRITTEN: &str = "code can't be changed while it runs here: write to memory at R14, RDI, RSI, RSP or RBP";
const ALIGNMENT: &str = "the snippet sets the AC flag, so that every misaligned access raises this: clear it \
    (bit 18 of the flags), or align the access; R14 is a multiple of 64";
const DIVIDE: &str = "choose operands whose quotient fits the register; init code can set registers";
const UNDEFINED: &str = "this processor or its operating system does not support the instruction";
const TRAPPED: &str = "INT1, INT3, INT 4 and the TF flag call a debugger or the system: leave them out";

const BY_DEFINITION: &str = "UD0, UD1 and UD2 raise this by definition; compilers put UD2 where code must not arrive, \
    as for `__builtin_trap()`";

/// Remedy for a signal.
pub(super) fn fault_remedy(signal: &str, cause: FaultCause) -> &'static str {
    match (cause, signal) {
        (FaultCause::Privileged, _) => PRIVILEGED,
        (FaultCause::Protection, _) => PROTECTION,
        (FaultCause::Alignment, _) => ALIGNMENT,
        (FaultCause::Trap, _) => TRAPPED,
        (FaultCause::Undefined, _) => BY_DEFINITION,
        (FaultCause::Fetch, _) => FETCHED,
        (FaultCause::Return, _) => RETURNED,
        (FaultCause::Leave, _) => LEFT,
        (FaultCause::CounterRead, _) => COUNTER_READ,
        (FaultCause::SegmentLoad, _) => SEGMENT_LOAD,
        (FaultCause::Indices, _) => INDICES,
        (FaultCause::CodeWrite, _) => CODE_WRITTEN,
        (FaultCause::Access, _) | (_, "SIGSEGV" | "SIGBUS") => ACCESS,
        (_, "SIGFPE") => DIVIDE,
        (_, "SIGILL") => UNDEFINED,
        (_, "SIGSYS") => "measured code may not make system calls",
        _ => "",
    }
}

/// Bit of a page fault's error code: instruction fetch.
const FETCH_FAULT_BIT: u64 = 1 << 4;

/// Remedy for an exception in ring 0.
pub(super) fn exception_remedy(vector: u8, error_code: u64) -> &'static str {
    match vector {
        14 if error_code & FETCH_FAULT_BIT != 0 => FETCHED,
        0 => DIVIDE,
        1 | 3 | 4 => TRAPPED,
        6 => UNDEFINED,
        13 => PROTECTION,
        14 => {
            "address memory through R14, RDI, RSI, RSP or RBP, which point into areas of 1 MiB; no other memory \
             of the kernel or of any process is mapped"
        }
        17 => ALIGNMENT,
        _ => "",
    }
}

/// Remedy for a system call that failed with this error; empty if nothing is known to help.
pub fn system_remedy(errno: i32) -> &'static str {
    match errno {
        error_code::ENOMEM => {
            "give it more memory: a snippet takes up to 256 MB of addresses (`ulimit -v 262144`), larger areas and \
             libraries come on top; see the container's limit too"
        }
        error_code::EMFILE | error_code::ENFILE => "allow more open files; see `ulimit -n`",
        error_code::EFBIG => "allow larger files (shared memory counts as one); see `ulimit -f`",
        // A thread without memory for its stack gets this error too (pthread_create(3)).
        error_code::EAGAIN => {
            "allow more processes, and memory for their stacks; see `ulimit -u`, `ulimit -v` and the container's limit"
        }
        error_code::ENOSPC | error_code::EDQUOT => "free some space; see `df`, and `free -m` for shared memory",
        error_code::EROFS => "choose a folder on a file system that may be written to",
        error_code::EIO => "the device or its file system failed; see `dmesg`",
        error_code::ENOSYS => REFUSED_CALL,
        error_code::EBUSY => "another run uses it; wait until that ends",
        error_code::ESTALE => "the CPU went offline, or something moved the process; see --cpu",
        error_code::EPERM | error_code::EACCES => "the system or its container forbids it; try outside the container",
        _ => "",
    }
}
