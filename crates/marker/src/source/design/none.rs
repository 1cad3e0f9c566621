//! Nothing: its cost is that of the measurement's own errors, and its loops are what the other costs are over.

use super::definition::{DesignLanguage, Enabling, SiteDesign};

pub(super) const DESIGN: SiteDesign = SiteDesign {
    name: "none",
    about: "no marker: the loop against itself",
    source: "",
    language: DesignLanguage::C,
    declarations: "",
    base: "",
    site: "",
    enabling: Enabling::Never,
    package: None,
    only: &[],
};
