//! Files that hold the debug information of other files.
//!
//! A unit may leave its entries in a file of its own (`-gsplit-dwarf`, DWARF 5, 7.3.2), and packages
//! of distributions leave the whole debug information in another file, which is found by the build ID
//! or by a name and a checksum (GDB manual, "Debugging Information in Separate Files").

use super::debug_entries::Slice;
use cyclescope::input::{self, InputKind};
use cyclescope_platform::files::path_from_bytes;
use flate2::Crc;
use gimli::{Dwarf, Unit};
use object::{File, Object};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The folder of debug information that packages install.
const SYSTEM_FOLDER: &str = "/usr/lib/debug";

/// A unit whose entries are in another file.
pub struct SplitUnit<'r, 'a> {
    /// The debug information of the file with the code.
    pub parent: &'r Dwarf<Slice<'a>>,
    /// The unit there.
    pub skeleton: Rc<Unit<Slice<'a>>>,
    name: PathBuf,
    folder: PathBuf,
}

impl<'r, 'a> SplitUnit<'r, 'a> {
    /// The unit, if it names a file.
    pub fn new(parent: &'r Dwarf<Slice<'a>>, skeleton: Rc<Unit<Slice<'a>>>) -> Option<SplitUnit<'r, 'a>> {
        let name = parent.attr_string(&skeleton, skeleton.dwo_name().ok()??).ok()?;
        let to_path = |text: &Slice<'a>| path_from_bytes(text.slice());
        let folder = skeleton.comp_dir.as_ref().map(to_path).unwrap_or_default();
        Some(SplitUnit { parent, name: to_path(&name), folder, skeleton })
    }

    /// The file that it names.
    pub fn named_file(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// The files that may be the named one: itself, and those beside the file with the code.
    pub fn find_files(&self, source: &Path) -> impl Iterator<Item = Vec<u8>> {
        let beside = source.parent().unwrap_or(Path::new(""));
        let own = self.name.file_name().map(|name| beside.join(name));
        let places = [Some(self.named_file()), Some(beside.join(&self.name)), own];
        places.into_iter().flatten().filter_map(|place| read_file(&place))
    }

    /// The package of a program: the file with its name and another ending.
    pub fn find_package(&self, source: &Path) -> Option<Vec<u8>> {
        let mut path = source.as_os_str().to_os_string();
        path.push(".dwp");
        read_file(Path::new(&path))
    }
}

/// The file with the debug information of a file that has none.
pub fn find_debug_file(file: &File, source: &Path) -> Option<(PathBuf, Vec<u8>)> {
    let build = file.build_id().ok().flatten();
    if let Some((first, rest)) = build.and_then(|build| build.split_first()) {
        let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = Path::new(SYSTEM_FOLDER).join(format!(".build-id/{first:02x}/{rest}.debug"));
        if let Some(content) = read_file(&path) {
            return Some((path, content));
        }
    }
    let (name, checksum) = file.gnu_debuglink().ok().flatten()?;
    let name = path_from_bytes(name);
    let source = std::fs::canonicalize(source).ok()?;
    let folder = source.parent()?;
    let system = Path::new(SYSTEM_FOLDER).join(folder.strip_prefix("/").unwrap_or(folder));
    let places = [folder.join(&name), folder.join(".debug").join(&name), system.join(&name)];
    places.into_iter().filter(|place| *place != source).find_map(|place| {
        let content = read_file(&place)?;
        let mut own = Crc::new();
        own.update(&content);
        (own.sum() == checksum).then_some((place, content))
    })
}

fn read_file(path: &Path) -> Option<Vec<u8>> {
    input::read_input(path, InputKind::Code).ok()
}
