//! Who listens in this process, and how often a listener was called.

use std::sync::atomic::{AtomicU32, Ordering};

unsafe extern "C" {
    /// How often a counting listener was called: the same number as that of the counting probe in C.
    static mut marker_hits: u64;
}

/// The address of the number of hits that listeners and probes have counted.
pub(crate) fn hits_address() -> u64 {
    (&raw const marker_hits) as u64
}

/// Counts a hit.
pub(super) fn count_hit() {
    let hits = &raw mut marker_hits;
    // SAFETY: only a worker's only thread gets here.
    unsafe { hits.write_volatile(hits.read_volatile().wrapping_add(1)) };
}

/// The world that this process is in, for one library.
pub(super) struct ListenerWorld(AtomicU32);

impl ListenerWorld {
    pub(super) const fn new_unset() -> ListenerWorld {
        ListenerWorld(AtomicU32::new(u32::MAX))
    }

    /// Enters a world by installing its listener, unless this is where the process is.
    pub(super) fn enter_world(&self, world: u32, install: impl FnOnce() -> bool) {
        match self.0.load(Ordering::Relaxed) {
            now if now == world => {}
            u32::MAX if install() => self.0.store(world, Ordering::Relaxed),
            _ => abort_worker(),
        }
    }
}

/// Ends the worker by a fault, of which its executor tells the address.
#[inline(never)]
pub(super) fn abort_worker() -> ! {
    // SAFETY: raises an exception and does nothing else.
    unsafe { std::arch::asm!("ud2", options(noreturn)) }
}
