//! The user-mode executor: snippets run in a pinned child process behind a sandbox.
//!
//! The child is a worker. It is forked from the calling program, maps memory of its own at fixed addresses,
//! gives up its files, signals and system calls, and then runs commands: all layouts of a batch in one
//! round trip. The caller writes code through a mapping of its own; the worker can execute it but not write.
//!
//! Libraries that are loaded when a worker is made are in the worker too, at the same addresses, and their
//! functions can be called, as long as they make no system calls but, where that is allowed, those that get memory. Make the executor early: forking a program
//! that uses much memory takes long (about 10 ms per GiB in small pages).
//!
//! A fault, a hang or a damaged fence ends the worker and is reported as a typed error; the next batch gets a
//! new worker. This guards against random and careless code: stray stores, wild jumps, any instruction, any
//! system call. It does not confine an attacker: VMCALL and VMMCALL reach the hypervisor unnoticed, and code that looks
//! for the harness's own memory in its process will find it.

mod areas;
mod batch;
mod command;
mod counter;
mod ending;
mod faults;
mod filter;
mod options;
mod orders;
mod patience;
mod process;
mod regions;
mod sandbox;
mod setup;
mod stub;
mod worker;

#[cfg(test)]
mod tests;

pub use faults::signal_name;
pub(crate) use options::MAX_CPUS;
pub use options::UserOptions;

use super::lock::{CpuLock, LockState};
use super::{
    Batch, Capabilities, CycleCounter, Executor, FaultReport, Lack, Offer, OpenOptions, PlacedArea, Ring,
    Room, Sample, Timing, random,
};
use crate::context::{AREA_REGISTERS, Element};
use crate::error::RunError;
use crate::machine::Machine;
use crate::machine::fact::Fact;
use crate::program::memory::{Memory, STANDARD_BYTES};
use areas::Areas;
use batch::Chunk;
use command::{Command, FENCE_COUNTER, FENCES, Status, outcome};
use patience::{Overtime, Patience};
use process::{Waited, Worker};
use regions::Regions;
use std::ptr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Time limit for the set-up of a worker.
const SETUP_TIME: Duration = Duration::from_secs(10);

/// This executor on offer.
pub(crate) const OFFER: Offer = Offer {
    name: "user",
    about: "A sandboxed process",
    place: "user mode",
    takes_force: false,
    capabilities,
    // Where the TSC is forbidden, so is the system's clock, which deadlines need.
    check: |machine| machine.tsc.require(),
    // The sandbox survives any code.
    judge: |_, _| Ok(()),
    open: |machine, options| {
        let OpenOptions { counter, patience, heap, .. } = *options;
        let options = UserOptions { cpu: machine.target_cpu() as usize, counter, patience, heap };
        Ok(Box::new(User::spawn_on(machine.clone(), &options)?))
    },
};

/// Capabilities of a [`User`] executor on a machine.
pub fn capabilities(machine: &Machine) -> Capabilities {
    Capabilities {
        executor: OFFER.name,
        ring: Ring::Three,
        timing: Timing::on(machine),
        library: Ok(()),
        control_registers: Err(Lack {
            why: "it writes a control register, which only ring 0 may",
            remedy: "add --executor kernel, or choose another clock (--clock list)",
        }),
        cycle_counter: CycleCounter::AskSystem,
        aperf: Fact::Known(false),
        room: Fact::Known(Room {
            arena: regions::ARENA,
            areas: vec![STANDARD_BYTES as usize; AREA_REGISTERS.len()],
        }),
    }
}

/// Runs batches in a child process of its own.
pub struct User {
    options: UserOptions,
    capabilities: Capabilities,
    machine: Machine,
    regions: Regions,
    areas: Areas,
    worker: Option<Worker>,
    /// A worker that ends by itself, and is reaped when the next one runs.
    retired: Option<Worker>,
    sequence: u32,
    fault: Option<FaultReport>,
    lock: CpuLock,
}

impl User {
    /// Makes an executor and its first worker, on the machine that this process runs on.
    pub fn spawn(options: &UserOptions) -> Result<User, RunError> {
        // A CPU that may not be used is the worker's to report.
        let machine = Machine::detect_on(options.cpu as u32).unwrap_or_else(|_| Machine::detect());
        User::spawn_on(machine, options)
    }

