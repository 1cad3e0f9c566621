//! ```text
//! (arguments)
//! call [probe]
//! ```

use super::definition::{DesignLanguage, Enabling, SiteDesign};

pub(super) const DESIGN: SiteDesign = SiteDesign {
    name: "indirect-call",
    about: "a call through a pointer to an empty function",
    source: "tables of operations and callbacks",
    language: DesignLanguage::C,
    declarations: "",
    base: "",
    site: "{ CALL_PROBE }",
    enabling: Enabling::Probe,
    package: None,
    only: &[],
};
