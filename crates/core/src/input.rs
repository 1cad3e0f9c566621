//! Files that somebody else may have written: opened in one way, and read no further than their kind needs.
//!
//! A name may stand for anything: a pipe that nobody writes to, a device without an end, a terminal that would become this
//! process's own. So a file is opened without waiting, and only a regular file is read, up to the length that its kind has
//! at most. What a file contains is checked where it is parsed.

use rustix::fs::{FileType, Mode, OFlags};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What a file is to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputKind {
    /// The text of a snippet.
    Snippet,
    /// A list that people write: of instructions, of snippets.
    List,
    /// Source code for a compiler.
    Source,
    /// Lines of results, or a published table.
    Results,
    /// What a result file has beside it while it is written.
    Journal,
    /// The manifest of evidence.
    Manifest,
    /// A compressed file of evidence.
    Evidence,
    /// Machine code: a library, an object, an archive.
    Code,
    /// Bytes for a function's buffer.
    Contents,
    /// What a program with benchmarks wrote of one run.
    Samples,
}

/// No file is read any further.
pub const MOST_FILE_BYTES: u64 = 256 << 20;

impl InputKind {
    /// Bytes at most.
    pub const fn most_bytes(self) -> u64 {
        match self {
            // More machine code than an arena has, at 64 characters a byte.
            InputKind::Snippet => 4 << 20,
            // All instruction forms with their operands take 1 MB.
            // A hundred thousand samples take 10 MB.
            InputKind::List | InputKind::Source | InputKind::Samples => 16 << 20,
            // The facts of the largest study, all instruction forms, take 2 MB.
            InputKind::Manifest | InputKind::Journal => 64 << 20,
            InputKind::Results | InputKind::Evidence | InputKind::Code | InputKind::Contents => MOST_FILE_BYTES,
        }
    }
}

/// Why a file is not read.
#[derive(Debug)]
pub struct BadInput {
    /// The file.
    pub file: PathBuf,
    /// Why.
    pub why: InputDefect,
}

/// What is wrong with a file before its contents are looked at.
#[derive(Debug)]
pub enum InputDefect {
    /// The system said so.
    System(io::Error),
    /// It is something else, such as a directory.
    Other(&'static str),
    /// It is longer than this.
    TooLong(u64),
}

impl BadInput {
    /// Whether another name, or other rights, would help: else the system failed.
    pub fn is_usage(&self) -> bool {
        use io::ErrorKind::*;
        match &self.why {
            InputDefect::System(error) => {
                matches!(
                    error.kind(),
                    NotFound | NotADirectory | IsADirectory | PermissionDenied | InvalidInput | InvalidFilename
                ) || matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENXIO | libc::ENODEV))
            }
            InputDefect::Other(_) | InputDefect::TooLong(_) => true,
        }
    }

    /// Whether there is no such file.
    pub fn is_missing(&self) -> bool {
        let missing = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
        matches!(&self.why, InputDefect::System(error) if missing.contains(&error.kind()))
    }
}

impl fmt::Display for InputDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputDefect::System(error) if error.raw_os_error() == Some(libc::ELOOP) => {
                write!(f, "it is a symbolic link, or leads through too many")
            }
            InputDefect::System(error) => error.fmt(f),
            InputDefect::Other(what) => write!(f, "it is {what}"),
            InputDefect::TooLong(most) if *most >> 20 > 0 => {
                write!(f, "it is longer than {} MiB, the most that such a file may have", most >> 20)
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

/// Opens a regular file of at most the length of its kind. What it grows by later is the reader's to limit.
///
/// # Errors
///
/// Where there is none, or something else than a regular file, or a longer one.
pub fn open_input(path: &Path, kind: InputKind) -> Result<File, BadInput> {
    open_checked(path, OFlags::RDONLY, kind)
}

fn open_checked(path: &Path, flags: OFlags, kind: InputKind) -> Result<File, BadInput> {
    let bad = |why| BadInput { file: path.to_path_buf(), why };
    // A pipe would wait for its writer, a terminal could become this process's own; both are refused below.
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty());
    let file = File::from(opened.map_err(|errno| bad(InputDefect::System(errno.into())))?);
    let facts = rustix::fs::fstat(&file).map_err(|errno| bad(InputDefect::System(errno.into())))?;
    if let Some(what) = describe_irregular(FileType::from_raw_mode(facts.st_mode)) {
        return Err(bad(InputDefect::Other(what)));
    }
    match u64::try_from(facts.st_size) {
        Ok(length) if length <= kind.most_bytes() => Ok(file),
        _ => Err(bad(InputDefect::TooLong(kind.most_bytes()))),
    }
}

