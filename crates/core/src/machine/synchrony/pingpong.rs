//! Exchanges of TSC readings between two CPUs through one cache line.
//!
//! Both sides spin. One that spins in vain for longer than any exchange takes has lost its partner to another
//! task, and naps: that keeps its share of a busy CPU for when the partner is back, and keeps two tasks that
//! are always preempted in turn from missing each other for good.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::bounds::TscExchange;
use super::pinned_jobs::{JobLimit, PinnedJob, run_on_cpus};
use crate::machine::tsc_read::{TscRead, lfence_rdtsc, rdtscp};

/// The table that messages go across, alone in its pair of cache lines: processors fetch them in pairs (Intel
/// 64 and IA-32 Optimization Reference Manual, "Data prefetching", spatial prefetcher).
#[derive(Default)]
#[repr(align(128))]
struct PingPongTable {
    /// Odd for a message, even for its answer, [`TURN_OVER`] at the end.
    turn: AtomicU64,
    /// B's reading, for the last answer.
    reflected: AtomicU64,
}

const TURN_OVER: u64 = u64::MAX;
/// Looks at the line between two looks at the time: some microseconds at most.
const SPINS_PER_TIME_CHECK: u32 = 64;
/// How long one side spins before it naps: longer than a nap, so that it meets the other one when that is back.
const SPIN_TIME: Duration = Duration::from_micros(300);
/// With the kernel's timer slack it takes about twice as long (prctl(2), PR_SET_TIMERSLACK).
const NAP_TIME: Duration = Duration::from_micros(50);

/// Exchanges up to `most` messages between CPU `a`, whose readings come first and last, and `b`.
///
/// # Safety
/// The TSC may be read in this way by threads of this process.
pub(super) unsafe fn exchange_readings(
    [a, b]: [u32; 2],
    reading: TscRead,
    most: usize,
    until: Instant,
) -> Result<Vec<TscExchange>, String> {
    let table = Arc::new(PingPongTable::default());
    let answering = table.clone();
    // SAFETY: the caller answers for it.
    let read = move || unsafe { read_fenced(reading) };
    let call: PinnedJob<Vec<TscExchange>> = Box::new(move |limit| {
        let exchanges = table.send_messages(most, limit, read);
        table.turn.store(TURN_OVER, Ordering::Release);
        exchanges
    });
    let answer: PinnedJob<Vec<TscExchange>> = Box::new(move |limit| {
        answering.answer_messages(limit, read);
        Vec::new()
    });
    let exchanges = run_on_cpus(vec![(a, call), (b, answer)], until)?.swap_remove(0);
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
unsafe fn read_fenced(reading: TscRead) -> u64 {
    // SAFETY: the caller answers for the reads; LFENCE belongs to SSE2, which 64-bit mode has.
    unsafe {
        let ticks = if reading == TscRead::Rdtscp { rdtscp().0 } else { lfence_rdtsc() };
        std::arch::asm!("lfence", options(nostack, preserves_flags));
        ticks
    }
}

impl PingPongTable {
    fn send_messages(&self, most: usize, limit: &JobLimit, read: impl Fn() -> u64) -> Vec<TscExchange> {
        let mut exchanges = Vec::with_capacity(most);
        for number in 0..most as u64 {
            let answered = 2 * number + 2;
            let sent = read();
            self.turn.store(answered - 1, Ordering::Release);
            if !self.wait_for_turn(|turn| turn == answered, limit) {
                break;
            }
            // The read waits for the load that saw the answer.
            let returned = read();
            exchanges.push(TscExchange { sent, reflected: self.reflected.load(Ordering::Relaxed), returned });
        }
        exchanges
    }

    fn answer_messages(&self, limit: &JobLimit, read: impl Fn() -> u64) {
        for number in 0.. {
            let message = 2 * number + 1;
            if !self.wait_for_turn(|turn| turn == message || turn == TURN_OVER, limit) {
                return;
            }
            let reflected = read();
            if self.turn.load(Ordering::Relaxed) == TURN_OVER {
                return;
            }
            // Release, so that who sees the turn sees the reading, both in one line.
            self.reflected.store(reflected, Ordering::Relaxed);
            self.turn.store(message + 1, Ordering::Release);
        }
    }

    /// Waits for a turn; false where the limit passes first.
    #[inline(always)]
    fn wait_for_turn(&self, arrived: impl Fn(u64) -> bool, limit: &JobLimit) -> bool {
        let mut since: Option<Instant> = None;
        loop {
            for _ in 0..SPINS_PER_TIME_CHECK {
                if arrived(self.turn.load(Ordering::Acquire)) {
                    return true;
                }
                // Without it the loop's exit is a memory order violation (Intel SDM vol. 2B, PAUSE), which made
                // the fastest messages slower: the bound was 30 % wider.
                std::hint::spin_loop();
            }
            if limit.has_passed() {
                return false;
            }
            if since.get_or_insert_with(Instant::now).elapsed() > SPIN_TIME {
                std::thread::sleep(NAP_TIME);
            }
        }
    }
}
