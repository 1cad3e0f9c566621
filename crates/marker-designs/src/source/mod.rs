//! The text of markers. It depends on no other module, because the build script also compiles this
//! module.

pub mod c;
pub mod call_guard;
pub mod context;
pub mod design;
pub mod library;
pub mod rust;

/// The beginning of all C files.
pub(crate) const HEADER: &str = include_str!("marker.h");

/// Stands in for the guard in the name of a function without a marker.
pub(crate) const BASE: &str = "base";
