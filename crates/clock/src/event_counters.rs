//! Performance events of a thread, counted in its own program: open, read, close.
//!
//! The kernel counts the events while the thread runs, on any CPU. Where the kernel allows RDPMC, a
//! reading takes no system call. Otherwise, and for events of the kernel, it is one read(2).
//! Counters belong to their thread, and each thread opens its own. RDPMC has never run on a real
//! counter so far: no machine of this crate's tests shows one. The header's twin is
//! `include/cyclescope_counter.h`.

use crate::cpu::{Feature, has};
use core::arch::asm;
use core::arch::x86_64::__rdtscp;
use core::fmt;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::OnceLock;
use std::vec::Vec;

/// System calls (Linux, `syscall_64.tbl`).
mod call {
    pub(super) const IOCTL: usize = 16;
    pub(super) const MMAP: usize = 9;
    pub(super) const MUNMAP: usize = 11;
    pub(super) const PERF_EVENT_OPEN: usize = 298;
}

/// Error numbers (Linux, `errno-base.h`, `errno.h`).
mod errno {
    pub(super) const EPERM: i32 = 1;
    pub(super) const ENOENT: i32 = 2;
    pub(super) const ENXIO: i32 = 6;
    pub(super) const EACCES: i32 = 13;
    pub(super) const EBUSY: i32 = 16;
    pub(super) const ENODEV: i32 = 19;
    pub(super) const EINVAL: i32 = 22;
    pub(super) const ENFILE: i32 = 23;
    pub(super) const EMFILE: i32 = 24;
    pub(super) const ENOSPC: i32 = 28;
    pub(super) const ENOSYS: i32 = 38;
    pub(super) const EOPNOTSUPP: i32 = 95;
}

/// `PROT_READ` (Linux, `mman-common.h`).
const READABLE: usize = 1;
/// `MAP_SHARED`
const SHARED: usize = 1;
/// `PERF_FLAG_FD_CLOEXEC` (Linux, `perf_event.h`).
const CLOSE_ON_EXEC: usize = 8;
/// `PERF_EVENT_IOC_ENABLE`
const ENABLE: usize = 0x2400;
/// `PERF_FORMAT_GROUP`
const ALL_OF_GROUP: u64 = 8;
const PAGE: usize = 4096;
/// Largest number of events that are counted at the same time.
const MOST_EVENTS: usize = 8;

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

/// Bits of `flags`: `disabled` and `pinned` of a group's leader; `exclude_kernel` and `exclude_hv`. An
/// event that joins a running group may count only from the next tick on (Linux 6.18).
const LEADER: u64 = 1 | 1 << 2;
const USER_CODE: u64 = 1 << 5 | 1 << 6;
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

/// A performance event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedEvent {
    /// Its unit: `type` of perf_event_open(2).
    pub unit: u32,
    /// Its number or encoding: `config` of perf_event_open(2).
    pub config: u64,
}

impl CountedEvent {
    /// Core cycles.
    pub const CYCLES: CountedEvent = CountedEvent { unit: 0, config: 0 };
    /// Instructions.
    pub const INSTRUCTIONS: CountedEvent = CountedEvent { unit: 0, config: 1 };
    /// Branches.
    pub const BRANCHES: CountedEvent = CountedEvent { unit: 0, config: 4 };
    /// Mispredicted branches.
    pub const BRANCH_MISSES: CountedEvent = CountedEvent { unit: 0, config: 5 };
    /// Nanoseconds of the thread, an event of the kernel.
    pub const TASK_CLOCK: CountedEvent = CountedEvent { unit: 1, config: 1 };
    /// Page faults, an event of the kernel.
    pub const PAGE_FAULTS: CountedEvent = CountedEvent { unit: 1, config: 2 };

    /// An event by this core's encoding, such as 0x02c2 for event C2 with unit mask 02.
    pub const fn raw(encoding: u64) -> CountedEvent {
        CountedEvent { unit: 4, config: encoding }
    }
}

/// Why events can't be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterError {
    /// No unit counts the event here.
    NoCounter,
    /// The system forbids it.
    Forbidden,
    /// More events than counters.
    TooManyEvents,
    /// The unit has no such event.
    UnknownEvent,
    /// Something else has the counter.
    CounterTaken,
    /// The process has too many open files.
    TooManyFiles,
    /// Another error number of the kernel.
    KernelError(i32),
}

impl CounterError {
    /// `several`: other events count at the same time.
    fn from_errno(number: i32, several: bool) -> CounterError {
        use errno::*;
        match number {
            EINVAL | ENOSPC if several => CounterError::TooManyEvents,
            ENOENT | ENXIO | ENODEV | EOPNOTSUPP | ENOSYS => CounterError::NoCounter,
            EACCES | EPERM => CounterError::Forbidden,
            EINVAL => CounterError::UnknownEvent,
            EBUSY => CounterError::CounterTaken,
            ENFILE | EMFILE => CounterError::TooManyFiles,
            other => CounterError::KernelError(other),
        }
    }
}

