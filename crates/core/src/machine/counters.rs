//! Performance counters: whether this process may count core cycles, and what prevents it.
//!
//! Not part of [`Machine`](super::Machine), because it can be slow. The first event opened on a
//! system makes its kernel wait for all CPUs (`synchronize_rcu` in kernel/events/core.c,
//! account_event): 4 to 11 ms on a two-CPU VM.

use perf_event_open_sys as sys;
use serde::Serialize;
use sys::bindings as abi;

use super::fact::{Fact, SystemFiles};
use super::features::CpuFeatures;
use crate::error::Unavailable;
use crate::unit::Hertz;

/// Available counters.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CounterFacts {
    /// Counter of core cycles in user mode (`PERF_COUNT_HW_CPU_CYCLES`), or why it is missing.
    pub core_cycles: Fact<CycleCounterAccess>,
    /// Shell command that would make the counter available.
    pub remedy: Option<String>,
    /// `kernel.perf_event_paranoid`. Above 2, some distributions forbid ordinary users every use.
    pub paranoid: Fact<i32>,
    /// APERF through RDPRU (AMD): actual core cycles, readable in user mode.
    pub rdpru_aperf: Fact<()>,
    /// Events of the `msr` device, which may include `aperf`.
    pub msr_events: Fact<Vec<String>>,
    /// The TSC's rate from the conversion in the perf page.
    pub page_rate: Fact<Hertz>,
}

/// How the core-cycles counter can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CycleCounterAccess {
    /// Whether RDPMC works in user mode (`cap_user_rdpmc`). Otherwise only read(2) does.
    pub rdpmc: bool,
    /// Width of the counter in bits; 0 if RDPMC does not work.
    pub width: u16,
}

impl CounterFacts {
    /// Opens and closes a counter and a software event. Takes 0.1 ms, or some 10 ms if no other
    /// event was open.
    pub fn detect(features: &CpuFeatures, files: &SystemFiles) -> CounterFacts {
        let paranoid = files.read_number("/proc/sys/kernel/perf_event_paranoid");
        let (core_cycles, remedy) = match PerfEvent::open(abi::PERF_TYPE_HARDWARE, CYCLES) {
            Ok(event) => (Fact::Known(event.cycle_counter()), None),
            Err(errno) => {
                let (why, remedy) = explain_refusal(errno, paranoid.known().copied());
                (Fact::Unknown(why), remedy)
            }
        };
        CounterFacts {
            core_cycles,
            remedy,
            rdpru_aperf: detect_rdpru(features),
            msr_events: list_msr_events(files),
            page_rate: read_page_rate(paranoid.known().copied()),
            paranoid,
        }
    }
}

/// Succeeds if user mode can read the core-cycles counter with RDPMC. The error has a reason and a
/// remedy.
pub fn require_rdpmc(features: &CpuFeatures, files: &SystemFiles) -> Result<(), Unavailable> {
    let counters = CounterFacts::detect(features, files);
    let (why, remedy) = match counters.core_cycles {
        Fact::Known(CycleCounterAccess { rdpmc: true, .. }) => return Ok(()),
        Fact::Known(_) => {
            let remedy = "echo 2 | sudo tee /sys/bus/event_source/devices/cpu/rdpmc";
            ("the kernel does not let user mode execute RDPMC".to_string(), Some(remedy.to_string()))
        }
        Fact::Unknown(why) => (why, counters.remedy),
    };
    let what = "the core-cycles counter".to_string();
    Err(Unavailable { what, why, remedy: remedy.unwrap_or_default() })
}

const CYCLES: u64 = abi::PERF_COUNT_HW_CPU_CYCLES as u64;
const DUMMY: u64 = abi::PERF_COUNT_SW_DUMMY as u64;

fn detect_rdpru(features: &CpuFeatures) -> Fact<()> {
    match features.why_not(iced_x86::CpuidFeature::RDPRU) {
        None => Fact::Known(()),
        Some(why) => Fact::unknown(format!("no RDPRU: {why}")),
    }
}

fn list_msr_events(files: &SystemFiles) -> Fact<Vec<String>> {
    const FOLDER: &str = "/sys/bus/event_source/devices/msr/events";
    match std::fs::read_dir(files.path(FOLDER)) {
        Err(error) => Fact::unknown(format!("{FOLDER}: {error}")),
        Ok(entries) => {
            let mut names: Vec<String> =
                entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            Fact::Known(names)
        }
    }
}

/// Explains why perf_event_open failed, with a remedy (perf_event_open(2),
/// Documentation/admin-guide/perf-security.rst).
fn explain_refusal(errno: i32, paranoid: Option<i32>) -> (String, Option<String>) {
    match errno {
        libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP => {
            ("the kernel has no hardware counters here (a VM without a virtual PMU?)".to_string(), None)
        }
        libc::EACCES | libc::EPERM if paranoid.is_some_and(|level| level > 2) => (
            format!("kernel.perf_event_paranoid is {}", paranoid.unwrap_or_default()),
            Some("sudo sysctl kernel.perf_event_paranoid=1".to_string()),
        ),
        libc::EACCES | libc::EPERM => {
            ("perf_event_open is forbidden, probably by a container's seccomp filter".to_string(), None)
        }
        libc::ENOSYS => ("the kernel has no perf_event_open".to_string(), None),
        libc::EBUSY => ("another user holds the counters".to_string(), None),
        other => (format!("perf_event_open failed: {}", std::io::Error::from_raw_os_error(other)), None),
    }
}

