//! ```text
//! mov al, 0        ; patched to 1
//! test al, al
//! jne …
//! ```

use super::definition::{DesignLanguage, Enabling, SiteDesign};

pub(super) const DESIGN: SiteDesign = SiteDesign {
    name: "immediate",
    about: "an immediate value in the code: move, test, branch; patched to enable",
    source: "Linux kernel markers, the optimized marker",
    language: DesignLanguage::C,
    declarations: "",
    base: "",
    // One of the registers a to d, so that the immediate is the instruction's second byte.
    site: r#"{
        unsigned char enabled;
        asm volatile("1: movb $0, %0\n\t" MARKER_RECORD("1b + 1", "1b + 1") : "=Q"(enabled));
        if (marker_unlikely(enabled)) { CALL_PROBE }
    }"#,
    enabling: Enabling::Immediate,
    package: None,
    only: &[],
};
