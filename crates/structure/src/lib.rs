//! Checks of the workspace's source, as tests: see `tests/structure`. A separate crate, so that
//! they run without building the rest.
