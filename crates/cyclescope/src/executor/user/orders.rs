//! Orders to the worker about memory areas: how to make each, and which to make fresh.

/// Value of [`AreaSetup::register`] where no register points into the area.
pub(super) const NO_REGISTER: usize = usize::MAX;

/// How a worker makes an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backing {
    /// A private mapping of its source.
    Template,
    /// Memory of the worker alone, into which the source is copied.
    Copied,
    /// A file's pages over and over, into which the source is copied.
    Repeated { fd: i32, bytes: usize },
}

/// An area as a worker makes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct AreaSetup {
    pub(super) address: u64,
    pub(super) bytes: usize,
    pub(super) huge: bool,
    pub(super) backing: Backing,
    /// File with the area's initial contents.
    pub(super) source: i32,
    /// Address at which the worker maps the file to copy from.
    pub(super) source_at: u64,
    /// Bytes of the initial contents, repeated where the area is larger.
    pub(super) source_bytes: usize,
    pub(super) register: usize,
}

/// Which areas the worker prepares, by bits of their numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Orders {
    /// Areas that are made fresh before each layout.
    pub(super) refresh: u32,
    /// Areas that are made fresh before the first layout of the command.
    pub(super) begin: u32,
    /// Areas whose pages at the pointer are made present before each layout.
    pub(super) touch: u32,
}
