//! ```text
//! mov al, 0        ; patched to 1
//! movzx eax, al
//! test eax, eax
//! jne …
//! ```
//!
//! The document on Linux kernel markers attributes its generic marker's advantage to `movzbl`,
//! which replaces a whole register. `movb` replaces a part.

use super::definition::{DesignLanguage, Enabling, SiteDesign, UNGUARDED_CALL};

pub(super) const DESIGN: SiteDesign = SiteDesign {
    name: "immediate-movzx",
    about: "an immediate value of 8 bits, extended with zeros to 32",
    source: "the optimized marker of Linux kernel markers with the generic one's `movzbl`",
    language: DesignLanguage::C,
    declarations: "",
    base: "",
    site: r#"{
        unsigned int enabled;
        asm volatile("1: movb $0, %b0\n\tmovzbl %b0, %0\n\t" MARKER_RECORD("1b + 1", "1b + 1") : "=Q"(enabled));
        if (marker_unlikely(enabled)) { CALL_PROBE }
    }"#,
    enabling: Enabling::Immediate,
    package: None,
    only: UNGUARDED_CALL,
};
