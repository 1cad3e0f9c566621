//! Events of batches: Windows lets programs count none.

use cyclescope_core::error::RunError;
use cyclescope_core::machine::Machine;
use cyclescope_events::{self as events, EventCode, EventRefusal};

/// The events of a worker.
#[derive(Debug, Default)]
pub(super) struct WorkerEvents;

impl WorkerEvents {
    /// Finds out how events are counted.
    pub(super) fn probe(codes: &[EventCode], machine: &Machine) -> Result<WorkerEvents, RunError> {
        let refused = |refusal: EventRefusal| RunError::Unavailable(refusal.into());
        events::count_fitting(codes, machine).map_err(refused)?;
        Ok(WorkerEvents)
    }

    /// The events.
    pub(super) fn codes(&self) -> &[EventCode] {
        &[]
    }

    /// Whether the worker reads them.
    pub(super) fn is_read_by_worker(&self) -> bool {
        false
    }

    /// Takes what a new worker has opened: nothing.
    pub(super) fn take_descriptors(&mut self) -> Result<(), RunError> {
        Ok(())
    }

    /// The counts: there are none.
    pub(super) fn read_counts(&self) -> Result<Vec<u64>, RunError> {
        Ok(Vec::new())
    }
}
