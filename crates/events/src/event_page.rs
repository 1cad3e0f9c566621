//! The page of memory in which the kernel describes an open event (perf_event_open(2)), as read.

use cyclescope_core::unit::Hertz;

/// What the page says at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct EventPage {
    /// Whether user mode may read the counter with RDPMC.
    pub(crate) allows_rdpmc: bool,
    /// Whether the event is on a hardware counter.
    pub(crate) is_on_counter: bool,
    /// Width of the counter in bits.
    pub(crate) width: u16,
    /// The TSC's rate; `None` if the page has no conversion.
    pub(crate) tsc_rate: Option<Hertz>,
}
