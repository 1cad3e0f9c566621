//! A control group for the workers of one executor, with limits of memory and processes.
//!
//! It is made where this process may divide a group of version 2: beside its own group, if the group
//! above both passes on the controllers of memory and processes. A process whose own group has limits
//! stays inside them, and so do its workers.
//!
//! The executor locks the group's folder and removes it at its end. A folder without a lock belongs to
//! a run that was killed, and the next run removes it.

use cyclescope_core::machine::fact::SystemFiles;
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Prefix of the names of all groups.
const GROUP_PREFIX: &str = "cyclescope-worker-";
/// Where version 2 is mounted (cgroups(7)).
const MOUNT: &str = "/sys/fs/cgroup";
/// Controllers that a group needs.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];
/// Limits of this process's own group, with their values if there is no limit (Linux,
/// `cgroup-v2.rst`).
const OWN_LIMITS: [(&str, &str); 5] =
    [("memory.max", "max"), ("memory.high", "max"), ("pids.max", "max"), ("cpu.max", "max"), ("cpuset.cpus", "")];

/// A group that contains no process but this executor's worker.
#[derive(Debug)]
pub(super) struct WorkerGroup {
    folder: PathBuf,
    /// The locked folder.
    lock: OwnedFd,
    /// Its limit of memory, if it has limits.
    memory: Option<File>,
}

impl WorkerGroup {
    /// Makes a group where the system allows it; otherwise the reason.
    pub(super) fn make(files: &SystemFiles) -> Result<WorkerGroup, String> {
        let mut group = WorkerGroup::make_in(&find_divisible_group(files)?)?;
        write_limit(&mut group.open_limit("pids.max")?, 1)?;
        group.memory = Some(group.open_limit("memory.max")?);
        Ok(group)
    }

    /// Makes a group without limits in this one.
    fn make_in(base: &Path) -> Result<WorkerGroup, String> {
        /// Runs that may begin at the same moment.
        const TRIES: u32 = 32;
        remove_stale_groups(base);
        let mut made = WorkerGroup::make_new(base);
        for _ in 1..TRIES {
            // Another run took the new folder for a stale one.
            if !made.as_ref().is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::WouldBlock)) {
                break;
            }
            made = WorkerGroup::make_new(base);
        }
        made.map_err(|error| format!("the group {} may not be divided: {error}", base.display()))
    }

    /// Makes a folder and locks it.
    fn make_new(base: &Path) -> std::io::Result<WorkerGroup> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = base.join(format!("{GROUP_PREFIX}{}-{number}", std::process::id()));
        std::fs::create_dir(&folder)?;
        let locked = lock_folder(&folder).and_then(|file| {
            // Another run may have removed it before it was locked.
            let same = rustix::fs::stat(&folder)?.st_ino == rustix::fs::fstat(&file)?.st_ino;
            if same { Ok(file) } else { Err(ErrorKind::NotFound.into()) }
        });
        match locked {
            Ok(lock) => Ok(WorkerGroup { folder, lock, memory: None }),
            Err(error) => {
                // Nothing is in it.
                let _ = std::fs::remove_dir(&folder);
                Err(error)
            }
        }
    }

    /// Limits the memory of the next worker.
    pub(super) fn limit_memory(&mut self, bytes: u64) -> Result<(), String> {
        self.memory.as_mut().map_or(Ok(()), |file| write_limit(file, bytes))
    }

    fn open_limit(&self, name: &str) -> Result<File, String> {
        let file = File::options().write(true).open(self.folder.join(name));
        file.map_err(|error| format!("its {name} can't be opened: {error}"))
    }

    /// The descriptor with which a process is made in it.
    pub(super) fn descriptor(&self) -> i32 {
        self.lock.as_raw_fd()
    }
}

impl Drop for WorkerGroup {
    fn drop(&mut self) {
        // A worker that can't be ended keeps it. A later run removes it.
        let _ = std::fs::remove_dir(&self.folder);
    }
}

fn write_limit(file: &mut File, value: u64) -> Result<(), String> {
    file.write_all(value.to_string().as_bytes()).map_err(|error| format!("its limits can't be set: {error}"))
}

