//! Executors on other CPUs, each in its own thread, so that several run programs at the same time.
//!
//! Each thread opens its executor itself, because a worker ends with the thread that made it. A
//! thread that does not answer in time is not waited for: it ends by itself when it gets its CPU
//! again.

use super::offer::{OpenError, OpenOptions};
use super::thread_end::join_within;
use super::{Batch, Capabilities, Executor, ExecutorOffer, Sample, executor_list};
use cyclescope_code::clock::{Clock, preferred_clocks};
use cyclescope_core::error::{RunError, Unavailable};
use cyclescope_core::machine::Machine;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time limit for making a process: beside much other load it takes more than a second.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Time in which a thread without requests ends: it ends its worker, which may be frozen.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// An executor on a CPU, in its own thread.
#[derive(Debug)]
pub struct RemoteExecutor {
    /// A timing method that works there.
    pub clock: &'static Clock,
    cpu: u32,
    jobs: Option<Sender<RemoteJob>>,
    thread: Option<JoinHandle<()>>,
    /// Whether it failed to answer in time.
    lost: Cell<bool>,
}

/// A request to the thread.
struct RemoteJob {
    batch: Batch,
    /// The batch repeats until this is set; without it, it runs once.
    until: Option<Arc<AtomicBool>>,
    answer: Sender<RemoteAnswer>,
}

type RemoteAnswer = Result<RemoteOutcome, RunError>;

/// The result of a batch.
#[derive(Debug)]
pub struct RemoteOutcome {
    /// Its samples.
    pub samples: Vec<Sample>,
    /// Whether another run of this library used the CPU at the same time.
    pub disturbed: bool,
}

/// A repeating batch. It ends when this is dropped.
#[derive(Debug)]
pub struct RepeatingBatch<'a> {
    remote: &'a RemoteExecutor,
    stop: Arc<AtomicBool>,
    answers: Receiver<RemoteAnswer>,
}

impl RemoteExecutor {
    /// Opens an executor on a CPU.
    ///
    /// # Errors
    ///
    /// If that CPU has no executor.
    pub fn open(cpu: u32, options: OpenOptions) -> Result<RemoteExecutor, RunError> {
        let (jobs, wanted) = channel();
        let (opened, begun) = channel();
        let work = move || match open_on_cpu(cpu, &options) {
            Ok((executor, clock)) => {
                if opened.send(Ok(clock)).is_ok() {
                    serve_jobs(executor, &wanted);
                }
            }
            // The caller may have given up.
            Err(error) => drop(opened.send(Err(error))),
        };
        let thread = std::thread::Builder::new().name(format!("remote on CPU {cpu}")).spawn(work);
        let thread = thread.map_err(|error| RunError::from_io("starting a thread", &error))?;
        let clock = begun.recv_timeout(START_TIMEOUT).map_err(|_| no_answer_error(cpu))??;
        Ok(RemoteExecutor { clock, cpu, jobs: Some(jobs), thread: Some(thread), lost: Cell::new(false) })
    }

    /// Whether it failed to answer in time. It never answers again.
    pub fn is_lost(&self) -> bool {
        self.lost.get()
    }

    /// Runs a batch once. The answer comes within this time.
    ///
    /// # Errors
    ///
    /// Those of the executor, and a missing answer.
    pub fn run(&self, batch: Batch, within: Duration) -> RemoteAnswer {
        self.wait_for_answer(&self.send_job(batch, None)?, within)
    }

    /// Repeats a batch. It has run once when this returns.
    ///
    /// # Errors
    ///
    /// See [`RemoteExecutor::run`].
    pub fn repeat(&self, batch: Batch, within: Duration) -> Result<RepeatingBatch<'_>, RunError> {
        let stop = Arc::new(AtomicBool::new(false));
        let answers = self.send_job(batch, Some(stop.clone()))?;
        let repeated = RepeatingBatch { remote: self, stop, answers };
        self.wait_for_answer(&repeated.answers, within)?;
        Ok(repeated)
    }

    /// Ends the thread, if it still answers, within this time.
    fn end_thread(&mut self, time: Duration) {
        // It ends when its channel closes.
        self.jobs = None;
        if let Some(thread) = self.thread.take().filter(|_| !self.lost.get()) {
            // A panic has already been reported.
            let _ = join_within(thread, time);
        }
    }

    fn send_job(&self, batch: Batch, until: Option<Arc<AtomicBool>>) -> Result<Receiver<RemoteAnswer>, RunError> {
        let (answer, answers) = channel();
        let jobs = self.jobs.as_ref().filter(|_| !self.lost.get());
        let sent = jobs.is_some_and(|jobs| jobs.send(RemoteJob { batch, until, answer }).is_ok());
        if sent { Ok(answers) } else { Err(no_answer_error(self.cpu)) }
    }

    fn wait_for_answer(&self, answers: &Receiver<RemoteAnswer>, within: Duration) -> RemoteAnswer {
        answers.recv_timeout(within).map_err(|_| {
            self.lost.set(true);
            no_answer_error(self.cpu)
        })?
    }
}