    /// Makes an executor for a machine whose facts are known.
    pub fn spawn_on(machine: Machine, options: &UserOptions) -> Result<User, RunError> {
        if options.cpu >= MAX_CPUS {
            let why = format!("there is no CPU {}", options.cpu);
            return Err(RunError::machinery(sandbox::STEPS[1], why, "see --cpu"));
        }
        let regions = Regions::new()?;
        let mut areas = Areas::default();
        // Most batches have this one, so that the first finds its worker ready.
        areas.adopt(&Memory::standard(Element::default(), false))?;
        let mut user = User {
            options: options.clone(),
            capabilities: capabilities(&machine),
            machine,
            regions,
            areas,
            worker: None,
            retired: None,
            sequence: 0,
            fault: None,
            lock: CpuLock::open(options.cpu, options.patience),
        };
        user.ensure_worker()?;
        Ok(user)
    }

    /// The process number of the worker, while there is one.
    pub(crate) fn worker_pid(&self) -> Option<i32> {
        self.worker.as_ref().map(Worker::pid)
    }

    fn status(&self) -> &Status {
        // SAFETY: mapped as long as `self`; read after `done` says that the worker has written it.
        unsafe { &*self.regions.shared().status() }
    }

    /// Whether the worker runs on another CPU than this thread does now.
    fn elsewhere(&self) -> bool {
        // SAFETY: takes no pointers.
        unsafe { libc::sched_getcpu() != self.options.cpu as i32 }
    }

    fn ensure_worker(&mut self) -> Result<(), RunError> {
        let here = std::thread::current().id();
        if self.worker.as_ref().is_some_and(|worker| worker.made_by == here && !worker.has_ended()) {
            return Ok(());
        }
        self.worker = None;
        let status = self.regions.shared().status();
        // SAFETY: mapped, and no worker is running.
        unsafe { (*status).done.store(self.sequence.wrapping_sub(1), Ordering::Release) };
        let mut worker = Worker::start(&self.regions, &self.areas, &self.options, self.sequence)?;
        match worker.wait(self.status(), self.sequence, self.elsewhere(), Instant::now() + SETUP_TIME) {
            Waited::Done if self.status().outcome == outcome::DONE => {}
            Waited::Done => {
                let status = self.status();
                let step = sandbox::STEPS.get(status.detail as usize);
                let doing = step.copied().unwrap_or("setting the worker up");
                return Err(match sandbox::call_name(status.address as i64) {
                    Some(name) => RunError::call(doing, name, status.errno),
                    None => RunError::System { doing, errno: status.errno },
                });
            }
            Waited::Late => return Err(RunError::Hung { deadline_ms: SETUP_TIME.as_millis() as u64 }),
            Waited::Ended => return Err(worker.end().of_setup()),
        }
        self.check_areas()?;
        self.worker = Some(worker);
        self.retired = None;
        Ok(())
    }

    /// Records the kinds of pages that the worker's areas got; an error where they are not the requested ones.
    fn check_areas(&mut self) -> Result<(), RunError> {
        let length = (self.status().address as usize).min(regions::SAMPLES);
        // SAFETY: mapped as long as `self`; the worker has written this number of entries and waits.
        let text = unsafe { std::slice::from_raw_parts(self.regions.shared().samples, length) };
        self.areas.mapped(&String::from_utf8_lossy(text)).map_err(RunError::Unavailable)
    }

