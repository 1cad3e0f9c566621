//! Records of `marker` beside those of the markers themselves.

use cyclescope::study::marker::comparison::Conclusion;
use cyclescope::study::marker::published::Beside;
use serde::Serialize;

/// A marker that was not measured, kind `marker.skipped`.
#[derive(Serialize)]
pub(super) struct SkippedRecord {
    pub(super) design: &'static str,
    /// Null where all of the design is.
    pub(super) state: Option<&'static str>,
    pub(super) context: Option<String>,
    pub(super) reason: String,
    pub(super) remedy: Option<String>,
}

/// The document's figures beside ours, and its conclusions tested, kind `marker.conclusions`.
#[derive(Serialize)]
pub(super) struct PublishedRecord {
    pub(super) source: &'static str,
    pub(super) machine: &'static str,
    pub(super) figures: Vec<Beside>,
    pub(super) conclusions: Vec<Conclusion>,
}
