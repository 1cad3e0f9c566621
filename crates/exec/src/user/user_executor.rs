//! Runs batches in a worker, which it makes, keeps as long as it may, and replaces.

use super::answer_wait::WaitFailure;
use super::areas::UserAreas;
use super::chunk::{self, LayoutChunk};
use super::confinement::WorkerConfinement;
use super::launch::{self, StartFailure};
use super::process::{self, WorkerEnd, WorkerProcess};
use super::protections::{self, WorkerFacts};
use super::reading_window::ReadingWindow;
use super::regions::WorkerRegions;
use super::setup::{self, WorkerOrigin, WorkerStart};
use super::time_limit::WorkerTimeLimit;
use super::user_capabilities::user_capabilities;
use super::worker_answer::{
    check_fences, describe_failure, describe_setup_failure, take_interruptions, worker_missing_error,
};
use super::worker_events::WorkerEvents;
use super::{MAX_CPUS, UserOptions, faults, narrow_code};
use crate::isolated_call::{divide_count, isolate_call};
use crate::lock::{CpuLock, LockState};
use crate::{
    Batch, Capabilities, CodeProtection, Executor, FaultReport, Layout, PlacedArea, Sample, draw_secret, real_time,
};
use cyclescope_code::asm::CodeMode;
use cyclescope_code::context::FloatElement;
use cyclescope_code::program::Program;
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::Machine;
use cyclescope_core::machine::fact::Fact;
use cyclescope_events::{self as events, EventCode, EventRefusal};
use cyclescope_platform::{cpus, error_code};
use cyclescope_worker::command::{WorkerAnswer, WorkerCommand, WorkerStatus, outcome};
use cyclescope_worker::sandbox::BarrierErrors;
use cyclescope_worker::{sandbox, view};
use std::collections::BTreeSet;
use std::ptr;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Runs batches in a child process.
pub struct UserExecutor {
    pub(super) options: UserOptions,
    pub(super) capabilities: Capabilities,
    pub(super) machine: Machine,
    /// The mode of the code that the memory is for.
    pub(super) mode: CodeMode,
    pub(super) regions: WorkerRegions,
    pub(super) areas: UserAreas,
    pub(super) worker: Option<WorkerProcess>,
    /// The events that its batches can be counted by.
    pub(super) events: WorkerEvents,
    /// The process that the worker was made in.
    pub(super) origin: WorkerOrigin,
    /// Why the system does not run the worker's executable, if it doesn't.
    pub(super) not_executed: Option<i32>,
    pub(super) confinement: WorkerConfinement,
    /// The barriers that the worker reported.
    pub(super) barriers: BarrierErrors,
    /// The code that the worker may have run.
    pub(super) ran: BTreeSet<Vec<u8>>,
    pub(super) sequence: u32,
    pub(super) fault: Option<FaultReport>,
    pub(super) lock: CpuLock,
}

impl UserExecutor {
    /// Makes an executor and its first worker, on the machine that this process runs on.
    pub fn spawn(options: &UserOptions) -> Result<UserExecutor, RunError> {
        // The worker reports a CPU that may not be used.
        let machine = Machine::detect_on(options.cpu as u32).unwrap_or_else(|_| Machine::detect());
        UserExecutor::spawn_on(machine, options)
    }

    /// Makes an executor for a machine with known facts.
    pub fn spawn_on(machine: Machine, options: &UserOptions) -> Result<UserExecutor, RunError> {
        if options.cpu >= MAX_CPUS {
            let why = format!("there is no CPU {}", options.cpu);
            return Err(RunError::from_harness(sandbox::STEPS[sandbox::PIN as usize], why, "see --cpu"));
        }
        let mode = CodeMode::default();
        let regions = narrow_code::create_regions(mode)?;
        let mut areas = UserAreas::for_mode(mode);
        // Most batches have this memory, so that the first one finds its worker ready.
        areas.adopt_memory(&ProgramMemory::standard(FloatElement::default(), false))?;
        let mut user = UserExecutor {
            options: options.clone(),
            capabilities: user_capabilities(&machine),
            machine,
            mode,
            regions,
            areas,
            worker: None,
            events: WorkerEvents::default(),
            origin: if options.functions { WorkerOrigin::Copy } else { WorkerOrigin::Own },
            not_executed: None,
            confinement: WorkerConfinement::new(options),
            barriers: BarrierErrors::default(),
            ran: BTreeSet::new(),
            sequence: 0,
            fault: None,
            lock: CpuLock::open(options.cpu, options.patience),
        };
        user.ensure_worker()?;
        Ok(user)
    }

    /// The worker's process number, if a worker exists.
    pub fn worker_pid(&self) -> Option<i32> {
        self.worker.as_ref().map(WorkerProcess::pid)
    }

