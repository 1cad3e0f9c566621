//! Why an event can't be counted, and what helps.

use super::event_code::EventCode;
use cyclescope_core::error::Unavailable;
use cyclescope_core::machine::Machine;
use cyclescope_platform::error_code;
use serde::{Deserialize, Serialize};

/// The kinds of reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCause {
    /// The processor or its kernel has no performance monitoring unit.
    NoPmu,
    /// The hypervisor does not show the unit to this machine.
    HiddenByHypervisor,
    /// The system forbids it.
    ParanoidLevel,
    /// The kernel counts it, but user mode may not read it with RDPMC.
    RdpmcOff,
    /// More events than counters.
    TooManyEvents,
    /// No event has this name.
    UnknownName,
    /// The unit has no such event.
    NotOnThisCore,
    /// The executor does not count events.
    NotInThisMode,
    /// Something else uses the counter.
    ReservedByAnother,
    /// Any other error of the kernel.
    KernelError,
}

impl RefusalCause {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            RefusalCause::NoPmu => "no_pmu",
            RefusalCause::HiddenByHypervisor => "hidden_by_hypervisor",
            RefusalCause::ParanoidLevel => "paranoid_level",
            RefusalCause::RdpmcOff => "rdpmc_off",
            RefusalCause::TooManyEvents => "too_many_events",
            RefusalCause::UnknownName => "unknown_name",
            RefusalCause::NotOnThisCore => "not_on_this_core",
            RefusalCause::NotInThisMode => "not_in_this_mode",
            RefusalCause::ReservedByAnother => "reserved_by_another",
            RefusalCause::KernelError => "kernel_error",
        }
    }
}

/// A call of perf_event_open(2) that failed.
#[derive(Debug, Clone, Copy)]
pub struct OpenAttempt {
    /// The event.
    pub code: EventCode,
    /// Whether other events count at the same time.
    pub is_further: bool,
    /// Whether it was to count all programs of a CPU.
    pub counts_all: bool,
}

impl OpenAttempt {
    /// The highest `kernel.perf_event_paranoid` that allows it (Linux, sysctl/kernel.rst). Above 2,
    /// some distributions forbid ordinary users every use.
    fn highest_level(self) -> i32 {
        match (self.counts_all, self.code.kernel) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => 2,
        }
    }
}

/// An event that can't be counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRefusal {
    /// The kind of reason.
    pub cause: RefusalCause,
    /// The event's name; empty if it is not known here.
    pub event: String,
    /// The reason.
    pub why: String,
    /// What the user can do about it.
    pub remedy: String,
}

impl EventRefusal {
    /// A refusal of an event without a name.
    pub fn new(cause: RefusalCause, why: impl Into<String>, remedy: impl Into<String>) -> EventRefusal {
        EventRefusal { cause, event: String::new(), why: why.into(), remedy: remedy.into() }
    }

    /// The same refusal, of an event with this name.
    pub fn of_event(self, name: &str) -> EventRefusal {
        EventRefusal { event: name.to_string(), ..self }
    }

    /// The refusal of an event whose counter something else holds.
    pub fn from_lost_counter() -> EventRefusal {
        let why = "something else holds the counters";
        let remedy = "end the other user of counters, such as perf; the kernel's own one ends with `sudo sysctl \
                      kernel.nmi_watchdog=0`";
        EventRefusal::new(RefusalCause::ReservedByAnother, why, remedy)
    }

    /// The refusal of an executor that counts no events.
    pub fn from_mode(executor: &str) -> EventRefusal {
        let why = format!("the executor {executor} counts no events");
        EventRefusal::new(RefusalCause::NotInThisMode, why, "use --executor user")
    }

