//! Directories for results.

use cyclescope_platform::files;
use std::io;
use std::path::Path;

/// Bytes that are free on the disk of a directory, if the system reports them.
pub fn read_free_bytes(directory: &Path) -> Option<u64> {
    files::read_free_bytes(directory)
}

/// Creates a directory if it is missing. Its parent must exist, so that a misspelt path doesn't
/// create a whole tree.
pub fn make_directory(directory: &Path) -> io::Result<()> {
    let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
    match std::fs::create_dir(directory) {
        Err(_) if directory.is_dir() => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = parent.unwrap_or(directory).display().to_string();
            Err(io::Error::new(error.kind(), format!("the directory {parent} does not exist")))
        }
        made => made,
    }
}
