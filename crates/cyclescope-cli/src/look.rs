//! The look of a result that is more than a table of its lines.

use crate::failure::Failure;
use crate::plots::Plots;
use serde_json::Value;

/// What there is of a study's result beside a table of its lines.
pub struct Look {
    /// The study's name.
    pub study: &'static str,
    /// Draws its lines.
    pub draw: fn(&[Value], &Plots) -> Result<(), Failure>,
}
