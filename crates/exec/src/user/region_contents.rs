//! What the caller writes into a worker's memory, and reads from it.

use super::regions::WorkerRegions;
use crate::Sample;
use cyclescope_worker::command::WorkerCommand;
use cyclescope_worker::view::SAMPLES_BYTES;
use std::ptr;

impl WorkerRegions {
    /// Writes code at an offset of the code arena. The worker may run it, and cannot write there.
    pub(super) fn write_code(&mut self, offset: usize, code: &[u8]) {
        assert!(code.len() <= self.arena.bytes.saturating_sub(offset), "layouts are checked");
        // SAFETY: mapped for writing, and the code ends inside.
        unsafe { ptr::copy_nonoverlapping(code.as_ptr(), self.arena.start.add(offset), code.len()) };
    }

    /// A copy of the samples, each reading at this moment: the worker's code may write them at any
    /// time.
    pub(super) fn copy_samples(&self, count: usize) -> Vec<Sample> {
        let first = self.shared_pointers().first_sample();
        let sample = |number: usize| {
            // SAFETY: mapped for all samples of a command.
            let pair = unsafe { first.add(number).read_volatile() };
            Sample { start: pair.start, end: pair.end }
        };
        (0..count).map(sample).collect()
    }

    /// A copy of the text of this length that the worker has left in the place of its samples.
    pub(super) fn copy_text(&self, length: usize) -> Vec<u8> {
        let samples = self.shared_pointers().samples;
        assert!(length <= SAMPLES_BYTES, "the text lies in the samples' region");
        // SAFETY: mapped for this length.
        (0..length).map(|at| unsafe { samples.add(at).read_volatile() }).collect()
    }

    pub(super) fn command_pointer(&self) -> *mut WorkerCommand {
        self.shared.start.cast()
    }

    pub(super) fn command_bytes_at(&self, offset: usize) -> *mut u8 {
        self.shared.start.wrapping_add(offset)
    }
}
