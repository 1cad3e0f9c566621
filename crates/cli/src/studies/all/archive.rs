//! `--pack`: the results of `all` as one compressed tar file.

use crate::output::Failure;
use crate::output::table_file::{require_writable, write_whole_file};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io;
use std::path::{Path, PathBuf};
use tar::{Builder, Header};

/// Checks early that the archive can be written. It must not be one of the files that it holds.
pub fn require_place(pack: &Path, directory: &Path) -> Result<(), Failure> {
    if pack.parent().is_some_and(|folder| folder == directory) {
        let remedy = "name a file outside of the directory";
        return Err(Failure::usage("the archive would be among the results that it holds", Some(remedy)));
    }
    require_writable(pack)
}

/// Writes the archive, all of it under another name first.
pub fn write_archive(pack: &Path, directory: &Path, files: &[PathBuf]) -> Result<(), Failure> {
    let remedy = "free some space, or leave --pack out; the results themselves are complete";
    let failed = |error: io::Error| Failure::from_writing(format!("can't write {}", pack.display()), &error, remedy);
    let bytes = join_files(directory, files).map_err(failed)?;
    write_whole_file(pack, &bytes).map_err(failed)
}

fn join_files(directory: &Path, files: &[PathBuf]) -> io::Result<Vec<u8>> {
    // The name of the directory, so that an unpacked archive is a directory too.
    let whole = directory.canonicalize()?;
    let folder = whole.file_name().map_or("cyclescope".into(), |name| name.to_owned());
    let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for path in files {
        let bytes = std::fs::read(path)?;
        let mut header = Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        // The archive does not depend on the time when it was made.
        header.set_mtime(0);
        let name = Path::new(&folder).join(path.file_name().unwrap_or_default());
        archive.append_data(&mut header, name, &bytes[..])?;
    }
    archive.into_inner()?.finish()
}
