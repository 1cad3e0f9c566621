//! The worker's life: set itself up, then run commands until it is killed.
//!
//! In a copy of a process with several threads, any lock may be held, and thread-local storage
//! belongs to that process. So nothing here allocates, locks, panics or touches thread-local
//! storage.

use super::command::{
    FENCE_CONTEXT, FENCE_COUNTER, FENCE_CPU, FENCE_READING, INTERRUPTED, LAYOUTS_AT, ReadingPair, SharedPointers,
    WorkerCall, WorkerCommand, WorkerLayout, outcome,
};
use super::context::{CONSTANT_PART, ProgramContext};
use super::ending::{SHARED_COMMAND, SHARED_STATUS, exit_process, finish_command, report_failure, status_pointer};
use super::interruption::InterruptionWatch;
use super::kernel::{EEXIST, EINVAL, FUTEX_WAIT, MAP_SHARED, PROT_READ, call};
use super::sandbox::{self, SetupFailure};
use super::setup::WorkerSetup;
use super::stub::{self, FarPointer, RestoredState};
use super::system::read_cpu_number;
use super::view::{self, file};
use super::{counter, event_reading, memory};
use core::mem::size_of;
use core::ptr;
use core::sync::atomic::Ordering;

/// The worker's start. The arguments are those of a new process: their number, then their
/// addresses. The second one is the number of the shared file's descriptor, in decimal digits.
///
/// # Safety
///
/// Only in a worker, as its only thread.
pub unsafe fn begin(arguments: *const usize) -> ! {
    // SAFETY: see above; the setup lies in the file.
    unsafe {
        if *arguments != 2 {
            exit_process(EINVAL as usize);
        }
        let mut digit = *arguments.add(2) as *const u8;
        let mut fd = 0;
        while *digit != 0 {
            fd = 10 * fd + usize::from(*digit - b'0');
            digit = digit.add(1);
        }
        let setup = stub::syscall(call::MMAP, 0, view::SETUP_BYTES, PROT_READ, MAP_SHARED, fd, file::SETUP_AT);
        if setup < 0 {
            exit_process(-setup as usize);
        }
        map_view(&*(setup as *const WorkerSetup))
    }
}

/// Maps the view and continues there.
unsafe fn map_view(setup: &WorkerSetup) -> ! {
    for piece in &setup.pieces {
        let address = setup.address_at(piece.at) as usize;
        let flags = piece.flags as usize | setup.fixed_map_flag();
        let (protection, fd) = (piece.protection as usize, piece.fd as usize);
        // SAFETY: replaces a part of the reservation made for it, or nothing.
        let answer = unsafe { stub::syscall(call::MMAP, address, piece.bytes, protection, flags, fd, piece.offset) };
        if answer != address as isize {
            // Kernels before 4.17 treat the address as a hint.
            let errno = if answer < 0 { -answer as usize } else { EEXIST as usize };
            // SAFETY: ends the process. Before its memory is mapped, the status is the only way to
            // inform the caller.
            unsafe { exit_process(errno) };
        }
    }
    // The current setup may lie in a mapping of the caller that is about to be removed.
    let (here, setup) = (ptr::from_ref(setup) as usize, setup.address_at(view::SETUP_AT).cast::<WorkerSetup>());
    // SAFETY: both are mapped, and the second is as long.
    let setup = unsafe {
        stub::syscall(call::MUNMAP, here, view::SETUP_BYTES, 0, 0, 0, 0);
        &*setup
    };
    SHARED_STATUS.store(setup.address_at(view::STATUS_AT), Ordering::Relaxed);
    SHARED_COMMAND.store(setup.address_at(view::COMMAND_AT).cast(), Ordering::Relaxed);
    let top = setup.view + view::STACK_TOP as u64;
    // SAFETY: the new stack has just been mapped, and `setup` lies in memory that stays mapped.
    unsafe { stub::enter_on_stack(top, setup, serve) }
}

