//! Memory areas of programs: how the worker makes each, and which it makes fresh.

/// Value of [`AreaSetup::register`] where no register points into the area.
pub const NO_REGISTER: usize = usize::MAX;

/// How a worker makes an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, u32)]
pub enum AreaBacking {
    /// A private mapping of its source.
    Template,
    /// Memory of the worker alone, into which the source is copied.
    Copied,
    /// A file's pages over and over, into which the source is copied.
    Repeated {
        /// The file.
        fd: i32,
        /// Its length.
        bytes: usize,
    },
}

/// An area as a worker makes it.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct AreaSetup {
    /// Address of its first byte.
    pub address: u64,
    /// Its length.
    pub bytes: usize,
    /// Whether it is made of pages of 2 MiB.
    pub huge: bool,
    /// How it is made.
    pub backing: AreaBacking,
    /// File with the area's initial contents.
    pub source: i32,
    /// Address at which the worker maps the file to copy from.
    pub source_at: u64,
    /// Bytes of the initial contents, repeated where the area is larger.
    pub source_bytes: usize,
    /// Number of the register that points into it, or [`NO_REGISTER`].
    pub register: usize,
}

/// Which areas the worker prepares, by bits of their numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct AreaOrders {
    /// Areas that are made fresh before each layout.
    pub refresh: u32,
    /// Areas that are made fresh before the first layout of the command.
    pub begin: u32,
    /// Areas whose pages at the pointer are made present before each layout.
    pub touch: u32,
}
