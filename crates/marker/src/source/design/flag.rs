//! ```text
//! movzx eax, byte ptr [enabled]
//! test al, al
//! jne …
//! ```

use super::definition::{Design, Enabling, Language};

pub(super) const DESIGN: Design = Design {
    name: "flag",
    about: "a flag in memory: load, test, branch",
    source: "Linux kernel markers, the generic marker",
    language: Language::C,
    declarations: "static volatile unsigned char ENABLED __attribute__((aligned(64)));",
    base: "",
    site: "if (marker_unlikely(ENABLED)) { CALL_PROBE }",
    enabling: Enabling::Variable(1),
    package: None,
    only: &[],
};
