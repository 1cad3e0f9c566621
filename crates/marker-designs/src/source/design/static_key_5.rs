//! ```text
//! nop dword ptr [rax+rax]    ; 5 bytes, patched to jmp rel32
//! ```

use super::definition::{DesignLanguage, Enabling, SiteDesign, static_key};

pub(super) const DESIGN: SiteDesign = SiteDesign {
    name: "static-key-5",
    about: "a static key: a NOP of 5 bytes, patched to a jump",
    source: "Linux kernel, static keys with jumps of 32 bits",
    language: DesignLanguage::C,
    declarations: "",
    base: "",
    site: static_key!("0x0f, 0x1f, 0x44, 0x00, 0x00"),
    enabling: Enabling::Jump,
    package: None,
    only: &[],
};
