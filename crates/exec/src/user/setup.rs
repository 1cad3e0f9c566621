//! The setup of a worker, written before it starts.

use super::areas::UserAreas;
use super::filter;
use super::options::UserOptions;
use super::regions::WorkerRegions;
use super::worker_events::WorkerEvents;
use cyclescope_core::error::{RunError, Unavailable};
use cyclescope_core::machine::features::allows_fsgsbase;
use cyclescope_worker::kernel::call;
use cyclescope_worker::setup::{CallerTie, ForeignMapping, MOST_FILTER_STEPS, MOST_FOREIGN, UNLIMITED, WorkerSetup};
use cyclescope_worker::view;
use perf_event_open_sys::bindings as abi;
use std::mem::{MaybeUninit, size_of};
use std::ptr;

/// The process that a worker is made in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkerOrigin {
    /// A new process with nothing but the worker's executable.
    Own,
    /// A copy of this process.
    Copy,
}

/// How the next worker starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WorkerStart {
    /// The process that it is made in.
    pub(super) origin: WorkerOrigin,
    /// The number of the last command before its first one.
    pub(super) sequence: u32,
}

/// The number of this process, as system calls take it.
pub(super) fn read_own_pid() -> Result<i32, RunError> {
    // The C library's own function ignores errors.
    // SAFETY: takes no pointers.
    let own = unsafe { libc::syscall(libc::SYS_getpid) } as i32;
    if own < 0 {
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        return Err(RunError::from_system_call("starting the worker", "getpid", errno));
    }
    Ok(own)
}

/// Writes everything that the next worker needs to know. No worker may be running.
pub(super) fn write_setup(
    regions: &mut WorkerRegions,
    areas: &UserAreas,
    options: &UserOptions,
    events: &WorkerEvents,
    start: WorkerStart,
    caller: CallerTie,
) -> Result<(), RunError> {
    let WorkerStart { origin, sequence } = start;
    let copy = origin == WorkerOrigin::Copy;
    let foreign = if copy { foreign_mappings()? } else { Vec::new() };
    if foreign.len() > MOST_FOREIGN {
        let why = format!("this process shares {} mappings with others", foreign.len());
        return Err(RunError::from_harness("starting the worker", why, "share fewer"));
    }
    let pieces = regions.view_pieces();
    let view = regions.worker_address(0);
    let filter = filter::build_filter(copy, options.heap.is_some());
    assert!(filter.len() <= MOST_FILTER_STEPS, "the filter is of this program");
    let foreign_count = foreign.len();
    // SAFETY: zeros are valid for all fields that are not written below.
    let mut setup: Box<WorkerSetup> = unsafe { Box::new(MaybeUninit::zeroed().assume_init()) };
    setup.view = view;
    setup.pieces = pieces;
    for (place, area) in setup.areas.iter_mut().zip(areas.area_setups()) {
        *place = *area;
    }
    setup.area_count = areas.area_setups().len();
    setup.cpu = options.cpu;
    setup.counts = options.counter;
    // SAFETY: the field is at least as long, and more aligned.
    unsafe { ptr::from_mut(&mut setup.event).cast::<abi::perf_event_attr>().write(cycles_event()) };
    for (place, attributes) in setup.events.iter_mut().zip(events.list_attributes()) {
        *place = attributes;
    }
    setup.event_count = events.codes().len();
    setup.reads_events = events.is_read_by_worker();
    setup.event_socket = events.worker_socket().unwrap_or(-1);
    setup.caller = caller;
    for (place, step) in setup.filter.iter_mut().zip(&filter) {
        // SAFETY: both are eight bytes of numbers.
        *place = unsafe { std::mem::transmute::<libc::sock_filter, u64>(*step) };
    }
    setup.filter_steps = filter.len();
    setup.data_limit = match options.heap {
        Some(heap) if copy => data_limit(areas, heap),
        _ => UNLIMITED,
    };
    setup.files = files_limit();
    setup.copy = copy;
    setup.rseq = if copy { rseq_address() } else { 0 };
    setup.rseq_bytes = rseq_bytes();
    setup.avx = std::is_x86_feature_detected!("avx");
    setup.fsgsbase = allows_fsgsbase();
    setup.sequence = sequence;
    setup.foreign_count = foreign_count;
    regions.write_setup(&setup, &foreign);
    Ok(())
}

