//! The kernel-mode executor: snippets run in ring 0, through the project's kernel module.
//!
//! The module runs them in a private address space that contains only their code and areas, and
//! nothing they could harm. Interrupts are off for a slice of some milliseconds. Exceptions are
//! returned as typed errors. Code that page tables cannot confine is refused before it runs, by
//! [`refusal`]. `docs/kernel-safety.md` lists the remaining risks.

mod abi;
mod allowed_code;
mod areas;
mod device;
mod event_counting;
mod exception;
pub mod markers;
pub mod refusal;
#[cfg(test)]
mod tests;

pub use device::ModuleDevice;

use super::fault::{SavedIpPosition, describe_instruction, locate_fault};
use super::lock::{self, CpuLock, LockState};
use super::placement::{check_layout, sort_program_ranges};
use super::{
    Batch, Capabilities, CounterAvailability, CounterProgress, Executor, ExecutorMemory, ExecutorOffer, FaultReport,
    Layout, MissingCapability, OpenOptions, PlacedArea, PrivilegeRing, Sample, TimingOrigin, real_time,
};
use abi::{CONTEXT_AT, CONTEXT_BYTES, ModuleCall, ModuleEvent, ModuleOutcome, ModulePiece, status};
use allowed_code::AllowedCodeCache;
use areas::KernelAreas;
use cyclescope_code::context::{self, AREA_REGISTERS, CONSTANT_PART, ProgramContext};
use cyclescope_code::program::memory::STANDARD_AREA_BYTES;
use cyclescope_code::program::{LoopPlan, Program};
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::{RunError, Unavailable};
use cyclescope_core::machine::Machine;
use cyclescope_core::machine::fact::Fact;
use cyclescope_events::{EventCode, EventRefusal};
use device::PinnedThread;
use event_counting::CountedCpu;
use refusal::{JudgedCode, RefusalRules};
use std::mem::size_of;
use std::time::{Duration, Instant};

/// How long interrupts stay off at a time, µs. Less than a tick of Debian's kernels (4 ms), so that
/// at most one waits. Long enough that the first round after them, with cold translations, is one
/// of many.
const SLICE_US: u32 = 2000;
/// The default of [`KernelOptions::deadline`]: far below what the kernel's own watchdogs allow (10
/// s), far above what a measurement plans for one call.
const DEFAULT_CALL_DEADLINE: Duration = Duration::from_secs(1);

/// Smallest time limit of a batch.
const MIN_BATCH_LIMIT: Duration = Duration::from_secs(30);
/// The opcode of INT n.
const INT_N: u8 = 0xcd;

/// Number of copies after which the verdict on a body stays the same.
const JUDGED_COPIES: usize = 4;

/// How the kernel executor is offered.
pub const KERNEL_OFFER: ExecutorOffer = ExecutorOffer {
    name: "kernel",
    about: "Ring 0, through the kernel module",
    place: "ring 0",
    takes_force: true,
    capabilities: kernel_capabilities,
    check: |_| ModuleDevice::open_for_code().map(|_| ()),
    judge: judge_snippet,
    open: |machine, options| {
        let OpenOptions { patience, force, .. } = *options;
        let cpu = machine.target_cpu() as usize;
        let options = KernelOptions { cpu, patience, force, ..KernelOptions::default() };
        Ok(Box::new(KernelExecutor::open_on(machine.clone(), &options)?))
    },
};

/// Capabilities of a [`KernelExecutor`] on a machine, without asking the module.
pub fn kernel_capabilities(machine: &Machine) -> Capabilities {
    let closed = "the module reports it when it is opened";
    Capabilities {
        executor: KERNEL_OFFER.name,
        ring: PrivilegeRing::Zero,
        timing: TimingOrigin::from_machine(machine),
        library: Err(MissingCapability {
            why: "it calls a function of the system's library, which is not mapped in ring 0",
            remedy: "choose another clock (--clock list)",
        }),
        narrow_code: Err(NARROW_CODE),
        control_registers: Ok(()),
        cycle_counter: CounterAvailability::Lacking(MissingCapability {
            why: "ring 0 has no counter for it; the system counts only for processes",
            remedy: "choose another clock (--clock list), or measure in user mode",
        }),
        aperf: Fact::unknown(closed),
        room: Fact::unknown(closed),
    }
}

/// Why 32-bit code does not run.
const NARROW_CODE: MissingCapability =
    MissingCapability { why: "the module calls 64-bit code only", remedy: "leave out --executor kernel, or --bits 32" };

/// The error for 32-bit code.
fn refuse_narrow_code() -> Unavailable {
    Unavailable {
        what: "32-bit code in ring 0".to_string(),
        why: NARROW_CODE.why.to_string(),
        remedy: NARROW_CODE.remedy.to_string(),
    }
}

