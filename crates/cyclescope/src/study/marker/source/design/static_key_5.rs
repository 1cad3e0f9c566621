//! ```text
//! nop dword ptr [rax+rax]    ; 5 bytes, patched to jmp rel32
//! ```

use super::{Design, Enabling, Language};

pub(super) const DESIGN: Design = Design {
    name: "static-key-5",
    about: "a static key: a NOP of 5 bytes, patched to a jump",
    source: "Linux kernel, static keys with jumps of 32 bits",
    language: Language::C,
    declarations: "",
    base: "",
    site: r#"{
        __label__ enabled, disabled;
        asm goto("1: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\t" MARKER_RECORD("1b", "%l[enabled]") : : : : enabled);
        goto disabled;
        enabled: __attribute__((cold)); { CALL_PROBE }
        disabled:;
    }"#,
    enabling: Enabling::Jump,
    package: None,
};