    /// Explains an error number of perf_event_open(2), or of the kernel module.
    pub fn from_errno(errno: i32, attempt: OpenAttempt, machine: &Machine) -> EventRefusal {
        use RefusalCause::*;
        let has_pmu = ["cpu", "cpu_core"]
            .iter()
            .any(|unit| machine.files.path(&format!("/sys/bus/event_source/devices/{unit}")).exists());
        match errno {
            error_code::EINVAL | error_code::ENOSPC if attempt.is_further => {
                EventRefusal::new(TooManyEvents, "there are more events than counters", "name fewer events")
            }
            error_code::ENOENT | error_code::ENODEV | error_code::EOPNOTSUPP | error_code::ENXIO
                if attempt.code.is_software() =>
            {
                EventRefusal::new(NotOnThisCore, "the kernel has no such event", "see `cyclescope counters list`")
            }
            error_code::ENOENT | error_code::ENODEV | error_code::EOPNOTSUPP | error_code::ENXIO if !has_pmu => {
                match &machine.hypervisor {
                    Some(hypervisor) => {
                        let why = format!("the hypervisor, {}, hides the counters from this machine", hypervisor.name);
                        let remedy = "turn on the virtual PMU (QEMU: -cpu host,pmu=on; clouds: a metal instance)";
                        EventRefusal::new(HiddenByHypervisor, why, remedy)
                    }
                    None => {
                        let why = "the kernel found no performance monitoring unit";
                        let remedy = "start a kernel with perf events for this processor";
                        EventRefusal::new(NoPmu, why, remedy)
                    }
                }
            }
            error_code::ENOENT
            | error_code::ENODEV
            | error_code::EOPNOTSUPP
            | error_code::ENXIO
            | error_code::EINVAL => {
                let remedy = "see `cyclescope counters list --all` for the events of this core";
                EventRefusal::new(NotOnThisCore, "this core has no such event", remedy)
            }
            error_code::EACCES | error_code::EPERM => explain_forbidden(attempt, machine),
            error_code::EBUSY => EventRefusal::from_lost_counter(),
            error_code::ENOSYS => {
                let remedy = "start a kernel with CONFIG_PERF_EVENTS";
                EventRefusal::new(NoPmu, "the kernel has no perf_event_open", remedy)
            }
            error_code::EMFILE | error_code::ENFILE => {
                EventRefusal::new(KernelError, "too many files are open", "raise the limit: ulimit -n 4096")
            }
            other => {
                let error = std::io::Error::from_raw_os_error(other);
                EventRefusal::new(KernelError, format!("perf_event_open failed: {error}"), "count another event")
            }
        }
    }
}

fn explain_forbidden(attempt: OpenAttempt, machine: &Machine) -> EventRefusal {
    let level = machine.files.read_number::<i32>("/proc/sys/kernel/perf_event_paranoid");
    match level.known() {
        Some(level) if *level > attempt.highest_level() => {
            let why = format!("kernel.perf_event_paranoid is {level}");
            let remedy = format!(
                "run it as root, or: sudo sysctl kernel.perf_event_paranoid={}",
                attempt.highest_level().min(1)
            );
            EventRefusal::new(RefusalCause::ParanoidLevel, why, remedy)
        }
        _ => {
            let why = "perf_event_open is forbidden, probably by a container's seccomp filter";
            let remedy = "allow perf_event_open in the container's seccomp profile, or run it with --privileged";
            EventRefusal::new(RefusalCause::ParanoidLevel, why, remedy)
        }
    }
}