impl Drop for RemoteExecutor {
    fn drop(&mut self) {
        self.end_thread(END_TIMEOUT);
    }
}

impl RepeatingBatch<'_> {
    /// Ends it within this time. Returns the last batch's samples.
    ///
    /// # Errors
    ///
    /// See [`RemoteExecutor::run`].
    pub fn stop(self, within: Duration) -> RemoteAnswer {
        self.stop.store(true, Ordering::Release);
        self.remote.wait_for_answer(&self.answers, within)
    }
}

impl Drop for RepeatingBatch<'_> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

/// Runs requests until the channel closes.
fn serve_jobs(mut executor: Box<dyn Executor>, jobs: &Receiver<RemoteJob>) {
    for RemoteJob { batch, until, answer } in jobs {
        let mut disturbed = false;
        let mut run = |executor: &mut dyn Executor| {
            let samples = executor.run(&batch)?;
            disturbed |= executor.had_exclusive_cpu().known() == Some(&false);
            Ok(RemoteOutcome { samples, disturbed })
        };
        let mut ran = run(executor.as_mut());
        if let Some(until) = until {
            if ran.is_ok() && answer.send(ran).is_err() {
                continue;
            }
            ran = run(executor.as_mut());
            while ran.is_ok() && !until.load(Ordering::Acquire) {
                ran = run(executor.as_mut());
            }
        }
        // The caller may have given up.
        let _ = answer.send(ran);
    }
}

/// Opens an executor on a CPU, with a timing method that works there.
pub(super) fn open_on_cpu(cpu: u32, options: &OpenOptions) -> Result<(Box<dyn Executor>, &'static Clock), RunError> {
    let machine = Machine::detect_on(cpu).map_err(RunError::Unavailable)?;
    let offer: &ExecutorOffer = executor_list::DEFAULT_OFFER;
    let clock = choose_clock(&machine, &(offer.capabilities)(&machine))?;
    let opened = (offer.open)(&machine, options);
    let executor = opened.map_err(|error| match error {
        OpenError::Unavailable(reason) => RunError::Unavailable(reason),
        OpenError::Failed(error) => error,
    })?;
    Ok((executor, clock))
}

/// A timing method for the readings.
fn choose_clock(machine: &Machine, capabilities: &Capabilities) -> Result<&'static Clock, RunError> {
    let usable = |clock: &&Clock| capabilities.require_clock(clock, machine).is_ok();
    preferred_clocks(&machine.features).into_iter().find(usable).ok_or_else(|| {
        let what = "reading a clock on another CPU".to_string();
        let why = "no timing method works there".to_string();
        RunError::Unavailable(Unavailable { what, why, remedy: "choose another CPU".to_string() })
    })
}