fn lock_folder(folder: &Path) -> std::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(folder, flags, Mode::empty())?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(file)
}

/// Removes groups of runs that were killed. A group with a process can't be removed.
fn remove_stale_groups(base: &Path) {
    let entries = std::fs::read_dir(base).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(GROUP_PREFIX)) {
        let folder = entry.path();
        if let Ok(_locked) = lock_folder(&folder) {
            let _ = std::fs::remove_dir(&folder);
        }
    }
}

/// The group in which one for workers can be made, as a folder.
fn find_divisible_group(files: &SystemFiles) -> Result<PathBuf, String> {
    let groups = files.read_text("/proc/self/cgroup").known().cloned().unwrap_or_default();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let own = own.ok_or("this process has no control group of version 2")?.trim_end_matches('/');
    let read = |path: &str| files.read_text(&format!("{MOUNT}{path}")).known().cloned();
    let limits = OWN_LIMITS.iter().find(|(name, none)| {
        let value = read(&format!("{own}/{name}")).unwrap_or_else(|| (*none).to_string());
        value.split_whitespace().next().unwrap_or_default() != *none
    });
    if let Some((name, _)) = limits.filter(|_| !own.is_empty()) {
        return Err(format!("the own group has a limit ({name}), and a worker beside it would escape"));
    }
    // The root is the only group that may have processes and pass on controllers.
    let base = own.rsplit_once('/').map_or("", |(above, _)| above);
    let passed = read(&format!("{base}/cgroup.subtree_control")).unwrap_or_default();
    let missing = CONTROLLERS.iter().find(|name| !passed.split_whitespace().any(|passed| passed == **name));
    match missing {
        Some(name) => {
            let base = if base.is_empty() { "/" } else { base };
            Err(format!("the group {base} passes on no limits of {name}; see Delegate= of systemd.resource-control(5)"))
        }
        None => Ok(files.path(&format!("{MOUNT}{base}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::namespaces::WorkerNamespaces;
    use super::super::tests::{assert_still_runs, spawn};
    use super::*;
    use crate::Executor;

    /// A new temporary folder, removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let folder = std::env::temp_dir().join(format!("cyclescope-group-{name}-{}", std::process::id()));
            std::fs::create_dir(&folder).expect("a new folder");
            Folder(folder)
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }

        fn count(&self) -> usize {
            std::fs::read_dir(&self.0).expect("a folder").count()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn only_a_group_that_passes_on_both_controllers_is_divided() {
        let root = Folder::new("find");
        let find = || find_divisible_group(&SystemFiles::rooted_at(&root.0));
        root.write("proc/self/cgroup", "4:memory:/a\n");
        assert!(find().unwrap_err().contains("no control group of version 2"));
        root.write("proc/self/cgroup", "4:memory:/a\n0::/a/leaf\n");
        assert!(find().unwrap_err().contains("/a passes on no limits of memory"));
        root.write("sys/fs/cgroup/a/cgroup.subtree_control", "cpu memory\n");
        assert!(find().unwrap_err().contains("/a passes on no limits of pids"));
        root.write("sys/fs/cgroup/a/cgroup.subtree_control", "cpu memory pids\n");
        root.write("sys/fs/cgroup/a/leaf/memory.max", "max\n");
        root.write("sys/fs/cgroup/a/leaf/cpu.max", "max 100000\n");
        assert_eq!(find(), Ok(root.0.join("sys/fs/cgroup/a")));
        for (name, text) in [("memory.max", "1000000\n"), ("cpu.max", "50000 100000\n"), ("cpuset.cpus", "0-1\n")] {
            root.write(&format!("sys/fs/cgroup/a/leaf/{name}"), text);
            assert!(find().unwrap_err().contains(name));
            std::fs::remove_file(root.0.join(format!("sys/fs/cgroup/a/leaf/{name}"))).expect("a file");
        }
        root.write("proc/self/cgroup", "0::/\n");
        root.write("sys/fs/cgroup/cgroup.subtree_control", "memory pids\n");
        assert_eq!(find(), Ok(root.0.join("sys/fs/cgroup")));
    }

    #[test]
    fn groups_of_killed_runs_are_removed_and_those_in_use_stay() {
        let base = Folder::new("stale");
        let group = |name: &str| base.0.join(format!("{GROUP_PREFIX}{name}"));
        std::fs::create_dir(group("killed")).expect("a new folder");
        std::fs::create_dir(base.0.join("other")).expect("a new folder");
        let used = WorkerGroup::make_in(&base.0).expect("a group");
        assert!(!group("killed").exists() && used.folder.exists() && base.count() == 2);
        let second = WorkerGroup::make_in(&base.0).expect("a group");
        assert!(used.folder.exists() && base.count() == 3);
        drop((used, second));
        assert_eq!(base.count(), 1);
    }

    #[test]
    fn runs_that_begin_at_the_same_time_all_get_a_group() {
        let base = Folder::new("race");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let failed = (0..500).find_map(|_| WorkerGroup::make_in(&base.0).err());
                    assert_eq!(failed, None);
                });
            }
        });
        assert_eq!(base.count(), 0);
    }

    /// A group of the real system in which others can be made, for one test alone.
    fn real_group() -> Option<PathBuf> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mounts = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(PathBuf::from);
        let base = mounts.into_iter().find(|mount| mount.join("cgroup.procs").exists())?;
        let base =
            base.join(format!("cyclescope-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
        std::fs::create_dir(&base).ok()?;
        Some(base)
    }

    #[test]
    fn a_worker_is_made_in_its_group_and_leaves_it_empty() {
        let Some(base) = real_group() else {
            return cyclescope_skipped::report_skipped("this process may make no control group");
        };
        let mut user = spawn();
        user.confinement.group = WorkerGroup::make_in(&base);
        let folder = user.confinement.group.as_ref().expect("a group").folder.clone();
        let name = folder.file_name().expect("a name").to_str().expect("text");
        for _ in 0..3 {
            user.renew_process();
            assert_still_runs(&mut user);
            let pid = user.worker_pid().expect("there is one");
            let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).expect("/proc");
            assert!(groups.lines().any(|line| line.ends_with(name)), "{groups}");
            let members = std::fs::read_to_string(folder.join("cgroup.procs")).expect("a group");
            assert_eq!(members.trim(), pid.to_string());
        }
        drop(user);
        assert!(!folder.exists());
        std::fs::remove_dir(base).expect("it is empty");
    }

    #[test]
    fn a_group_that_has_gone_is_done_without() {
        let Some(base) = real_group() else {
            return cyclescope_skipped::report_skipped("this process may make no control group");
        };
        let mut user = spawn();
        user.confinement.group = WorkerGroup::make_in(&base);
        user.renew_process();
        std::fs::remove_dir(&user.confinement.group.as_ref().expect("a group").folder).expect("it is empty");
        let namespaces = user.confinement.namespaces.flags();
        assert_still_runs(&mut user);
        assert!(user.confinement.group.is_err() && user.confinement.namespaces.flags() == namespaces);
        std::fs::remove_dir(base).expect("it is empty");
    }

    #[test]
    fn refused_namespaces_cost_a_worker_no_group() {
        let Some(base) = real_group() else {
            return cyclescope_skipped::report_skipped("this process may make no control group");
        };
        // The kernel makes no process that shares what it separates.
        const REFUSED: i32 = libc::CLONE_NEWIPC | libc::CLONE_SYSVSEM;
        let mut user = spawn();
        user.confinement.group = WorkerGroup::make_in(&base);
        user.confinement.namespaces = WorkerNamespaces::from_candidates(vec![REFUSED, 0]);
        user.renew_process();
        assert_still_runs(&mut user);
        assert!(user.confinement.group.is_ok(), "{:?}", user.confinement.group);
        assert_eq!(user.confinement.namespaces.find_refusal(libc::CLONE_NEWIPC), Err(libc::EINVAL));
        drop(user);
        std::fs::remove_dir(base).expect("it is empty");
    }
}