/// With `cap_user_time`, the page gives nanoseconds = ticks × time_mult / 2^time_shift
/// (perf_event_open(2)).
fn read_page_rate(paranoid: Option<i32>) -> Fact<Hertz> {
    let event = match PerfEvent::open(abi::PERF_TYPE_SOFTWARE, DUMMY) {
        Ok(event) => event,
        Err(errno) => return Fact::Unknown(explain_refusal(errno, paranoid).0),
    };
    let read = event.with_page(|page| {
        // SAFETY: the capability bits are one view of a union of plain integers.
        let usable = unsafe { page.__bindgen_anon_1.__bindgen_anon_1.cap_user_time() } == 1;
        (usable, page.time_mult, page.time_shift)
    });
    match read {
        None => Fact::unknown("the perf page can't be mapped"),
        Some((false, ..)) | Some((_, 0, _)) => Fact::unknown("the perf page offers no conversion (cap_user_time is 0)"),
        Some((true, mult, shift)) => Fact::Known(Hertz(1e9 * 2f64.powi(i32::from(shift)) / f64::from(mult))),
    }
}

/// A perf event for this thread in user mode.
struct PerfEvent {
    fd: std::os::fd::OwnedFd,
}

impl PerfEvent {
    /// Opens the event, or returns the error number.
    fn open(kind: u32, config: u64) -> Result<PerfEvent, i32> {
        let mut attributes = abi::perf_event_attr {
            size: size_of::<abi::perf_event_attr>() as u32,
            type_: kind,
            config,
            ..Default::default()
        };
        attributes.set_exclude_kernel(1);
        attributes.set_exclude_hv(1);
        // SAFETY: the attributes are a complete structure that the call only reads.
        let fd = unsafe { sys::perf_event_open(&mut attributes, 0, -1, -1, abi::PERF_FLAG_FD_CLOEXEC.into()) };
        if fd < 0 {
            return Err(std::io::Error::last_os_error().raw_os_error().unwrap_or_default());
        }
        // SAFETY: the descriptor was just opened and belongs to nobody else.
        Ok(PerfEvent { fd: unsafe { std::os::fd::FromRawFd::from_raw_fd(fd) } })
    }

    /// Calls `look` with the event's first page; `None` if it cannot be mapped.
    fn with_page<T>(&self, look: impl FnOnce(&abi::perf_event_mmap_page) -> T) -> Option<T> {
        use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
        let length = size_of::<abi::perf_event_mmap_page>().max(rustix::param::page_size());
        // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
        let page =
            unsafe { mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, &self.fd, 0) }.ok()?;
        // SAFETY: the page begins with this structure and stays mapped until after `look`. It is
        // mapped for reading, and the used fields only change when the event is rescheduled.
        let seen = look(unsafe { &*page.cast::<abi::perf_event_mmap_page>() });
        // SAFETY: unmaps the mapping from above, to which no reference is left.
        let _ = unsafe { munmap(page, length) };
        Some(seen)
    }

    fn cycle_counter(&self) -> CycleCounterAccess {
        let seen = self.with_page(|page| {
            // SAFETY: the capability bits are one view of a union of plain integers.
            let rdpmc = unsafe { page.__bindgen_anon_1.__bindgen_anon_1.cap_user_rdpmc() } == 1;
            (rdpmc, page.pmc_width)
        });
        match seen {
            Some((true, width)) => CycleCounterAccess { rdpmc: true, width },
            _ => CycleCounterAccess { rdpmc: false, width: 0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_of_a_refusal_are_distinguished() {
        let (why, remedy) = explain_refusal(libc::EACCES, Some(4));
        assert!(why.contains("paranoid is 4") && remedy.unwrap().contains("sysctl"));
        let (why, remedy) = explain_refusal(libc::EPERM, Some(1));
        assert!(why.contains("seccomp") && remedy.is_none());
        assert!(explain_refusal(libc::ENOENT, Some(2)).0.contains("PMU"));
        assert!(explain_refusal(libc::ENOSYS, None).0.contains("no perf_event_open"));
    }

    #[test]
    fn this_machine_has_counters_or_gives_a_reason() {
        let machine = crate::machine::Machine::detect();
        let counters = CounterFacts::detect(&machine.features, &SystemFiles::system());
        assert!(counters.core_cycles.known().is_some() != counters.core_cycles.why().is_some());
        assert!(counters.page_rate.known().is_none_or(|rate| rate.0 > 1e8));
    }
}