/// The error for a thread that did not answer.
fn no_answer_error(cpu: u32) -> RunError {
    let what = format!("running code on CPU {cpu}");
    let why = "it did not run in time".to_string();
    let remedy = "another program keeps that CPU busy; wait until it has ended".to_string();
    RunError::Unavailable(Unavailable { what, why, remedy })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DEFAULT_DELAY, Layout, PlacedProgram, ProgramCall};
    use cyclescope_code::program::ProgramRecipe;
    use cyclescope_code::program::memory::{
        AreaFill, AreaPointer, MemoryArea, PhysicalFrames, PointerPosition, ProgramMemory, StoreLifetime,
    };

    /// A batch waits 30 s for another run on its CPU.
    const WITHIN: Duration = Duration::from_secs(120);

    /// Two CPUs that this process may use, or one twice. `None` if it can't run code.
    fn cpus() -> Option<[u32; 2]> {
        let machine = Machine::detect();
        (executor_list::DEFAULT_OFFER.check)(&machine).ok()?;
        let allowed = machine.topology.allowed.known()?.clone();
        Some([*allowed.first()?, *allowed.last()?])
    }

    /// A batch of a program, with a page of this number, and R14 pointing to it.
    fn batch(remote: &RemoteExecutor, text: &str, number: u64) -> Batch {
        let code = cyclescope_code::asm::parse_assembly(text).expect("assembly");
        let recipe = ProgramRecipe { snippet: code.bytes(), copies: 1, ..ProgramRecipe::empty(remote.clock) };
        let area = MemoryArea {
            frames: PhysicalFrames::Common(number),
            lifetime: StoreLifetime::Kept,
            pointer: Some(AreaPointer { register: 14, at: PointerPosition::Start }),
            ..MemoryArea::new(4096, AreaFill::Image(Vec::new()))
        };
        let layout = Layout {
            code: vec![PlacedProgram { program: 0, offset: 0 }],
            round: vec![ProgramCall { place: 0, loop_count: 1 }],
            data: vec![0],
            seed: 1,
        };
        Batch {
            programs: vec![recipe.build()],
            warm_up: 0,
            rounds: 1,
            layouts: vec![layout],
            memory: ProgramMemory { areas: vec![area], ..ProgramMemory::default() },
            delay: DEFAULT_DELAY,
            events: Vec::new(),
            deadline: Duration::from_secs(2),
        }
    }

    /// Whether the first eight bytes of the page hold this value.
    fn holds(remote: &RemoteExecutor, value: u64, number: u64) -> bool {
        let text = format!("cmp qword ptr [r14], {value}\nje fine\nud2\nfine: nop");
        remote.run(batch(remote, &text, number), WITHIN).is_ok()
    }

    #[test]
    fn executors_share_pages_of_the_same_number_only() {
        let Some(cpus) = cpus() else { return };
        // A new worker for other code would write zeros.
        let options = OpenOptions { own_code: true, ..OpenOptions::default() };
        let [one, other] = cpus.map(|cpu| RemoteExecutor::open(cpu, options).unwrap());
        assert!(holds(&other, 0, 0x5151));
        one.run(batch(&one, "mov qword ptr [r14], 77", 0x5151), WITHIN).unwrap();
        assert!(holds(&other, 77, 0x5151));
        assert!(holds(&other, 0, 0x5252));
    }

    #[test]
    fn a_repeated_batch_runs_until_stopped_and_returns_errors() {
        let Some([cpu, _]) = cpus() else { return };
        let remote = RemoteExecutor::open(cpu, OpenOptions::default()).unwrap();
        let counting = remote.repeat(batch(&remote, "inc qword ptr [r14]", 0x5353), WITHIN).unwrap();
        assert_eq!(counting.stop(WITHIN).unwrap().samples.len(), 1);
        // A dropped batch ends before the next one.
        drop(remote.repeat(batch(&remote, "nop", 0x5353), WITHIN).unwrap());
        assert!(holds(&remote, 0, 0x5353));
        let fault = remote.repeat(batch(&remote, "ud2", 0x5353), WITHIN).unwrap_err();
        assert!(fault.to_string().contains("SIGILL"), "{fault}");
        assert!(RemoteExecutor::open(1_000_000, OpenOptions::default()).is_err());
    }

    #[test]
    fn a_thread_that_does_not_end_does_not_keep_its_owner() {
        let (end, ends) = channel::<()>();
        let thread = std::thread::spawn(move || {
            let _ = ends.recv();
        });
        let clock = preferred_clocks(&Machine::detect().features)[0];
        let mut remote = RemoteExecutor { clock, cpu: 0, jobs: None, thread: Some(thread), lost: Cell::new(false) };
        remote.end_thread(Duration::from_millis(5));
        assert!(remote.thread.is_none(), "it is left to itself");
        drop(end);
    }

    #[test]
    fn an_executor_that_does_not_answer_in_time_is_abandoned() {
        let Some([cpu, _]) = cpus() else { return };
        let remote = RemoteExecutor::open(cpu, OpenOptions::default()).unwrap();
        // Its limit is one of processor time, so it ends no earlier than that.
        let endless = batch(&remote, "again: jmp again", 0x5454);
        let least = endless.deadline;
        let started = std::time::Instant::now();
        assert!(remote.run(endless, Duration::from_millis(1)).is_err());
        assert!(remote.run(batch(&remote, "nop", 0x5454), WITHIN).is_err());
        drop(remote);
        assert!(started.elapsed() < least);
    }
}
