//! Checks of the workspace's source, as tests: see `tests/structure`. A crate of its own, so that they run without the rest
//! being built.
