//! Waits for a child process with a limit, and notices that something stopped it or its group.
//!
//! The system tells the end of a child through a process descriptor. Where it refuses one, the
//! child is polled. A child without processor time may wait for another process of its group, so
//! the group counts as stopped only if one of its processes is, and none gets processor time.

use crate::output::Failure;
use cyclescope::process_state::ProcessState;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// Interval of the checks whether the child runs. They are rare, because they disturb a
/// measurement.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which a child without a process descriptor is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Time without processor time after which the child's group is examined. A child notices sooner
/// that its own worker is stopped.
const IDLE_AFTER: Duration = Duration::from_secs(5);
/// Time in which a killed process ends, unless its control group is frozen.
const END_TIMEOUT: Duration = Duration::from_secs(3);

/// A child of this process that leads its own group and is not reaped yet.
pub struct ChildWatch {
    pid: i32,
    end: Option<OwnedFd>,
    /// The child's processor time, and when it last increased.
    seen: (Duration, Instant),
    /// The processor time of its group at the last check without progress, in clock ticks.
    group_ticks: Option<u64>,
    /// When that last changed.
    group_changed: Instant,
    /// Time without processor time of its group after which a sleeping child counts as stopped.
    sleep_limit: Option<Duration>,
    checked: Instant,
}

/// What happened to a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildEvent {
    /// It ended.
    Ended,
    /// One of the other descriptors is ready.
    Ready,
    /// The time is over.
    Late,
    /// It does not run: a process of its group is stopped or frozen.
    Stopped(ProcessState),
}

impl ChildWatch {
    /// Starts to watch a child.
    pub fn new(pid: i32) -> ChildWatch {
        let end = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let now = Instant::now();
        let seen = (Duration::ZERO, now);
        ChildWatch { pid, end, seen, group_ticks: None, group_changed: now, sleep_limit: None, checked: now }
    }

    /// The child's process number.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Limits the time for which the whole group may sleep, from now on.
    pub fn limit_sleep(&mut self, limit: Duration) {
        (self.sleep_limit, self.group_changed) = (Some(limit), Instant::now());
    }