/// The name of a system call of the set-up.
pub(super) fn setup_call_name(number: i64) -> Option<&'static str> {
    const NAMES: [(i64, &str); 21] = [
        (call::PRCTL, "prctl"),
        (call::ARCH_PRCTL, "arch_prctl"),
        (call::GETPPID, "getppid"),
        (call::CAPGET, "capget"),
        (call::CAPSET, "capset"),
        (call::SETGROUPS, "setgroups"),
        (call::SETRESGID, "setresgid"),
        (call::SETRESUID, "setresuid"),
        (call::SCHED_SETAFFINITY, "sched_setaffinity"),
        (call::PRLIMIT64, "prlimit64"),
        (call::CLOSE_RANGE, "close_range"),
        (call::CLOSE, "close"),
        (call::MUNMAP, "munmap"),
        (call::SIGALTSTACK, "sigaltstack"),
        (call::RT_SIGACTION, "rt_sigaction"),
        (call::RT_SIGPROCMASK, "rt_sigprocmask"),
        (call::SECCOMP, "seccomp"),
        (call::PERF_EVENT_OPEN, "perf_event_open"),
        (call::IOCTL, "ioctl"),
        (call::MMAP, "mmap"),
        (call::SENDMSG, "sendmsg"),
    ];
    NAMES.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

/// The event of the core-cycles counter: core cycles in user mode.
fn cycles_event() -> abi::perf_event_attr {
    let mut event = abi::perf_event_attr {
        size: size_of::<abi::perf_event_attr>() as u32,
        type_: abi::PERF_TYPE_HARDWARE,
        config: abi::PERF_COUNT_HW_CPU_CYCLES.into(),
        ..Default::default()
    };
    event.set_exclude_kernel(1);
    event.set_exclude_hv(1);
    event.set_pinned(1);
    event
}
const _: () = assert!(size_of::<abi::perf_event_attr>() <= size_of::<[u64; 32]>());
const _: () =
    assert!(std::mem::offset_of!(abi::perf_event_mmap_page, index) == cyclescope_worker::counter::COUNTER_INDEX_AT);

/// Address that this thread's C library has registered with rseq(2); 0 if it has not, or does not
/// say.
fn rseq_address() -> usize {
    rseq_offset().map_or(0, |offset| {
        let thread: *const u8;
        // SAFETY: the thread pointer lies at the address that it points to (System V ABI, x86-64,
        // thread-local storage).
        unsafe {
            std::arch::asm!("mov {}, fs:[0]", out(reg) thread, options(nostack, readonly, preserves_flags));
        }
        thread.wrapping_offset(offset) as usize
    })
}

/// Bytes that C libraries register: the kernel's use in units of 32, the size of the first version
/// (glibc, `sysdeps/unix/sysv/linux/dl-parse_auxv.h`).
fn rseq_bytes() -> usize {
    const UNIT: usize = 32;
    /// `AT_RSEQ_FEATURE_SIZE` (Linux, `auxvec.h`).
    const USED: libc::c_ulong = 27;
    // SAFETY: reads a number from the auxiliary vector; 0 if absent.
    let used = unsafe { libc::getauxval(USED) } as usize;
    used.max(1).next_multiple_of(UNIT)
}

/// Distance of the registered memory from the thread pointer.
pub(super) fn rseq_offset() -> Option<isize> {
    // SAFETY: the names are NUL-terminated; the C library's variables are numbers that never change
    // (glibc, `sys/rseq.h`).
    let (offset, size) = unsafe {
        let offset = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()).cast::<isize>();
        let size = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()).cast::<u32>();
        (offset.as_ref()?, size.as_ref()?)
    };
    // No bytes are registered if the kernel refused it, or the user turned it off.
    (*size != 0).then_some(*offset)
}

