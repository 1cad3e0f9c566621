//! Safe reading of files that the user names or that others may have written.
//!
//! A path may lead to a pipe without a writer, an endless device, or a terminal that would become
//! this process's controlling terminal. So files are opened without blocking. Only regular files
//! that are no interfaces of the kernel are read, up to the size limit of their [`InputKind`].
//!
//! Limits: the contents are checked where they are parsed.

use cyclescope_platform::error_code;
use cyclescope_platform::file_facts::{FileAccess, FileKind};
use cyclescope_platform::files;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What a file is expected to contain; it decides the size limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputKind {
    /// Text of a snippet.
    Snippet,
    /// List written by people: of instructions or of snippets.
    List,
    /// Source code for a compiler.
    Source,
    /// Result lines, or a published table.
    Results,
    /// Journal next to a result file while that is written.
    Journal,
    /// Manifest of recorded evidence.
    Manifest,
    /// Compressed file of recorded evidence.
    Evidence,
    /// Machine code: a library, an object, an archive.
    Code,
    /// Bytes for a function's buffer.
    Contents,
    /// Output of one run of a benchmark program.
    Samples,
}

/// Largest size that any file is read to.
pub const MOST_FILE_BYTES: u64 = 256 << 20;

impl InputKind {
    /// Size limit in bytes.
    pub const fn most_bytes(self) -> u64 {
        match self {
            // An arena holds less machine code, at 64 characters per byte.
            InputKind::Snippet => 4 << 20,
            // All instruction forms with their operands take 1 MB; 100 000 samples take 10 MB.
            InputKind::List | InputKind::Source | InputKind::Samples => 16 << 20,
            // The facts of the largest study, all instruction forms, take 2 MB.
            InputKind::Manifest => 64 << 20,
            // A pass over all instruction forms takes 100 MB.
            InputKind::Journal | InputKind::Results | InputKind::Evidence | InputKind::Code | InputKind::Contents => {
                MOST_FILE_BYTES
            }
        }
    }
}

/// A file that cannot be read, and why.
#[derive(Debug)]
pub struct BadInput {
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub why: InputDefect,
}

/// Why a file is rejected before its contents are parsed.
#[derive(Debug)]
pub enum InputDefect {
    /// The operating system reported an error.
    System(io::Error),
    /// Not a regular file; says what it is, such as `a directory, not a regular file`.
    Other(&'static str),
    /// Longer than this limit, in bytes.
    TooLong(u64),
}

impl InputDefect {
    /// The error number, if the operating system reported one.
    pub fn system_errno(&self) -> Option<i32> {
        match self {
            InputDefect::System(error) => error.raw_os_error(),
            InputDefect::Other(_) | InputDefect::TooLong(_) => None,
        }
    }
}

impl BadInput {
    /// Whether another path or other permissions would help. Otherwise the system failed.
    pub fn is_usage(&self) -> bool {
        use io::ErrorKind::*;
        match &self.why {
            // The rights of a file give EACCES; this is a refused system call.
            InputDefect::System(error) if error.raw_os_error() == Some(error_code::EPERM) => false,
            InputDefect::System(error) => {
                matches!(
                    error.kind(),
                    NotFound | NotADirectory | IsADirectory | PermissionDenied | InvalidInput | InvalidFilename
                ) || matches!(error.raw_os_error(), Some(error_code::ELOOP | error_code::ENXIO | error_code::ENODEV))
            }
            InputDefect::Other(_) | InputDefect::TooLong(_) => true,
        }
    }

    /// Whether the file does not exist.
    pub fn is_missing(&self) -> bool {
        let missing = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
        matches!(&self.why, InputDefect::System(error) if missing.contains(&error.kind()))
    }
}

impl fmt::Display for InputDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputDefect::System(error) if error.raw_os_error() == Some(error_code::ELOOP) => {
                write!(f, "it is a symbolic link, or its path leads through too many")
            }
            InputDefect::System(error) => error.fmt(f),
            InputDefect::Other(what) => write!(f, "it is {what}"),
            InputDefect::TooLong(most) if *most >> 20 > 0 => {
                write!(f, "it is longer than {} MiB, the limit for such a file", most >> 20)
            }
            InputDefect::TooLong(most) => write!(f, "it is longer than {most} bytes"),
        }
    }
}

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} can't be read: {}", self.file.display(), self.why)
    }
}

impl std::error::Error for BadInput {}

/// Opens a regular file within the size limit of its kind. The reader must limit later growth
/// itself.
///
/// # Errors
///
/// Fails if the file does not exist, is not a regular file, or is too long.
pub fn open_input(path: &Path, kind: InputKind) -> Result<File, BadInput> {
    open_checked(path, FileAccess::Read, kind)
}

