//! The result of `uarch` for readers: the core on a page and as a diagram, and pictures of its curves.

mod diagram;
mod figure;
#[cfg(test)]
mod made_up;
mod matrix;
mod plots;
mod record;
mod sheet;

use crate::studies::look::Look;
pub use figure::{Figure, Scale};
pub use record::CoreRecord;

#[cfg(test)]
pub use made_up::line;

/// What its lines look like.
pub const LOOK: Look = Look { study: record::KIND, text: sheet::print, pictures: plots::pictures };
