//! The text that markers are compiled from. It depends on no other module: the build script compiles this module too.

pub mod c;
pub(crate) mod call_guard;
pub mod context;
pub mod design;
pub mod library;
pub mod rust;

/// What all C files begin with.
pub(crate) const HEADER: &str = include_str!("marker.h");

/// The guard's place in a function's name where the function is the loop without the marker.
pub(crate) const BASE: &str = "base";
