//! ```text
//! cmp word ptr [semaphore], 0
//! jne …
//! …: nop           ; a note in the ELF file says where it is, and where the semaphore is
//! ```

use super::definition::{DesignLanguage, Enabling, SiteDesign};
use super::sdt;

pub(super) const DESIGN: SiteDesign = SiteDesign {
    name: "sdt-semaphore",
    about: "the same with a semaphore that a tracer raises first: _SDT_HAS_SEMAPHORES",
    source: "user-level statically defined tracing, SystemTap's header",
    language: DesignLanguage::C,
    // The header requires this name. It is as far from other data as `usdt-semaphore`'s variable.
    declarations: r#"
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
__extension__ volatile unsigned short cyclescope_sdt_semaphore __attribute__((section(".probes"), used, aligned(64)));
#define ENABLED cyclescope_sdt_semaphore
"#,
    base: "",
    site: "if (marker_unlikely(ENABLED)) { DTRACE_PROBE2(cyclescope, sdt, 1, (void *)0); }",
    enabling: Enabling::Variable(2),
    package: Some(sdt::PACKAGE),
    only: &[],
};