/// Limit on a worker's own memory (`RLIMIT_DATA`) with a heap of this size: a copy of this
/// process's memory, and the areas. A worker has no right to raise a hard limit that is
/// lower.
fn data_limit(areas: &UserAreas, heap: u64) -> u64 {
    let wanted = read_status_bytes("VmData:") + area_bytes(areas) + heap;
    read_limit(libc::RLIMIT_DATA).map_or(wanted, |limit| wanted.min(limit.rlim_max))
}

/// A limit of this process; `None` if the system does not tell it.
fn read_limit(what: libc::__rlimit_resource_t) -> Option<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes only to the structure. rustix panics if the call is refused.
    (unsafe { libc::getrlimit(what, &raw mut limit) } == 0).then_some(limit)
}

/// Bytes of the view and of the areas with their sources.
fn area_bytes(areas: &UserAreas) -> u64 {
    let areas: u64 = areas.area_setups().iter().map(|area| (area.bytes + area.source_bytes) as u64).sum();
    areas + view::VIEW_BYTES as u64
}

/// Bytes of memory that a worker takes at most: its view and areas, what a copy of this process may
/// change, and the kernel's tables for all of it.
pub(super) fn worker_memory_limit(areas: &UserAreas, copy: bool, heap: Option<u64>) -> u64 {
    const TABLES: u64 = 64 << 20;
    let copied = if copy { read_status_bytes("VmData:") + read_status_bytes("VmRSS:") } else { 0 };
    TABLES + (area_bytes(areas) + copied + heap.unwrap_or(0)) / 8 * 9
}

/// A size from this process's status (proc_pid_status(5)); 0 if it is unknown.
fn read_status_bytes(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes =
        status.lines().find_map(|line| line.strip_prefix(field)?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    1024 * kilobytes.unwrap_or(0)
}

/// A number above those of all open files.
fn files_limit() -> usize {
    let limit = read_limit(libc::RLIMIT_NOFILE).and_then(|limit| usize::try_from(limit.rlim_cur).ok());
    limit.map_or(MAX_FILES, |limit| limit.min(MAX_FILES))
}

/// Closing files one by one takes 0.1 µs for each number.
const MAX_FILES: usize = 1 << 16;

/// The host program's shared mappings, which a stray store in the worker would reach.
fn foreign_mappings() -> Result<Vec<ForeignMapping>, RunError> {
    let maps = std::fs::read_to_string("/proc/self/maps").map_err(|error| {
        RunError::Unavailable(Unavailable {
            what: "a sandboxed process".to_string(),
            why: format!("reading /proc/self/maps failed: {error}"),
            remedy: "mount the proc file system: `mount -t proc proc /proc`; containers have it by default".to_string(),
        })
    })?;
    let shared = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        if rest.as_bytes().get(3) != Some(&b's') {
            return None;
        }
        let (start, end) = range.split_once('-')?;
        let start = usize::from_str_radix(start, 16).ok()?;
        Some(ForeignMapping { start, bytes: usize::from_str_radix(end, 16).ok()? - start })
    };
    Ok(maps.lines().filter_map(shared).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_never_asked_to_raise_a_hard_limit() {
        const HARD: u64 = 1 << 30;
        // SAFETY: the child changes its own limit alone, and ends.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                let limit = libc::rlimit { rlim_cur: HARD, rlim_max: HARD };
                let limited = libc::setrlimit(libc::RLIMIT_DATA, &raw const limit) == 0;
                let asked = data_limit(&UserAreas::default(), 2 * HARD);
                libc::_exit(if limited && asked == HARD { 0 } else { 1 });
            }
            let mut status = 0;
            assert!(child > 0 && libc::waitpid(child, &raw mut status, 0) == child && status == 0);
        }
    }
}
