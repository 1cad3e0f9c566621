//! Executors on other CPUs, each in a thread of its own, so that several run programs at the same time.
//!
//! The thread makes its executor by itself, for a worker ends with the thread that made it. Nobody waits for one that does not
//! answer in time: it ends by itself when it gets its CPU again.

use super::offer::{OpenError, OpenOptions};
use super::{Batch, Capabilities, Executor, Offer, Sample, list};
use cyclescope_code::clock::{Clock, preferred};
use cyclescope_core::error::{RunError, Unavailable};
use cyclescope_core::machine::Machine;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a process may take to be made.
const START: Duration = Duration::from_secs(1);

/// An executor on a CPU, in a thread of its own.
#[derive(Debug)]
pub struct Remote {
    /// A timing method that works there.
    pub clock: &'static Clock,
    cpu: u32,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    /// It did not answer in time.
    lost: Cell<bool>,
}

/// What the thread is asked for.
struct Job {
    batch: Batch,
    /// The batch runs over and over until this is set; without it once.
    until: Option<Arc<AtomicBool>>,
    answer: Sender<Answer>,
}

type Answer = Result<Ran, RunError>;

/// What came of a batch.
#[derive(Debug)]
pub struct Ran {
    /// Its samples.
    pub samples: Vec<Sample>,
    /// Whether another run of this library used the CPU at the same time.
    pub disturbed: bool,
}

/// A batch that runs over and over. It ends when this is dropped.
#[derive(Debug)]
pub struct Repeated<'a> {
    remote: &'a Remote,
    stop: Arc<AtomicBool>,
    answers: Receiver<Answer>,
}

impl Remote {
    /// Makes an executor on a CPU.
    ///
    /// # Errors
    ///
    /// If there is none for that CPU.
    pub fn open(cpu: u32, options: OpenOptions) -> Result<Remote, RunError> {
        let (jobs, wanted) = channel();
        let (opened, begun) = channel();
        let work = move || match open(cpu, &options) {
            Ok((executor, clock)) => {
                if opened.send(Ok(clock)).is_ok() {
                    serve(executor, &wanted);
                }
            }
            // Whoever asked may have given up.
            Err(error) => drop(opened.send(Err(error))),
        };
        let thread = std::thread::Builder::new().name(format!("remote on CPU {cpu}")).spawn(work);
        let thread = thread.map_err(|error| RunError::io("starting a thread", &error))?;
        let clock = begun.recv_timeout(START).map_err(|_| late(cpu))??;
        Ok(Remote { clock, cpu, jobs: Some(jobs), thread: Some(thread), lost: Cell::new(false) })
    }

    /// Whether it did not answer in time: it answers nothing any more.
    pub fn is_lost(&self) -> bool {
        self.lost.get()
    }

    /// Runs a batch once. Its answer comes within this time.
    ///
    /// # Errors
    ///
    /// Those of the executor, and if there is no answer.
    pub fn run(&self, batch: Batch, within: Duration) -> Answer {
        self.wait(&self.ask(batch, None)?, within)
    }

