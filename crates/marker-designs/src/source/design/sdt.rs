//! ```text
//! nop              ; a note in the ELF file says where it is, and where the arguments are
//! ```
//!
//! The macro's output equals that of `usdt`, except for the names in the note.

use super::definition::{DesignLanguage, DesignPackage, Enabling, SiteDesign};

/// The package of both designs.
pub(super) const PACKAGE: DesignPackage =
    DesignPackage { header: "sys/sdt.h", libraries: &[], files: &[], debian: "systemtap-sdt-dev" };

pub(super) const DESIGN: SiteDesign = SiteDesign {
    name: "sdt",
    about: "SystemTap's <sys/sdt.h>: DTRACE_PROBE2, a NOP of 1 byte and an ELF note",
    source: "user-level statically defined tracing, SystemTap's header",
    language: DesignLanguage::C,
    declarations: "#include <sys/sdt.h>",
    base: "",
    // The header's macro puts the label 990 on its NOP, like `usdt`.
    site: r#"DTRACE_PROBE2(cyclescope, sdt, 1, (void *)0); asm volatile(MARKER_RECORD("990b", "990b"));"#,
    enabling: Enabling::Tracer,
    package: Some(PACKAGE),
    only: &[],
};
