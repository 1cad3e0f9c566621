//! No marker. Its cost is the error of the measurement, and its loops are the base of the other
//! costs.

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
