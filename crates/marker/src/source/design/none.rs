//! Nothing: its cost is that of the measurement's own errors, and its loops are what the other costs are over.

use super::definition::{Design, Enabling, Language};

pub(super) const DESIGN: Design = Design {
    name: "none",
    about: "no marker: the loop against itself",
    source: "",
    language: Language::C,
    declarations: "",
    base: "",
    site: "",
    enabling: Enabling::Never,
    package: None,
    only: &[],
};
