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

use crate::lock_files::open_lock_files;
use cyclescope_core::machine::fact::Fact;
use cyclescope_platform::files;
use std::fs::File;
use std::io;
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
    files: io::Result<[File; 2]>,
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
            Err(error) => return LockState::Missing(error.to_string()),
        };
        let until = Instant::now() + patience;
        let taken = wait_for_file(queue, until).and_then(|queued| Ok(queued && wait_for_file(cpu, until)?));
        files::unlock(queue);
        match taken {
            Ok(true) => LockState::Taken,
            Ok(false) => LockState::Busy,
            Err(error) => LockState::Missing(error.to_string()),
        }
    }

    /// Releases the lock.
    pub fn release(&self) {
        if let Ok([_, cpu]) = &self.files {
            files::unlock(cpu);
        }
    }
}

/// Whether the lock was taken in time. An error if the system refuses or lacks such locks.
pub(super) fn wait_for_file(file: &File, until: Instant) -> io::Result<bool> {
    let begun = Instant::now();
    loop {
        if files::try_lock(file)? {
            return Ok(true);
        }
        if Instant::now() >= until {
            return Ok(false);
        }
        cyclescope_platform::time::sleep(pause_after(begun.elapsed()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock_files::open_files_in;
    use std::path::PathBuf;

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
}
