//! ```text
//! mov rax, [tracing_core::metadata::MAX_LEVEL]
//! cmp rax, 1
//! ja …                                  ; over all that follows
//! movzx eax, byte ptr [callsite.interest]
//! …                                     ; never, sometimes, always, or not asked yet
//! ```

use super::definition::{DesignLanguage, Enabling, LibraryState, SiteDesign};

pub(super) const DESIGN: SiteDesign = SiteDesign {
    name: "tracing",
    about: "an event of Rust's tracing: tests of the maximum level and of the subscriber's interest in this call \
         site",
    source: "the crate tracing, debug!",
    language: DesignLanguage::Rust,
    declarations: "",
    base: "",
    site: r#"::tracing::debug!(target: "cyclescope::marker", number = NUMBER, pointer = ?POINTER);"#,
    enabling: Enabling::Switch(STATES),
    package: None,
    only: &[],
};

/// The states of `tracing`.
pub(crate) const STATES: &[LibraryState] = &[
    LibraryState {
        name: "dormant",
        about: "no subscriber, so the maximum level is off",
        world: 0,
        passes: false,
        over: None,
        measured: true,
        hits: None,
    },
    LibraryState {
        name: "dormant-filtered",
        about: "a subscriber of every level without interest in this call site",
        world: 1,
        passes: true,
        over: Some("dormant"),
        measured: true,
        hits: Some(0),
    },
    LibraryState {
        name: "empty",
        about: "a subscriber that does nothing",
        world: 2,
        passes: true,
        over: Some("dormant"),
        measured: true,
        hits: None,
    },
    LibraryState {
        name: "fields",
        about: "a subscriber that visits the fields and formats none",
        world: 3,
        passes: true,
        over: Some("empty"),
        measured: true,
        hits: None,
    },
    LibraryState {
        name: "sink",
        about: "tracing-subscriber's fmt without the time, writing to memory behind a mutex",
        world: 4,
        passes: true,
        over: Some("fields"),
        measured: true,
        hits: None,
    },
    LibraryState {
        name: "count",
        about: "a subscriber that counts",
        world: 5,
        passes: true,
        over: None,
        measured: false,
        hits: Some(1),
    },
    LibraryState {
        name: "count-dormant",
        about: "the same with the maximum level off",
        world: 5,
        passes: false,
        over: None,
        measured: false,
        hits: Some(0),
    },
];
