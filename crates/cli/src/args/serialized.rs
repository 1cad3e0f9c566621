//! Serializers that write option values as they appear on a command line.

use cyclescope::executor::ExecutorOffer;
use cyclescope::measure::Precision;
use serde::{Serialize, Serializer};
use std::path::{Path, PathBuf};

/// Writes an executor's name, or nothing for the default.
pub(super) fn executor<S: Serializer>(offer: &Option<&'static ExecutorOffer>, to: S) -> Result<S::Ok, S::Error> {
    offer.filter(|offer| !offer.is_default()).map(|offer| offer.name).serialize(to)
}

/// Writes a path as text.
pub(super) fn path<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&path.display())
}

/// Writes an optional path as text.
pub(super) fn optional_path<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.display().to_string()).serialize(to)
}

/// Writes a share as a percentage.
pub(super) fn percent<S: Serializer>(share: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
    share.map(|share| format!("{}%", 100.0 * share)).serialize(to)
}

/// Writes a half width in core cycles or as a percentage.
pub(super) fn width<S: Serializer>(width: &Option<Precision>, to: S) -> Result<S::Ok, S::Error> {
    let text = |width: &Precision| match width.share > 0.0 {
        true => format!("{}%", 100.0 * width.share),
        false => width.cycles.to_string(),
    };
    width.as_ref().map(text).serialize(to)
}