fn open_checked(path: &Path, access: FileAccess, kind: InputKind) -> Result<File, BadInput> {
    let bad = |why| BadInput { file: path.to_path_buf(), why };
    let file = files::open_file(path, access).map_err(|error| bad(InputDefect::System(error)))?;
    let facts = files::read_facts(&file).map_err(|error| bad(InputDefect::System(error)))?;
    if let Some(what) = describe_irregular(facts.kind) {
        return Err(bad(InputDefect::Other(what)));
    }
    if facts.is_interface {
        return Err(bad(InputDefect::Other("an interface of the kernel, not a file on a disk")));
    }
    match facts.bytes {
        Some(length) if length <= kind.most_bytes() => Ok(file),
        _ => Err(bad(InputDefect::TooLong(kind.most_bytes()))),
    }
}

/// Says what an irregular file is; `None` for a regular one.
fn describe_irregular(what: FileKind) -> Option<&'static str> {
    match what {
        FileKind::Regular => None,
        FileKind::Directory => Some("a directory, not a regular file"),
        FileKind::Link => Some("a symbolic link, not a regular file"),
        FileKind::Pipe => Some("a pipe, not a regular file"),
        FileKind::Socket => Some("a socket, not a regular file"),
        FileKind::Device => Some("a device, not a regular file"),
    }
}

/// Reads a whole regular file.
///
/// # Errors
///
/// Fails as [`open_input`] does, or if reading fails.
pub fn read_input(path: &Path, kind: InputKind) -> Result<Vec<u8>, BadInput> {
    let file = open_input(path, kind)?;
    read_stream(file, kind).map_err(|why| BadInput { file: path.to_path_buf(), why })
}

/// Reads a stream to its end, such as standard input.
///
/// # Errors
///
/// Fails if the stream exceeds the size limit of its kind, or if reading fails.
pub fn read_stream(stream: impl Read, kind: InputKind) -> Result<Vec<u8>, InputDefect> {
    let mut bytes = Vec::new();
    // One byte more than the limit shows that the stream is too long.
    stream.take(kind.most_bytes() + 1).read_to_end(&mut bytes).map_err(InputDefect::System)?;
    match bytes.len() as u64 > kind.most_bytes() {
        true => Err(InputDefect::TooLong(kind.most_bytes())),
        false => Ok(bytes),
    }
}

/// Creates a file at a path that the program chose, and replaces what is there. A link is removed;
/// its target stays unchanged.
///
/// # Errors
///
/// Fails if the system does, also if somebody creates the file at the same time.
pub fn replace_file(path: &Path) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => File::create_new(path),
    }
}

/// Opens a file for appending, or creates it. Never waits for a reader.
///
/// # Errors
///
/// Fails if the system does, or if the path leads to something else than a regular file.
pub fn append_to_file(path: &Path) -> io::Result<File> {
    let irregular = |what| io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}"));
    let file = files::open_file(path, FileAccess::Append).map_err(|error| match error.raw_os_error() {
        // A pipe without a reader (fifo(7)), or a socket.
        Some(error_code::ENXIO) => irregular("a pipe or a socket, not a regular file"),
        _ => error,
    })?;
    match describe_irregular(files::read_facts(&file)?.kind) {
        Some(what) => Err(irregular(what)),
        None => Ok(file),
    }
}

/// Fails if a path leads to something that a new regular file can't replace. Links are not
/// followed: another user may have made them.
///
/// # Errors
///
/// Says what is at the path.
pub fn require_replaceable(path: &Path) -> io::Result<()> {
    let kind = match files::read_kind(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        kind => kind?,
    };
    describe_irregular(kind)
        .map_or(Ok(()), |what| Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}"))))
}

