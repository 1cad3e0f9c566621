//! ```text
//! cmp word ptr [semaphore], 0
//! jne …
//! …: nop           ; a note in the ELF file says where it is, and where the semaphore is
//! ```

use super::definition::{DesignLanguage, Enabling, SiteDesign};

pub(super) const DESIGN: SiteDesign = SiteDesign {
    name: "usdt-semaphore",
    about: "the same with a semaphore that a tracer raises first",
    source: "user-level statically defined tracing of SystemTap, with semaphores",
    language: DesignLanguage::C,
    // Hidden, which is as efficient as static. The note's text could not name a static variable.
    // This avoids an indirect access through a table of addresses.
    declarations: r#"
volatile unsigned short ENABLED __attribute__((section(".probes"), used, aligned(64), visibility("hidden")));
"#,
    base: "",
    site: r#"if (marker_unlikely(ENABLED)) { asm volatile(MARKER_USDT("marker_enabled") : : "nor"(1), "nor"((void *)0)); }"#,
    enabling: Enabling::Variable(2),
    package: None,
    only: &[],
};
