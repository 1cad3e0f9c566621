//! The look of a result that is more than a table of its lines.

use crate::output::report::Picture;
use crate::output::{Failure, Output};
use serde_json::Value;

/// How a study's result looks where it is not a table of its lines alone.
pub struct LineView {
    /// The study's name.
    pub study: &'static str,
    /// Prints its lines as text.
    pub text: fn(&[Value], &mut Output) -> Result<(), Failure>,
    /// Pictures of its lines, made on this machine.
    pub pictures: fn(&[Value], &str) -> Vec<Picture>,
}
