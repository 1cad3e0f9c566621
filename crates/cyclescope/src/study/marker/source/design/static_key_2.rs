//! ```text
//! xchg ax, ax    ; 2 bytes, patched to jmp rel8
//! ```

use super::{Design, Enabling, Language};

pub(super) const DESIGN: Design = Design {
    name: "static-key-2",
    about: "a static key: a NOP of 2 bytes, patched to a jump",
    source: "Linux kernel, static keys with jumps of 8 bits",
    language: Language::C,
    declarations: "",
    base: "",
    site: r#"{
        __label__ enabled, disabled;
        asm goto("1: .byte 0x66, 0x90\n\t" MARKER_RECORD("1b", "%l[enabled]") : : : : enabled);
        goto disabled;
        enabled: __attribute__((cold)); { CALL_PROBE }
        disabled:;
    }"#,
    enabling: Enabling::Jump,
    package: None,
};
