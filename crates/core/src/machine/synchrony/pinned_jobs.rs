//! Jobs on separate CPUs, with a deadline.
//!
//! If a task of higher priority keeps a CPU busy, a thread pinned to it never runs, and joining the
//! thread would hang. So threads are not joined: each sends its result. A thread that misses the
//! deadline may run on any of the caller's CPUs, where it ends by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use cyclescope_platform::cpus::{self, ThreadCpus};

/// A job that ends by itself soon after its limit passes.
pub(super) type PinnedJob<T> = Box<dyn FnOnce(&JobLimit) -> T + Send>;

/// Time limit of the jobs.
#[derive(Debug)]
pub(super) struct JobLimit {
    until: Instant,
    /// A job cannot run, so the others need not.
    called_off: AtomicBool,
}

impl JobLimit {
    /// Whether the job should end.
    pub(super) fn has_passed(&self) -> bool {
        self.called_off.load(Ordering::Relaxed) || Instant::now() >= self.until
    }
}

/// How long results may arrive after the deadline, and how long a released thread may take to end.
const DEADLINE_GRACE: Duration = Duration::from_millis(10);

/// State of a thread before it has a result.
#[derive(Default)]
struct ThreadSeat {
    /// Thread id; 0 before it starts.
    thread: AtomicI32,
    /// Whether it runs on its CPU.
    arrived: AtomicBool,
}

/// Runs the jobs at the same time, each on its CPU, and returns their results in order. The
/// caller's own affinity stays unchanged.
pub(super) fn run_on_cpus<T: Send + 'static>(jobs: Vec<(u32, PinnedJob<T>)>, until: Instant) -> Result<Vec<T>, String> {
    let cpus: Vec<u32> = jobs.iter().map(|(cpu, _)| *cpu).collect();
    if let Some(cpu) = cpus.iter().find(|&&cpu| cpu as usize >= cpus::MOST_NAMED) {
        return Err(format!("CPU {cpu} is beyond the {} that can be named", cpus::MOST_NAMED));
    }
    let seats: Vec<Arc<ThreadSeat>> = cpus.iter().map(|_| Arc::default()).collect();
    let limit = Arc::new(JobLimit { until, called_off: AtomicBool::new(false) });
    let (sender, receiver) = channel();
    for (index, (cpu, job)) in jobs.into_iter().enumerate() {
        let (seat, theirs, sender) = (seats[index].clone(), limit.clone(), sender.clone());
        let send = move || {
            let result = run_job(cpu, job, &seat, &theirs);
            theirs.called_off.fetch_or(result.is_err(), Ordering::Relaxed);
            // The caller may have given up.
            let _ = sender.send((index, result));
        };
        std::thread::Builder::new().spawn(send).map_err(|error| {
            limit.called_off.store(true, Ordering::Relaxed);
            format!("no thread could be started: {error}")
        })?;
    }
    drop(sender);
    let mut results: Vec<Option<Result<T, String>>> = cpus.iter().map(|_| None).collect();
    if collect_results(&receiver, &mut results, until + DEADLINE_GRACE).is_err() {
        let late = |index: &usize| results[*index].is_none();
        let late: Vec<usize> = (0..cpus.len()).filter(late).collect();
        late.iter().for_each(|&index| release_thread(&seats[index]));
        let why = explain_lateness(&late, &cpus, &seats);
        // They notice their deadline now. If not, they hold nothing of the caller's.
        let _ = collect_results(&receiver, &mut results, Instant::now() + DEADLINE_GRACE);
        return Err(why);
    }
    results.into_iter().flatten().collect()
}

fn run_job<T>(cpu: u32, job: PinnedJob<T>, seat: &ThreadSeat, limit: &JobLimit) -> Result<T, String> {
    seat.thread.store(cpus::thread_number(), Ordering::Release);
    cpus::move_thread(cpu).map_err(|error| format!("this process may not run on CPU {cpu}: {error}"))?;
    seat.arrived.store(true, Ordering::Release);
    let result = job(limit);
    // A CPU that goes offline or leaves the container's set loses its threads to others.
    let stayed = cpus::current_cpu() == cpu as usize;
    if stayed { Ok(result) } else { Err(format!("CPU {cpu} was taken from this process")) }
}

/// Waits until every result is there.
fn collect_results<T>(
    receiver: &Receiver<(usize, Result<T, String>)>,
    results: &mut [Option<Result<T, String>>],
    until: Instant,
) -> Result<(), RecvTimeoutError> {
    while results.iter().any(Option::is_none) {
        let left = until.saturating_duration_since(Instant::now());
        let (index, result) = receiver.recv_timeout(left)?;
        results[index] = Some(result);
    }
    Ok(())
}

/// Lets a late thread run on any of the caller's CPUs.
fn release_thread(seat: &ThreadSeat) {
    if let (thread @ 1.., Ok(cpus)) = (seat.thread.load(Ordering::Acquire), ThreadCpus::read()) {
        // Fails if the thread has just ended, which is fine.
        let _ = cpus.give_to(thread);
    }
}

fn explain_lateness(late: &[usize], cpus: &[u32], seats: &[Arc<ThreadSeat>]) -> String {
    let starved = late.iter().find(|&&index| !seats[index].arrived.load(Ordering::Acquire));
    match starved.or(late.first()) {
        Some(&index) if starved.is_some() => {
            format!("a thread for CPU {} did not get to run there in time", cpus[index])
        }
        Some(&index) => format!("the thread on CPU {} did not end in time", cpus[index]),
        None => "a thread was lost".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::topology::read_allowed_cpus;

    fn cpu() -> u32 {
        read_allowed_cpus().known().unwrap()[0]
    }

    #[test]
    fn results_keep_the_order_of_jobs_and_the_caller_stays_unpinned() {
        let before = ThreadCpus::read().unwrap();
        let until = Instant::now() + Duration::from_secs(5);
        let job = |number: u32| -> (u32, PinnedJob<(u32, usize)>) {
            (cpu(), Box::new(move |_| (number, cpus::current_cpu())))
        };
        let found = run_on_cpus(vec![job(1), job(2)], until).unwrap();
        assert_eq!(found, [(1, cpu() as usize), (2, cpu() as usize)]);
        assert_eq!(before, ThreadCpus::read().unwrap());
    }

    #[test]
    fn an_endless_job_is_not_waited_for() {
        let endless: PinnedJob<()> = Box::new(|_| std::thread::sleep(Duration::from_secs(3)));
        let started = Instant::now();
        let why = run_on_cpus(vec![(cpu(), endless)], started + Duration::from_millis(1)).unwrap_err();
        // On a busy CPU it does not even start.
        assert!(why.contains("in time"), "{why}");
        assert!(started.elapsed() < Duration::from_secs(3));
    }

    #[test]
    fn a_forbidden_cpu_gives_a_reason() {
        let until = Instant::now() + Duration::from_secs(5);
        let job = |cpu: u32| -> (u32, PinnedJob<()>) { (cpu, Box::new(|_| ())) };
        assert!(run_on_cpus(vec![job(1_000_000)], until).is_err());
        assert!(run_on_cpus(vec![job(1023)], until).unwrap_err().contains("1023"));
        // A job that waits for one that cannot run is cancelled.
        let waiting: PinnedJob<()> = Box::new(|limit| while !limit.has_passed() {});
        let long = Instant::now() + Duration::from_secs(60);
        assert!(run_on_cpus(vec![(cpu(), waiting), job(1023)], long).unwrap_err().contains("1023"));
        assert!(Instant::now() < long);
    }
}
