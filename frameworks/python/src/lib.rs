//! The native part of the Python module `cyclescope`.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod clock;
mod cost;
mod failure;

use pyo3::prelude::*;

/// The native part of `cyclescope`.
#[pymodule]
mod _cyclescope {
    #[pymodule_export]
    use super::clock::core_cycles;
    #[pymodule_export]
    use super::cost::{Caveat, Cost, run};
    #[pymodule_export]
    use super::failure::{BadSnippet, Error, RunError, Unavailable};
}
