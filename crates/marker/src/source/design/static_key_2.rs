//! ```text
//! xchg ax, ax    ; 2 bytes, patched to jmp rel8
//! ```

use super::definition::{Design, Enabling, Language, static_key};

pub(super) const DESIGN: Design = Design {
    name: "static-key-2",
    about: "a static key: a NOP of 2 bytes, patched to a jump",
    source: "Linux kernel, static keys with jumps of 8 bits",
    language: Language::C,
    declarations: "",
    base: "",
    site: static_key!("0x66, 0x90"),
    enabling: Enabling::Jump,
    package: None,
    only: &[],
};
