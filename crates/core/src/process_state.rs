//! What a process does at this moment, as `/proc` shows it: whether it runs, or what keeps it from
//! running.

/// The state of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessState {
    /// It runs, or waits for its turn on a CPU.
    Runnable,
    /// A signal or a debugger has stopped it.
    Stopped,
    /// Its control group is frozen, or one above it.
    Frozen,
    /// It waits for something by itself.
    Asleep,
    /// It has ended, or `/proc` does not show it.
    Ended,
}

impl ProcessState {
    /// Reads the state of a process or thread (proc_pid_stat(5)).
    pub fn read(pid: i32) -> ProcessState {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        match stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()) {
            Some('R') => ProcessState::Runnable,
            Some('T' | 't') => ProcessState::Stopped,
            Some('Z' | 'X') | None => ProcessState::Ended,
            Some(_) if is_frozen(pid) => ProcessState::Frozen,
            Some(_) => ProcessState::Asleep,
        }
    }
}

/// Whether the control group of a process is frozen: `freezer.state` in version 1 and
/// `cgroup.events` in version 2 (Linux, `cgroup-v1/freezer-subsystem.rst`, `cgroup-v2.rst`).
fn is_frozen(pid: i32) -> bool {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    groups.lines().any(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else { return false };
        let (roots, file): (&[&str], _) = match controllers {
            "" => (&["/sys/fs/cgroup", "/sys/fs/cgroup/unified"], "cgroup.events"),
            "freezer" => (&["/sys/fs/cgroup/freezer"], "freezer.state"),
            _ => return false,
        };
        let read = |root: &&str| std::fs::read_to_string(format!("{root}{group}/{file}")).ok();
        let mut states = roots.iter().filter_map(read);
        states.any(|state| state.lines().any(|line| ["frozen 1", "FROZEN", "FREEZING"].contains(&line)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_process_differs_from_a_sleeping_one() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("it is installed");
        let pid = child.id() as i32;
        let becomes = |state| {
            let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
            while ProcessState::read(pid) != state {
                assert!(std::time::Instant::now() < until, "{:?}", ProcessState::read(pid));
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        };
        becomes(ProcessState::Asleep);
        // SAFETY: takes no pointers; the child is not reaped.
        unsafe { libc::kill(pid, libc::SIGSTOP) };
        becomes(ProcessState::Stopped);
        child.kill().expect("it is a child");
        becomes(ProcessState::Ended);
        child.wait().expect("it is a child");
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        assert_eq!(ProcessState::read(own), ProcessState::Runnable);
    }
}