/// Opens a regular file within the size limit of its kind, for reading and appending. Rejects links
/// and files with several names, because the other name's contents would change too.
///
/// # Errors
///
/// Fails as [`open_input`] does, or if the path is a link.
pub fn open_for_append(path: &Path, kind: InputKind) -> Result<File, BadInput> {
    let bad = |why| BadInput { file: path.to_path_buf(), why };
    let file = open_checked(path, FileAccess::ReadAppend, kind)?;
    let facts = files::read_facts(&file).map_err(|error| bad(InputDefect::System(error)))?;
    match facts.names {
        0 | 1 => Ok(file),
        _ => Err(bad(InputDefect::Other("a file with several names"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::Mode;
    use std::os::unix::net::UnixListener;
    use std::time::{Duration, Instant};

    /// Temporary folder of one test, deleted at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let folder = std::env::temp_dir().join(format!("cyclescope-input-{name}-{}", std::process::id()));
            std::fs::create_dir(&folder).expect("a new folder");
            Folder(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn irregular_files_are_rejected_without_blocking() {
        let folder = Folder::new("kinds");
        let [pipe, socket, link] = ["pipe", "socket", "link"].map(|name| folder.0.join(name));
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::from(0o600)).expect("a pipe");
        let _listener = UnixListener::bind(&socket).expect("a socket");
        std::os::unix::fs::symlink("/dev/zero", &link).expect("a link");
        let begun = Instant::now();
        for (path, what) in [
            (pipe.as_path(), "a pipe"),
            (link.as_path(), "a device"),
            (Path::new("/dev/null"), "a device"),
            (Path::new("/proc/self/status"), "an interface of the kernel"),
            (Path::new("/sys/kernel/uevent_seqnum"), "an interface of the kernel"),
            (folder.0.as_path(), "a directory"),
        ] {
            let bad = read_input(path, InputKind::List).expect_err("a rejected file");
            assert!(bad.to_string().contains(what) && bad.is_usage(), "{bad}");
        }
        for path in [socket, folder.0.join("none"), folder.0.join("pipe/below"), "a\0b".into()] {
            let bad = read_input(&path, InputKind::List).expect_err("a rejected file");
            assert!(bad.is_usage(), "{bad:?}");
        }
        assert!(begun.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_file_is_never_changed_through_a_link() {
        let folder = Folder::new("names");
        let [theirs, link, hard, own] = ["theirs", "link", "hard", "own"].map(|name| folder.0.join(name));
        std::fs::write(&theirs, "theirs").expect("a file");
        std::os::unix::fs::symlink(&theirs, &link).expect("a link");
        std::fs::hard_link(&theirs, &hard).expect("a link");
        for name in [&link, &hard] {
            let bad = open_for_append(name, InputKind::Journal).expect_err("a rejected file");
            assert!(bad.is_usage(), "{bad}");
            drop(replace_file(name).expect("a new file"));
            assert_eq!(std::fs::read(name).expect("a file"), b"");
        }
        assert_eq!(std::fs::read(&theirs).expect("a file"), b"theirs");
        std::fs::write(&own, "a").expect("a file");
        std::io::Write::write_all(&mut open_for_append(&own, InputKind::Journal).expect("a file"), b"b").expect("room");
        assert_eq!(std::fs::read(&own).expect("a file"), b"ab");
    }

    #[test]
    fn only_regular_files_are_appended_to_or_replaced() {
        let folder = Folder::new("outputs");
        let [theirs, link, pipe, new] = ["theirs", "link", "pipe", "new"].map(|name| folder.0.join(name));
        std::fs::write(&theirs, "theirs").expect("a file");
        std::os::unix::fs::symlink(&theirs, &link).expect("a link");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::from(0o600)).expect("a pipe");
        let begun = Instant::now();
        for (path, what) in [(&link, "a symbolic link"), (&pipe, "a pipe"), (&folder.0, "a directory")] {
            let error = require_replaceable(path).expect_err("it is refused");
            assert!(error.to_string().contains(what), "{error}");
        }
        for path in [&pipe, &folder.0, &PathBuf::from("/dev/null")] {
            append_to_file(path).expect_err("it is refused");
        }
        // With a reader, opening it does not fail.
        let _reader = File::options().read(true).write(true).open(&pipe).expect("a pipe");
        append_to_file(&pipe).expect_err("it is refused");
        assert!(begun.elapsed() < Duration::from_secs(10));
        for path in [&theirs, &new] {
            require_replaceable(path).expect("it may be replaced");
            std::io::Write::write_all(&mut append_to_file(path).expect("a file"), b"+").expect("room");
        }
        assert_eq!(std::fs::read(&theirs).expect("a file"), b"theirs+");
    }

    #[test]
    fn a_file_longer_than_its_kind_allows_is_rejected() {
        let folder = Folder::new("lengths");
        let path = folder.0.join("long");
        let file = File::create(&path).expect("a file");
        for (length, good) in
            [(0, true), (InputKind::Snippet.most_bytes(), true), (InputKind::Snippet.most_bytes() + 1, false)]
        {
            file.set_len(length).expect("a hole");
            let read = read_input(&path, InputKind::Snippet);
            assert_eq!(read.is_ok_and(|bytes| bytes.len() as u64 == length), good, "{length}");
        }
        file.set_len(1 << 40).expect("a hole");
        assert!(matches!(
            open_input(&path, InputKind::Results),
            Err(BadInput { why: InputDefect::TooLong(MOST_FILE_BYTES), .. })
        ));
        // The length of a stream is unknown.
        assert!(matches!(read_stream(io::repeat(0), InputKind::Snippet), Err(InputDefect::TooLong(_))));
    }
}
