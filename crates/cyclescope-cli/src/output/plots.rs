//! The directory of `--plots`.

use crate::output::failure::Failure;
use std::io;
use std::path::{Path, PathBuf};

/// The directory for graphs.
pub struct Plots {
    directory: PathBuf,
    /// The line under each title: the machine.
    machine: String,
}

impl Plots {
    /// Graphs in a directory, which is made if it does not exist.
    pub fn new(directory: &Path, machine: &str) -> Result<Plots, Failure> {
        make_directory(directory).map_err(|error| {
            let text = format!("no graphs can be written to {}: {error}", directory.display());
            Failure::usage(text, Some("name a directory, in one that exists, where you may write"))
        })?;
        // Whether it can be written to must be known before anything is measured.
        tempfile::tempfile_in(directory).map_err(|error| {
            let text = format!("no graphs can be written to {}: {error}", directory.display());
            Failure::usage(text, Some("name a directory where you may write"))
        })?;
        Ok(Plots { directory: directory.to_path_buf(), machine: machine.to_string() })
    }

    /// Writes one. What would be no part of a file's name in its name becomes `_`.
    pub fn draw(&self, name: &str, svg: &str) -> Result<(), Failure> {
        let path = self.directory.join(format!("{}.svg", file(name)));
        std::fs::write(&path, svg).map_err(|error| {
            Failure::internal(format!("{} can't be written: {error}", path.display()))
                .with_remedy("leave --plots out, or name another directory")
        })
    }

    /// The machine, for the line under a title.
    pub fn machine(&self) -> &str {
        &self.machine
    }
}

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

/// A name as that of a file.
fn file(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_name_of_its_picture() {
        assert_eq!(file("my loop/x"), "my_loop_x");
        assert_eq!(file("uarch-data_caches.1.capacity"), "uarch-data_caches.1.capacity");
    }
}
