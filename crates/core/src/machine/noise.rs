//! External disturbances of a measurement: stolen time, interrupts, other tasks, quotas.
//!
//! Read [`NoiseCounts`] before and after a measurement. Their difference shows what happened
//! between.

use cyclescope_platform::time::read_preemptions;
use serde::Serialize;

use super::fact::{Fact, SystemFiles, explain_missing};

/// Counts since boot, at one moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NoiseCounts {
    /// CPU of the per-CPU counts.
    pub cpu: u32,
    /// Time that the hypervisor took for others, in clock ticks of 1/100 s (`/proc/stat`, proc(5)).
    pub steal: Fact<u64>,
    /// Interrupts on the CPU (`/proc/interrupts`), including its local timer.
    pub interrupts: Fact<u64>,
    /// Context switches on all CPUs (`/proc/stat`).
    pub switches: Fact<u64>,
    /// Involuntary context switches of this thread (getrusage(2)).
    pub preempted: Fact<u64>,
    /// Tasks that run or are ready on all CPUs, averaged over a minute (`/proc/loadavg`).
    pub load: Fact<f64>,
    /// How often the cgroup's quota paused its tasks (`cpu.stat`).
    pub throttled: Fact<u64>,
}

/// Disturbances between two moments.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NoiseBetween {
    /// Stolen time, in clock ticks of 1/100 s.
    pub steal: Fact<u64>,
    /// Interrupts on the CPU.
    pub interrupts: Fact<u64>,
    /// Context switches on all CPUs.
    pub switches: Fact<u64>,
    /// Involuntary context switches of this thread.
    pub preempted: Fact<u64>,
    /// Pauses by the cgroup's quota.
    pub throttled: Fact<u64>,
}

impl NoiseCounts {
    /// Reads the counts for `cpu`. Involuntary switches are those of the calling thread.
    pub fn read(files: &SystemFiles, cpu: u32) -> NoiseCounts {
        let stat = files.read_text("/proc/stat");
        let from_stat = |parse: &dyn Fn(&str) -> Option<u64>, what: &str| match &stat {
            Fact::Unknown(why) => Fact::unknown(why.clone()),
            Fact::Known(text) => {
                parse(text).map_or_else(|| Fact::unknown(format!("/proc/stat has no {what}")), Fact::Known)
            }
        };
        NoiseCounts {
            cpu,
            steal: from_stat(&|text| parse_steal(text, cpu), "steal time of this CPU"),
            switches: from_stat(&|text| parse_first_number(text, "ctxt"), "context switches"),
            interrupts: files.read_text("/proc/interrupts").and_then(|text| {
                parse_interrupts(&text, cpu)
                    .map_or_else(|| Fact::unknown("/proc/interrupts has no column for this CPU"), Fact::Known)
            }),
            preempted: read_preemptions().into(),
            load: files.read_text("/proc/loadavg").and_then(|text| {
                let first = text.split_whitespace().next().and_then(|word| word.parse().ok());
                first.map_or_else(|| Fact::unknown("/proc/loadavg contains no number"), Fact::Known)
            }),
            throttled: super::cgroup::read_throttle_count(files),
        }
    }

    /// Disturbances since `earlier`.
    pub fn since(&self, earlier: &NoiseCounts) -> NoiseBetween {
        NoiseBetween {
            steal: count_difference(&self.steal, &earlier.steal),
            interrupts: count_difference(&self.interrupts, &earlier.interrupts),
            switches: count_difference(&self.switches, &earlier.switches),
            preempted: count_difference(&self.preempted, &earlier.preempted),
            throttled: count_difference(&self.throttled, &earlier.throttled),
        }
    }
}

/// Difference of two counts. Steal counts can go back a little
/// (Documentation/filesystems/proc.rst), which counts as zero.
fn count_difference(later: &Fact<u64>, earlier: &Fact<u64>) -> Fact<u64> {
    match (later, earlier) {
        (Fact::Known(later), Fact::Known(earlier)) => Fact::Known(later.saturating_sub(*earlier)),
        (Fact::Unknown(why), _) | (_, Fact::Unknown(why)) => Fact::unknown(why.clone()),
    }
}

