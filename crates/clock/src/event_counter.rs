//! Performance events of a thread, counted in its own program: open, read, close.
//!
//! The kernel counts the event while the thread runs, on any CPU. Where the kernel allows RDPMC, a
//! reading takes no system call. Otherwise, and for events of the kernel, it is one read(2). A
//! counter belongs to its thread, and each thread opens its own. RDPMC has never run on a real
//! counter so far: no machine of this crate's tests shows one.

use crate::cpu::{Feature, has};
use core::arch::asm;
use core::arch::x86_64::__rdtscp;
use core::fmt;
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::OnceLock;

/// System calls (Linux, `syscall_64.tbl`).
mod call {
    pub(super) const MMAP: usize = 9;
    pub(super) const MUNMAP: usize = 11;
    pub(super) const PERF_EVENT_OPEN: usize = 298;
}

/// `PROT_READ` (Linux, `mman-common.h`).
const READABLE: usize = 1;
/// `MAP_SHARED`
const SHARED: usize = 1;
/// `PERF_FLAG_FD_CLOEXEC` (Linux, `perf_event.h`).
const CLOSE_ON_EXEC: usize = 8;
const PAGE: usize = 4096;

/// The first version of `struct perf_event_attr` (Linux, `perf_event.h`).
#[repr(C)]
#[derive(Default)]
struct EventAttributes {
    unit: u32,
    bytes: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
}

/// Bits of `flags`: `pinned`, `exclude_kernel`, `exclude_hv`.
const PINNED_USER_CODE: u64 = 1 << 2 | 1 << 5 | 1 << 6;
/// Bit `cap_user_rdpmc` of the page's capabilities.
const RDPMC_ALLOWED: u64 = 1 << 2;

/// Offsets in `struct perf_event_mmap_page`.
mod page {
    pub(super) const LOCK: usize = 8;
    pub(super) const INDEX: usize = 12;
    pub(super) const OFFSET: usize = 16;
    pub(super) const CAPABILITIES: usize = 40;
    pub(super) const WIDTH: usize = 48;
}

/// A performance event of the thread that opened it. It counts user code.
///
/// ```no_run
/// use cyclescope_clock::EventCounter;
///
/// let counter = EventCounter::open(EventCounter::HARDWARE, 1)?; // instructions
/// let before = counter.read()?;
/// // the counted code
/// let counted = counter.read()?.since(before);
/// println!("{} instructions", counted.count);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct EventCounter {
    event: File,
    /// The event's page; null if it can't be mapped. The pointer keeps the counter in its thread.
    page: *const u8,
}

/// A reading of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterReading {
    /// The count since the counter was opened.
    pub count: u64,
    /// The CPU that the thread ran on, as RDTSCP reads it; `None` without RDTSCP.
    pub cpu: Option<u32>,
}

/// The difference of two readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterDifference {
    /// What was counted in between.
    pub count: u64,
    /// Whether the two readings were on different CPUs. If so, a time between
    /// them has the difference of their TSCs in it, and cores of other kinds may count other things.
    pub has_moved: bool,
}

impl CounterReading {
    /// What was counted since an earlier reading of the same counter.
    pub fn since(self, before: CounterReading) -> CounterDifference {
        CounterDifference { count: self.count.wrapping_sub(before.count), has_moved: self.cpu != before.cpu }
    }
}

/// The number of this CPU, in the low 12 bits of what RDTSCP returns beside the time (Linux,
/// `arch/x86/include/asm/segment.h`, `VDSO_CPUNODE_BITS`).
pub fn read_cpu_number() -> Option<u32> {
    // CPUID may take a microsecond under a hypervisor.
    static HAS_RDTSCP: OnceLock<bool> = OnceLock::new();
    let mut number = 0;
    // SAFETY: the CPU has the instruction, and the number is written before the call returns.
    HAS_RDTSCP.get_or_init(|| has(Feature::Rdtscp)).then(|| unsafe {
        __rdtscp(&raw mut number);
        number & 0xfff
    })
}

/// A system call with up to six arguments. Returns the kernel's answer.
unsafe fn call_kernel(number: usize, arguments: [usize; 6]) -> Result<usize> {
    let [a, b, c, d, e, f] = arguments;
    let answer: isize;
    // SAFETY: as the caller promises. The kernel changes RCX and R11.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => answer, in("rdi") a, in("rsi") b, in("rdx") c,
            in("r10") d, in("r8") e, in("r9") f, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    if answer < 0 { Err(Error::from_raw_os_error(-answer as i32)) } else { Ok(answer as usize) }
}