unsafe extern "sysv64" fn serve(setup: *const WorkerSetup) -> ! {
    // SAFETY: `start` passes a reference that stays valid in this process.
    let setup = unsafe { &*setup };
    // SAFETY: this process is the worker, set up once; counter and areas come before the sandbox.
    let ready = unsafe {
        counter::open_counter(setup)
            .map_err(|errno| SetupFailure { step: sandbox::COUNTER, call: call::PERF_EVENT_OPEN, errno })
            .and_then(|()| {
                event_reading::open_events(setup).map_err(|(call, errno)| SetupFailure {
                    step: sandbox::EVENTS,
                    call,
                    errno,
                })
            })
            .and_then(|()| {
                memory::map_areas(setup).map_err(|errno| SetupFailure { step: sandbox::AREAS, call: -1, errno })
            })
            .and_then(|smaps| sandbox::close_sandbox(setup).map(|barriers| (smaps, barriers)))
    };
    let (smaps, barriers) = match ready {
        Ok(ready) => ready,
        // SAFETY: the shared memory is mapped.
        Err(SetupFailure { step, call, errno }) => unsafe {
            report_failure(outcome::SETUP, |status| {
                ptr::addr_of_mut!((*status).answer.detail).write_volatile(step);
                ptr::addr_of_mut!((*status).answer.errno).write_volatile(errno);
                ptr::addr_of_mut!((*status).answer.address).write_volatile(call as u64);
            })
        },
    };
    let mut restored = RestoredState { fs_base: 0, gs_base: 0, avx: setup.avx, fsgsbase: setup.fsgsbase };
    if setup.fsgsbase {
        // SAFETY: the kernel reports that these instructions are enabled.
        unsafe {
            core::arch::asm!("rdfsbase {}", out(reg) restored.fs_base, options(nomem, nostack));
            core::arch::asm!("rdgsbase {}", out(reg) restored.gs_base, options(nomem, nostack));
        }
    }
    let command: *const WorkerCommand = setup.address_at(view::COMMAND_AT).cast();
    let mut last = setup.sequence;
    // SAFETY: the shared memory is mapped, and the caller writes no command while another is
    // running.
    unsafe {
        ptr::addr_of_mut!((*status_pointer()).answer.outcome).write_volatile(outcome::DONE);
        ptr::addr_of_mut!((*status_pointer()).answer.address).write_volatile(smaps as u64);
        ptr::addr_of_mut!((*status_pointer()).answer.barriers).write_volatile(barriers);
        finish_command(last);
        loop {
            last = wait_for_command(command, last);
            stub::serialise();
            let (result, detail) = match run_command(setup, command, &restored) {
                Ok(()) => (outcome::DONE, 0),
                Err(fence) => (outcome::FENCE, fence),
            };
            ptr::addr_of_mut!((*status_pointer()).answer.detail).write_volatile(detail);
            ptr::addr_of_mut!((*status_pointer()).answer.outcome).write_volatile(result);
            finish_command(last);
        }
    }
}

/// Iterations of active waiting, some 300 µs. A virtual CPU that went to sleep between two batches
/// of one measurement takes 50 to 100 µs to wake.
const SPIN_ITERATIONS: u32 = 8000;

unsafe fn wait_for_command(command: *const WorkerCommand, last: u32) -> u32 {
    // SAFETY: the command region stays mapped; its first word is accessed atomically on both sides.
    let (sequence, spin) = unsafe { (&(*command).sequence, (*command).spin) };
    if spin != 0 {
        for _ in 0..SPIN_ITERATIONS {
            let now = sequence.load(Ordering::Acquire);
            if now != last {
                return now;
            }
            core::hint::spin_loop();
        }
    }
    loop {
        let now = sequence.load(Ordering::Acquire);
        if now != last {
            return now;
        }
        let address = ptr::from_ref(sequence) as usize;
        // SAFETY: waits on a word of the shared memory as long as it has its old value.
        unsafe { stub::syscall(call::FUTEX, address, FUTEX_WAIT, last as usize, 0, 0, 0) };
    }
}

/// Runs one command. An error is the index of a damaged fence.
///
/// # Safety
///
/// Only in the worker, whose memory is mapped as its setup says. The caller has written a whole
/// command.
pub unsafe fn run_command(
    setup: &WorkerSetup,
    command: *const WorkerCommand,
    restored: &RestoredState,
) -> Result<(), u32> {
    // SAFETY: the caller has written a whole command before it changed the sequence number. Its
    // layouts and calls fit in the region.
    let (command, layouts, calls) = unsafe {
        let bytes = command.cast::<u8>();
        let layouts = bytes.add(LAYOUTS_AT).cast::<WorkerLayout>();
        let calls = layouts.add((*command).layouts as usize).cast::<WorkerCall>();
        (&*command, layouts, calls)
    };
    let shared = setup.shared_pointers();
    let per_layout = samples_per_layout(command);
    for index in 0..command.layouts as usize {
        // SAFETY: see above; the samples of all layouts fit in their region.
        unsafe {
            let layout = &*layouts.add(index);
            let calls = calls.add(index * command.calls as usize);
            let samples = shared.first_sample().add(index * per_layout);
            memory::prepare_areas(setup, command.orders, index == 0, layout);
            prepare_layout(setup, command, layout, calls, samples);
            run_layout(setup, command, layout.seed, calls, samples, restored)?;
            check_context(&shared, command, layout)?;
        }
    }
    let samples = command.layouts as usize * per_layout;
    // SAFETY: the fences lie in the shared memory.
    match unsafe { shared.find_damaged_fence(samples, command.canary) } {
        Some(fence) => Err(fence),
        None => Ok(()),
    }
}

/// Samples that a command keeps of each layout.
fn samples_per_layout(command: &WorkerCommand) -> usize {
    let per_call = if command.events == 0 { 1 } else { command.events as usize };
    command.calls as usize * command.rounds as usize * per_call
}

