//! The processor's exceptions, by vector.

use crate::fault::SavedIpPosition;

/// Mnemonic and meaning of the exceptions (Intel SDM vol. 3A, table 6-1).
const EXCEPTIONS: [(u32, &str, &str); 16] = [
    (0, "#DE", "divide error"),
    (1, "#DB", "debug exception"),
    (3, "#BP", "breakpoint"),
    (4, "#OF", "overflow"),
    (5, "#BR", "bound range exceeded"),
    (6, "#UD", "invalid opcode"),
    (7, "#NM", "device not available"),
    (8, "#DF", "double fault"),
    (10, "#TS", "invalid TSS"),
    (11, "#NP", "segment not present"),
    (12, "#SS", "stack fault"),
    (13, "#GP", "general protection"),
    (14, "#PF", "page fault"),
    (16, "#MF", "x87 floating-point error"),
    (17, "#AC", "alignment check"),
    (19, "#XM", "SIMD floating-point exception"),
];

/// Position of the saved instruction pointer of an exception (Intel SDM vol. 3A, table 6-1).
///
/// A debug exception may be INT1 or a single step, and the module does not say which. A step that
/// ends at an INT1 counts as that INT1.
pub(super) fn find_ip_position(vector: u32) -> SavedIpPosition {
    match vector {
        1 => SavedIpPosition::AroundInt1,
        3 | 4 | FIRST_INTERRUPT.. => SavedIpPosition::Behind,
        _ => SavedIpPosition::AtInstruction,
    }
}

/// The vector of a non-maskable interrupt.
pub(super) const NMI: u32 = 2;
/// The first vector of interrupts.
pub(super) const FIRST_INTERRUPT: u32 = 32;
pub(super) const LAST_INTERRUPT: u32 = 255;
/// The vector of a page fault, the one exception that reports an address.
pub(super) const PAGE_FAULT: u32 = 14;

/// Text of an exception: `#UD (invalid opcode)`, `interrupt 128`.
pub(super) fn describe_exception(vector: u32) -> String {
    match EXCEPTIONS.iter().find(|(number, ..)| *number == vector) {
        Some((_, mnemonic, meaning)) => format!("{mnemonic} ({meaning})"),
        None => format!("interrupt {vector}"),
    }
}
