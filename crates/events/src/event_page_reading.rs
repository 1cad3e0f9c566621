//! Reads the page of an event.

use super::event_page::EventPage;
use cyclescope_core::unit::Hertz;
use perf_event_open_sys::bindings as abi;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::os::fd::OwnedFd;

impl EventPage {
    /// Maps the page of an event and reads it; `None` if it cannot be mapped.
    pub(crate) fn read(event: &OwnedFd) -> Option<EventPage> {
        let bytes = size_of::<abi::perf_event_mmap_page>().max(rustix::param::page_size());
        // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
        let page = unsafe { mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, event, 0) }.ok()?;
        // SAFETY: the page begins with this structure, of which the kernel may change each field at
        // any time. The capability bits are one view of a union of plain integers. No reference is
        // left when it is unmapped.
        unsafe {
            let seen = page.cast::<abi::perf_event_mmap_page>();
            let copy = seen.read_volatile();
            let _ = munmap(page, bytes);
            let capabilities = copy.__bindgen_anon_1.__bindgen_anon_1;
            let has_rate = capabilities.cap_user_time() == 1 && copy.time_mult != 0;
            Some(EventPage {
                allows_rdpmc: capabilities.cap_user_rdpmc() == 1,
                is_on_counter: copy.index != 0,
                width: copy.pmc_width,
                tsc_rate: has_rate.then(|| tsc_rate(copy.time_mult, copy.time_shift)),
            })
        }
    }
}

/// Nanoseconds = ticks × `multiplier` / 2^`shift` (perf_event_open(2), `cap_user_time`).
fn tsc_rate(multiplier: u32, shift: u16) -> Hertz {
    Hertz(1e9 * 2f64.powi(i32::from(shift)) / f64::from(multiplier))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_conversion_of_the_page_is_a_rate() {
        // 2^31 / 859 013 000 ns a tick: a TSC of 2.5 GHz.
        let Hertz(rate) = tsc_rate(858_993_459, 31);
        assert!((rate - 2.5e9).abs() < 10.0, "{rate}");
    }
}