    /// Whether the child has ended.
    fn has_ended(&self) -> io::Result<bool> {
        let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: the structure outlives the call, which fills it if the child has ended.
        unsafe {
            match libc::waitid(libc::P_PID, self.pid as libc::id_t, info.as_mut_ptr(), options) {
                0 => Ok(info.assume_init().si_pid() != 0),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }

    /// Waits until the child ends, one of these descriptors is ready, or the time is over.
    pub fn wait(&mut self, until: Option<Instant>, others: &[BorrowedFd]) -> io::Result<ChildEvent> {
        loop {
            if self.has_ended()? {
                return Ok(ChildEvent::Ended);
            }
            let interval = if self.end.is_some() { CHECK_INTERVAL } else { POLL_INTERVAL };
            let left = until.map_or(interval, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(ChildEvent::Late);
            }
            let left = left.min(interval);
            let slice = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            let others = others.iter().map(|other| PollFd::new(other, PollFlags::IN));
            let end = self.end.iter().map(|end| PollFd::new(end, PollFlags::IN));
            let mut ready: Vec<PollFd> = others.chain(end).collect();
            match poll(&mut ready, Some(&slice)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            let others = ready.len() - usize::from(self.end.is_some());
            if ready[..others].iter().any(|other| !other.revents().is_empty()) {
                return Ok(if self.has_ended()? { ChildEvent::Ended } else { ChildEvent::Ready });
            }
            if self.checked.elapsed() >= CHECK_INTERVAL {
                self.checked = Instant::now();
                if let Some(state) = self.find_stop() {
                    return Ok(ChildEvent::Stopped(state));
                }
            }
        }
    }

    /// Waits for a child that was killed. It is not reaped. If the system refuses to tell, it counts
    /// as ended.
    ///
    /// # Errors
    ///
    /// If the kernel does not end it.
    pub fn wait_for_killed(&mut self) -> io::Result<()> {
        let until = Instant::now() + END_TIMEOUT;
        while matches!(self.has_ended(), Ok(false)) {
            if Instant::now() >= until {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "it was killed and does not end"));
            }
            cyclescope_platform::time::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Waits until the child ends, without a limit, and reaps it.
    pub fn reap(self) -> io::Result<ExitStatus> {
        let mut status = 0;
        // SAFETY: the status outlives the call.
        while unsafe { libc::waitpid(self.pid, &mut status, 0) } == -1 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        Ok(ExitStatus::from_raw(status))
    }

    /// The state of a process that keeps the group from running, if no process of it runs.
    fn find_stop(&mut self) -> Option<ProcessState> {
        let (before, when) = self.seen;
        let used = read_processor_time(self.pid).unwrap_or_default();
        if used != before {
            self.seen = (used, Instant::now());
            self.group_ticks = None;
            self.group_changed = Instant::now();
            return None;
        }
        if when.elapsed() < IDLE_AFTER {
            return None;
        }
        let (ticks, state) = examine_group(self.pid);
        if self.group_ticks.replace(ticks) != Some(ticks) {
            self.group_changed = Instant::now();
            return None;
        }
        let sleeps = self.sleep_limit.is_some_and(|limit| self.group_changed.elapsed() >= limit);
        state.or(sleeps.then_some(ProcessState::Asleep))
    }
}

/// The processor time of a process.
fn read_processor_time(pid: i32) -> Option<Duration> {
    let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: both outlive their calls.
    let done = unsafe { libc::clock_getcpuclockid(pid, &mut clock) == 0 && libc::clock_gettime(clock, &mut time) == 0 };
    done.then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// The processor time of a group's processes in clock ticks, and the state of one that is stopped
/// or frozen.
fn examine_group(leader: i32) -> (u64, Option<ProcessState>) {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let (mut ticks, mut found) = (0, None);
    for pid in numbers {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // From the state on (proc_pid_stat(5)).
        let fields: Vec<&str> = stat.rsplit_once(") ").map_or(Vec::new(), |(_, rest)| rest.split(' ').collect());
        let number = |field: usize| fields.get(field).and_then(|field| field.parse::<u64>().ok());
        if pid != leader && number(2) != Some(leader as u64) {
            continue;
        }
        ticks += number(11).unwrap_or(0) + number(12).unwrap_or(0);
        let state = ProcessState::read(pid);
        if matches!(state, ProcessState::Stopped | ProcessState::Frozen) {
            found = Some(state);
        }
    }
    (ticks, found)
}

/// The failure for a process that was ended because something had stopped it.
pub fn stopped_failure(called: &str, state: ProcessState) -> Failure {
    let (what, remedy) = match state {
        ProcessState::Frozen => {
            ("the control group of", "thaw it: write THAWED to its freezer.state, or 0 to its cgroup.freeze")
        }
        ProcessState::Asleep => ("nothing runs in", "check what it waits for, such as threads of a library"),
        _ => ("something stopped", "SIGSTOP and debuggers do so: run it again"),
    };
    let end = if state == ProcessState::Frozen { " is frozen" } else { "" };
    Failure::internal(format!("{what} {called}{end}")).with_remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    /// A shell that leads its own group.
    fn shell(script: &str) -> (Child, ChildWatch) {
        let child = Command::new("sh").args(["-c", script]).process_group(0).spawn().expect("a shell");
        let watch = ChildWatch::new(child.id() as i32);
        (child, watch)
    }

    fn end_group(mut child: Child) {
        // SAFETY: takes no pointers; the leader is not reaped.
        unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
        child.wait().expect("it is a child");
    }

    #[test]
    fn a_stopped_process_of_the_group_is_noticed_and_a_sleeping_one_is_not() {
        let (child, mut watch) = shell("sh -c 'kill -STOP $$' & wait");
        let until = Some(Instant::now() + Duration::from_secs(60));
        assert_eq!(watch.wait(until, &[]).expect("a child"), ChildEvent::Stopped(ProcessState::Stopped));
        end_group(child);
        let (child, mut watch) = shell("sleep 60 & wait");
        let until = Some(Instant::now() + IDLE_AFTER + 3 * CHECK_INTERVAL);
        assert_eq!(watch.wait(until, &[]).expect("a child"), ChildEvent::Late);
        // Unless its sleep has a limit.
        watch.limit_sleep(CHECK_INTERVAL);
        let until = Some(Instant::now() + Duration::from_secs(60));
        assert_eq!(watch.wait(until, &[]).expect("a child"), ChildEvent::Stopped(ProcessState::Asleep));
        end_group(child);
    }

    #[test]
    fn the_end_is_noticed_without_a_process_descriptor_too() {
        for has_descriptor in [true, false] {
            let (mut child, mut watch) = shell("sleep 0.05");
            watch.end = watch.end.filter(|_| has_descriptor);
            let until = Some(Instant::now() + Duration::from_secs(60));
            assert_eq!(watch.wait(until, &[]).expect("a child"), ChildEvent::Ended);
            watch.wait_for_killed().expect("it has ended");
            child.wait().expect("it is a child");
        }
    }
}
