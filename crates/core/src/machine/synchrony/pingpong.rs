//! Exchanges of TSC readings between two CPUs through one cache line.
//!
//! Both sides spin. If a side spins for longer than any exchange takes, another task has its
//! partner's CPU, so it naps. The nap saves its CPU share for the partner's return. It also keeps
//! two tasks that are always preempted in turn from missing each other forever.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::bounds::TscExchange;
use super::pinned_jobs::{JobLimit, PinnedJob, run_on_cpus};
use crate::machine::tsc_read::{TscRead, lfence_rdtsc, rdtscp};

/// The shared table for messages, alone in its pair of cache lines: processors fetch lines in pairs
/// (Intel 64 and IA-32 Optimization Reference Manual, "Data prefetching", spatial prefetcher).
#[derive(Default)]
#[repr(align(128))]
struct PingPongTable {
    /// Odd for a message, even for its answer, [`TURN_OVER`] at the end.
    turn: AtomicU64,
    /// B's reading for the last answer.
    reflected: AtomicU64,
}

const TURN_OVER: u64 = u64::MAX;
/// Polls of the line between two checks of the time: some microseconds at most.
const SPINS_PER_TIME_CHECK: u32 = 64;
/// Spin time before a nap. It is longer than a nap, so that both sides meet again.
const SPIN_TIME: Duration = Duration::from_micros(300);
/// Requested nap. The kernel's timer slack about doubles it (prctl(2), PR_SET_TIMERSLACK).
const NAP_TIME: Duration = Duration::from_micros(50);

/// Exchanges up to `most` messages between CPU `a`, which reads first and last, and `b`.
///
/// # Safety
/// Threads of this process may read the TSC in this way.
pub(super) unsafe fn exchange_readings(
    [a, b]: [u32; 2],
    reading: TscRead,
    most: usize,
    until: Instant,
) -> Result<Vec<TscExchange>, String> {
    let table = Arc::new(PingPongTable::default());
    let answering = table.clone();
    // SAFETY: the caller guarantees it.
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
        return Err(format!("CPUs {a} and {b} never ran at the same time"));
    }
    Ok(exchanges)
}

/// Reads the TSC, followed by LFENCE: the counter is read before anything later, above all the
/// message (Intel SDM vol. 2B, RDTSC and RDTSCP).
///
/// # Safety
/// This thread may read the TSC in this way.
#[inline(always)]
unsafe fn read_fenced(reading: TscRead) -> u64 {
    // SAFETY: the caller guarantees the reads; LFENCE belongs to SSE2, which 64-bit mode has.
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
            // Release, so that whoever sees the turn also sees the reading; both are in one line.
            self.reflected.store(reflected, Ordering::Relaxed);
            self.turn.store(message + 1, Ordering::Release);
        }
    }

    /// Waits for a turn; false if the limit passes first.
    #[inline(always)]
    fn wait_for_turn(&self, arrived: impl Fn(u64) -> bool, limit: &JobLimit) -> bool {
        let mut since: Option<Instant> = None;
        loop {
            for _ in 0..SPINS_PER_TIME_CHECK {
                if arrived(self.turn.load(Ordering::Acquire)) {
                    return true;
                }
                // Without it, leaving the loop is a memory order violation (Intel SDM vol. 2B,
                // PAUSE). That slowed the fastest messages and made the bound 30 % wider.
                std::hint::spin_loop();
            }
            if limit.has_passed() {
                return false;
            }
            if since.get_or_insert_with(Instant::now).elapsed() > SPIN_TIME {
                cyclescope_platform::time::sleep(NAP_TIME);
            }
        }
    }
}
