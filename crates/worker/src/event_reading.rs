//! The performance events that batches are counted by: opened by the worker for itself, before its
//! sandbox is closed, and read with RDPMC around each call.
//!
//! The caller gets the events' descriptors. It reads them itself where RDPMC is not allowed, and for
//! events of the kernel, which no hardware counter has.

use super::command::FENCE_COUNTER;
use super::kernel::{MAP_SHARED, PERF_FLAG_FD_CLOEXEC, PROT_READ, call};
use super::setup::WorkerSetup;
use super::{stub, view};
use core::arch::asm;
use core::ptr;

/// Offsets in `struct perf_event_mmap_page` (Linux, `perf_event.h`).
pub mod page {
    /// `lock`: changes with each change of the page.
    pub const LOCK_AT: usize = 8;
    /// `index`: number of the counter plus 1, or 0.
    pub const INDEX_AT: usize = 12;
    /// `offset`: what to add to the counter.
    pub const OFFSET_AT: usize = 16;
    /// `pmc_width`: bits of the counter.
    pub const WIDTH_AT: usize = 48;
}

/// `PERF_EVENT_IOC_ENABLE` (Linux, `perf_event.h`).
const ENABLE_EVENT: usize = 0x2400;
/// `SOL_SOCKET` and `SCM_RIGHTS` (Linux, `socket.h`).
const PASS_DESCRIPTOR: [i32; 2] = [1, 1];

/// Opens the events, maps their pages, sends their descriptors, and starts the group: its leader is
/// opened disabled, because an event that joins a running group may count only from the next tick
/// on. The error is a system call's number and its error number.
///
/// # Safety
///
/// Only in the worker, before its sandbox is closed.
pub unsafe fn open_events(setup: &WorkerSetup) -> Result<(), (i64, i32)> {
    let failed = |call: i64, answer: isize| if answer < 0 { Err((call, -answer as i32)) } else { Ok(answer) };
    let whoever = usize::MAX;
    let mut leader = whoever;
    for number in 0..setup.event_count {
        // SAFETY: the attributes are a complete structure that the call only reads. The mapping
        // replaces a page of the worker's view.
        unsafe {
            let event = setup.events.as_ptr().add(number) as usize;
            let fd = stub::syscall(call::PERF_EVENT_OPEN, event, 0, whoever, leader, PERF_FLAG_FD_CLOEXEC, 0);
            let fd = failed(call::PERF_EVENT_OPEN, fd)? as usize;
            if setup.reads_events {
                let address = setup.address_at(view::EVENTS_AT + 4096 * number) as usize;
                let flags = MAP_SHARED | setup.fixed_map_flag();
                failed(call::MMAP, stub::syscall(call::MMAP, address, 4096, PROT_READ, flags, fd, 0))?;
            }
            failed(call::SENDMSG, send_descriptor(setup.event_socket, fd as i32))?;
            if number == 0 {
                leader = fd;
            }
        }
    }
    if leader != whoever {
        // SAFETY: the call starts the group and touches no memory.
        failed(call::IOCTL, unsafe { stub::syscall(call::IOCTL, leader, ENABLE_EVENT, 0, 0, 0, 0) })?;
    }
    Ok(())
}

/// `struct cmsghdr` with one descriptor.
#[repr(C)]
struct DescriptorMessage {
    bytes: usize,
    kind: [i32; 2],
    descriptor: i32,
    padding: i32,
}

/// `struct msghdr`
#[repr(C)]
struct MessageHeader {
    name: usize,
    name_bytes: usize,
    pieces: *const [usize; 2],
    piece_count: usize,
    control: *const DescriptorMessage,
    control_bytes: usize,
    flags: usize,
}

/// Sends a descriptor with one byte. Returns the kernel's answer.
unsafe fn send_descriptor(socket: i32, descriptor: i32) -> isize {
    let byte = 0u8;
    let piece = [ptr::from_ref(&byte) as usize, 1];
    let control = DescriptorMessage { bytes: 20, kind: PASS_DESCRIPTOR, descriptor, padding: 0 };
    let header = MessageHeader {
        name: 0,
        name_bytes: 0,
        pieces: &raw const piece,
        piece_count: 1,
        control: &raw const control,
        control_bytes: 24,
        flags: 0,
    };
    // SAFETY: all parts of the message live through the call.
    unsafe { stub::syscall(call::SENDMSG, socket as usize, &raw const header as usize, 0, 0, 0, 0) }
}

/// Reads the first events and passes each number and count on. The error is the index of a fence.
///
/// # Safety
///
/// After [`open_events`] has succeeded with at least this number of events to read.
#[inline(always)]
pub unsafe fn read_events(setup: &WorkerSetup, events: usize, mut take: impl FnMut(usize, u64)) -> Result<(), u32> {
    for number in 0..events {
        let page = setup.address_at(view::EVENTS_AT + 4096 * number);
        // SAFETY: the page is mapped.
        match unsafe { read_count(page) } {
            Some(count) => take(number, count),
            None => return Err(FENCE_COUNTER),
        }
    }
    Ok(())
}

/// Reads a count as `perf_event.h` describes; `None` while no hardware counter has the event.
unsafe fn read_count(page: *const u8) -> Option<u64> {
    loop {
        // SAFETY: the page is mapped; the kernel may change it at any time. RDPMC of a counter that
        // was taken away meanwhile reads another one, and the lock has changed.
        unsafe {
            let lock = page.add(page::LOCK_AT).cast::<u32>().read_volatile();
            // LFENCE keeps the code before and after out of the count.
            asm!("lfence", options(nostack, preserves_flags));
            let index = page.add(page::INDEX_AT).cast::<u32>().read_volatile();
            let offset = page.add(page::OFFSET_AT).cast::<u64>().read_volatile();
            let width = page.add(page::WIDTH_AT).cast::<u16>().read_volatile();
            let counter = match index.checked_sub(1) {
                None => return None,
                Some(number) => {
                    let (low, high): (u32, u32);
                    asm!("rdpmc", in("ecx") number, out("eax") low, out("edx") high, options(nostack, nomem));
                    u64::from(high) << 32 | u64::from(low)
                }
            };
            asm!("lfence", options(nostack, preserves_flags));
            if page.add(page::LOCK_AT).cast::<u32>().read_volatile() == lock {
                return Some(offset.wrapping_add(extend_sign(counter, width)));
            }
        }
    }
}

/// A counter of this number of bits as a signed number. The kernel starts counters below 0, so that
/// an overflow interrupts it, and adds what they lost to `offset`.
pub fn extend_sign(counter: u64, bits: u16) -> u64 {
    let unused = 64u32.wrapping_sub(u32::from(bits)) & 63;
    ((counter.wrapping_shl(unused) as i64).wrapping_shr(unused)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_overflows_goes_on() {
        // 48 bits, started 16 below the overflow.
        let start = extend_sign((1 << 48) - 16, 48);
        let before = start.wrapping_add(1000 + 16);
        let after = extend_sign(9, 48).wrapping_add(1000 + 16);
        assert_eq!((before, after.wrapping_sub(before)), (1000, 25));
        assert_eq!(extend_sign(7, 64), 7);
    }
}