    /// Runs a batch over and over; it has run once when this returns.
    ///
    /// # Errors
    ///
    /// See [`Remote::run`].
    pub fn repeat(&self, batch: Batch, within: Duration) -> Result<Repeated<'_>, RunError> {
        let stop = Arc::new(AtomicBool::new(false));
        let answers = self.ask(batch, Some(stop.clone()))?;
        let repeated = Repeated { remote: self, stop, answers };
        self.wait(&repeated.answers, within)?;
        Ok(repeated)
    }

    fn ask(&self, batch: Batch, until: Option<Arc<AtomicBool>>) -> Result<Receiver<Answer>, RunError> {
        let (answer, answers) = channel();
        let jobs = self.jobs.as_ref().filter(|_| !self.lost.get());
        let sent = jobs.is_some_and(|jobs| jobs.send(Job { batch, until, answer }).is_ok());
        if sent { Ok(answers) } else { Err(late(self.cpu)) }
    }

    fn wait(&self, answers: &Receiver<Answer>, within: Duration) -> Answer {
        answers.recv_timeout(within).map_err(|_| {
            self.lost.set(true);
            late(self.cpu)
        })?
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // The thread ends when nobody can ask it any more.
        self.jobs = None;
        if let Some(thread) = self.thread.take().filter(|_| !self.lost.get()) {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Repeated<'_> {
    /// Ends it, within this time. Returns the last batch's samples.
    ///
    /// # Errors
    ///
    /// See [`Remote::run`].
    pub fn end(self, within: Duration) -> Answer {
        self.stop.store(true, Ordering::Release);
        self.remote.wait(&self.answers, within)
    }
}

impl Drop for Repeated<'_> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

/// Does what is asked until nobody can ask any more.
fn serve(mut executor: Box<dyn Executor>, jobs: &Receiver<Job>) {
    for Job { batch, until, answer } in jobs {
        let mut disturbed = false;
        let mut run = |executor: &mut dyn Executor| {
            let samples = executor.run(&batch)?;
            disturbed |= executor.exclusive().known() == Some(&false);
            Ok(Ran { samples, disturbed })
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
        // Whoever asked may have given up.
        let _ = answer.send(ran);
    }
}

/// An executor on a CPU, and a timing method that works there.
pub(super) fn open(cpu: u32, options: &OpenOptions) -> Result<(Box<dyn Executor>, &'static Clock), RunError> {
    let machine = Machine::detect_on(cpu).map_err(RunError::Unavailable)?;
    let offer: &Offer = list::DEFAULT;
    let clock = clock(&machine, &(offer.capabilities)(&machine))?;
    let opened = (offer.open)(&machine, options);
    let executor = opened.map_err(|error| match error {
        OpenError::Unavailable(reason) => RunError::Unavailable(reason),
        OpenError::Failed(error) => error,
    })?;
    Ok((executor, clock))
}

/// A timing method for the readings.
fn clock(machine: &Machine, capabilities: &Capabilities) -> Result<&'static Clock, RunError> {
    let usable = |clock: &&Clock| capabilities.require(clock, machine).is_ok();
    preferred(&machine.features).into_iter().find(usable).ok_or_else(|| {
        let what = "reading a clock on another CPU".to_string();
        let why = "no timing method works there".to_string();
        RunError::Unavailable(Unavailable { what, why, remedy: "choose another CPU".to_string() })
    })
}

/// The error of one that did not answer.
fn late(cpu: u32) -> RunError {
    let what = format!("running code on CPU {cpu}");
    let why = "it did not run in time".to_string();
    let remedy = "something else keeps that CPU busy; wait until that has ended".to_string();
    RunError::Unavailable(Unavailable { what, why, remedy })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Call, DELAY, Layout, Placed};
    use cyclescope_code::program::Recipe;
    use cyclescope_code::program::memory::{Area, At, Fill, Frames, Lifetime, Memory, Pointer};

    const WITHIN: Duration = Duration::from_secs(20);

    /// CPUs that this process may use, where it may run code at all: one of them twice where there is no other.
    fn cpus() -> Option<[u32; 2]> {
        let machine = Machine::detect();
        (list::DEFAULT.check)(&machine).ok()?;
        let allowed = machine.topology.allowed.known()?.clone();
        Some([*allowed.first()?, *allowed.last()?])
    }

    /// A batch of a program, with a page that has this number, and R14 pointing to it.
    fn batch(remote: &Remote, text: &str, number: u64) -> Batch {
        let code = cyclescope_code::asm::parse(text).expect("assembly");
        let recipe = Recipe { snippet: code.bytes(), copies: 1, ..Recipe::empty(remote.clock) };
        let area = Area {
            frames: Frames::Common(number),
            lifetime: Lifetime::Kept,
            pointer: Some(Pointer { register: 14, at: At::Start }),
            ..Area::new(4096, Fill::Image(Vec::new()))
        };
        let layout = Layout {
            code: vec![Placed { program: 0, offset: 0 }],
            round: vec![Call { place: 0, loop_count: 1 }],
            data: vec![0],
            seed: 1,
        };
        Batch {
            programs: vec![recipe.build()],
            warm_up: 0,
            rounds: 1,
            layouts: vec![layout],
            memory: Memory { areas: vec![area], ..Memory::default() },
            delay: DELAY,
            deadline: Duration::from_secs(2),
        }
    }

    /// Whether the first eight bytes of the page are this number.
    fn holds(remote: &Remote, value: u64, number: u64) -> bool {
        let text = format!("cmp qword ptr [r14], {value}\nje fine\nud2\nfine: nop");
        remote.run(batch(remote, &text, number), WITHIN).is_ok()
    }

    #[test]
    fn what_one_stores_the_other_reads_and_nobody_with_another_number() {
        let Some(cpus) = cpus() else { return };
        // A new worker for other code would write zeros again.
        let options = OpenOptions { own_code: true, ..OpenOptions::default() };
        let [one, other] = cpus.map(|cpu| Remote::open(cpu, options).unwrap());
        assert!(holds(&other, 0, 0x5151));
        one.run(batch(&one, "mov qword ptr [r14], 77", 0x5151), WITHIN).unwrap();
        assert!(holds(&other, 77, 0x5151));
        assert!(holds(&other, 0, 0x5252));
    }

    #[test]
    fn a_batch_runs_until_it_is_to_end_and_an_error_comes_back() {
        let Some([cpu, _]) = cpus() else { return };
        let remote = Remote::open(cpu, OpenOptions::default()).unwrap();
        let counting = remote.repeat(batch(&remote, "inc qword ptr [r14]", 0x5353), WITHIN).unwrap();
        assert_eq!(counting.end(WITHIN).unwrap().samples.len(), 1);
        // One that is dropped is over before the next.
        drop(remote.repeat(batch(&remote, "nop", 0x5353), WITHIN).unwrap());
        assert!(holds(&remote, 0, 0x5353));
        let fault = remote.repeat(batch(&remote, "ud2", 0x5353), WITHIN).unwrap_err();
        assert!(fault.to_string().contains("SIGILL"), "{fault}");
        assert!(Remote::open(1_000_000, OpenOptions::default()).is_err());
    }

    #[test]
    fn one_that_does_not_answer_in_time_is_not_waited_for() {
        let Some([cpu, _]) = cpus() else { return };
        let remote = Remote::open(cpu, OpenOptions::default()).unwrap();
        // It ends by its limit, which is one of processor time: no earlier than after that time.
        let endless = batch(&remote, "again: jmp again", 0x5454);
        let least = endless.deadline;
        let started = std::time::Instant::now();
        assert!(remote.run(endless, Duration::from_millis(1)).is_err());
        assert!(remote.run(batch(&remote, "nop", 0x5454), WITHIN).is_err());
        drop(remote);
        assert!(started.elapsed() < least);
    }
}
