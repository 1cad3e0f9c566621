//! The kernel-mode executor: snippets run in ring 0, through the module of this project.
//!
//! The module runs them in a private address space with their code and areas, and nothing else that they could harm.
//! Interrupts are off for a slice of some milliseconds; exceptions are returned as typed errors. Code that page tables
//! cannot confine is refused before it runs, by [`refused`]. `docs/kernel-safety.md` lists what remains possible.

mod abi;
mod areas;
mod device;
mod exception;
mod judgement;
pub mod markers;
pub mod refused;
#[cfg(test)]
mod tests;

pub use device::Module;

use super::fault::{Saved, describe, find};
use super::lock::{self, CpuLock, LockState};
use super::placement::{check, placed_code};
use super::{
    Batch, Capabilities, CounterProgress, CycleCounter, Executor, FaultReport, Lack, Layout, Offer,
    OpenOptions, PlacedArea, Ring, Room, Sample, Timing, real_time,
};
use abi::{CONTEXT_AT, CONTEXT_BYTES, Outcome, Piece, PlacedCall, status};
use areas::Areas;
use cyclescope_code::context::{self, AREA_REGISTERS, CONSTANT_PART, Context};
use cyclescope_code::program::Program;
use cyclescope_code::program::memory::STANDARD_BYTES;
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::{RunError, Unavailable};
use cyclescope_core::machine::Machine;
use cyclescope_core::machine::fact::Fact;
use device::Pinned;
use judgement::Judgement;
use refused::{Judged, Rules};
use std::mem::size_of;
use std::time::{Duration, Instant};

/// How long interrupts stay off at a time, µs: less than a tick of Debian's kernels (4 ms), so that no more than one
/// waits; long enough that the first round after them, with cold translations, is one of many.
const SLICE_US: u32 = 2000;
/// The default of [`KernelOptions::deadline`]: far below what the kernel's own watchdogs allow (10 s), far above what a
/// measurement plans for one call.
const DEADLINE: Duration = Duration::from_secs(1);

/// Smallest time limit of a batch.
const LEAST_ALLOWED: Duration = Duration::from_secs(30);
/// The opcode of INT n.
const INT_N: u8 = 0xcd;

/// Copies at which the verdict on a body no longer changes.
const JUDGED_COPIES: usize = 4;

/// This executor on offer.
pub const OFFER: Offer = Offer {
    name: "kernel",
    about: "Ring 0, through the kernel module",
    place: "ring 0",
    takes_force: true,
    capabilities,
    check: |_| Module::open_for_code().map(|_| ()),
    judge: judge_snippet,
    open: |machine, options| {
        let OpenOptions { patience, force, .. } = *options;
        let cpu = machine.target_cpu() as usize;
        let options = KernelOptions { cpu, patience, force, ..KernelOptions::default() };
        Ok(Box::new(Kernel::open_on(machine.clone(), &options)?))
    },
};

/// Capabilities of a [`Kernel`] executor on a machine, without asking the module.
pub fn capabilities(machine: &Machine) -> Capabilities {
    let closed = "the module says so when it is opened";
    Capabilities {
        executor: OFFER.name,
        ring: Ring::Zero,
        timing: Timing::on(machine),
        library: Err(Lack {
            why: "it calls a function of the system's library, which is not mapped in ring 0",
            remedy: "choose another clock (--clock list)",
        }),
        control_registers: Ok(()),
        cycle_counter: CycleCounter::Lacking(Lack {
            why: "in ring 0 no counter is set up for it; the system counts for processes alone",
            remedy: "choose another clock (--clock list), or measure in user mode",
        }),
        aperf: Fact::unknown(closed),
        room: Fact::unknown(closed),
    }
}

/// Whether ring 0 would survive a snippet on any machine.
fn judge_snippet(snippet: &Snippet, looped: bool) -> Result<(), RunError> {
    let judged = Judged {
        init: snippet.init(),
        snippet: snippet.code(),
        copies: JUDGED_COPIES,
        looped,
        following: &[],
    };
    refused::judge(judged, Rules::default()).map_err(|refusal| refusal.into_error())
}

