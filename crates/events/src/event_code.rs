//! What a counter counts, as the kernel and simulated counters take it.

use serde::{Deserialize, Serialize};

/// Largest number of events that an executor counts at the same time.
pub const MOST_TOGETHER: usize = 8;

/// Types of events (Linux, `perf_event.h`, `enum perf_type_id`).
pub(crate) mod event_type {
    pub(crate) const HARDWARE: u32 = 0;
    pub(crate) const SOFTWARE: u32 = 1;
    pub(crate) const CACHE: u32 = 3;
    pub(crate) const RAW: u32 = 4;
}

/// An event of a performance monitoring unit, or of the kernel (perf_event_open(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EventCode {
    /// The unit: `type` of the attributes.
    pub unit: u32,
    /// The event: `config` of the attributes.
    pub config: u64,
    /// `config1` of the attributes.
    #[serde(default)]
    pub config1: u64,
    /// `config2` of the attributes.
    #[serde(default)]
    pub config2: u64,
    /// Whether user code counts.
    pub user: bool,
    /// Whether the kernel's code counts.
    pub kernel: bool,
}

impl EventCode {
    /// An event of user code.
    pub const fn new(unit: u32, config: u64) -> EventCode {
        EventCode { unit, config, config1: 0, config2: 0, user: true, kernel: false }
    }

    /// Core cycles.
    pub const fn core_cycles() -> EventCode {
        EventCode::new(event_type::HARDWARE, 0)
    }

    /// An event of the kernel, which needs no hardware counter.
    pub fn is_software(self) -> bool {
        self.unit == event_type::SOFTWARE
    }

    /// The same event of user code, of the kernel, or of both.
    pub(crate) fn with_scope(self, user: bool, kernel: bool) -> EventCode {
        EventCode { user, kernel, ..self }
    }
}

/// An event with the name that the user gave it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedEvent {
    /// The name.
    pub name: String,
    /// The event.
    pub code: EventCode,
}
