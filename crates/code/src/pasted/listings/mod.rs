//! The formats of listings, one a file.

mod address_column;
mod assembler_listing;
mod free_table;
mod gdb;
mod go_objdump;
mod mca_table;
mod objdump;
mod perf_annotate;
mod perf_browser;
mod port_table;

use super::listing_line::ListingFormat;

/// All formats. If two fit a text equally well, the first one counts.
pub(super) const FORMATS: &[ListingFormat] = &[
    objdump::FORMAT,
    gdb::FORMAT,
    perf_annotate::FORMAT,
    perf_browser::FORMAT,
    go_objdump::FORMAT,
    address_column::FORMAT,
    mca_table::FORMAT,
    port_table::FORMAT,
    assembler_listing::FORMAT,
    free_table::FORMAT,
];