/// Options of a [`Kernel`] executor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelOptions {
    /// The CPU that measured code runs on.
    pub cpu: usize,
    /// Time that batches wait for another run on that CPU before they run beside it.
    pub patience: Duration,
    /// Time after which one call counts as hung; within the limits of the module.
    pub deadline: Duration,
    /// Whether code that may not end runs although there is no second CPU to end it.
    pub force: bool,
}

impl Default for KernelOptions {
    fn default() -> KernelOptions {
        KernelOptions { cpu: 0, patience: Duration::from_secs(30), deadline: DEADLINE, force: false }
    }
}

/// Runs batches in ring 0.
pub struct Kernel {
    options: KernelOptions,
    capabilities: Capabilities,
    machine: Machine,
    module: Module,
    areas: Areas,
    lock: CpuLock,
    fault: Option<FaultReport>,
    progress: CounterProgress,
    changed: u32,
    judgement: Judgement,
}

impl Kernel {
    /// Opens the module's device, on the machine that this process runs on.
    pub fn open(options: &KernelOptions) -> Result<Kernel, Unavailable> {
        let machine = Machine::detect_on(options.cpu as u32).unwrap_or_else(|_| Machine::detect());
        Kernel::open_on(machine, options)
    }

    /// Opens the module's device for a machine whose facts are known.
    pub(crate) fn open_on(machine: Machine, options: &KernelOptions) -> Result<Kernel, Unavailable> {
        let module = Module::open_for_code()?;
        let info = &module.info;
        let areas = vec![STANDARD_BYTES as usize; AREA_REGISTERS.len()];
        let room = Room { arena: info.arena_bytes as usize, areas };
        Ok(Kernel {
            options: options.clone(),
            capabilities: Capabilities {
                aperf: Fact::Known(module.has_aperf()),
                room: Fact::Known(room),
                ..capabilities(&machine)
            },
            machine,
            module,
            areas: Areas::default(),
            lock: CpuLock::open(options.cpu, options.patience),
            fault: None,
            progress: CounterProgress::default(),
            changed: 0,
            judgement: Judgement::default(),
        })
    }

    fn judge(&mut self, program: &Program) -> Result<(), RunError> {
        let lone_cpu = !self.module.has_deadline() && !self.options.force;
        self.judgement.judge(program, Rules { lone_cpu })
    }

    /// Runs one layout, until a point in time.
    fn run_layout(
        &mut self,
        batch: &Batch,
        layout: &Layout,
        until: Instant,
    ) -> Result<Vec<Sample>, RunError> {
        check(batch, layout).map_err(RunError::BadBatch)?;
        placed_code(batch, layout, self.arena_len()).map_err(RunError::BadBatch)?;
        let left = until.saturating_duration_since(Instant::now()).as_millis();
        if left == 0 {
            return Err(RunError::Late { limit_ms: allowed(batch).as_millis() as u64, interrupted: false });
        }
        let info = &self.module.info;
        if layout.code.len() > info.most_pieces as usize || batch.calls() > info.most_calls as usize {
            let error = Unavailable {
                what: format!("a layout of {} programs and {} calls", layout.code.len(), batch.calls()),
                why: format!("the module takes {} programs and {} calls", info.most_pieces, info.most_calls),
                remedy: "take fewer of them in a round".to_string(),
            };
            return Err(RunError::Unavailable(error));
        }
        let unread = super::random()?;
        let context = self.context(batch, layout);
        let mut page = Page::new(unread, &context);
        let code = self.code(batch, layout);
        let pieces: Vec<Piece> = code
            .iter()
            .map(|(offset, bytes)| Piece {
                offset: *offset,
                bytes: bytes.len() as u32,
                code: bytes.as_ptr() as u64,
            })
            .collect();
        let calls: Vec<PlacedCall> = layout
            .round
            .iter()
            .map(|call| PlacedCall {
                offset: layout.code[call.place].offset,
                reserved: 0,
                loop_count: call.loop_count,
            })
            .collect();
        let fills = self.areas.fills();
        let mut samples = vec![Sample::default(); batch.rounds as usize * batch.calls()];
        let mut run = abi::Run {
            flags: if self.module.has_deadline() { 0 } else { abi::RUN_UNGUARDED },
            cpu: self.options.cpu as u32,
            pieces: pieces.len() as u32,
            calls: calls.len() as u32,
            piece_list: pieces.as_ptr() as u64,
            call_list: calls.as_ptr() as u64,
            context: page.0.as_mut_ptr() as u64,
            samples: samples.as_mut_ptr() as u64,
            warm_up: batch.warm_up,
            rounds: batch.rounds,
            delay: batch.delay.max(1),
            slice_us: SLICE_US,
            deadline_us: self.deadline_us(),
            total_ms: left.min(u128::from(u32::MAX)) as u32,
            seed: layout.seed,
            fill_list: fills.as_ptr() as u64,
            fills: fills.len() as u32,
            unread,
            ..abi::Run::default()
        };
        // SAFETY: every address in `run` is that of a buffer that lives through the call and is as long as the
        // counts beside it say.
        unsafe { self.module.run(&mut run) }?;
        self.areas.ran(run.outcome.status == status::DONE);
        self.take(&run.outcome);
        self.check(batch, layout, &run.outcome)?;
        page.check(unread, &context)?;
        Ok(samples)
    }

