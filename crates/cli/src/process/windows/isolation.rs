//! Works with libraries in a separate process: on Linux.

use crate::output::Failure;
use crate::process::interrupt::ScratchFolder;

/// Loads libraries and works with them; returns the exit code. The executor's workers load them in
/// processes of their own.
///
/// # Errors
///
/// Those of loading and of working.
pub fn run_isolated<Loaded>(
    load: impl FnOnce() -> Result<Loaded, Failure>,
    folders: impl IntoIterator<Item = ScratchFolder>,
    work: impl FnOnce(&Loaded) -> Result<u8, Failure>,
    report: impl FnOnce(Failure) -> u8,
) -> Result<u8, Failure> {
    let folders: Vec<ScratchFolder> = folders.into_iter().collect();
    let code = load().and_then(|loaded| work(&loaded)).unwrap_or_else(report);
    drop(folders);
    Ok(code)
}
