//! Events that the kernel counts at the same time (perf_event_open(2)).
//!
//! The leader is pinned: the group counts always, or the kernel reports an error. So no count is
//! ever an estimate from a share of the time.

use super::event_code::{EventCode, MOST_TOGETHER};
use super::event_page::EventPage;
use super::event_refusal::{EventRefusal, OpenAttempt};
use cyclescope_core::machine::Machine;
use perf_event_open_sys as sys;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use sys::bindings as abi;

/// Open events, the leader first.
#[derive(Debug)]
pub struct EventGroup {
    events: Vec<OwnedFd>,
}

/// Who is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CountedTarget {
    /// This thread.
    ThisThread,
    /// Everything that runs on this CPU.
    Cpu(u32),
}

impl EventCode {
    /// The attributes of the event. A group's leader is pinned and disabled: an event that joins a
    /// running group may count only from the next tick on (Linux 6.18).
    pub fn attributes(self, is_leader: bool) -> abi::perf_event_attr {
        let mut attributes = abi::perf_event_attr {
            size: size_of::<abi::perf_event_attr>() as u32,
            type_: self.unit,
            config: self.config,
            read_format: (abi::PERF_FORMAT_GROUP
                | abi::PERF_FORMAT_TOTAL_TIME_ENABLED
                | abi::PERF_FORMAT_TOTAL_TIME_RUNNING)
                .into(),
            ..Default::default()
        };
        attributes.__bindgen_anon_3.config1 = self.config1;
        attributes.__bindgen_anon_4.config2 = self.config2;
        attributes.set_exclude_user((!self.user).into());
        attributes.set_exclude_kernel((!self.kernel).into());
        attributes.set_exclude_hv(1);
        attributes.set_pinned(is_leader.into());
        attributes.set_disabled(is_leader.into());
        attributes
    }
}

fn last_errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

impl EventGroup {
    /// A group of descriptors that a worker opened, the leader first.
    pub fn from_descriptors(events: Vec<OwnedFd>) -> EventGroup {
        EventGroup { events }
    }

    /// Opens events that count everything on a CPU.
    ///
    /// # Errors
    ///
    /// If the kernel refuses an event.
    pub fn open_on_cpu(codes: &[EventCode], cpu: u32, machine: &Machine) -> Result<EventGroup, EventRefusal> {
        open_group(codes, CountedTarget::Cpu(cpu), machine)
    }

    /// Opens events that count this thread.
    ///
    /// # Errors
    ///
    /// If the kernel refuses an event.
    pub fn open_for_thread(codes: &[EventCode], machine: &Machine) -> Result<EventGroup, EventRefusal> {
        open_group(codes, CountedTarget::ThisThread, machine)
    }

    /// Reads all counts.
    ///
    /// # Errors
    ///
    /// If the events are not on their counters all the time.
    pub fn read_counts(&self) -> Result<Vec<u64>, EventRefusal> {
        // Number, time enabled, time running, counts.
        let mut words = [0u64; 3 + MOST_TOGETHER];
        let bytes = size_of_val(&words);
        // SAFETY: reads into an array of this length.
        let read = unsafe { libc::read(self.events[0].as_raw_fd(), words.as_mut_ptr().cast(), bytes) };
        let [number, enabled, running] = [words[0], words[1], words[2]];
        // A pinned group without counters is at its end of file.
        if read <= 0 || number as usize != self.events.len() || enabled != running {
            return Err(EventRefusal::from_lost_counter());
        }
        Ok(words[3..][..self.events.len()].to_vec())
    }

    /// Whether user mode can read all events with RDPMC: the kernel allows it, and each event is on a
    /// hardware counter.
    pub fn allows_rdpmc(&self) -> bool {
        self.read_pages().all(|page| page.is_some_and(|page| page.allows_rdpmc && page.is_on_counter))
    }

    /// The page of each event; `None` where it can't be mapped.
    pub(crate) fn read_pages(&self) -> impl Iterator<Item = Option<EventPage>> {
        self.events.iter().map(EventPage::read)
    }
}

