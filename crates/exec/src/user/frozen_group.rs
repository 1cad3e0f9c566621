//! A frozen control group, for tests.

use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The folders of both versions, with the file that freezes a group, and what freezes and thaws it
/// (Linux, `cgroup-v1/freezer-subsystem.rst`, `cgroup-v2.rst`).
const FREEZERS: [(&str, &str, [&str; 2]); 3] = [
    ("/sys/fs/cgroup/freezer", "freezer.state", ["FROZEN", "THAWED"]),
    ("/sys/fs/cgroup", "cgroup.freeze", ["1", "0"]),
    ("/sys/fs/cgroup/unified", "cgroup.freeze", ["1", "0"]),
];
/// Time in which the processes of a thawed group end.
const END_MOST: Duration = Duration::from_secs(60);

/// A new control group with a frozen process.
pub(super) struct FrozenGroup {
    folder: PathBuf,
    file: &'static str,
    thaw: &'static str,
}

impl FrozenGroup {
    /// Freezes a process in a group of its own, if this process may make one.
    pub(super) fn freeze(pid: i32) -> Option<FrozenGroup> {
        FREEZERS.into_iter().find_map(|(root, file, [freeze, thaw])| {
            let folder = PathBuf::from(format!("{root}/cyclescope-{pid}"));
            std::fs::create_dir(&folder).ok()?;
            let group = FrozenGroup { folder, file, thaw };
            let enter = || std::fs::write(group.folder.join("cgroup.procs"), pid.to_string());
            let frozen = enter().and_then(|()| std::fs::write(group.folder.join(file), freeze));
            if frozen.is_err() {
                let _ = std::fs::remove_dir(&group.folder);
                return None;
            }
            Some(group)
        })
    }

    /// Thaws the group, whose process must then end.
    pub(super) fn thaw_and_remove(self) {
        std::fs::write(self.folder.join(self.file), self.thaw).expect("the group is this test's");
        let begun = Instant::now();
        while std::fs::remove_dir(&self.folder).is_err() {
            assert!(begun.elapsed() < END_MOST, "the process does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
