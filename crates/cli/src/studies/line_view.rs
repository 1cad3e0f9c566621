//! The presentation of a study whose result is more than a table of its lines.

use crate::output::report::Picture;
use crate::output::{Failure, Output};
use serde_json::Value;

/// How a study presents its result if a table of its lines isn't enough.
pub struct LineView {
    /// The study's name.
    pub study: &'static str,
    /// Prints its lines as text.
    pub text: fn(&[Value], TextDetail, &mut Output) -> Result<(), Failure>,
    /// Draws pictures of its lines, labelled with this machine.
    pub pictures: fn(&[Value], &str) -> Vec<Picture>,
}

/// How much of a result is printed as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextDetail {
    /// The figures that matter, on one screen.
    Summary,
    /// All numbers.
    Numbers,
    /// All numbers, and the reasons for missing ones.
    Reasons,
}
