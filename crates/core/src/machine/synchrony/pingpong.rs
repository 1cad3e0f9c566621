//! Exchanges of TSC readings between two CPUs through one cache line.
//!
//! Both sides spin. One that spins in vain for longer than any exchange takes has lost its partner to another
//! task, and naps: that keeps its share of a busy CPU for when the partner is back, and keeps two tasks that
//! are always preempted in turn from missing each other for good.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::bounds::Exchange;
use super::pinned::{Job, Limit, on_cpus};
use crate::machine::tsc_read::{TscRead, lfence_rdtsc, rdtscp};

/// The table that messages go across, alone in its pair of cache lines: processors fetch them in pairs (Intel
/// 64 and IA-32 Optimization Reference Manual, "Data prefetching", spatial prefetcher).
#[derive(Default)]
#[repr(align(128))]
struct Table {
    /// Odd for a message, even for its answer, [`OVER`] at the end.
    turn: AtomicU64,
    /// B's reading, for the last answer.
    reflected: AtomicU64,
}

const OVER: u64 = u64::MAX;
/// Looks at the line between two looks at the time: some microseconds at most.
const LOOKS: u32 = 64;
/// How long one side spins before it naps: longer than a nap, so that it meets the other one when that is back.
const PATIENCE: Duration = Duration::from_micros(300);
/// With the kernel's timer slack it takes about twice as long (prctl(2), PR_SET_TIMERSLACK).
const NAP: Duration = Duration::from_micros(50);

/// Exchanges up to `most` messages between CPU `a`, whose readings come first and last, and `b`.
///
/// # Safety
/// The TSC may be read in this way by threads of this process.
pub(super) unsafe fn exchange(
    [a, b]: [u32; 2],
    reading: TscRead,
    most: usize,
    until: Instant,
) -> Result<Vec<Exchange>, String> {
    let table = Arc::new(Table::default());
    let answering = table.clone();
    // SAFETY: the caller answers for it.
    let read = move || unsafe { fenced(reading) };
    let call: Job<Vec<Exchange>> = Box::new(move |limit| {
        let exchanges = table.call(most, limit, read);
        table.turn.store(OVER, Ordering::Release);
        exchanges
    });
    let answer: Job<Vec<Exchange>> = Box::new(move |limit| {
        answering.answer(limit, read);
        Vec::new()
    });
    let exchanges = on_cpus(vec![(a, call), (b, answer)], until)?.swap_remove(0);
    if exchanges.is_empty() {
        return Err(format!("CPUs {a} and {b} did not run at the same time in any of it"));
    }
    Ok(exchanges)
}

/// Reads the TSC, with LFENCE after it: the counter is read before anything that follows, the message above all
/// (Intel SDM vol. 2B, RDTSC and RDTSCP).
///
/// # Safety
/// The TSC may be read in this way here.
#[inline(always)]
unsafe fn fenced(reading: TscRead) -> u64 {
    // SAFETY: the caller answers for the reads; LFENCE belongs to SSE2, which 64-bit mode has.
    unsafe {
        let ticks = if reading == TscRead::Rdtscp { rdtscp().0 } else { lfence_rdtsc() };
        std::arch::asm!("lfence", options(nostack, preserves_flags));
        ticks
    }
}

impl Table {
    fn call(&self, most: usize, limit: &Limit, read: impl Fn() -> u64) -> Vec<Exchange> {
        let mut exchanges = Vec::with_capacity(most);
        for number in 0..most as u64 {
            let answered = 2 * number + 2;
            let sent = read();
            self.turn.store(answered - 1, Ordering::Release);
            if !self.wait(|turn| turn == answered, limit) {
                break;
            }
            // The read waits for the load that saw the answer.
            let returned = read();
            exchanges.push(Exchange { sent, reflected: self.reflected.load(Ordering::Relaxed), returned });
        }
        exchanges
    }

    fn answer(&self, limit: &Limit, read: impl Fn() -> u64) {
        for number in 0.. {
            let message = 2 * number + 1;
            if !self.wait(|turn| turn == message || turn == OVER, limit) {
                return;
            }
            let reflected = read();
            if self.turn.load(Ordering::Relaxed) == OVER {
                return;
            }
            // Release, so that who sees the turn sees the reading, both in one line.
            self.reflected.store(reflected, Ordering::Relaxed);
            self.turn.store(message + 1, Ordering::Release);
        }
    }

    /// Waits for a turn; false where the limit passes first.
    #[inline(always)]
    fn wait(&self, arrived: impl Fn(u64) -> bool, limit: &Limit) -> bool {
        let mut since: Option<Instant> = None;
        loop {
            for _ in 0..LOOKS {
                if arrived(self.turn.load(Ordering::Acquire)) {
                    return true;
                }
                // Without it the loop's exit is a memory order violation (Intel SDM vol. 2B, PAUSE), which made
                // the fastest messages slower: the bound was 30 % wider.
                std::hint::spin_loop();
            }
            if limit.passed() {
                return false;
            }
            if since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                std::thread::sleep(NAP);
            }
        }
    }
}