    /// Makes the worker that this batch will run in if it is the next one, and returns its process
    /// number. A tracer can attach to it first.
    pub fn prepare(&mut self, batch: &Batch) -> Result<i32, RunError> {
        batch.memory.check().map_err(RunError::BadBatch)?;
        self.prepare_worker(batch)?;
        self.worker_pid().ok_or_else(worker_missing_error)
    }

    fn status_pointer(&self) -> *mut WorkerStatus {
        self.regions.shared_pointers().status_pointer()
    }

    /// The last answer at this moment: the worker's code may write it at any time.
    fn read_answer(&self) -> WorkerAnswer {
        // SAFETY: mapped as long as `self`; all fields are numbers.
        unsafe { ptr::addr_of!((*self.status_pointer()).answer).read_volatile() }
    }

    /// Waits until the worker has finished a command.
    fn wait_for_answer(
        &self,
        worker: &WorkerProcess,
        sequence: u32,
        spin: bool,
        limit: &mut WorkerTimeLimit,
    ) -> Result<(), WaitFailure> {
        // SAFETY: mapped as long as `self`, and accessed atomically on both sides.
        worker.wait_for_answer(unsafe { &(*self.status_pointer()).done }, sequence, spin, limit)
    }

    /// Whether the worker runs on another CPU than this thread does now.
    fn is_on_other_cpu(&self) -> bool {
        cpus::current_cpu() != self.options.cpu
    }

    fn ensure_worker(&mut self) -> Result<(), RunError> {
        let here = std::thread::current().id();
        if self.worker.as_ref().is_some_and(|worker| worker.made_by == here && !worker.has_ended()) {
            return Ok(());
        }
        // The kernel chooses the stack's place in a new process. It hits our addresses in one case
        // of many thousands.
        const TRIES: u32 = 8;
        let mut last = None;
        for _ in 0..TRIES {
            match self.make_worker() {
                Err(RunError::System { errno: error_code::EEXIST, doing }) => last = Some(doing),
                made => return made,
            }
        }
        let doing = last.unwrap_or_default();
        let why = format!("its addresses were taken in {TRIES} attempts");
        Err(RunError::from_harness(doing, why, "choose other addresses for the memory areas, or none"))
    }

    fn make_worker(&mut self) -> Result<(), RunError> {
        self.worker = None;
        self.ran.clear();
        // SAFETY: mapped, and no worker is running.
        unsafe { (*self.status_pointer()).done.store(self.sequence.wrapping_sub(1), Ordering::Release) };
        let mut worker = self.start_worker()?;
        let mut limit = worker.setup_limit();
        if let Err(failure) = self.wait_for_answer(&worker, self.sequence, self.is_on_other_cpu(), &mut limit) {
            return Err(failure.into_setup_error(&mut worker));
        }
        let answer = self.read_answer();
        if answer.outcome != outcome::DONE {
            return Err(describe_setup_failure(&answer));
        }
        self.barriers = answer.barriers;
        self.events.take_descriptors()?;
        self.check_areas()?;
        self.worker = Some(worker);
        Ok(())
    }

    /// Starts a worker with as many barriers as the system allows. What it refuses once, it is not
    /// asked for again.
    fn start_worker(&mut self) -> Result<WorkerProcess, RunError> {
        loop {
            let copy = self.origin == WorkerOrigin::Copy;
            let (areas, options) = (&self.areas, &self.options);
            self.confinement.limit_memory(|| setup::worker_memory_limit(areas, copy, options.heap));
            let arguments = self.confinement.arguments();
            let (origin, sequence) = (self.origin, self.sequence);
            let started = launch::launch_worker(
                &mut self.regions,
                areas,
                options,
                &self.events,
                WorkerStart { origin, sequence },
                arguments,
            );
            match started {
                Ok(worker) => return Ok(worker),
                Err(StartFailure::Failed(error)) => return Err(error),
                Err(StartFailure::Refused(errno)) if self.confinement.give_up(errno) => {}
                Err(StartFailure::Refused(errno)) => {
                    return Err(RunError::from_system_call(process::STARTING_WORKER, "clone", errno));
                }
                // A security module may run less in a user namespace.
                Err(StartFailure::NotExecuted(errno))
                    if self.confinement.namespaces.has_user_namespace()
                        && self.confinement.namespaces.give_up(errno) => {}
                Err(StartFailure::NotExecuted(errno)) if copy => {
                    return Err(WorkerEnd::Exited(errno).into_setup_error());
                }
                Err(StartFailure::NotExecuted(errno)) => {
                    log::info!("the worker's executable is not run: {}", std::io::Error::from_raw_os_error(errno));
                    self.not_executed = Some(errno);
                    self.origin = WorkerOrigin::Copy;
                    // A copy runs no executable, so a user namespace is no obstacle to it.
                    self.confinement.namespaces.try_all_again();
                }
            }
        }
    }

