//! ```text
//! xchg ax, ax    ; 2 bytes, patched to jmp rel8
//! ```

use super::definition::{DesignLanguage, Enabling, SiteDesign, static_key};

pub(super) const DESIGN: SiteDesign = SiteDesign {
    name: "static-key-2",
    about: "a static key: a NOP of 2 bytes, patched to a jump",
    source: "Linux kernel, static keys with jumps of 8 bits",
    language: DesignLanguage::C,
    declarations: "",
    base: "",
    site: static_key!("0x66, 0x90"),
    enabling: Enabling::Jump,
    package: None,
    only: &[],
};
