//! The result of `uarch` for readers: pictures of its curves.

mod figure;
#[cfg(test)]
mod made_up;
mod plots;
mod record;

use crate::look::Look;

/// What there is beside its lines.
pub const LOOK: Look = Look { study: record::KIND, draw: plots::draw };
