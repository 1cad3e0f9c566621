//! An advisory lock per CPU, so that two runs do not measure on one CPU at the same time.
//!
//! The lock is held for one batch, not for the executor's life. Several executors, of one process
//! or of many, take turns on a CPU, and no executor waits for itself. A waiting run holds a second
//! lock, the queue's, so that a run with dense batches cannot starve another. The kernel releases
//! an `flock` when the process ends in any way.
//!
//! Any user who may open a lock file may hold it. A run therefore waits for it at most its
//! `patience`, then measures without it and reports that it was not alone. Nobody can keep another
//! run from measuring.

use cyclescope_core::machine::fact::Fact;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// State of the lock when the last batch began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockState {
    /// No other run used the CPU.
    Taken,
    /// Another run kept the lock longer than this run waits. Both ran at the same time.
    Busy,
    /// The lock could not be opened, for this reason. Other runs were not detected.
    Missing(String),
}

impl LockState {
    /// Whether no other run of this library used the CPU.
    pub fn is_exclusive(&self) -> Fact<bool> {
        match self {
            LockState::Taken => Fact::Known(true),
            LockState::Busy => Fact::Known(false),
            LockState::Missing(why) => Fact::unknown(format!("there is no lock: {why}")),
        }
    }
}

/// The lock of one CPU. Each batch takes it and releases it.
#[derive(Debug)]
pub struct CpuLock {
    /// Lock files of the queue and of the CPU.
    files: Result<[OwnedFd; 2], Errno>,
    patience: Duration,
    state: LockState,
}

/// Replaces a deadline that is too long for `Instant`.
const LONGEST_DEADLINE: Duration = Duration::from_secs(1 << 30);

/// The end of a deadline that starts now.
pub(super) fn end_of_deadline(deadline: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(deadline).unwrap_or(now + LONGEST_DEADLINE)
}

/// The shortest and the longest time until a waiting run tries the lock again. Each try interrupts
/// what runs on its CPU: some runs that tried every 200 µs made code of 0.2 ms take 5 % longer.
const PAUSES: [Duration; 2] = [Duration::from_micros(200), Duration::from_millis(5)];

/// Time until the next try of a run that has waited this long: a share of it, so that short waits
/// stay short.
fn pause_after(waited: Duration) -> Duration {
    let [shortest, longest] = PAUSES;
    (waited / 8).clamp(shortest, longest)
}

impl CpuLock {
    /// Opens the lock of a CPU without taking it; batches wait for it for `patience`.
    pub fn open(cpu: usize, patience: Duration) -> CpuLock {
        let files = open_lock_files(cpu);
        CpuLock { files, patience, state: LockState::Taken }
    }

    /// State of the lock when the last batch began.
    pub fn state(&self) -> &LockState {
        &self.state
    }

    /// Takes the lock, or continues without it when the patience is over.
    pub fn acquire(&mut self) {
        // A run that kept the lock through one wait may be stopped. Later batches do not wait for
        // it.
        let patience = match self.state {
            LockState::Busy => Duration::ZERO,
            _ => self.patience,
        };
        self.state = self.try_acquire(patience);
    }

    fn try_acquire(&self, patience: Duration) -> LockState {
        let [queue, cpu] = match &self.files {
            Ok(files) => files,
            Err(errno) => return LockState::Missing(std::io::Error::from(*errno).to_string()),
        };
        let until = Instant::now() + patience;
        let taken = wait_for_file(queue, until).and_then(|queued| Ok(queued && wait_for_file(cpu, until)?));
        let _ = rustix::fs::flock(queue, FlockOperation::Unlock);
        match taken {
            Ok(true) => LockState::Taken,
            Ok(false) => LockState::Busy,
            Err(errno) => LockState::Missing(std::io::Error::from(errno).to_string()),
        }
    }

    /// Releases the lock.
    pub fn release(&self) {
        if let Ok([_, cpu]) = &self.files {
            let _ = rustix::fs::flock(cpu, FlockOperation::Unlock);
        }
    }
}

/// Whether the lock was taken in time. An error if the system refuses or lacks such locks.
pub(super) fn wait_for_file(file: impl AsFd, until: Instant) -> Result<bool, Errno> {
    let begun = Instant::now();
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() >= until => return Ok(false),
            Err(Errno::WOULDBLOCK | Errno::INTR) => std::thread::sleep(pause_after(begun.elapsed())),
            Err(errno) => return Err(errno),
        }
    }
}

/// Directories for lock files, of which the first usable one counts.
///
/// Root's directory comes first: no user can remove its files, or deny them to others. Users use
/// the system's directory for temporary files on CPUs where root has not measured since the boot.
/// The last directory is private, so that its user detects no other user's run.
fn lock_directories() -> [Option<PathBuf>; 3] {
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    // An empty path would mean the root directory.
    [Some(ROOT_DIRECTORY.into()), Some("/tmp".into()), own.filter(|directory| directory.is_absolute())]
}

/// Root's directory, created by its first run.
const ROOT_DIRECTORY: &str = "/run/cyclescope";

/// Opens the lock files of a CPU: the queue's and its own.
fn open_lock_files(cpu: usize) -> Result<[OwnedFd; 2], Errno> {
    if rustix::process::geteuid().is_root() {
        // If it exists, or can't be made, opening it shows whether it is usable.
        let _ = rustix::fs::mkdir(ROOT_DIRECTORY, Mode::from(0o755));
    }
    let mut failed = Errno::NOENT;
    for directory in lock_directories().into_iter().flatten() {
        match open_files_in(&directory, cpu) {
            Ok(files) => return Ok(files),
            Err(errno) => failed = errno,
        }
    }
    Err(failed)
}