    /// Ensures that the next batch has a worker that can run it, unchanged by the code of other
    /// batches.
    fn prepare_worker(&mut self, batch: &Batch) -> Result<(), RunError> {
        process::check_code(&batch.programs)?;
        self.adopt_mode(batch.mode().map_err(RunError::BadBatch)?)?;
        if self.areas.needs_other_mappings(&batch.memory) {
            // Its memory may be needed for the new one.
            self.worker = None;
        }
        if self.areas.adopt_memory(&batch.memory).inspect_err(|_| self.worker = None)? {
            self.worker = None;
        }
        if !batch.events.is_empty() && batch.events != self.events.codes() {
            self.worker = None;
            self.events = WorkerEvents::probe(&batch.events, &self.machine)?;
        }
        let copy = self.options.functions || self.not_executed.is_some() || batch.calls_library();
        let origin = if copy { WorkerOrigin::Copy } else { WorkerOrigin::Own };
        let codes: BTreeSet<Vec<u8>> = match self.options.own_code || self.options.announced {
            // Any code may follow any other, or any of the same subject.
            true => BTreeSet::new(),
            false => batch.programs.iter().map(Program::foreign_code).collect(),
        };
        if origin != self.origin || !self.ran.is_subset(&codes) {
            self.worker = None;
        }
        self.origin = origin;
        if self.worker.is_none() && batch.events.is_empty() {
            // A new worker that only times code opens none.
            self.events = WorkerEvents::default();
        }
        self.ensure_worker()?;
        self.ran = codes;
        Ok(())
    }

    /// Makes the memory for code of a mode: 32-bit code reaches the first 4 GiB.
    fn adopt_mode(&mut self, mode: CodeMode) -> Result<(), RunError> {
        if mode == self.mode {
            return Ok(());
        }
        narrow_code::find_code_segment(mode).map_err(RunError::Unavailable)?;
        self.worker = None;
        self.areas = UserAreas::for_mode(mode);
        self.regions = narrow_code::create_regions(mode)?;
        // The new command region has run no command.
        self.sequence = 0;
        self.mode = mode;
        Ok(())
    }

    /// Records the kinds of pages that the worker's areas got. An error if they are not the
    /// requested ones.
    fn check_areas(&mut self) -> Result<(), RunError> {
        let length = (self.read_answer().address as usize).min(view::SAMPLES_BYTES);
        let text = self.regions.copy_text(length);
        self.areas.record_mapping(&String::from_utf8_lossy(&text)).map_err(RunError::Unavailable)
    }

    /// Runs some layouts of a batch, within the time limit.
    fn run_chunk(
        &mut self,
        batch: &Batch,
        chunk: &LayoutChunk,
        patience: &mut WorkerTimeLimit,
    ) -> Result<Vec<Sample>, RunError> {
        let canary = draw_secret()?;
        let segment = narrow_code::find_code_segment(self.mode).map_err(RunError::Unavailable)?;
        let samples = chunk.write_command(batch, segment, &mut self.regions, &self.areas, canary);
        let spin = self.is_on_other_cpu();
        let window = ReadingWindow::open(&self.machine.tsc);
        let sequence = self.sequence.wrapping_add(1);
        self.sequence = sequence;
        let command: *mut WorkerCommand = self.regions.command_pointer();
        // SAFETY: mapped as long as `self`; the worker reads the rest after it sees the new
        // sequence number.
        let word = unsafe {
            ptr::addr_of_mut!((*command).spin).write(spin as u32);
            ptr::addr_of_mut!((*self.status_pointer()).answer.outcome).write_volatile(outcome::RUNNING);
            &(*command).sequence
        };
        word.store(sequence, Ordering::Release);
        let mut worker = self.worker.take().ok_or_else(worker_missing_error)?;
        worker.wake(word)?;
        if let Err(failure) = self.wait_for_answer(&worker, sequence, spin, patience) {
            let end = worker.kill_and_reap();
            return Err(describe_failure(failure, end, batch.deadline));
        }
        let window = window.close();
        let mut readings = self.regions.copy_samples(samples);
        self.check_answer(batch, chunk, samples, canary)?;
        match batch.events.is_empty() {
            true => {
                let interrupted = if batch.reads_times() { take_interruptions(&mut readings) } else { Vec::new() };
                window.check(&batch.programs, &batch.layouts[chunk.layouts.clone()], batch.rounds, &readings)?;
                interrupted.into_iter().for_each(|index| readings[index] = readings[index].exchange());
            }
            false => window.check_counts(&readings)?,
        }
        self.worker = Some(worker);
        self.areas.record_success();
        Ok(readings)
    }

