//! ```text
//! movzx eax, byte ptr [enabled]
//! test al, al
//! jne …
//! ```

use super::definition::{DesignLanguage, Enabling, SiteDesign};

pub(super) const DESIGN: SiteDesign = SiteDesign {
    name: "flag",
    about: "a flag in memory: load, test, branch",
    source: "Linux kernel markers, the generic marker",
    language: DesignLanguage::C,
    declarations: "static volatile unsigned char ENABLED __attribute__((aligned(64)));",
    base: "",
    site: "if (marker_unlikely(ENABLED)) { CALL_PROBE }",
    enabling: Enabling::Variable(1),
    package: None,
    only: &[],
};