fn open_files_in(directory: &Path, cpu: usize) -> Result<[OwnedFd; 2], Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(directory, flags, Mode::empty())?;
    if !is_safe_directory(&rustix::fs::fstat(&directory)?, rustix::process::geteuid().as_raw()) {
        return Err(Errno::PERM);
    }
    let file = |end: &str| open_lock_file(&directory, &format!("cyclescope-cpu-{cpu}.{end}"));
    Ok([file("queue")?, file("lock")?])
}

/// Whether only root and this user can remove or replace files that others created in a directory.
fn is_safe_directory(directory: &Stat, user: u32) -> bool {
    const STICKY: u32 = 0o1000;
    const OTHERS_WRITE: u32 = 0o022;
    let mode = directory.st_mode;
    [0, user].contains(&directory.st_uid) && (mode & OTHERS_WRITE == 0 || mode & STICKY != 0)
}

/// Opens a lock file in a directory where anyone may have created anything with that name. It opens
/// no links or pipes, and only for reading, which is enough for a lock on another user's file.
fn open_lock_file(directory: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let open = |flags| rustix::fs::openat(directory, name, flags, Mode::from(0o644));
    // First without CREATE: the kernel may refuse that on another user's file
    // (fs.protected_regular).
    let file = match open(flags) {
        Err(Errno::NOENT) => match open(flags | OFlags::CREATE | OFlags::EXCL) {
            Err(Errno::EXIST) => open(flags)?,
            created => {
                let created = created?;
                // Others need to read it, whatever this user's mask. If this fails they have no
                // lock, and report that.
                let _ = rustix::fs::fchmod(&created, Mode::from(0o644));
                created
            }
        },
        other => other?,
    };
    match FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(file),
        _ => Err(Errno::INVAL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A temporary directory of one test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let folder = std::env::temp_dir().join(format!("cyclescope-lock-{name}-{}", std::process::id()));
            std::fs::create_dir(&folder).expect("a new folder");
            Folder(folder)
        }

        fn lock(&self) -> CpuLock {
            CpuLock { files: open_files_in(&self.0, 3), patience: Duration::ZERO, state: LockState::Taken }
        }

        fn set_mode(&self, mode: u32) {
            std::fs::set_permissions(&self.0, PermissionsExt::from_mode(mode)).expect("the owner may");
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_second_run_waits_until_the_first_releases_the_lock() {
        let folder = Folder::new("turns");
        let (first, second, mut late) = (folder.lock(), folder.lock(), folder.lock());
        assert_eq!(first.try_acquire(Duration::ZERO), LockState::Taken);
        assert_eq!(second.try_acquire(Duration::from_millis(2)), LockState::Busy);
        late.acquire();
        assert_eq!(late.state(), &LockState::Busy);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| second.try_acquire(Duration::from_secs(20)));
            std::thread::sleep(Duration::from_millis(5));
            first.release();
            assert_eq!(waiting.join().expect("the waiting thread"), LockState::Taken);
        });
    }

    #[test]
    fn a_long_wait_takes_few_tries() {
        let next = |waited: &Duration| Some(*waited + pause_after(*waited));
        let tries = |time: Duration| {
            std::iter::successors(Some(Duration::ZERO), next).take_while(|waited| *waited < time).count()
        };
        assert!(tries(Duration::from_secs(1)) < 250);
        // No wait is much longer than it must be.
        assert!(tries(Duration::from_millis(1)) >= 5);
    }

    #[test]
    fn a_held_lock_delays_another_run_only_once() {
        let folder = Folder::new("held");
        let (holder, mut run) = (folder.lock(), folder.lock());
        assert_eq!(holder.try_acquire(Duration::ZERO), LockState::Taken);
        run.patience = Duration::from_millis(300);
        let begun = Instant::now();
        run.acquire();
        assert!(begun.elapsed() >= run.patience && run.state() == &LockState::Busy);
        run.patience = Duration::from_secs(3600);
        (0..1000).for_each(|_| run.acquire());
        assert_eq!(run.state(), &LockState::Busy);
    }

    #[test]
    fn only_regular_files_are_accepted() {
        let folder = Folder::new("kinds");
        let name = folder.0.join("cyclescope-cpu-3.queue");
        std::os::unix::fs::symlink("/etc/hostname", &name).expect("a link");
        assert_eq!(open_files_in(&folder.0, 3).map(|_| ()), Err(Errno::LOOP));
        std::fs::remove_file(&name).expect("the link is removed");
        rustix::fs::mkfifoat(rustix::fs::CWD, &name, Mode::from(0o666)).expect("a pipe");
        assert_eq!(open_files_in(&folder.0, 3).map(|_| ()), Err(Errno::INVAL));
    }

    #[test]
    fn a_directory_where_others_may_remove_files_is_skipped() {
        let folder = Folder::new("safe");
        for (mode, good) in [(0o755, true), (0o700, true), (0o777, false), (0o775, false), (0o1777, true)] {
            folder.set_mode(mode);
            assert_eq!(open_files_in(&folder.0, 3).map(|_| ()).is_ok(), good, "{mode:o}");
        }
        let facts = rustix::fs::stat(&folder.0).expect("a folder");
        assert!(
            is_safe_directory(&facts, facts.st_uid)
                && (facts.st_uid == 0 || !is_safe_directory(&facts, facts.st_uid + 1))
        );
    }

    #[test]
    fn others_may_read_the_files_whatever_the_mask() {
        let folder = Folder::new("mask");
        let before = rustix::process::umask(Mode::from(0o077));
        let opened = open_files_in(&folder.0, 3);
        rustix::process::umask(before);
        opened.expect("the files are made");
        let mode = rustix::fs::stat(folder.0.join("cyclescope-cpu-3.lock")).expect("a file").st_mode;
        assert_eq!(mode & 0o777, 0o644);
    }
}
