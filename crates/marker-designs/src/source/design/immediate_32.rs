//! ```text
//! mov eax, 0       ; 32 bits, the lowest patched to 1
//! test eax, eax
//! jne …
//! ```

use super::definition::{DesignLanguage, Enabling, SiteDesign, UNGUARDED_CALL};

pub(super) const DESIGN: SiteDesign = SiteDesign {
    name: "immediate-32",
    about: "an immediate value of 32 bits, which replaces all of its register",
    source: "the optimized marker of Linux kernel markers with a wider immediate",
    language: DesignLanguage::C,
    declarations: "",
    base: "",
    // One of the registers a to d, so that the immediate begins at the instruction's second byte.
    site: r#"{
        unsigned int enabled;
        asm volatile("1: movl $0, %0\n\t" MARKER_RECORD("1b + 1", "1b + 1") : "=Q"(enabled));
        if (marker_unlikely(enabled)) { CALL_PROBE }
    }"#,
    enabling: Enabling::Immediate,
    package: None,
    only: UNGUARDED_CALL,
};
