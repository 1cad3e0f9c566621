//! The common part of all targets: the readers are those of the library's tests.

#[allow(dead_code, reason = "some of it is only for the tests")]
#[path = "../crates/cyclescope/tests/hostile/dossier.rs"]
mod dossier;
#[path = "../crates/cyclescope/tests/hostile/readers.rs"]
mod readers;
#[path = "../crates/cyclescope/tests/hostile/seeds.rs"]
mod seeds;

use std::sync::Once;

/// Feeds the reader of this name.
pub fn read(name: &str, bytes: &[u8]) {
    static PREPARED: Once = Once::new();
    // Some readers replace a file of good evidence, which is made together with the good inputs.
    PREPARED.call_once(|| drop(seeds::inputs_of(name)));
    let reader = readers::READERS.iter().find(|reader| reader.name == name).expect("a reader");
    (reader.read)(bytes);
}