fn open_group(codes: &[EventCode], target: CountedTarget, machine: &Machine) -> Result<EventGroup, EventRefusal> {
    let mut events: Vec<OwnedFd> = Vec::new();
    let (pid, cpu) = match target {
        CountedTarget::ThisThread => (0, -1),
        CountedTarget::Cpu(cpu) => (-1, cpu as i32),
    };
    let counts_all = target != CountedTarget::ThisThread;
    let attempt = |code: EventCode, is_further: bool| OpenAttempt { code, is_further, counts_all };
    for code in codes {
        let leader = events.first().map_or(-1, AsRawFd::as_raw_fd);
        let mut attributes = code.attributes(events.is_empty());
        // SAFETY: the attributes are a complete structure that the call only reads.
        let fd = unsafe { sys::perf_event_open(&mut attributes, pid, cpu, leader, abi::PERF_FLAG_FD_CLOEXEC.into()) };
        if fd < 0 {
            return Err(EventRefusal::from_errno(last_errno(), attempt(*code, !events.is_empty()), machine));
        }
        // SAFETY: the descriptor was just opened and belongs to nobody else.
        events.push(unsafe { OwnedFd::from_raw_fd(fd) });
    }
    if let Some(leader) = events.first() {
        // SAFETY: the call starts the group and touches no memory.
        if unsafe { sys::ioctls::ENABLE(leader.as_raw_fd(), 0) } < 0 {
            return Err(EventRefusal::from_errno(last_errno(), attempt(codes[0], false), machine));
        }
    }
    Ok(EventGroup { events })
}

/// How many of these events, from the first one, count at the same time and are read in the same way,
/// found by trying. Whether that way is RDPMC.
///
/// # Errors
///
/// If the first one does not count.
pub fn count_fitting(codes: &[EventCode], machine: &Machine) -> Result<(usize, bool), EventRefusal> {
    let mut fitting = (0, false);
    for number in 1..=codes.len().min(MOST_TOGETHER) {
        let tried = EventGroup::open_for_thread(&codes[..number], machine)
            .and_then(|group| group.read_counts().map(|_| group.allows_rdpmc()));
        fitting = match tried {
            Ok(by_rdpmc) if number == 1 || by_rdpmc == fitting.1 => (number, by_rdpmc),
            Err(refusal) if number == 1 => return Err(refusal),
            _ => break,
        };
    }
    Ok(fitting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RefusalCause;
    use crate::generic_events::find_generic;

    #[test]
    fn events_of_the_kernel_count_together() {
        let machine = Machine::detect();
        let codes = ["task-clock", "page-faults", "dummy"].map(|name| find_generic(name).expect("known"));
        let group = match EventGroup::open_for_thread(&codes, &machine) {
            Ok(group) => group,
            Err(refusal) if refusal.cause == RefusalCause::ParanoidLevel => {
                return cyclescope_skipped::report_skipped(&refusal.why);
            }
            Err(refusal) => panic!("{refusal:?}"),
        };
        assert!(!group.allows_rdpmc());
        let before = group.read_counts().expect("they count");
        let mut pages = std::hint::black_box(vec![0u8; 16 << 20]);
        pages.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        std::hint::black_box(&pages);
        let after = group.read_counts().expect("they count");
        assert!(after[0] > before[0] && after[1] > before[1], "{before:?} {after:?}");
        assert_eq!(after[2], 0);
        assert_eq!(count_fitting(&codes, &machine), Ok((3, false)));
    }

    #[test]
    fn all_events_of_a_group_count_from_the_start() {
        let machine = Machine::detect();
        let codes = ["page-faults", "dummy", "task-clock", "dummy", "task-clock"];
        let codes = codes.map(|name| find_generic(name).expect("known"));
        let Ok(group) = EventGroup::open_for_thread(&codes, &machine) else {
            return cyclescope_skipped::report_skipped("events are forbidden here");
        };
        // Far less than a tick of the kernel's timer.
        std::hint::black_box((0..10_000u64).fold(0, |sum, number| std::hint::black_box(sum ^ number)));
        let counts = group.read_counts().expect("they count");
        assert!(counts[2] > 0 && counts[4] > 0 && counts[2].abs_diff(counts[4]) < counts[2] / 2, "{counts:?}");
    }

    #[test]
    fn a_core_without_counters_says_why() {
        let machine = Machine::detect();
        match count_fitting(&[EventCode::core_cycles()], &machine) {
            Ok((number, _)) => assert_eq!(number, 1),
            Err(refusal) => assert!(!refusal.why.is_empty() && !refusal.remedy.is_empty()),
        }
    }
}
