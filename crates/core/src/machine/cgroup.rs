//! CPU quotas of control groups. A quota pauses a task for up to 100 ms at a time, which looks like
//! a very long interrupt.

use super::fact::{Fact, SystemFiles};

/// Tightest CPU quota of this process's groups, in CPUs; `None` without one.
///
/// Sources: `cpu.max` (Documentation/admin-guide/cgroup-v2.rst), `cpu.cfs_quota_us`
/// (Documentation/scheduler/sched-bwc.rst).
pub(crate) fn read_quota(files: &SystemFiles) -> Fact<Option<f64>> {
    group_folders(files, "cpu").map(|folders| {
        let quotas = folders.iter().filter_map(|folder| read_folder_quota(files, folder));
        quotas.min_by(f64::total_cmp)
    })
}

/// How often a quota has paused this process's own group since its creation (`nr_throttled` of
/// `cpu.stat`).
pub(crate) fn read_throttle_count(files: &SystemFiles) -> Fact<u64> {
    group_folders(files, "cpu").and_then(|folders| {
        let stats = folders.iter().filter_map(|folder| files.read_text(&format!("{folder}/cpu.stat")).known().cloned());
        let counts = stats.filter_map(|stat| parse_throttled(&stat));
        counts.max().map_or_else(|| Fact::unknown("no cpu.stat counts throttling"), Fact::Known)
    })
}

/// Folders of this process's groups up to the root: in cgroup version 2, and those of a controller in
/// version 1.
pub(super) fn group_folders(files: &SystemFiles, controller: &str) -> Fact<Vec<String>> {
    files.read_text("/proc/self/cgroup").map(|text| {
        let mut folders = Vec::new();
        for (mount, group) in text.lines().filter_map(|line| parse_group(line, controller)) {
            let mut group = group.trim_end_matches('/');
            loop {
                folders.push(format!("{mount}{group}"));
                match group.rsplit_once('/') {
                    Some((parent, _)) => group = parent,
                    None => break,
                }
            }
        }
        folders
    })
}

/// Mount point and group from a line of `/proc/self/cgroup` (cgroups(7)): `0::/group` for version
/// 2, `4:cpu,cpuacct:/group` for version 1.
fn parse_group<'a>(line: &'a str, controller: &str) -> Option<(String, &'a str)> {
    let mut parts = line.splitn(3, ':');
    let (number, controllers, group) = (parts.next()?, parts.next()?, parts.next()?);
    if number == "0" && controllers.is_empty() {
        return Some(("/sys/fs/cgroup".to_string(), group));
    }
    let has = controllers.split(',').any(|name| name == controller);
    has.then(|| (format!("/sys/fs/cgroup/{controller}"), group))
}

fn read_folder_quota(files: &SystemFiles, folder: &str) -> Option<f64> {
    if let Fact::Known(text) = files.read_text(&format!("{folder}/cpu.max")) {
        return parse_max(&text);
    }
    let number = |name: &str| files.read_number::<f64>(&format!("{folder}/{name}")).known().copied();
    let (quota, period) = (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// Parses `max 100000` or `50000 100000`: microseconds of CPU time per microseconds of period.
fn parse_max(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
}

fn parse_throttled(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("nr_throttled ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_versions_are_parsed() {
        let mount = |text: &str| text.to_string();
        assert_eq!(parse_group("0::/user.slice/a", "cpu"), Some((mount("/sys/fs/cgroup"), "/user.slice/a")));
        assert_eq!(parse_group("4:cpu,cpuacct:/docker/x", "cpu"), Some((mount("/sys/fs/cgroup/cpu"), "/docker/x")));
        assert_eq!(parse_group("9:memory:/a", "memory"), Some((mount("/sys/fs/cgroup/memory"), "/a")));
        assert_eq!(parse_group("3:cpuset:/", "cpu"), None);
        assert_eq!(parse_group("nonsense", "cpu"), None);
    }

    #[test]
    fn quotas_are_converted_to_cpus() {
        assert_eq!(parse_max("150000 100000\n"), Some(1.5));
        assert_eq!(parse_max("max 100000"), None);
        assert_eq!(parse_throttled("nr_periods 8\nnr_throttled 3\nthrottled_usec 9"), Some(3));
    }

    #[test]
    fn the_tightest_group_decides() {
        let root = std::env::temp_dir().join(format!("cyclescope-cgroup-{}", std::process::id()));
        let file = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        file("proc/self/cgroup", "0::/a/b\n");
        file("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
        let files = SystemFiles::rooted_at(&root);
        assert_eq!(read_quota(&files), Fact::Known(None));
        file("sys/fs/cgroup/a/cpu.max", "50000 100000\n");
        assert_eq!(read_quota(&files), Fact::Known(Some(0.5)));
        std::fs::remove_dir_all(root).unwrap();
        assert!(read_quota(&files).why().is_some());
    }
}
