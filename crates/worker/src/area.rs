//! Memory areas of programs: how the worker makes each, and which it makes fresh.

/// Value of [`AreaSetup::register`] if no register points into the area.
pub const NO_REGISTER: usize = usize::MAX;

/// The memory behind an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, u32)]
pub enum AreaBacking {
    /// A private mapping of its source.
    Template,
    /// Memory of the worker alone, with a copy of the source.
    Copied,
    /// A file's pages, mapped repeatedly, with a copy of the source.
    Repeated {
        /// The file.
        fd: i32,
        /// Its length.
        bytes: usize,
    },
}

/// The description of an area for the worker.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct AreaSetup {
    /// Address of its first byte.
    pub address: u64,
    /// Its length.
    pub bytes: usize,
    /// Whether its pages have 2 MiB.
    pub huge: bool,
    /// Whether it holds code: programs execute it and don't write it.
    pub executable: bool,
    /// The memory behind it.
    pub backing: AreaBacking,
    /// File with the area's initial contents.
    pub source: i32,
    /// Address at which the worker maps the file to copy from.
    pub source_at: u64,
    /// Bytes of the initial contents, repeated if the area is larger.
    pub source_bytes: usize,
    /// Number of the register that points into it, or [`NO_REGISTER`].
    pub register: usize,
}

/// Areas that the worker prepares, one bit for each.
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