impl fmt::Display for CounterError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            CounterError::NoCounter => {
                "no unit counts this event here: the processor has no counters, or a hypervisor hides them"
            }
            CounterError::Forbidden => "the system forbids it: kernel.perf_event_paranoid, or a container's filter",
            CounterError::TooManyEvents => "there are more events than counters",
            CounterError::UnknownEvent => "the unit has no such event",
            CounterError::CounterTaken => "something else has the counter",
            CounterError::TooManyFiles => "the process has too many open files",
            CounterError::KernelError(number) => return write!(formatter, "the kernel's error {number}"),
        })
    }
}

impl core::error::Error for CounterError {}

/// Performance events of the thread that opened them. They count user code, all at the same time.
///
/// ```no_run
/// use cyclescope_clock::{CountedEvent, EventCounters};
///
/// let counters = EventCounters::open([CountedEvent::CYCLES, CountedEvent::INSTRUCTIONS])?;
/// let before = counters.read()?;
/// // the counted code
/// let counted = counters.read()?.since(&before);
/// let [cycles, instructions] = counted.counts;
/// println!("{instructions} instructions in {cycles} core cycles");
/// # Ok::<(), cyclescope_clock::CounterError>(())
/// ```
pub struct EventCounters<const EVENTS: usize> {
    /// The group, its leader first.
    files: Vec<File>,
    /// The events' pages; null if one can't be mapped. The pointers keep the counters in their
    /// thread.
    pages: [*const u8; EVENTS],
}

/// A reading of all counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterReading<const EVENTS: usize> {
    /// The counts since the counters were opened, in the order of the events.
    pub counts: [u64; EVENTS],
    /// The CPU that the thread ran on, as RDTSCP reads it; `None` without RDTSCP.
    pub cpu: Option<u32>,
}

/// The difference of two readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterDifference<const EVENTS: usize> {
    /// What was counted in between.
    pub counts: [u64; EVENTS],
    /// Whether the two readings were on different CPUs. If so, a time between them has the difference
    /// of their TSCs in it, and cores of other kinds may count other things.
    pub has_moved: bool,
}