/// Whether ring 0 would survive a snippet on any machine.
fn judge_snippet(snippet: &Snippet, looped: Option<LoopPlan>) -> Result<(), RunError> {
    if !snippet.mode().is_default() {
        return Err(RunError::Unavailable(refuse_narrow_code()));
    }
    let judged =
        JudgedCode { init: snippet.init(), snippet: snippet.code(), copies: JUDGED_COPIES, looped, following: &[] };
    refusal::judge_code(judged, RefusalRules::default()).map_err(|refusal| refusal.into_error())
}

/// Options of a [`KernelExecutor`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelOptions {
    /// The CPU that measured code runs on.
    pub cpu: usize,
    /// Time that batches wait for another run on that CPU. After it, both run at the same time.
    pub patience: Duration,
    /// Time after which one call counts as hung, within the module's limits.
    pub deadline: Duration,
    /// Whether code that may not end runs even without a second CPU to end it.
    pub force: bool,
}

impl Default for KernelOptions {
    fn default() -> KernelOptions {
        KernelOptions { cpu: 0, patience: Duration::from_secs(30), deadline: DEFAULT_CALL_DEADLINE, force: false }
    }
}

/// Runs batches in ring 0.
pub struct KernelExecutor {
    options: KernelOptions,
    capabilities: Capabilities,
    machine: Machine,
    module: ModuleDevice,
    areas: KernelAreas,
    lock: CpuLock,
    fault: Option<FaultReport>,
    progress: CounterProgress,
    changed: u32,
    judgement: AllowedCodeCache,
}

impl KernelExecutor {
    /// Opens the module's device, on the machine that this process runs on.
    pub fn open(options: &KernelOptions) -> Result<KernelExecutor, Unavailable> {
        let machine = Machine::detect_on(options.cpu as u32).unwrap_or_else(|_| Machine::detect());
        KernelExecutor::open_on(machine, options)
    }

    /// Opens the module's device for a machine with known facts.
    pub(crate) fn open_on(machine: Machine, options: &KernelOptions) -> Result<KernelExecutor, Unavailable> {
        let module = ModuleDevice::open_for_code()?;
        let info = &module.info;
        let areas = vec![STANDARD_AREA_BYTES as usize; AREA_REGISTERS.len()];
        let room = ExecutorMemory { arena: info.arena_bytes as usize, areas };
        Ok(KernelExecutor {
            options: options.clone(),
            capabilities: Capabilities {
                aperf: Fact::Known(module.has_aperf()),
                room: Fact::Known(room),
                ..kernel_capabilities(&machine)
            },
            machine,
            module,
            areas: KernelAreas::default(),
            lock: CpuLock::open(options.cpu, options.patience),
            fault: None,
            progress: CounterProgress::default(),
            changed: 0,
            judgement: AllowedCodeCache::default(),
        })
    }