    /// Runs some layouts of a batch, within the time limit. The samples stay until the next command.
    fn run_chunk(
        &mut self,
        batch: &Batch,
        chunk: &Chunk,
        patience: &mut Patience,
    ) -> Result<&[Sample], RunError> {
        let canary = random()?;
        let samples = chunk.write(batch, &mut self.regions, &self.areas, canary);
        let spin = self.elsewhere();
        let sequence = self.sequence.wrapping_add(1);
        self.sequence = sequence;
        let command: *mut Command = self.regions.command();
        // SAFETY: mapped as long as `self`; the worker reads the rest after it sees the new sequence number.
        let word = unsafe {
            ptr::addr_of_mut!((*command).spin).write(spin as u32);
            (*self.regions.shared().status()).outcome = outcome::RUNNING;
            &(*command).sequence
        };
        word.store(sequence, Ordering::Release);
        process::futex_wake(word);
        let Some(mut worker) = self.worker.take() else {
            return Err(RunError::WorkerLost { how: "there is none".to_owned() });
        };
        loop {
            match worker.wait(self.status(), sequence, spin, patience.until()) {
                Waited::Done => break,
                Waited::Late => match patience.over() {
                    Overtime::Busy => {}
                    Overtime::Hung => {
                        worker.end();
                        return Err(RunError::Hung { deadline_ms: batch.deadline.as_millis() as u64 });
                    }
                    Overtime::Stopped => {
                        worker.end();
                        return Err(stopped());
                    }
                },
                Waited::Ended => return Err(worker.end().error()),
            }
        }
        if let Err(error) = self.check(batch, chunk, samples, canary) {
            if matches!(error, RunError::Fault { .. }) {
                self.retired = Some(worker);
            }
            return Err(error);
        }
        self.worker = Some(worker);
        self.areas.began();
        // SAFETY: mapped as long as `self`; the worker has written this number of samples and waits.
        Ok(unsafe { std::slice::from_raw_parts(self.regions.shared().first_sample(), samples) })
    }

    /// Turns the worker's answer into an error, if it is one.
    fn check(&mut self, batch: &Batch, chunk: &Chunk, samples: usize, canary: u64) -> Result<(), RunError> {
        let status = self.status();
        if status.outcome == outcome::FAULT {
            let arena = self.regions.in_worker(regions::view::ARENA_AT);
            let fault = faults::name(status, arena, &batch.programs, &batch.layouts[chunk.layouts.clone()]);
            let cause = faults::cause(status, &fault, &batch.programs);
            let (signal, address, instruction) = (fault.signal, fault.address, fault.instruction.clone());
            self.fault = Some(fault);
            return Err(RunError::Fault { signal, address, instruction, cause });
        }
        if status.outcome == outcome::FENCE && status.detail == FENCE_COUNTER {
            let why = "something took it away while the code ran";
            let remedy = "another run uses it; wait until that has ended";
            return Err(RunError::machinery("keeping the core-cycles counter", why, remedy));
        }
        if status.outcome == outcome::FENCE {
            let fence = FENCES.get(status.detail as usize).copied().unwrap_or("the status block");
            return Err(RunError::DirtyCanary { fence });
        }
        // SAFETY: mapped as long as `self`.
        let damaged = unsafe { self.regions.shared().damaged_fence(samples, canary) };
        match damaged {
            Some(fence) => Err(RunError::DirtyCanary { fence: FENCES[fence as usize] }),
            None if status.outcome != outcome::DONE => {
                Err(RunError::DirtyCanary { fence: "the status block" })
            }
            None => Ok(()),
        }
    }
}

/// A worker that is there and does not run.
fn stopped() -> RunError {
    let why = "its process got no processor time";
    let remedy =
        "something stopped it: SIGSTOP, a debugger or a frozen control group; let it go on, and run again";
    RunError::machinery("running the snippet", why, remedy)
}

impl Executor for User {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn stream(&mut self, batch: &Batch, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError> {
        self.fault = None;
        batch.memory.check().map_err(RunError::BadBatch)?;
        let chunks = batch::split(batch)?;
        if self.areas.adopt(&batch.memory).inspect_err(|_| self.worker = None)? {
            self.worker = None;
        }
        self.ensure_worker()?;
        self.lock.begin();
        let pid = self.worker.as_ref().map_or(0, Worker::pid);
        let mut patience = Patience::new(pid, batch.deadline);
        let result =
            chunks.iter().try_for_each(|chunk| self.run_chunk(batch, chunk, &mut patience).map(&mut *take));
        self.lock.release();
        result
    }

    fn renew(&mut self) {
        self.worker = None;
    }

    fn areas(&self) -> Vec<PlacedArea> {
        self.areas.placed()
    }

    fn last_fault(&self) -> Option<&FaultReport> {
        self.fault.as_ref()
    }

    fn lock_state(&self) -> Option<&LockState> {
        Some(self.lock.state())
    }
}
