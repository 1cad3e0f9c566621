//! What is known of an open file, or of what lies at a path.

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Bytes on a disk.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A pipe.
    Pipe,
    /// A socket.
    Socket,
    /// Anything else.
    Device,
}

/// Facts about an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFacts {
    /// What it is.
    pub kind: FileKind,
    /// Its length in bytes; `None` if it has none.
    pub bytes: Option<u64>,
    /// Number of names that it has.
    pub names: u64,
    /// Whether it is an interface of the kernel that looks like a regular file.
    pub is_interface: bool,
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    /// For reading.
    Read,
    /// For appending; it is created if it does not exist.
    Append,
    /// For reading and appending, without following a link.
    ReadAppend,
}
