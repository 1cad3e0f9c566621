//! Groups of events on Windows, which lets no program count any without a driver.

use super::event_code::EventCode;
use super::event_page::EventPage;
use super::event_refusal::{EventRefusal, RefusalCause};
use cyclescope_core::machine::Machine;
use std::convert::Infallible;

/// Open events: none.
#[derive(Debug)]
pub struct EventGroup {
    events: Infallible,
}

/// The refusal of every event.
fn refuse_events() -> EventRefusal {
    let why = "Windows lets programs count no events";
    EventRefusal::new(RefusalCause::NotInThisMode, why, "measure without counters, or on Linux")
}

impl EventGroup {
    /// Opens events that count everything on a CPU.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn open_on_cpu(_codes: &[EventCode], _cpu: u32, _machine: &Machine) -> Result<EventGroup, EventRefusal> {
        Err(refuse_events())
    }

    /// Opens events that count this thread.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn open_for_thread(_codes: &[EventCode], _machine: &Machine) -> Result<EventGroup, EventRefusal> {
        Err(refuse_events())
    }

    /// Reads all counts.
    ///
    /// # Errors
    ///
    /// There are none to read.
    pub fn read_counts(&self) -> Result<Vec<u64>, EventRefusal> {
        match self.events {}
    }

    /// Whether user mode can read all events with RDPMC.
    pub fn allows_rdpmc(&self) -> bool {
        match self.events {}
    }

    /// The page of each event.
    pub(crate) fn read_pages(&self) -> std::iter::Empty<Option<EventPage>> {
        match self.events {}
    }
}

/// How many of these events count at the same time.
///
/// # Errors
///
/// Always.
pub fn count_fitting(_codes: &[EventCode], _machine: &Machine) -> Result<(usize, bool), EventRefusal> {
    Err(refuse_events())
}