/// Writes a fresh context, and avoids page faults in the rounds where possible.
unsafe fn prepare_layout(
    setup: &WorkerSetup,
    command: &WorkerCommand,
    layout: &WorkerLayout,
    calls: *const WorkerCall,
    samples: *mut ReadingPair,
) {
    let context = setup.shared_pointers().context_pointer();
    // SAFETY: the context page is mapped for writing and holds nothing else there.
    unsafe {
        ptr::copy_nonoverlapping(&command.context, context, 1);
        ptr::addr_of_mut!((*context).gpr).write(layout.gpr);
    }
    let bytes = samples_per_layout(command) * size_of::<ReadingPair>();
    for offset in (0..bytes).step_by(4096) {
        // SAFETY: the samples of this layout lie in the mapped region and are written below.
        unsafe { samples.cast::<u8>().add(offset).write_volatile(0) };
    }
    for call in 0..command.calls as usize {
        // SAFETY: a program's first byte is mapped for reading.
        unsafe { ((*calls.add(call)).entry as *const u8).read_volatile() };
    }
}

unsafe fn run_layout(
    setup: &WorkerSetup,
    command: &WorkerCommand,
    seed: u64,
    calls: *const WorkerCall,
    mut samples: *mut ReadingPair,
    restored: &RestoredState,
) -> Result<(), u32> {
    let context = setup.shared_pointers().context_pointer();
    let unwritten = command.canary;
    // A state of zero would stay zero.
    let mut random = seed | 1;
    let warm_up = u64::from(command.warm_up);
    let cpu = read_cpu_number();
    // SAFETY: this process is the worker.
    let mut watch = unsafe { InterruptionWatch::start() };
    for round in 0..warm_up + u64::from(command.rounds) {
        for call in 0..command.calls as usize {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // SAFETY: the call lies in the command, the context and the sample in their mapped
            // regions. The program is a function that follows the calling convention.
            unsafe {
                let call = &*calls.add(call);
                if setup.counts {
                    let index = counter::read_counter_index(setup).ok_or(FENCE_COUNTER)?;
                    ptr::addr_of_mut!((*context).counter_index).write_volatile(index);
                }
                ptr::addr_of_mut!((*context).loop_count).write_volatile(call.loop_count);
                ptr::addr_of_mut!((*context).start).write_volatile(unwritten);
                ptr::addr_of_mut!((*context).end).write_volatile(unwritten);
                let delay = ((random >> 32) * u64::from(command.delay)) >> 32;
                if command.events > 0 {
                    // Untimed rounds write where the first timed one does.
                    let events = command.events as usize;
                    event_reading::read_events(setup, events, |event, count| {
                        ptr::addr_of_mut!((*samples.add(event)).start).write_volatile(count);
                    })?;
                    call_program(command, call, delay + 1, restored);
                    event_reading::read_events(setup, events, |event, count| {
                        ptr::addr_of_mut!((*samples.add(event)).end).write_volatile(count);
                    })?;
                    if ptr::addr_of!((*context).end).read_volatile() == unwritten {
                        return Err(FENCE_READING);
                    }
                    if round >= warm_up {
                        samples = samples.add(events);
                    }
                    continue;
                }
                watch.begin_call();
                call_program(command, call, delay + 1, restored);
                let mark = if command.reads_times != 0 && watch.end_call() { INTERRUPTED } else { 0 };
                let start = ptr::addr_of!((*context).start).read_volatile();
                let end = ptr::addr_of!((*context).end).read_volatile();
                if start == unwritten || end == unwritten {
                    return Err(FENCE_READING);
                }
                if round >= warm_up {
                    samples.write_volatile(ReadingPair { start, end: end | mark });
                    samples = samples.add(1);
                }
            }
        }
        if read_cpu_number() != cpu {
            return Err(FENCE_CPU);
        }
    }
    Ok(())
}

/// Calls a program through the segment of its code.
unsafe fn call_program(command: &WorkerCommand, call: &WorkerCall, delay: u64, restored: &RestoredState) {
    let far = FarPointer { offset: call.entry as u32, selector: command.code_segment as u16 };
    let narrow = stub::call_narrow_code as *const () as u64;
    let entry = if command.code_segment == 0 { call.entry } else { narrow };
    // SAFETY: see `run_layout`.
    unsafe { stub::call_program(entry, delay, restored, &far) }
}

/// Checks whether a snippet has changed values that only the harness writes.
unsafe fn check_context(shared: &SharedPointers, command: &WorkerCommand, layout: &WorkerLayout) -> Result<(), u32> {
    let context: *const ProgramContext = shared.context_pointer();
    let (now, before) = (context.cast::<u8>(), ptr::from_ref(&command.context).cast::<u8>());
    for offset in CONSTANT_PART.step_by(8) {
        // SAFETY: both are whole contexts, aligned to 64 bytes.
        let (now, mut before) = unsafe {
            (now.add(offset).cast::<u64>().read_volatile(), before.add(offset).cast::<u64>().read_volatile())
        };
        // The registers come first in that part.
        if let Some(register) = layout.gpr.get((offset - CONSTANT_PART.start) / 8) {
            before = *register;
        }
        if now != before {
            return Err(FENCE_CONTEXT);
        }
    }
    // SAFETY: as above.
    let (now, before) = unsafe { ((*context).mxcsr, command.context.mxcsr) };
    if now == before { Ok(()) } else { Err(FENCE_CONTEXT) }
}