    fn take(&mut self, outcome: &Outcome) {
        self.progress.tsc += outcome.tsc;
        self.progress.aperf += outcome.aperf;
        self.progress.mperf += outcome.mperf;
        self.changed |= outcome.changed;
    }

    fn context(&self, batch: &Batch, layout: &Layout) -> Context {
        let info = &self.module.info;
        let mut context = context::fresh(batch.memory.vectors);
        context.eviction = info.eviction;
        for (register, value) in batch.memory.registers(&self.areas.addresses(), &layout.data) {
            context.gpr[register] = value;
        }
        context
    }

    /// The layout's programs, placed.
    fn code(&self, batch: &Batch, layout: &Layout) -> Vec<(u32, Vec<u8>)> {
        let context_at = self.module.info.context + CONTEXT_AT as u64;
        let place = |place: &super::Placed| {
            let program = &batch.programs[place.program];
            let mut bytes = vec![0; program.len()];
            program.place(self.module.info.arena + u64::from(place.offset), context_at, &mut bytes);
            (place.offset, bytes)
        };
        layout.code.iter().map(place).collect()
    }

    /// The deadline of one call, longer than a slice as the module asks for.
    fn deadline_us(&self) -> u32 {
        let asked = self.options.deadline.as_micros().min(u128::from(u32::MAX)) as u32;
        asked.clamp(SLICE_US + 1, self.module.info.longest_deadline_us.max(SLICE_US + 1))
    }

    /// The error for a passed deadline: only the deadline's own NMI means that a single call took too long.
    fn overdue(&self, vector: u32, total: Duration) -> RunError {
        let deadline_ms = u64::from(self.deadline_us() / 1000);
        match vector {
            exception::NMI => RunError::Hung { deadline_ms },
            exception::FIRST_INTERRUPT..=exception::LAST_INTERRUPT => {
                RunError::Late { limit_ms: deadline_ms, interrupted: true }
            }
            _ => RunError::Late { limit_ms: total.as_millis() as u64, interrupted: false },
        }
    }

    /// Turns the module's answer into an error, if it is one.
    fn check(&mut self, batch: &Batch, layout: &Layout, outcome: &Outcome) -> Result<(), RunError> {
        match outcome.status {
            status::DONE => Ok(()),
            status::FAULT => {
                let report = self.name(batch, layout, outcome);
                let error = RunError::Exception {
                    vector: outcome.vector as u8,
                    name: exception::name(outcome.vector),
                    error_code: outcome.error_code,
                    address: report.address,
                    instruction: report.instruction.clone(),
                };
                self.fault = Some(report);
                Err(error)
            }
            status::DEADLINE => Err(self.overdue(outcome.vector, allowed(batch))),
            status::NO_READING => {
                Err(RunError::DirtyCanary { fence: "a clock reading, skipped or overwritten," })
            }
            status::ASTRAY => Err(RunError::DirtyCanary { fence: "the driver's record of its rounds" }),
            status => Err(device::not_understood(format!("it ended a run with status {status}"))),
        }
    }

