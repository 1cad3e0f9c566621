//! ```text
//! mov eax, [tracepoint.state]
//! test eax, eax
//! jne …       ; a call of the tracepoint's callback, which calls its probes in a read-side lock
//! ```
//!
//! Only a session of the session daemon enables it. Its probes write to a ring buffer with system
//! calls that a worker may not make. So only the dormant state is available.

use super::definition::{DesignLanguage, DesignPackage, Enabling, LibraryState, SiteDesign};

/// The provider's header, which the package's headers include repeatedly.
const PROVIDER: &str = r#"
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER cyclescope
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./marker-lttng.h"
#if !defined(MARKER_LTTNG_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define MARKER_LTTNG_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(cyclescope, marker, LTTNG_UST_TP_ARGS(int, number, void *, pointer),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, number, number)
		lttng_ust_field_integer_hex(unsigned long, pointer, (unsigned long)pointer)))
#endif
#include <lttng/tracepoint-event.h>
"#;

pub(super) const DESIGN: SiteDesign = SiteDesign {
    name: "lttng-ust",
    about: "a tracepoint of LTTng-UST's: a load and a test of its state, and a branch",
    source: "LTTng's user-space tracer, lttng_ust_tracepoint",
    language: DesignLanguage::C,
    declarations: r#"
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "marker-lttng.h"
"#,
    base: "",
    site: "lttng_ust_tracepoint(cyclescope, marker, 1, NULL);",
    enabling: Enabling::Switch(STATES),
    package: Some(DesignPackage {
        header: "lttng/tracepoint.h",
        libraries: &["-llttng-ust", "-ldl"],
        files: &[("marker-lttng.h", PROVIDER)],
        debian: "liblttng-ust-dev",
    }),
    only: &[],
};

/// The states of `lttng-ust`.
const STATES: &[LibraryState] = &[LibraryState {
    name: "dormant",
    about: "no session",
    world: 0,
    passes: false,
    over: None,
    measured: true,
    hits: None,
}];
