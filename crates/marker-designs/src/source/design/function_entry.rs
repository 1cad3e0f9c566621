//! ```text
//! traced:
//!     nop dword ptr [rax+rax]    ; 5 bytes, patched to call rel32
//!     ret
//! ```
//!
//! The compiler leaves five one-byte NOPs. They become one five-byte NOP before anything runs, as
//! in Linux's ftrace. The loop without the marker calls the same function without the NOPs.

use super::definition::{DesignLanguage, Enabling, SiteDesign};

pub(super) const DESIGN: SiteDesign = SiteDesign {
    name: "function-entry",
    about: "a NOP of 5 bytes at a function's entry, patched to a call",
    source: "Linux ftrace; -fpatchable-function-entry of gcc and clang",
    language: DesignLanguage::C,
    // The trampoline saves the registers of possible arguments, like ftrace's.
    declarations: r#"
TRACED static void NAME_traced(long number, void *pointer) { }
static __attribute__((used, noinline)) void NAME_hit(void) { CALL_PROBE }
void NAME_target(void);
asm(".text\n\t.p2align 4\nNAME_target:\n\t"
    MARKER_SAVE "call NAME_hit\n\t" MARKER_RESTORE "ret");
"#,
    base: "NAME_traced(1, NULL);",
    site: "NAME_traced(1, NULL);",
    enabling: Enabling::Entry,
    package: None,
    only: &[],
};
