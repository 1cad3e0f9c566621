//! An advisory lock per CPU, so that two runs do not measure on one CPU at the same time.
//!
//! The lock is held for one batch, not for the executor's life: several executors, of one process or of many,
//! take turns on a CPU, and no executor waits for itself. A waiting run holds a second lock, the queue's, so that
//! a run whose batches follow each other closely cannot starve another. The kernel releases an `flock` when the
//! process ends in any way.

use crate::machine::fact::Fact;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// State of the lock when the last batch began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockState {
    /// No other run used the CPU.
    Taken,
    /// Another run kept the lock longer than this run waits; both ran at the same time.
    Busy,
    /// The lock could not be opened, for this reason; other runs were not detected.
    Missing(String),
}

impl LockState {
    /// Whether no other run of this library used the CPU.
    pub fn exclusive(&self) -> Fact<bool> {
        match self {
            LockState::Taken => Fact::Known(true),
            LockState::Busy => Fact::Known(false),
            LockState::Missing(why) => Fact::unknown(format!("there is no lock: {why}")),
        }
    }
}

/// The lock of one CPU, held for one batch after another.
pub(super) struct CpuLock {
    /// Lock files of the queue and of the CPU.
    files: Result<[OwnedFd; 2], Errno>,
    patience: Duration,
    state: LockState,
}

/// Replaces a deadline that is too long for `Instant`.
const LONGEST: Duration = Duration::from_secs(1 << 30);

/// The moment at which a deadline that starts now ends.
pub(super) fn until(deadline: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(deadline).unwrap_or(now + LONGEST)
}

/// Interval at which a waiting run tries the lock again.
const POLL: Duration = Duration::from_micros(200);

impl CpuLock {
    /// The lock of a CPU, not yet held; batches wait for it for `patience`.
    pub(super) fn open(cpu: usize, patience: Duration) -> CpuLock {
        let open = |directory: &str| {
            Ok([
                open_file(&format!("{directory}/cyclescope-cpu-{cpu}.queue"))?,
                open_file(&format!("{directory}/cyclescope-cpu-{cpu}.lock"))?,
            ])
        };
        let files = open("/tmp").or_else(|error| match std::env::var("XDG_RUNTIME_DIR") {
            // An empty one would be the root directory.
            Ok(directory) if directory.starts_with('/') => open(&directory),
            _ => Err(error),
        });
        CpuLock { files, patience, state: LockState::Taken }
    }

    /// State of the lock when the last batch began.
    pub(super) fn state(&self) -> &LockState {
        &self.state
    }

    /// Takes the lock, or continues without it when the patience is over.
    pub(super) fn begin(&mut self) {
        // A run that kept the lock through one wait may be stopped: later batches do not wait for it again.
        let patience = match self.state {
            LockState::Busy => Duration::ZERO,
            _ => self.patience,
        };
        self.state = self.take(patience);
    }

    fn take(&self, patience: Duration) -> LockState {
        let [queue, cpu] = match &self.files {
            Ok(files) => files,
            Err(errno) => return LockState::Missing(std::io::Error::from(*errno).to_string()),
        };
        let until = Instant::now() + patience;
        let taken = wait_for(queue, until).and_then(|queued| Ok(queued && wait_for(cpu, until)?));
        let _ = rustix::fs::flock(queue, FlockOperation::Unlock);
        match taken {
            Ok(true) => LockState::Taken,
            Ok(false) => LockState::Busy,
            Err(errno) => LockState::Missing(std::io::Error::from(errno).to_string()),
        }
    }

    /// Releases the lock.
    pub(super) fn release(&self) {
        if let Ok([_, cpu]) = &self.files {
            let _ = rustix::fs::flock(cpu, FlockOperation::Unlock);
        }
    }
}

/// Whether the lock was taken in time; an error where the system has no such locks, or refuses them.
fn wait_for(file: &OwnedFd, until: Instant) -> Result<bool, Errno> {
    loop {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() >= until => return Ok(false),
            Err(Errno::WOULDBLOCK | Errno::INTR) => std::thread::sleep(POLL),
            Err(errno) => return Err(errno),
        }
    }
}

/// Opens a lock file in a directory where anyone may have put anything by that name: no links, no pipes, and
/// for reading only, which is enough for a lock on another user's file.
fn open_file(path: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    // First without CREATE: the kernel may refuse that on another user's file (fs.protected_regular).
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Err(Errno::NOENT) => {
            let created = rustix::fs::open(path, flags | OFlags::CREATE | OFlags::EXCL, Mode::from(0o666));
            match created {
                Err(Errno::EXIST) => rustix::fs::open(path, flags, Mode::empty())?,
                other => other?,
            }
        }
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

    #[test]
    fn the_second_waits_until_the_first_lets_go() {
        // No machine has such a CPU: the test keeps out of the way of real runs.
        let cpu = 1_000_000 + std::process::id() as usize;
        let open = || CpuLock::open(cpu, Duration::ZERO);
        let (first, second, mut late) = (open(), open(), open());
        assert_eq!(first.take(Duration::ZERO), LockState::Taken);
        assert_eq!(second.take(Duration::from_millis(2)), LockState::Busy);
        late.begin();
        assert_eq!(late.state(), &LockState::Busy);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| second.take(Duration::from_secs(20)));
            std::thread::sleep(Duration::from_millis(5));
            first.release();
            assert_eq!(waiting.join().expect("the waiting thread"), LockState::Taken);
        });
        second.release();
        for name in ["queue", "lock"] {
            std::fs::remove_file(format!("/tmp/cyclescope-cpu-{cpu}.{name}")).expect("the files were made");
        }
    }

    #[test]
    fn a_link_in_place_of_the_file_is_refused() {
        let path = format!("/tmp/cyclescope-test-{}.lock", std::process::id());
        std::os::unix::fs::symlink("/etc/hostname", &path).expect("a link");
        let opened = open_file(&path).map(|_| ());
        std::fs::remove_file(&path).expect("the link is removed");
        assert_eq!(opened, Err(Errno::LOOP));
    }
}
