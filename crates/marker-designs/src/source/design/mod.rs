//! Designs: the contents of a dormant tracing site, and the change that enables it.
//!
//! Each design is data in its own file: the C or Rust text of its site, and what enables it. The
//! build makes functions from the text. For a design that needs a package, the machine's own
//! compiler does so at run time.

pub mod definition;
mod flag;
mod function_entry;
mod immediate;
mod immediate_32;
mod immediate_movzx;
mod indirect_call;
pub(crate) mod log;
mod lttng_ust;
mod none;
mod sdt;
mod sdt_semaphore;
mod static_key_2;
mod static_key_5;
mod stores;
pub(crate) mod tracing;
mod usdt;
mod usdt_semaphore;

pub use definition::{DesignLanguage, Enabling, SiteDesign};

/// All designs, sorted by name.
pub const ALL: &[SiteDesign] = &[
    flag::DESIGN,
    function_entry::DESIGN,
    immediate::DESIGN,
    immediate_32::DESIGN,
    immediate_movzx::DESIGN,
    indirect_call::DESIGN,
    log::DESIGN,
    lttng_ust::DESIGN,
    none::DESIGN,
    sdt::DESIGN,
    sdt_semaphore::DESIGN,
    static_key_2::DESIGN,
    static_key_5::DESIGN,
    stores::TWELVE,
    stores::FOUR,
    stores::EIGHT,
    tracing::DESIGN,
    usdt::DESIGN,
    usdt_semaphore::DESIGN,
];
