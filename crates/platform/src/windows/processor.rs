//! What the system lets user code do with the processor.

use windows_sys::Win32::System::Threading::IsProcessorFeaturePresent;

/// `PF_RDWRFSGSBASE_AVAILABLE` (Windows SDK, `winnt.h`).
const PF_RDWRFSGSBASE_AVAILABLE: u32 = 22;

/// Whether 64-bit functions take each argument in a register of its position (Microsoft x64 calling
/// convention), and not of its kind (System V ABI).
pub const PASSES_BY_POSITION: bool = true;

/// Components of the XSAVE area that need a permission, and that this process has. Windows gives
/// tiles only to threads that ask for them, which this program does not.
pub fn read_permitted_components() -> u64 {
    0
}

/// Whether this thread has a shadow stack. The linker marks this program as one without.
pub fn has_shadow_stack() -> bool {
    false
}

/// Whether the system lets user code run RDFSBASE and related instructions.
pub fn allows_fsgsbase() -> bool {
    // SAFETY: takes no pointers.
    unsafe { IsProcessorFeaturePresent(PF_RDWRFSGSBASE_AVAILABLE) != 0 }
}

/// Whether CPUID faults in this process. Windows never makes it.
pub fn cpuid_faults() -> bool {
    false
}

/// Why RDTSC would fault. Windows never makes it.
pub fn explain_forbidden_tsc() -> Option<&'static str> {
    None
}

/// Why 32-bit code does not run in a 64-bit process, and what helps; `None` if the processor's
/// segments decide.
pub fn explain_refused_narrow_code() -> Option<(&'static str, &'static str)> {
    Some(("this program runs 64-bit code only on Windows", "leave --bits 32 out, or measure on Linux"))
}