impl EventCounter {
    /// Events that the kernel maps to each processor: 0 core cycles, 1 instructions, 4 branches, 5
    /// mispredicted branches (Linux, `perf_event.h`, `enum perf_hw_id`).
    pub const HARDWARE: u32 = 0;
    /// Events of the kernel: 1 nanoseconds of the thread, 2 page faults (`enum perf_sw_ids`).
    pub const SOFTWARE: u32 = 1;
    /// Encodings of this core, such as 0x02c2 for event C2 with unit mask 02.
    pub const RAW: u32 = 4;

    /// Opens an event of this thread: its unit, and its number or encoding.
    ///
    /// # Errors
    ///
    /// If the kernel refuses it. `cyclescope counters list --all` tells why.
    pub fn open(unit: u32, config: u64) -> Result<EventCounter> {
        let bytes = size_of::<EventAttributes>() as u32;
        let attributes = EventAttributes { unit, bytes, config, flags: PINNED_USER_CODE, ..Default::default() };
        let whoever = usize::MAX;
        // SAFETY: the attributes are a complete structure that the call only reads. The descriptor
        // is new, and the mapping touches no other memory.
        unsafe {
            let address = (&raw const attributes).addr();
            let event = call_kernel(call::PERF_EVENT_OPEN, [address, 0, whoever, whoever, CLOSE_ON_EXEC, 0])?;
            let event = File::from_raw_fd(event as i32);
            let fd = event.as_raw_fd() as usize;
            let page = call_kernel(call::MMAP, [0, PAGE, READABLE, SHARED, fd, 0]);
            let page = page.map_or(core::ptr::null(), core::ptr::with_exposed_provenance);
            Ok(EventCounter { event, page })
        }
    }

    /// A field of the page, which the kernel may change at any time.
    unsafe fn read_field<T: Copy>(&self, offset: usize) -> T {
        // SAFETY: the caller has checked that the page is mapped, and names a field of it.
        unsafe { self.page.add(offset).cast::<T>().read_volatile() }
    }

    /// Reads with RDPMC; `None` if the kernel does not allow it, or no hardware counter has the event.
    fn read_by_rdpmc(&self) -> Option<u64> {
        if self.page.is_null() {
            return None;
        }
        // SAFETY: the page is mapped. The kernel allows RDPMC of the counter that it names.
        unsafe {
            if self.read_field::<u64>(page::CAPABILITIES) & RDPMC_ALLOWED == 0 {
                return None;
            }
            loop {
                let lock: u32 = self.read_field(page::LOCK);
                // LFENCE keeps earlier instructions before the reading, and later ones behind it.
                asm!("lfence", options(nostack, preserves_flags));
                let number = self.read_field::<u32>(page::INDEX).checked_sub(1)?;
                let (offset, width): (u64, u16) = (self.read_field(page::OFFSET), self.read_field(page::WIDTH));
                let (low, high): (u32, u32);
                asm!("rdpmc", in("ecx") number, out("eax") low, out("edx") high, options(nostack, preserves_flags));
                asm!("lfence", options(nostack, preserves_flags));
                if self.read_field::<u32>(page::LOCK) == lock {
                    let unused = 64u32.wrapping_sub(width.into()) & 63;
                    let counter = (u64::from(high) << 32 | u64::from(low)) << unused;
                    return Some(offset.wrapping_add((counter as i64 >> unused) as u64));
                }
            }
        }
    }

    /// Whether readings take no system call.
    pub fn reads_by_rdpmc(&self) -> bool {
        self.read_by_rdpmc().is_some()
    }

    /// Reads the counter.
    ///
    /// # Errors
    ///
    /// If something has taken the counter away.
    pub fn read(&self) -> Result<CounterReading> {
        let count = match self.read_by_rdpmc() {
            Some(count) => count,
            None => {
                let mut count = [0; 8];
                // A pinned event without a counter is at its end of file.
                let lost = |_| Error::new(ErrorKind::UnexpectedEof, "something else has taken the counter");
                (&self.event).read_exact(&mut count).map_err(lost)?;
                u64::from_ne_bytes(count)
            }
        };
        Ok(CounterReading { count, cpu: read_cpu_number() })
    }
}

impl fmt::Debug for EventCounter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("EventCounter").field("reads_by_rdpmc", &self.reads_by_rdpmc()).finish()
    }
}

impl Drop for EventCounter {
    fn drop(&mut self) {
        if !self.page.is_null() {
            // SAFETY: unmaps the mapping that `open` made, to which nothing refers.
            let _ = unsafe { call_kernel(call::MUNMAP, [self.page.addr(), PAGE, 0, 0, 0, 0]) };
        }
    }
}
