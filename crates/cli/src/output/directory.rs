//! Directories that results go to.

use std::io;
use std::path::Path;

/// Makes a directory, unless it exists, in one that exists: a misspelt path would become a tree of new ones.
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
