//! Performance events of the processor and of the kernel: their names, which of them can be counted
//! on this machine, and their counts.
//!
//! A name becomes an [`EventCode`], which means the same to every executor. The kernel decides which
//! codes count at the same time; [`EventGroup`] asks it by trying.

#![warn(unreachable_pub)]

mod counter_facts;
mod event_catalog;
mod event_code;
mod event_field;
#[cfg_attr(windows, path = "windows/event_group.rs")]
mod event_group;
mod event_list;
mod event_page;
#[cfg(unix)]
mod event_page_reading;
mod event_refusal;
mod event_table;
mod generic_events;

pub use counter_facts::{detect_counters, require_rdpmc};
pub use event_catalog::{CatalogEntry, EventCatalog};
pub use event_code::{EventCode, MOST_TOGETHER, NamedEvent};
pub use event_group::{EventGroup, count_fitting};
pub use event_list::{CounterColumn, CounterRequest};
pub use event_refusal::{EventRefusal, OpenAttempt, RefusalCause};
pub use event_table::{EventTable, TableError};