    fn counted_cpu(&self) -> CountedCpu<'_> {
        CountedCpu { module: &self.module, cpu: self.options.cpu, machine: &self.machine }
    }

    fn check_program(&mut self, program: &Program) -> Result<(), RunError> {
        let lone_cpu = !self.module.has_deadline() && !self.options.force;
        self.judgement.check_program(program, RefusalRules { lone_cpu })
    }

    /// Runs one layout, until a point in time, and counts events.
    fn run_layout(
        &mut self,
        batch: &Batch,
        layout: &Layout,
        until: Instant,
        events: &mut [ModuleEvent],
    ) -> Result<LayoutRun, RunError> {
        check_layout(batch, layout).map_err(RunError::BadBatch)?;
        sort_program_ranges(batch, layout, self.arena_len()).map_err(RunError::BadBatch)?;
        let left = until.saturating_duration_since(Instant::now()).as_millis();
        if left == 0 {
            return Err(RunError::Late { limit_ms: batch_time_limit(batch).as_millis() as u64, interrupted: false });
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
        if batch.calls_library() {
            return Err(RunError::Unavailable(Unavailable {
                what: "a function of the system's library in ring 0".to_string(),
                why: "it is not mapped there".to_string(),
                remedy: "measure it in user mode".to_string(),
            }));
        }
        let unread = super::draw_secret()?;
        let context = self.build_context(batch, layout);
        let mut page = ContextPage::new(unread, &context);
        let code = self.place_programs(batch, layout);
        let pieces: Vec<ModulePiece> = code
            .iter()
            .map(|(offset, bytes)| ModulePiece {
                offset: *offset,
                bytes: bytes.len() as u32,
                code: bytes.as_ptr() as u64,
            })
            .collect();
        let calls: Vec<ModuleCall> = layout
            .round
            .iter()
            .map(|call| ModuleCall { offset: layout.code[call.place].offset, reserved: 0, loop_count: call.loop_count })
            .collect();
        let fills = self.areas.list_fills();
        let mut samples = vec![Sample::default(); batch.rounds as usize * batch.calls()];
        let mut run = abi::ModuleRun {
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
            events: events.len() as u32,
            event_list: events.as_mut_ptr() as u64,
            unread,
            ..abi::ModuleRun::default()
        };
        // SAFETY: every address in `run` points to a buffer that lives through the call and is as
        // long as its count says.
        unsafe { self.module.run_code(&mut run) }?;
        self.areas.record_layout_end(run.outcome.status == status::DONE);
        self.add_outcome(&run.outcome);
        self.check_outcome(batch, layout, &run.outcome)?;
        page.check_unchanged(unread, &context)?;
        Ok(LayoutRun { samples, counted_rounds: run.outcome.counted_rounds })
    }

    fn add_outcome(&mut self, outcome: &ModuleOutcome) {
        self.progress.tsc += outcome.tsc;
        self.progress.aperf += outcome.aperf;
        self.progress.mperf += outcome.mperf;
        self.changed |= outcome.changed;
    }

    fn build_context(&self, batch: &Batch, layout: &Layout) -> ProgramContext {
        let info = &self.module.info;
        let mut context = context::fresh_context(batch.memory.vectors);
        context.eviction = info.eviction;
        for (register, value) in batch.memory.pointer_registers(&self.areas.addresses(), &layout.data) {
            context.gpr[register] = value;
        }
        context
    }

    /// The layout's programs, placed.
    fn place_programs(&self, batch: &Batch, layout: &Layout) -> Vec<(u32, Vec<u8>)> {
        let context_at = self.module.info.context + CONTEXT_AT as u64;
        let place = |place: &super::PlacedProgram| {
            let program = &batch.programs[place.program];
            let mut bytes = vec![0; program.len()];
            program.relocate_into(self.module.info.arena + u64::from(place.offset), context_at, &mut bytes);
            (place.offset, bytes)
        };
        layout.code.iter().map(place).collect()
    }

    /// The deadline of one call. It is longer than a slice, as the module requires.
    fn deadline_us(&self) -> u32 {
        let asked = self.options.deadline.as_micros().min(u128::from(u32::MAX)) as u32;
        asked.clamp(SLICE_US + 1, self.module.info.longest_deadline_us.max(SLICE_US + 1))
    }

    /// The error for a passed deadline: only the deadline's own NMI means that a single call took
    /// too long.
    fn overdue_error(&self, vector: u32, total: Duration) -> RunError {
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
    fn check_outcome(&mut self, batch: &Batch, layout: &Layout, outcome: &ModuleOutcome) -> Result<(), RunError> {
        match outcome.status {
            status::DONE => Ok(()),
            status::FAULT => {
                let report = self.report_fault(batch, layout, outcome);
                let error = RunError::Exception {
                    vector: outcome.vector as u8,
                    name: exception::describe_exception(outcome.vector),
                    error_code: outcome.error_code,
                    address: report.address,
                    instruction: report.instruction.clone(),
                };
                self.fault = Some(report);
                Err(error)
            }
            status::DEADLINE => Err(self.overdue_error(outcome.vector, batch_time_limit(batch))),
            status::NO_READING => Err(RunError::DirtyCanary { fence: "a clock reading, skipped or overwritten," }),
            status::ASTRAY => Err(RunError::DirtyCanary { fence: "the driver's record of its rounds" }),
            status => Err(device::unknown_answer_error(format!("it ended a run with status {status}"))),
        }
    }

    fn report_fault(&self, batch: &Batch, layout: &Layout, outcome: &ModuleOutcome) -> FaultReport {
        let arena = self.module.info.arena;
        let layouts = std::slice::from_ref(layout);
        let at = outcome.ip.checked_sub(arena).filter(|at| *at <= self.arena_len() as u64);
        let found = |saved| at.and_then(|at| locate_fault(at as usize, saved, &batch.programs, layouts));
        // INT n leaves its address after it, whichever exception has the number.
        let by_number = found(SavedIpPosition::Behind).filter(|(program, code_at, at)| {
            let code = &batch.programs[*program].code()[at - *code_at as usize..];
            code.starts_with(&[INT_N, outcome.vector as u8])
        });
        let has_address = by_number.is_none() && outcome.vector == exception::PAGE_FAULT;
        let place = by_number.or_else(|| found(exception::find_ip_position(outcome.vector)));
        let start = place.map_or(outcome.ip, |(_, _, start)| arena + start as u64);
        let offset = place.map(|(_, code_at, at)| at - code_at as usize);
        let program = place.map(|(program, ..)| program);
        FaultReport {
            signal: "",
            code: outcome.vector as i32,
            address: if has_address { outcome.cr2 } else { start },
            rip: outcome.ip,
            system_call: None,
            program,
            offset,
            instruction: program
                .zip(offset)
                .and_then(|(program, offset)| describe_instruction(&batch.programs[program], offset, "")),
        }
    }
}

impl Executor for KernelExecutor {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn stream(&mut self, batch: &Batch, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError> {
        self.fault = None;
        let events = self.counted_cpu().prepare_events(&batch.events)?;
        batch.memory.check().map_err(RunError::BadBatch)?;
        if !batch.mode().map_err(RunError::BadBatch)?.is_default() {
            return Err(RunError::Unavailable(refuse_narrow_code()));
        }
        batch.programs.iter().try_for_each(|program| self.check_program(program))?;
        let pinned = PinnedThread::pin(self.options.cpu)?;
        self.lock.acquire();
        self.module.lock_device().inspect_err(|_| self.lock.release())?;
        let until = lock::end_of_deadline(batch_time_limit(batch));
        let result = self.areas.adopt_memory(&self.module, &batch.memory).and_then(|()| {
            batch.layouts.iter().try_for_each(|layout| {
                let samples = match events.is_empty() {
                    true => self.run_layout(batch, layout, until, &mut [])?.samples,
                    false => event_counting::count_layout(batch, layout, &events, &mut |one, events| {
                        self.run_layout(one, &one.layouts[0], until, events).map(|run| run.counted_rounds)
                    })?,
                };
                take(&samples);
                Ok(())
            })
        });
        self.lock.release();
        self.module.unlock_device();
        drop(pinned);
        result
    }

    fn placed_areas(&self) -> Vec<PlacedArea> {
        self.areas.placed_areas()
    }

    fn count_fitting(&self, codes: &[EventCode]) -> Result<usize, EventRefusal> {
        self.counted_cpu().try_events(codes)
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
        cyclescope_platform::time::sleep(time);
    }

    fn counter_progress(&self) -> Option<CounterProgress> {
        self.module.has_aperf().then_some(self.progress)
    }

    fn restored_state(&self) -> Vec<&'static str> {
        abi::list_changed_state(self.changed)
    }
}

/// Time limit of a batch, longer than its deadline: that assumes an idle machine and detects
/// endless code, which the module does by itself.
fn batch_time_limit(batch: &Batch) -> Duration {
    batch.deadline.max(MIN_BATCH_LIMIT)
}

/// Results of a layout.
struct LayoutRun {
    samples: Vec<Sample>,
    /// Rounds in which events were counted.
    counted_rounds: u32,
}

/// The page with the context and canaries around it.
#[repr(C, align(4096))]
struct ContextPage([u64; CONTEXT_BYTES / 8]);

impl ContextPage {
    fn new(canary: u64, context: &ProgramContext) -> Box<ContextPage> {
        let mut page = Box::new(ContextPage([canary; CONTEXT_BYTES / 8]));
        // SAFETY: the context fits after its offset, which is a multiple of its alignment.
        unsafe { page.0.as_mut_ptr().cast::<u8>().add(CONTEXT_AT).cast::<ProgramContext>().write(context.clone()) };
        page
    }

    /// Checks that only the parts that a program may write have changed.
    fn check_unchanged(&self, canary: u64, context: &ProgramContext) -> Result<(), RunError> {
        let after = (CONTEXT_AT + size_of::<ProgramContext>()) / 8;
        let (before, behind) = (&self.0[..CONTEXT_AT / 8], &self.0[after..]);
        if before.iter().chain(behind).any(|word| *word != canary) {
            return Err(RunError::DirtyCanary { fence: "the context's fence" });
        }
        let words = |context: &ProgramContext| -> Vec<u64> {
            let start = std::ptr::from_ref(context).cast::<u64>();
            // SAFETY: the range lies in the context, which is plain data without padding there.
            CONSTANT_PART.step_by(8).map(|offset| unsafe { start.add(offset / 8).read() }).collect()
        };
        // SAFETY: written by `new` at this place.
        let now = unsafe { &*self.0.as_ptr().cast::<u8>().add(CONTEXT_AT).cast::<ProgramContext>() };
        if words(now) != words(context) || now.mxcsr != context.mxcsr {
            return Err(RunError::DirtyCanary { fence: "the context" });
        }
        Ok(())
    }
}