impl From<EventRefusal> for Unavailable {
    fn from(refusal: EventRefusal) -> Unavailable {
        let EventRefusal { event, why, remedy, .. } = refusal;
        let what = if event.is_empty() { "a performance event".to_string() } else { format!("the event {event}") };
        Unavailable { what, why, remedy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_core::machine::fact::SystemFiles;
    use cyclescope_core::machine::processor::Hypervisor;

    fn cause(errno: i32, is_further: bool, machine: &Machine) -> (RefusalCause, String) {
        let attempt = OpenAttempt { code: EventCode::core_cycles(), is_further, counts_all: false };
        let EventRefusal { cause, remedy, .. } = EventRefusal::from_errno(errno, attempt, machine);
        assert!(!remedy.is_empty());
        (cause, remedy)
    }

    /// A machine with these files, which contain the texts.
    fn machine_with(files: &[(&str, &str)], virtual_one: bool) -> (tempfile::TempDir, Machine) {
        let root = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
            std::fs::write(path, text).expect("it can be written");
        }
        let hypervisor = Hypervisor { signature: "KVMKVMKVM".to_string(), name: "KVM".to_string() };
        let files = SystemFiles::rooted_at(root.path());
        let machine = Machine { hypervisor: virtual_one.then_some(hypervisor), files, ..Machine::detect() };
        (root, machine)
    }

    #[test]
    fn a_level_forbids_what_the_kernel_says() {
        let explain = |level: &str, code: EventCode, counts_all: bool| {
            let (_root, machine) = machine_with(&[("proc/sys/kernel/perf_event_paranoid", level)], true);
            let attempt = OpenAttempt { code, is_further: false, counts_all };
            EventRefusal::from_errno(error_code::EACCES, attempt, &machine)
        };
        let user = EventCode::core_cycles();
        // Level 2 allows events of user code, so that something else forbids them.
        assert!(explain("2", user, false).why.contains("seccomp"));
        assert!(explain("2", user.with_scope(true, true), false).why.contains("paranoid is 2"));
        assert!(explain("1", user.with_scope(true, true), false).why.contains("seccomp"));
        let all = explain("1", user, true);
        assert!(all.why.contains("paranoid is 1") && all.remedy.ends_with("paranoid=0"), "{all:?}");
    }

    #[test]
    fn causes_have_their_names_of_json() {
        use RefusalCause::*;
        for cause in [
            NoPmu,
            HiddenByHypervisor,
            ParanoidLevel,
            RdpmcOff,
            TooManyEvents,
            UnknownName,
            NotOnThisCore,
            NotInThisMode,
            ReservedByAnother,
            KernelError,
        ] {
            assert_eq!(serde_json::to_value(cause).unwrap(), cause.name());
        }
    }

    #[test]
    fn each_cause_of_a_refusal_is_told_apart() {
        let (_root, bare) = machine_with(&[], false);
        let (_root, hidden) = machine_with(&[], true);
        let pmu = ("sys/bus/event_source/devices/cpu/type", "4\n");
        let level = ("proc/sys/kernel/perf_event_paranoid", "3\n");
        let (_root, with_pmu) = machine_with(&[pmu, level], true);
        assert_eq!(cause(error_code::ENOENT, false, &bare).0, RefusalCause::NoPmu);
        assert_eq!(cause(error_code::ENOENT, false, &hidden).0, RefusalCause::HiddenByHypervisor);
        assert_eq!(cause(error_code::EINVAL, false, &with_pmu).0, RefusalCause::NotOnThisCore);
        assert_eq!(cause(error_code::EINVAL, true, &with_pmu).0, RefusalCause::TooManyEvents);
        let (cause_of_level, remedy) = cause(error_code::EACCES, false, &with_pmu);
        assert_eq!((cause_of_level, remedy.contains("sysctl")), (RefusalCause::ParanoidLevel, true));
        let (cause_of_filter, remedy) = cause(error_code::EPERM, false, &bare);
        assert_eq!((cause_of_filter, remedy.contains("seccomp")), (RefusalCause::ParanoidLevel, true));
        assert_eq!(cause(error_code::EBUSY, false, &with_pmu).0, RefusalCause::ReservedByAnother);
        // Counting all programs takes another level than counting one's own.
        let attempt = OpenAttempt { code: EventCode::core_cycles(), is_further: false, counts_all: true };
        let of_cpu = EventRefusal::from_errno(error_code::EACCES, attempt, &with_pmu);
        assert_eq!((of_cpu.cause, of_cpu.remedy.contains("=0")), (RefusalCause::ParanoidLevel, true));
        assert_eq!(EventRefusal::from_mode("kernel").cause, RefusalCause::NotInThisMode);
    }
}