impl<const EVENTS: usize> CounterReading<EVENTS> {
    /// What was counted since an earlier reading of the same counters.
    pub fn since(&self, before: &CounterReading<EVENTS>) -> CounterDifference<EVENTS> {
        let mut counts = self.counts;
        for (count, before) in counts.iter_mut().zip(before.counts) {
            *count = count.wrapping_sub(before);
        }
        CounterDifference { counts, has_moved: self.cpu != before.cpu }
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

/// A system call with up to six arguments. The error is the kernel's number.
unsafe fn call_kernel(number: usize, arguments: [usize; 6]) -> Result<usize, i32> {
    let [a, b, c, d, e, f] = arguments;
    let answer: isize;
    // SAFETY: as the caller promises. The kernel changes RCX and R11.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => answer, in("rdi") a, in("rsi") b, in("rdx") c,
            in("r10") d, in("r8") e, in("r9") f, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    if answer < 0 { Err(-answer as i32) } else { Ok(answer as usize) }
}

/// Opens an event of this thread in a group, or as the leader of a new one, and maps its page.
fn open_event(event: CountedEvent, leader: Option<&File>) -> Result<(File, *const u8), CounterError> {
    let CountedEvent { unit, config } = event;
    let bytes = size_of::<EventAttributes>() as u32;
    let flags = if leader.is_some() { USER_CODE } else { USER_CODE | LEADER };
    let attributes = EventAttributes { unit, bytes, config, flags, read_format: ALL_OF_GROUP, ..Default::default() };
    let whoever = usize::MAX;
    let group = leader.map_or(whoever, |file| file.as_raw_fd() as usize);
    // SAFETY: the attributes are a complete structure that the call only reads. The descriptor is
    // new, and the mapping touches no other memory.
    unsafe {
        let address = (&raw const attributes).addr();
        let file = call_kernel(call::PERF_EVENT_OPEN, [address, 0, whoever, group, CLOSE_ON_EXEC, 0])
            .map_err(|number| CounterError::from_errno(number, leader.is_some()))?;
        let file = File::from_raw_fd(file as i32);
        let fd = file.as_raw_fd() as usize;
        let page = call_kernel(call::MMAP, [0, PAGE, READABLE, SHARED, fd, 0]);
        Ok((file, page.map_or(core::ptr::null(), core::ptr::with_exposed_provenance)))
    }
}

/// Reads an event with RDPMC; `None` if the kernel does not allow it, or no hardware counter has the
/// event.
fn read_page(page: *const u8) -> Option<u64> {
    /// A field of the page, which the kernel may change at any time.
    unsafe fn read_field<T: Copy>(page: *const u8, offset: usize) -> T {
        // SAFETY: the caller has checked that the page is mapped, and names a field of it.
        unsafe { page.add(offset).cast::<T>().read_volatile() }
    }
    if page.is_null() {
        return None;
    }
    // SAFETY: the page is mapped. The kernel allows RDPMC of the counter that it names.
    unsafe {
        if read_field::<u64>(page, page::CAPABILITIES) & RDPMC_ALLOWED == 0 {
            return None;
        }
        loop {
            let lock: u32 = read_field(page, page::LOCK);
            // LFENCE keeps earlier instructions before the reading, and later ones behind it.
            asm!("lfence", options(nostack, preserves_flags));
            let number = read_field::<u32>(page, page::INDEX).checked_sub(1)?;
            let (offset, width): (u64, u16) = (read_field(page, page::OFFSET), read_field(page, page::WIDTH));
            let (low, high): (u32, u32);
            asm!("rdpmc", in("ecx") number, out("eax") low, out("edx") high, options(nostack, preserves_flags));
            asm!("lfence", options(nostack, preserves_flags));
            if read_field::<u32>(page, page::LOCK) == lock {
                let unused = 64u32.wrapping_sub(width.into()) & 63;
                let counter = (u64::from(high) << 32 | u64::from(low)) << unused;
                return Some(offset.wrapping_add((counter as i64 >> unused) as u64));
            }
        }
    }
}

impl<const EVENTS: usize> EventCounters<EVENTS> {
    /// Opens events of this thread, from one to eight.
    ///
    /// # Errors
    ///
    /// If they do not count. `cyclescope counters list --all` shows reasons and remedies.
    pub fn open(events: [CountedEvent; EVENTS]) -> Result<EventCounters<EVENTS>, CounterError> {
        const { assert!(EVENTS > 0 && EVENTS <= MOST_EVENTS) };
        let mut counters = EventCounters { files: Vec::new(), pages: [core::ptr::null(); EVENTS] };
        for (number, event) in events.into_iter().enumerate() {
            let (file, page) = open_event(event, counters.files.first())?;
            counters.files.push(file);
            if let Some(place) = counters.pages.get_mut(number) {
                *place = page;
            }
        }
        if let Some(leader) = counters.files.first() {
            // SAFETY: the call starts the group and touches no memory.
            unsafe { call_kernel(call::IOCTL, [leader.as_raw_fd() as usize, ENABLE, 0, 0, 0, 0]) }
                .map_err(|number| CounterError::from_errno(number, false))?;
        }
        counters.read()?;
        Ok(counters)
    }

    fn read_pages(&self) -> Option<[u64; EVENTS]> {
        let mut counts = [0; EVENTS];
        for (count, page) in counts.iter_mut().zip(self.pages) {
            *count = read_page(page)?;
        }
        Some(counts)
    }

    /// Reads all counts with one system call.
    fn read_group(&self) -> Result<[u64; EVENTS], CounterError> {
        // The number of events comes first.
        let mut bytes = [0; 8 * (1 + MOST_EVENTS)];
        let expected = 8 * (1 + EVENTS);
        // A pinned group without counters is at its end of file.
        match self.files.first().map(|mut leader| leader.read(&mut bytes)) {
            Some(Ok(read)) if read == expected => {}
            Some(Err(error)) => return Err(CounterError::KernelError(error.raw_os_error().unwrap_or(0))),
            _ => return Err(CounterError::CounterTaken),
        }
        let mut counts = [0; EVENTS];
        for (count, word) in counts.iter_mut().zip(bytes.as_chunks::<8>().0.iter().skip(1)) {
            *count = u64::from_ne_bytes(*word);
        }
        Ok(counts)
    }

    /// Whether readings take no system call.
    pub fn reads_by_rdpmc(&self) -> bool {
        self.read_pages().is_some()
    }

    /// Reads all counters.
    ///
    /// # Errors
    ///
    /// If something has taken a counter away.
    pub fn read(&self) -> Result<CounterReading<EVENTS>, CounterError> {
        let counts = self.read_pages().map_or_else(|| self.read_group(), Ok)?;
        Ok(CounterReading { counts, cpu: read_cpu_number() })
    }
}

impl<const EVENTS: usize> fmt::Debug for EventCounters<EVENTS> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("EventCounters").field("reads_by_rdpmc", &self.reads_by_rdpmc()).finish()
    }
}

impl<const EVENTS: usize> Drop for EventCounters<EVENTS> {
    fn drop(&mut self) {
        for page in self.pages.into_iter().filter(|page| !page.is_null()) {
            // SAFETY: unmaps a mapping that `open` made, to which nothing refers.
            let _ = unsafe { call_kernel(call::MUNMAP, [page.addr(), PAGE, 0, 0, 0, 0]) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn each_error_number_has_a_reason() {
        use CounterError::*;
        for (number, several, error) in [
            (errno::ENOENT, false, NoCounter),
            (errno::EOPNOTSUPP, true, NoCounter),
            (errno::EACCES, false, Forbidden),
            (errno::EINVAL, false, UnknownEvent),
            (errno::EINVAL, true, TooManyEvents),
            (errno::EBUSY, false, CounterTaken),
            (errno::EMFILE, true, TooManyFiles),
            (12, false, KernelError(12)),
        ] {
            assert_eq!(CounterError::from_errno(number, several), error);
            assert!(error.to_string().len() > 10);
        }
    }
}
