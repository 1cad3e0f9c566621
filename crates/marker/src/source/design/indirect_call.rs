//! ```text
//! (arguments)
//! call [probe]
//! ```

use super::definition::{Design, Enabling, Language};

pub(super) const DESIGN: Design = Design {
    name: "indirect-call",
    about: "a call through a pointer to an empty function",
    source: "tables of operations and callbacks",
    language: Language::C,
    declarations: "",
    base: "",
    site: "{ CALL_PROBE }",
    enabling: Enabling::Probe,
    package: None,
    only: &[],
};
