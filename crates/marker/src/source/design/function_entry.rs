//! ```text
//! traced:
//!     nop dword ptr [rax+rax]    ; 5 bytes, patched to call rel32
//!     ret
//! ```
//!
//! The compiler leaves five NOPs of one byte, which become one of five before anything runs, as Linux's ftrace does it.
//! What the loop without the marker calls is the same function without them.

use super::definition::{DesignLanguage, Enabling, SiteDesign};

pub(super) const DESIGN: SiteDesign = SiteDesign {
    name: "function-entry",
    about: "a NOP of 5 bytes at a function's entry, patched to a call",
    source: "Linux ftrace; -fpatchable-function-entry of gcc and clang",
    language: DesignLanguage::C,
    // The trampoline keeps what a function's arguments may be in, as ftrace's does.
    declarations: r#"
TRACED static void NAME_traced(long number, void *pointer) { }
static __attribute__((used, noinline)) void NAME_hit(void) { CALL_PROBE }
void NAME_target(void);
asm(".text\n\t.p2align 4\nNAME_target:\n\t"
    "push %rax; push %rcx; push %rdx; push %rsi; push %rdi; push %r8; push %r9; sub $8, %rsp\n\t"
    "call NAME_hit\n\t"
    "add $8, %rsp; pop %r9; pop %r8; pop %rdi; pop %rsi; pop %rdx; pop %rcx; pop %rax\n\tret");
"#,
    base: "NAME_traced(1, NULL);",
    site: "NAME_traced(1, NULL);",
    enabling: Enabling::Entry,
    package: None,
    only: &[],
};
