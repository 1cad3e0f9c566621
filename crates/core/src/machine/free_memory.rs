//! Memory that this process can take without pushing out others.

use super::cgroup::group_folders;
use super::fact::{Fact, SystemFiles};

/// Free bytes: the smaller of the machine's and of the tightest limit of this process's groups.
///
/// Sources: `MemAvailable` of `/proc/meminfo` (Documentation/filesystems/proc.rst); `memory.max`,
/// `memory.current` and `memory.stat` (Documentation/admin-guide/cgroup-v2.rst); in version 1
/// `memory.limit_in_bytes` and `memory.usage_in_bytes` (Documentation/admin-guide/cgroup-v1/memory.rst).
pub fn read_free_bytes(files: &SystemFiles) -> Fact<u64> {
    let machine = files.read_text("/proc/meminfo").and_then(|text| {
        parse_available_bytes(&text).map_or_else(|| Fact::unknown("/proc/meminfo has no MemAvailable"), Fact::Known)
    });
    let folders = group_folders(files, "memory").known().cloned().unwrap_or_default();
    let limits = folders.iter().filter_map(|folder| {
        let number = |names: [&str; 2]| {
            names.iter().find_map(|name| files.read_number::<u64>(&format!("{folder}/{name}")).known().copied())
        };
        // The kernel can drop inactive file pages.
        let used = number(["memory.current", "memory.usage_in_bytes"])?;
        let taken = used.saturating_sub(read_inactive_bytes(files, folder));
        Some(number(["memory.max", "memory.limit_in_bytes"])?.saturating_sub(taken))
    });
    let tightest = limits.min();
    machine.map(|free| tightest.map_or(free, |limit| free.min(limit)))
}

/// Bytes of file pages in memory that a group has not used for long.
fn read_inactive_bytes(files: &SystemFiles, folder: &str) -> u64 {
    let stat = files.read_text(&format!("{folder}/memory.stat")).known().cloned().unwrap_or_default();
    let line = stat.lines().find_map(|line| line.strip_prefix("inactive_file "));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or_default()
}

fn parse_available_bytes(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_is_limited_by_the_machine_and_the_tightest_group() {
        let root = std::env::temp_dir().join(format!("cyclescope-memory-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let files = || SystemFiles::rooted_at(&root);
        assert!(read_free_bytes(&files()).known().is_none());
        write("proc/meminfo", "MemTotal:       8000 kB\nMemAvailable:   3000 kB\n");
        assert_eq!(read_free_bytes(&files()), Fact::Known(3000 * 1024));
        write("proc/self/cgroup", "0::/a/b\n");
        write("sys/fs/cgroup/a/memory.max", "2000000\n");
        write("sys/fs/cgroup/a/memory.current", "500000\n");
        write("sys/fs/cgroup/a/b/memory.max", "max\n");
        assert_eq!(read_free_bytes(&files()), Fact::Known(1_500_000));
        write("sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 100000\n");
        assert_eq!(read_free_bytes(&files()), Fact::Known(1_600_000));
        write("proc/self/cgroup", "7:memory:/c\n0::/a/b\n");
        write("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "900000\n");
        write("sys/fs/cgroup/memory/c/memory.usage_in_bytes", "200000\n");
        assert_eq!(read_free_bytes(&files()), Fact::Known(700_000));
        write("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(read_free_bytes(&files()), Fact::Known(1_600_000));
        std::fs::remove_dir_all(root).unwrap();
    }
}
