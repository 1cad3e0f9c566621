//! What the system lets user code do with the processor.

// asm/prctl.h
const ARCH_GET_CPUID: libc::c_int = 0x1011;
const ARCH_GET_XCOMP_PERM: libc::c_int = 0x1022;
const ARCH_SHSTK_STATUS: libc::c_int = 0x5005;

fn arch_prctl_into(code: libc::c_int, value: &mut u64) {
    // SAFETY: both codes in use write one u64 through the pointer, or fail and write nothing.
    unsafe { libc::syscall(libc::SYS_arch_prctl, code, value as *mut u64) };
}

/// Whether 64-bit functions take each argument in a register of its position (Microsoft x64 calling
/// convention), and not of its kind (System V ABI).
pub const PASSES_BY_POSITION: bool = false;

/// Components of the XSAVE area that need a permission, and that this process has.
pub fn read_permitted_components() -> u64 {
    let mut permission = 0u64;
    arch_prctl_into(ARCH_GET_XCOMP_PERM, &mut permission);
    permission
}

/// Whether this thread has a shadow stack.
pub fn has_shadow_stack() -> bool {
    let mut status = 0u64;
    arch_prctl_into(ARCH_SHSTK_STATUS, &mut status);
    status & 1 == 1
}

/// Whether the system lets user code run RDFSBASE and related instructions: bit 1 of AT_HWCAP2
/// (Linux, x86 `hwcap2.h`).
pub fn allows_fsgsbase() -> bool {
    // SAFETY: getauxval reads a table that the kernel left in this process.
    unsafe { libc::getauxval(libc::AT_HWCAP2) & 2 != 0 }
}

/// Whether CPUID faults in this process.
pub fn cpuid_faults() -> bool {
    // SAFETY: arch_prctl(ARCH_GET_CPUID) takes no pointer and changes nothing. A kernel without it
    // returns -1, and cannot make CPUID fault either.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_GET_CPUID, 0) == 0 }
}

/// Why RDTSC would fault, if the system forbids it. A process inherits PR_TSC_SIGSEGV (CR4.TSD) from
/// its parent; seccomp's old strict mode sets it too.
pub fn explain_forbidden_tsc() -> Option<&'static str> {
    let mut mode: libc::c_int = 0;
    // SAFETY: PR_GET_TSC writes one int through the pointer, or fails and writes nothing.
    let result = unsafe { libc::prctl(libc::PR_GET_TSC, &mut mode as *mut libc::c_int) };
    (result == 0 && mode == libc::PR_TSC_SIGSEGV)
        .then_some("this process was started with prctl(PR_SET_TSC, PR_TSC_SIGSEGV)")
}

/// Why 32-bit code does not run in a 64-bit process, and what helps; `None` if the processor's
/// segments decide.
pub fn explain_refused_narrow_code() -> Option<(&'static str, &'static str)> {
    None
}