/// Eighth number in the CPU's line (proc(5)): user nice system idle iowait irq softirq steal.
fn parse_steal(stat: &str, cpu: u32) -> Option<u64> {
    let name = format!("cpu{cpu}");
    let line = stat.lines().find(|line| line.split_whitespace().next() == Some(&name))?;
    line.split_whitespace().nth(8)?.parse().ok()
}

fn parse_first_number(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Sum of the CPU's column. The header lists only online CPUs, so column numbers differ from CPU
/// numbers.
fn parse_interrupts(text: &str, cpu: u32) -> Option<u64> {
    let mut lines = text.lines();
    let name = format!("CPU{cpu}");
    let column = lines.next()?.split_whitespace().position(|word| word == name)?;
    let count = |line: &str| line.split_whitespace().nth(column + 1)?.parse::<u64>().ok();
    Some(lines.filter_map(count).sum())
}

/// Number of threads that run or are ready on `cpu` now, except those of this process and its
/// children. Only sees the processes in `/proc`, which in a container are its own. Takes about 10
/// µs per process.
pub fn count_runnable(files: &SystemFiles, cpu: u32) -> Fact<u32> {
    let own_process = std::process::id();
    let entries = match std::fs::read_dir(files.path("/proc")) {
        Ok(entries) => entries,
        Err(error) => return Fact::unknown(explain_missing(format!("/proc can't be listed: {error}"))),
    };
    if !files.path(&format!("/proc/{own_process}")).exists() {
        return Fact::unknown("/proc does not show this process");
    }
    let processes = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut count = 0;
    for process in processes.filter(|&process| process != own_process) {
        let Ok(tasks) = std::fs::read_dir(files.path(&format!("/proc/{process}/task"))) else { continue };
        for task in tasks.flatten() {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            // A child of this process is one of its workers.
            count += u32::from(parse_runnable(&stat).is_some_and(|found| found.1 == cpu && found.0 != own_process));
        }
    }
    Fact::Known(count)
}

/// Parent and CPU of a task that runs or is ready (state R). The name in parentheses may contain
/// anything, so fields count from the last `)`. The state is field 3, the parent 4, the CPU 39
/// (proc_pid_stat(5)).
fn parse_runnable(stat: &str) -> Option<(u32, u32)> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if fields.next()? != "R" {
        return None;
    }
    let parent = fields.next()?.parse().ok()?;
    Some((parent, fields.nth(34)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  10 0 20 300 4 0 1 11 0 0\ncpu0 5 0 10 150 2 0 1 2 0 0\n\
                        cpu10 5 0 10 150 2 0 0 9 0 0\nintr 5 0 1\nctxt 242900\nbtime 1\n";

    #[test]
    fn counts_are_read_from_proc_stat() {
        assert_eq!(parse_steal(STAT, 0), Some(2));
        assert_eq!(parse_steal(STAT, 10), Some(9));
        assert_eq!(parse_steal(STAT, 1), None);
        assert_eq!(parse_first_number(STAT, "ctxt"), Some(242_900));
    }

    #[test]
    fn interrupts_of_one_cpu_are_summed() {
        let text = "           CPU0       CPU2\n  0:         22          1   IO-APIC   2-edge  timer\n\
                    LOC:       1000       2000   Local timer interrupts\nERR:          7\n";
        assert_eq!(parse_interrupts(text, 2), Some(2001));
        assert_eq!(parse_interrupts(text, 0), Some(1029));
        assert_eq!(parse_interrupts(text, 1), None);
    }

    #[test]
    fn runnable_tasks_are_parsed_with_any_name() {
        let rest =
            "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 3 0";
        assert_eq!(parse_runnable(&format!("77 (a) R (b) R {rest}")), Some((1, 3)));
        assert_eq!(parse_runnable(&format!("77 (sleeper) S {rest}")), None);
        assert_eq!(parse_runnable(""), None);
    }

    #[test]
    fn differences_on_this_machine_are_known() {
        let files = SystemFiles::system();
        let before = NoiseCounts::read(&files, 0);
        let between = NoiseCounts::read(&files, 0).since(&before);
        assert!(between.preempted.known().is_some());
        let nothing = NoiseCounts::read(&SystemFiles::rooted_at("/nonexistent"), 0);
        assert!(nothing.since(&before).steal.why().is_some() && nothing.load.why().is_some());
    }
}
