//! ```text
//! nop              ; a note in the ELF file says where it is, and where the arguments are
//! ```

use super::definition::{DesignLanguage, Enabling, SiteDesign};

pub(super) const DESIGN: SiteDesign = SiteDesign {
    name: "usdt",
    about: "a NOP of 1 byte and an ELF note; a tracer puts a breakpoint there",
    source: "user-level statically defined tracing of DTrace and SystemTap",
    language: DesignLanguage::C,
    declarations: "",
    base: "",
    site: r#"asm volatile(MARKER_USDT("0") "\n\t" MARKER_RECORD("990b", "990b") : : "nor"(1), "nor"((void *)0));"#,
    enabling: Enabling::Tracer,
    package: None,
    only: &[],
};
