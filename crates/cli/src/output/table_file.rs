//! Tables that are written to files.

use crate::output::failure::Failure;
use std::path::Path;

/// Checks early that a table can be written, before hours of measurement.
pub fn require_writable(path: &Path) -> Result<(), Failure> {
    use rustix::fs::{Access, access};
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let place = if path.exists() { path } else { folder };
    let why = match access(place, Access::WRITE_OK) {
        Err(errno) => std::io::Error::from(errno).to_string(),
        Ok(()) if path.is_dir() => "it is a directory".to_string(),
        Ok(()) => return Ok(()),
    };
    let text = format!("can't write a table to {}: {why}", path.display());
    Err(Failure::usage(text, Some("name a file in a writable directory")))
}

/// Writes a table to a file.
pub fn write_table(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes).map_err(|error| Failure::internal(format!("can't write {}: {error}", path.display())))
}
