//! The worker's side of the memory areas: maps them before the sandbox closes, prepares them before
//! each layout.
//!
//! Nothing here allocates, locks or panics, as everywhere in the worker.

use super::area::{AreaBacking, AreaOrders, AreaSetup};
use super::command::WorkerLayout;
use super::kernel::*;
use super::setup::WorkerSetup;
use super::stub;
use super::view::{self, SAMPLES_BYTES};
use core::ptr;
use core::sync::atomic::{AtomicU8, Ordering};

/// Huge pages of the pool (Linux, `mman.h`): 2 to the power of 21 bytes.
const POOLED: usize = MAP_HUGETLB | MAP_HUGE_2MB;
const HUGE_PAGE: usize = 2 << 20;

/// One mapping. The error is an error number.
///
/// # Safety
///
/// The addresses are reserved for this mapping, and nothing else uses them.
unsafe fn map_at(
    setup: &WorkerSetup,
    address: u64,
    bytes: usize,
    protection: usize,
    flags: usize,
    fd: i32,
) -> Result<(), i32> {
    let (flags, fd) = (flags | setup.fixed_map_flag(), fd as usize);
    // SAFETY: the caller guarantees the addresses.
    let answer = unsafe { stub::syscall(call::MMAP, address as usize, bytes, protection, flags, fd, 0) };
    match answer {
        _ if answer == address as isize => Ok(()),
        ..0 => Err(-answer as i32),
        // Kernels before 4.17 treat the address as a hint.
        _ => Err(EEXIST),
    }
}

/// Advises the kernel on the pages of a mapping; it may decline.
///
/// # Safety
///
/// The addresses are an area's, which only programs use: its pages may be dropped.
unsafe fn advise_pages(address: u64, bytes: usize, advice: usize) {
    // SAFETY: changes how the area's pages are made, or drops them.
    unsafe { stub::syscall(call::MADVISE, address as usize, bytes, advice, 0, 0, 0) };
}

/// Maps all areas. Returns the length of the text about them, which it writes in place of the
/// samples. The error is an error number.
///
/// # Safety
///
/// Only in the worker, before its sandbox is closed.
pub unsafe fn map_areas(setup: &WorkerSetup) -> Result<usize, i32> {
    let mut huge = false;
    for area in setup.areas() {
        // SAFETY: the caller has reserved the addresses.
        unsafe { map_area(setup, area)? };
        huge |= area.huge;
    }
    if !huge {
        return Ok(0);
    }
    // SAFETY: the samples' region is mapped, and no program has run.
    unsafe { read_smaps(setup) }
}

unsafe fn map_area(setup: &WorkerSetup, area: &AreaSetup) -> Result<(), i32> {
    let write = PROT_READ | PROT_WRITE;
    let of_template = if area.executable { PROT_READ | PROT_EXEC } else { write };
    let own = MAP_PRIVATE | MAP_ANONYMOUS;
    // SAFETY: the addresses are reserved for this area and its source, and the files are long
    // enough.
    unsafe {
        match area.backing {
            AreaBacking::Template => {
                return map_at(setup, area.address, area.bytes, of_template, MAP_PRIVATE, area.source);
            }
            AreaBacking::Copied if area.huge => {
                if map_at(setup, area.address, area.bytes, write, own | POOLED, -1).is_err() {
                    map_at(setup, area.address, area.bytes, write, own, -1)?;
                    advise_pages(area.address, area.bytes, MADV_HUGEPAGE);
                }
                for offset in (0..area.bytes).step_by(HUGE_PAGE) {
                    (area.address as *mut u8).add(offset).write_volatile(0);
                }
            }
            AreaBacking::Copied => {
                map_at(setup, area.address, area.bytes, write, own, -1)?;
                // If the system makes all pages huge, small ones have to be requested.
                advise_pages(area.address, area.bytes, MADV_NOHUGEPAGE);
            }
            AreaBacking::Repeated { fd, bytes } => {
                for offset in (0..area.bytes).step_by(bytes) {
                    let part = bytes.min(area.bytes - offset);
                    map_at(setup, area.address + offset as u64, part, write, MAP_SHARED, fd)?;
                }
                advise_pages(area.address, area.bytes, MADV_NOHUGEPAGE);
            }
        }
        map_at(setup, area.source_at, area.source_bytes, PROT_READ, MAP_SHARED, area.source)
    }
}

/// Copies `/proc/self/smaps` to the samples' region.
unsafe fn read_smaps(setup: &WorkerSetup) -> Result<usize, i32> {
    let into = setup.address_at(view::SAMPLES_AT);
    let name = c"/proc/self/smaps".as_ptr() as usize;
    let directory = AT_FDCWD;
    let mut length = 0;
    // SAFETY: the name outlives the calls; what is read stays within the region. The file is closed
    // with all others.
    unsafe {
        let file = stub::syscall(call::OPENAT, directory, name, O_RDONLY, 0, 0, 0);
        if file < 0 {
            return Err(-file as i32);
        }
        loop {
            let room = SAMPLES_BYTES - length;
            let at = into.add(length) as usize;
            match stub::syscall(call::READ, file as usize, at, room, 0, 0, 0) {
                // The region is full, and the text may continue.
                0 if room == 0 => return Err(EFBIG),
                0 => return Ok(length),
                error @ ..0 => return Err(-error as i32),
                read => length += read as usize,
            }
        }
    }
}

/// Prepares the areas for a layout.
///
/// # Safety
///
/// Only in the worker, after [`map_areas`].
pub unsafe fn prepare_areas(setup: &WorkerSetup, orders: AreaOrders, first: bool, layout: &WorkerLayout) {
    let fresh = orders.refresh | if first { orders.begin } else { 0 };
    for (number, area) in setup.areas().iter().enumerate() {
        // SAFETY: the area is mapped, and only programs use it.
        unsafe {
            if fresh >> number & 1 != 0 {
                refresh_area(area);
            }
            if orders.touch >> number & 1 != 0 && area.backing == AreaBacking::Template {
                touch_pointer_pages(area, layout);
            }
        }
    }
}

unsafe fn refresh_area(area: &AreaSetup) {
    let length = match area.backing {
        // SAFETY: drops the area's own pages.
        AreaBacking::Template => return unsafe { advise_pages(area.address, area.bytes, MADV_DONTNEED) },
        AreaBacking::Copied => area.bytes,
        AreaBacking::Repeated { bytes, .. } => bytes,
    };
    let (from, to) = (area.source_at as *const u8, area.address as *mut u8);
    let mut done = 0;
    while done < length {
        let part = area.source_bytes.min(length - done);
        // SAFETY: both ranges are mapped for `part` bytes and do not overlap.
        unsafe { ptr::copy_nonoverlapping(from, to.add(done), part) };
        done += part;
    }
}

/// Gives the pages at an area's pointer copies of their own.
unsafe fn touch_pointer_pages(area: &AreaSetup, layout: &WorkerLayout) {
    let Some(address) = layout.gpr.get(area.register) else { return };
    for byte in [*address, *address - 64] {
        if byte.wrapping_sub(area.address) >= area.bytes as u64 {
            continue;
        }
        // SAFETY: the byte lies in the area. An atomic OR keeps the byte's value, and gives the
        // page its own copy before the rounds begin. A read first would fault twice, and LLVM turns
        // the OR into a mere read if it sees the zero.
        unsafe { AtomicU8::from_ptr(byte as *mut u8).fetch_or(core::hint::black_box(0), Ordering::Relaxed) };
    }
}
