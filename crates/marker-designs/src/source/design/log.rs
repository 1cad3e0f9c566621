//! ```text
//! mov rax, [log::MAX_LOG_LEVEL_FILTER]
//! cmp rax, 3
//! jbe …            ; over the call of the logger, which lies beside the likely path
//! ```
//!
//! The comparison with the compile-time level generates no code.

use super::definition::{DesignLanguage, Enabling, LibraryState, SiteDesign};

pub(super) const DESIGN: SiteDesign = SiteDesign {
    name: "log",
    about: "a macro of Rust's log: a load and a test of the maximum level, and a branch",
    source: "the crate log, debug!",
    language: DesignLanguage::Rust,
    declarations: "",
    base: "",
    site: r#"::log::debug!(target: "cyclescope::marker", "{} {:p}", NUMBER, POINTER);"#,
    enabling: Enabling::Switch(STATES),
    package: None,
    only: &[],
};

/// The states of `log`.
pub(crate) const STATES: &[LibraryState] = &[
    LibraryState {
        name: "dormant",
        about: "the maximum level is off",
        world: 0,
        passes: false,
        over: None,
        measured: true,
        hits: None,
    },
    LibraryState {
        name: "empty",
        about: "a logger that does nothing",
        world: 1,
        passes: true,
        over: Some("dormant"),
        measured: true,
        hits: None,
    },
    LibraryState {
        name: "sink",
        about: "a logger that formats level, target and message into memory, behind a mutex",
        world: 2,
        passes: true,
        over: Some("empty"),
        measured: true,
        hits: None,
    },
    LibraryState {
        name: "count",
        about: "a logger that counts",
        world: 3,
        passes: true,
        over: None,
        measured: false,
        hits: Some(1),
    },
    LibraryState {
        name: "count-dormant",
        about: "the same with the maximum level off",
        world: 3,
        passes: false,
        over: None,
        measured: false,
        hits: Some(0),
    },
];
