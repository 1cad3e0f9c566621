//! Files with results that are written as a whole.

use crate::output::failure::Failure;
use cyclescope::input;
use cyclescope_platform::files;
use std::io::{self, Write};
use std::path::Path;

/// The folder of a file.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Checks early that a table can be written, before hours of measurement.
pub fn require_writable(path: &Path) -> Result<(), Failure> {
    let checked = input::require_replaceable(path).and_then(|()| files::require_writable_folder(folder_of(path)));
    checked.map_err(|why| {
        let text = format!("can't write {}: {why}", path.display());
        Failure::usage(text, Some("name a new or regular file in a writable directory"))
    })
}

/// Writes a file: all of it under another name, which then becomes this one. Nobody sees a part of
/// it, and no link is followed.
pub fn write_whole_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_with_rights(path, bytes, 0o666)
}

/// Writes an executable file in the same way.
pub fn write_executable_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_with_rights(path, bytes, 0o777)
}

fn write_with_rights(path: &Path, bytes: &[u8], rights: u32) -> io::Result<()> {
    input::require_replaceable(path)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".cyclescope-");
    if let Some(rights) = files::permissions_from_mode(rights) {
        // The system subtracts the user's mask.
        builder.permissions(rights);
    }
    let mut file = builder.tempfile_in(folder_of(path))?;
    file.write_all(bytes)?;
    file.persist(path).map(drop).map_err(|failed| failed.error)
}

/// Writes a table to a file.
pub fn write_table(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_whole_file(path, bytes).map_err(|error| {
        let remedy = "name a new or regular file in a writable directory";
        Failure::from_writing(format!("can't write {}", path.display()), &error, remedy)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_never_through_a_link() {
        let folder = tempfile::tempdir().expect("a folder");
        let [table, theirs, link] = ["table", "theirs", "link"].map(|name| folder.path().join(name));
        for text in ["long text", "short"] {
            write_whole_file(&table, text.as_bytes()).expect("a file");
            assert_eq!(std::fs::read_to_string(&table).expect("a file"), text);
        }
        std::fs::write(&theirs, "theirs").expect("a file");
        std::os::unix::fs::symlink(&theirs, &link).expect("a link");
        let failed = write_whole_file(&link, b"ours").expect_err("a link");
        assert!(failed.to_string().contains("symbolic link"), "{failed}");
        assert!(require_writable(&link).is_err() && require_writable(Path::new("/dev/null")).is_err());
        assert_eq!(std::fs::read_to_string(&theirs).expect("a file"), "theirs");
        // Another name of the file keeps its content.
        std::fs::hard_link(&theirs, folder.path().join("other")).expect("a link");
        write_whole_file(&theirs, b"ours").expect("a file");
        assert_eq!(std::fs::read_to_string(folder.path().join("other")).expect("a file"), "theirs");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 4);
    }
}