/// What a file is that is no regular one.
fn describe_irregular(what: FileType) -> Option<&'static str> {
    match what {
        FileType::RegularFile => None,
        FileType::Directory => Some("a directory, not a regular file"),
        FileType::Fifo => Some("a pipe, not a regular file"),
        FileType::Socket => Some("a socket, not a regular file"),
        _ => Some("a device, not a regular file"),
    }
}

/// Reads a regular file as a whole.
///
/// # Errors
///
/// Those of [`open_input`], and those of the system while it reads.
pub fn read_input(path: &Path, kind: InputKind) -> Result<Vec<u8>, BadInput> {
    let file = open_input(path, kind)?;
    read_stream(file, kind).map_err(|why| BadInput { file: path.to_path_buf(), why })
}

/// Reads a stream to its end, such as standard input.
///
/// # Errors
///
/// Where it is longer than such a file may be, and those of the system.
pub fn read_stream(stream: impl Read, kind: InputKind) -> Result<Vec<u8>, InputDefect> {
    let mut bytes = Vec::new();
    // A byte more shows that there is too much.
    stream.take(kind.most_bytes() + 1).read_to_end(&mut bytes).map_err(InputDefect::System)?;
    match bytes.len() as u64 > kind.most_bytes() {
        true => Err(InputDefect::TooLong(kind.most_bytes())),
        false => Ok(bytes),
    }
}

/// A new file in place of what has this name, which nobody gave: a link that was put there is removed, and what it leads to
/// stays as it is.
///
/// # Errors
///
/// Those of the system, also where somebody makes such a file at the same time.
pub fn replace_file(path: &Path) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => File::create_new(path),
    }
}

/// Opens a regular file of at most the length of its kind to be read and continued: no link, and not a file that has another
/// name too, which would be changed with it.
///
/// # Errors
///
/// Those of [`open_input`], and where it is a link.
pub fn open_for_append(path: &Path, kind: InputKind) -> Result<File, BadInput> {
    let bad = |why| BadInput { file: path.to_path_buf(), why };
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW;
    let file = open_checked(path, flags, kind)?;
    let facts = rustix::fs::fstat(&file).map_err(|errno| bad(InputDefect::System(errno.into())))?;
    match facts.st_nlink {
        0 | 1 => Ok(file),
        _ => Err(bad(InputDefect::Other("a file with several names"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::time::{Duration, Instant};

    /// A folder of one test.
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
    fn only_regular_files_are_read_and_nothing_is_waited_for() {
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
            (folder.0.as_path(), "a directory"),
        ] {
            let bad = read_input(path, InputKind::List).expect_err("it is refused");
            assert!(bad.to_string().contains(what) && bad.is_usage(), "{bad}");
        }
        for path in [socket, folder.0.join("none"), folder.0.join("pipe/below"), "a\0b".into()] {
            let bad = read_input(&path, InputKind::List).expect_err("it is refused");
            assert!(bad.is_usage(), "{bad:?}");
        }
        assert!(begun.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn no_file_is_changed_through_another_name() {
        let folder = Folder::new("names");
        let [theirs, link, hard, own] = ["theirs", "link", "hard", "own"].map(|name| folder.0.join(name));
        std::fs::write(&theirs, "theirs").expect("a file");
        std::os::unix::fs::symlink(&theirs, &link).expect("a link");
        std::fs::hard_link(&theirs, &hard).expect("a link");
        for name in [&link, &hard] {
            let bad = open_for_append(name, InputKind::Journal).expect_err("it is refused");
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
    fn a_file_is_read_up_to_the_length_of_its_kind() {
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
        // One whose length the system does not know.
        assert!(matches!(read_stream(io::repeat(0), InputKind::Snippet), Err(InputDefect::TooLong(_))));
        assert!(read_input(Path::new("/proc/self/status"), InputKind::List).is_ok_and(|bytes| !bytes.is_empty()));
    }
}
