//! The listener of this process, and its number of calls.

use std::sync::atomic::{AtomicU32, Ordering};

unsafe extern "C" {
    /// Number of calls of a counting listener. The counting probe in C uses the same variable.
    static mut marker_hits: u64;
}

/// Address of the number of hits that listeners and probes have counted.
pub fn hits_address() -> u64 {
    (&raw const marker_hits) as u64
}

/// Counts a hit.
pub(super) fn count_hit() {
    let hits = &raw mut marker_hits;
    // SAFETY: only a worker's single thread reaches this.
    unsafe { hits.write_volatile(hits.read_volatile().wrapping_add(1)) };
}

/// The world of this process, for one library.
pub(super) struct ListenerWorld(AtomicU32);

impl ListenerWorld {
    pub(super) const fn new_unset() -> ListenerWorld {
        ListenerWorld(AtomicU32::new(u32::MAX))
    }

    /// Enters a world by installing its listener, unless the process is already in it.
    pub(super) fn enter_world(&self, world: u32, install: impl FnOnce() -> bool) {
        match self.0.load(Ordering::Relaxed) {
            now if now == world => {}
            u32::MAX if install() => self.0.store(world, Ordering::Relaxed),
            _ => abort_worker(),
        }
    }
}

/// Ends the worker with a fault. Its executor reports the address.
#[inline(never)]
pub(super) fn abort_worker() -> ! {
    // SAFETY: only raises an exception.
    unsafe { std::arch::asm!("ud2", options(noreturn)) }
}