    /// Counts events that only this process can read: each call of a round runs in commands of its
    /// own.
    fn count_around_calls(
        &mut self,
        batch: &Batch,
        layout: &Layout,
        patience: &mut WorkerTimeLimit,
    ) -> Result<Vec<Sample>, RunError> {
        const WHOLE: LayoutChunk = LayoutChunk { layouts: 0..1 };
        let (calls, events) = (batch.calls(), batch.events.len());
        let mut samples = vec![Sample::default(); batch.samples_per_layout()];
        for (number, call) in layout.round.iter().enumerate() {
            let [untimed, counted] = isolate_call(batch, layout, *call);
            self.run_chunk(&untimed, &WHOLE, patience)?;
            let before = self.events.read_counts()?;
            self.run_chunk(&counted, &WHOLE, patience)?;
            for (event, (before, after)) in before.into_iter().zip(self.events.read_counts()?).enumerate() {
                let parts = divide_count(before, after, batch.rounds as usize);
                for (round, sample) in parts.enumerate() {
                    samples[(round * calls + number) * events + event] = sample;
                }
            }
        }
        Ok(samples)
    }

    /// Turns the worker's answer into an error, if it reports one.
    fn check_answer(
        &mut self,
        batch: &Batch,
        chunk: &LayoutChunk,
        samples: usize,
        canary: u64,
    ) -> Result<(), RunError> {
        let answer = self.read_answer();
        if answer.outcome == outcome::FAULT {
            let arena = self.regions.worker_address(view::ARENA_AT);
            let fault = faults::report_fault(&answer, arena, &batch.programs, &batch.layouts[chunk.layouts.clone()]);
            let cause = faults::find_cause(&answer, &fault, &batch.programs);
            let (signal, address, instruction) = (fault.signal, fault.address, fault.instruction.clone());
            self.fault = Some(fault);
            return Err(RunError::Fault { signal, address, instruction, cause });
        }
        // SAFETY: mapped as long as `self`.
        let damaged = unsafe { self.regions.shared_pointers().find_damaged_fence(samples, canary) };
        check_fences(&answer, self.options.counter || !batch.events.is_empty(), damaged)
    }
}

impl Executor for UserExecutor {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn stream(&mut self, batch: &Batch, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError> {
        self.fault = None;
        batch.memory.check().map_err(RunError::BadBatch)?;
        let chunks = chunk::split_batch(batch)?;
        self.prepare_worker(batch)?;
        self.lock.acquire();
        let pid = self.worker.as_ref().map_or(0, WorkerProcess::pid);
        let mut patience = WorkerTimeLimit::new(pid, batch.deadline);
        let result = match batch.events.is_empty() || self.events.is_read_by_worker() {
            true => chunks
                .iter()
                .try_for_each(|chunk| self.run_chunk(batch, chunk, &mut patience).map(|samples| take(&samples))),
            false => (batch.layouts.iter()).try_for_each(|layout| {
                self.count_around_calls(batch, layout, &mut patience).map(|samples| take(&samples))
            }),
        };
        self.lock.release();
        result
    }

    fn renew_process(&mut self) {
        self.worker = None;
    }

    fn read_memory(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        // Workers are copies of this process.
        self.options.functions.then(|| process::read_own_memory(address, bytes))?
    }

    fn begin_subject(&mut self) {
        if self.options.announced {
            self.worker = None;
        }
    }

    fn placed_areas(&self) -> Vec<PlacedArea> {
        self.areas.placed_areas()
    }

    fn count_fitting(&self, codes: &[EventCode]) -> Result<usize, EventRefusal> {
        events::count_fitting(codes, &self.machine).map(|(number, _)| number)
    }

    fn last_fault(&self) -> Option<&FaultReport> {
        self.fault.as_ref()
    }

    fn has_own_process(&self) -> Fact<bool> {
        Fact::Known(!self.options.functions && self.not_executed.is_none())
    }

    fn protections(&self) -> Vec<CodeProtection> {
        let functions = self.options.functions.then(|| "code calls functions of this program".to_string());
        let refused = |errno: i32| format!("the system does not run it: {}", std::io::Error::from_raw_os_error(errno));
        protections::list_protections(&WorkerFacts {
            pid: self.worker_pid().unwrap_or(-1),
            not_own: functions.or(self.not_executed.map(refused)),
            namespaces: &self.confinement.namespaces,
            barriers: self.barriers,
            no_group: self.confinement.group.as_ref().err().cloned(),
        })
    }

    fn lock_state(&self) -> Option<&LockState> {
        Some(self.lock.state())
    }

    fn now(&self) -> Duration {
        real_time()
    }

    fn pause(&mut self, time: Duration) {
        cyclescope_platform::time::sleep(time);
    }
}