    fn name(&self, batch: &Batch, layout: &Layout, outcome: &Outcome) -> FaultReport {
        let arena = self.module.info.arena;
        let layouts = std::slice::from_ref(layout);
        let at = outcome.ip.checked_sub(arena).filter(|at| *at <= self.arena_len() as u64);
        let found = |saved| at.and_then(|at| find(at as usize, saved, &batch.programs, layouts));
        // INT n leaves its address behind it, whichever exception has the number.
        let by_number = found(Saved::Behind).filter(|(program, code_at, at)| {
            let code = &batch.programs[*program].code()[at - *code_at as usize..];
            code.starts_with(&[INT_N, outcome.vector as u8])
        });
        let told = by_number.is_none() && outcome.vector == exception::PAGE_FAULT;
        let place = by_number.or_else(|| found(exception::saved(outcome.vector)));
        let start = place.map_or(outcome.ip, |(_, _, start)| arena + start as u64);
        let offset = place.map(|(_, code_at, at)| at - code_at as usize);
        let program = place.map(|(program, ..)| program);
        FaultReport {
            signal: "",
            code: outcome.vector as i32,
            address: if told { outcome.cr2 } else { start },
            rip: outcome.ip,
            system_call: None,
            program,
            offset,
            instruction: program
                .zip(offset)
                .and_then(|(program, offset)| describe(&batch.programs[program], offset, "")),
        }
    }
}

impl Executor for Kernel {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn stream(&mut self, batch: &Batch, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError> {
        self.fault = None;
        batch.memory.check().map_err(RunError::BadBatch)?;
        batch.programs.iter().try_for_each(|program| self.judge(program))?;
        let pinned = Pinned::to(self.options.cpu)?;
        self.lock.begin();
        self.module.take().inspect_err(|_| self.lock.release())?;
        let until = lock::until(allowed(batch));
        let result = self.areas.adopt(&self.module, &batch.memory).and_then(|()| {
            batch.layouts.iter().try_for_each(|layout| {
                let samples = self.run_layout(batch, layout, until)?;
                take(&samples);
                Ok(())
            })
        });
        self.lock.release();
        self.module.release();
        drop(pinned);
        result
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

    fn now(&self) -> Duration {
        real_time()
    }

    fn pause(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn progress(&self) -> Option<CounterProgress> {
        self.module.has_aperf().then_some(self.progress)
    }

    fn changed(&self) -> Vec<&'static str> {
        abi::changed(self.changed)
    }
}

/// Time limit of a batch: longer than its deadline, which assumes an idle machine and is there to detect endless code,
/// as the module does itself.
fn allowed(batch: &Batch) -> Duration {
    batch.deadline.max(LEAST_ALLOWED)
}

/// The page with the context and canaries around it.
#[repr(C, align(4096))]
struct Page([u64; CONTEXT_BYTES / 8]);

impl Page {
    fn new(canary: u64, context: &Context) -> Box<Page> {
        let mut page = Box::new(Page([canary; CONTEXT_BYTES / 8]));
        // SAFETY: the context fits behind its offset, which is a multiple of its alignment.
        unsafe { page.0.as_mut_ptr().cast::<u8>().add(CONTEXT_AT).cast::<Context>().write(context.clone()) };
        page
    }

    /// Whether only what a program writes has changed.
    fn check(&self, canary: u64, context: &Context) -> Result<(), RunError> {
        let after = (CONTEXT_AT + size_of::<Context>()) / 8;
        let (before, behind) = (&self.0[..CONTEXT_AT / 8], &self.0[after..]);
        if before.iter().chain(behind).any(|word| *word != canary) {
            return Err(RunError::DirtyCanary { fence: "the context's fence" });
        }
        let words = |context: &Context| -> Vec<u64> {
            let start = std::ptr::from_ref(context).cast::<u64>();
            // SAFETY: the range lies in the context, which is plain data without padding there.
            CONSTANT_PART.step_by(8).map(|offset| unsafe { start.add(offset / 8).read() }).collect()
        };
        // SAFETY: written by `new` at this place.
        let now = unsafe { &*self.0.as_ptr().cast::<u8>().add(CONTEXT_AT).cast::<Context>() };
        if words(now) != words(context) || now.mxcsr != context.mxcsr {
            return Err(RunError::DirtyCanary { fence: "the context" });
        }
        Ok(())
    }
}
