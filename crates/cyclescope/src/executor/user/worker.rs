//! The worker's life: set itself up, then run commands until it is killed.
//!
//! It starts as a copy of a process that may have had other threads, which may have held any lock. So
//! nothing here allocates, locks, panics or touches thread-local storage.

use super::areas;
use super::command::{
    Command, FENCE_CONTEXT, FENCE_COUNTER, FENCE_READING, LAYOUTS_AT, PlacedCall, PlacedLayout, Shared,
    outcome,
};
use super::counter;
use super::ending::{SHARED_COMMAND, SHARED_STATUS, exit, finish, give_up, status};
use super::regions::view;
use super::sandbox::{self, Failed};
use super::setup::Setup;
use super::stub::{self, Restored};
use crate::context::{CONSTANT_PART, Context};
use crate::executor::Sample;
use std::mem::size_of;
use std::ptr;
use std::sync::atomic::Ordering;

/// The first function of the worker. Never returns to the code that made it.
///
/// # Safety
///
/// This process is a fresh copy whose only thread this is.
pub(super) unsafe fn start(setup: &Setup) -> ! {
    for piece in &setup.pieces {
        let address = setup.at(piece.at) as usize;
        let flags = (piece.flags | libc::MAP_FIXED) as usize;
        let (protection, fd) = (piece.protection as usize, piece.fd as usize);
        // SAFETY: replaces a part of the reservation that was made for it, and no other memory.
        let answer = unsafe {
            stub::syscall(libc::SYS_mmap, address, piece.bytes, protection, flags, fd, piece.offset)
        };
        if answer != address as isize {
            // SAFETY: ends the process. The status is all that the caller hears before its memory is mapped.
            unsafe { exit(-answer as usize) };
        }
    }
    SHARED_STATUS.store(setup.at(view::STATUS_AT), Ordering::Relaxed);
    SHARED_COMMAND.store(setup.at(view::COMMAND_AT).cast(), Ordering::Relaxed);
    let top = setup.view + view::STACK_TOP as u64;
    // SAFETY: the new stack has just been mapped, and `setup` lies in memory that stays mapped.
    unsafe { stub::enter_on_stack(top, setup, serve) }
}

unsafe extern "C" fn serve(setup: *const Setup) -> ! {
    // SAFETY: `start` passes a reference that stays valid in this process.
    let setup = unsafe { &*setup };
    // SAFETY: this process is the worker, set up once; counter and areas come before the sandbox.
    let ready = unsafe {
        counter::open(setup)
            .map_err(|errno| Failed { step: sandbox::STEP_COUNTER, call: libc::SYS_perf_event_open, errno })
            .and_then(|()| {
                areas::map(setup).map_err(|errno| Failed { step: sandbox::STEP_AREAS, call: -1, errno })
            })
            .and_then(|smaps| sandbox::close(setup).map(|()| smaps))
    };
    let smaps = match ready {
        Ok(smaps) => smaps,
        // SAFETY: the shared memory is mapped.
        Err(Failed { step, call, errno }) => unsafe {
            give_up(outcome::SETUP, |status| {
                ptr::addr_of_mut!((*status).detail).write_volatile(step);
                ptr::addr_of_mut!((*status).errno).write_volatile(errno);
                ptr::addr_of_mut!((*status).address).write_volatile(call as u64);
            })
        },
    };
    let mut restored =
        Restored { fs_base: 0, gs_base: 0, avx: setup.avx as u8, fsgsbase: setup.fsgsbase as u8 };
    if setup.fsgsbase {
        // SAFETY: the kernel says that these instructions are enabled.
        unsafe {
            std::arch::asm!("rdfsbase {}", out(reg) restored.fs_base, options(nomem, nostack));
            std::arch::asm!("rdgsbase {}", out(reg) restored.gs_base, options(nomem, nostack));
        }
    }
    let command: *const Command = setup.at(view::COMMAND_AT).cast();
    let mut last = setup.sequence;
    // SAFETY: the shared memory is mapped, and the caller writes no command while one is running.
    unsafe {
        ptr::addr_of_mut!((*status()).outcome).write_volatile(outcome::DONE);
        ptr::addr_of_mut!((*status()).address).write_volatile(smaps as u64);
        finish(last);
        loop {
            last = wait_for_command(command, last);
            stub::serialise();
            let (result, detail) = match run(setup, command, &restored) {
                Ok(()) => (outcome::DONE, 0),
                Err(fence) => (outcome::FENCE, fence),
            };
            ptr::addr_of_mut!((*status()).detail).write_volatile(detail);
            ptr::addr_of_mut!((*status()).outcome).write_volatile(result);
            finish(last);
        }
    }
}

/// Turns of active waiting, some 300 µs: a virtual CPU that went to sleep between two batches of one measurement
/// takes 50 to 100 µs to wake.
const SPINS: u32 = 8000;

unsafe fn wait_for_command(command: *const Command, last: u32) -> u32 {
    // SAFETY: the command region stays mapped; its first word is accessed atomically on both sides.
    let (sequence, spin) = unsafe { (&(*command).sequence, (*command).spin) };
    if spin != 0 {
        for _ in 0..SPINS {
            let now = sequence.load(Ordering::Acquire);
            if now != last {
                return now;
            }
            std::hint::spin_loop();
        }
    }
    loop {
        let now = sequence.load(Ordering::Acquire);
        if now != last {
            return now;
        }
        let address = ptr::from_ref(sequence) as usize;
        // SAFETY: waits on a word of the shared memory for as long as it has its old value.
        unsafe { stub::syscall(libc::SYS_futex, address, libc::FUTEX_WAIT as usize, last as usize, 0, 0, 0) };
    }
}

/// Runs one command. An error is the index of a damaged fence.
unsafe fn run(setup: &Setup, command: *const Command, restored: &Restored) -> Result<(), u32> {
    // SAFETY: the caller has written a whole command before it changed the sequence number, and its layouts
    // and calls fit in the region.
    let (command, layouts, calls) = unsafe {
        let bytes = command.cast::<u8>();
        let layouts = bytes.add(LAYOUTS_AT).cast::<PlacedLayout>();
        let calls = layouts.add((*command).layouts as usize).cast::<PlacedCall>();
        (&*command, layouts, calls)
    };
    let shared = setup.shared();
    let per_layout = command.calls as usize * command.rounds as usize;
    for index in 0..command.layouts as usize {
        // SAFETY: see above; the samples of all layouts fit in their region.
        unsafe {
            let layout = &*layouts.add(index);
            let calls = calls.add(index * command.calls as usize);
            let samples = shared.first_sample().add(index * per_layout);
            areas::prepare(setup, command.orders, index == 0, layout);
            prepare(setup, command, layout, calls, samples);
            run_layout(setup, command, layout.seed, calls, samples, restored)?;
            check_context(&shared, command, layout)?;
        }
    }
    let samples = command.layouts as usize * per_layout;
    // SAFETY: the fences lie in the shared memory.
    match unsafe { shared.damaged_fence(samples, command.canary) } {
        Some(fence) => Err(fence),
        None => Ok(()),
    }
}

/// A fresh context, and no page faults in the rounds where that can be helped.
unsafe fn prepare(
    setup: &Setup,
    command: &Command,
    layout: &PlacedLayout,
    calls: *const PlacedCall,
    samples: *mut Sample,
) {
    let context = setup.shared().context();
    // SAFETY: the context page is mapped for writing and holds nothing else there.
    unsafe {
        ptr::copy_nonoverlapping(&command.context, context, 1);
        ptr::addr_of_mut!((*context).gpr).write(layout.gpr);
    }
    let bytes = command.calls as usize * command.rounds as usize * size_of::<Sample>();
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
    setup: &Setup,
    command: &Command,
    seed: u64,
    calls: *const PlacedCall,
    mut samples: *mut Sample,
    restored: &Restored,
) -> Result<(), u32> {
    let context = setup.shared().context();
    let unwritten = command.canary;
    // A state of zero would stay zero.
    let mut random = seed | 1;
    let warm_up = u64::from(command.warm_up);
    for round in 0..warm_up + u64::from(command.rounds) {
        for call in 0..command.calls as usize {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // SAFETY: the call lies in the command, the context and the sample in their mapped regions; the
            // program is a function that preserves what the calling convention asks for.
            unsafe {
                let call = &*calls.add(call);
                if setup.counter.is_some() {
                    let index = counter::index(setup).ok_or(FENCE_COUNTER)?;
                    ptr::addr_of_mut!((*context).counter_index).write_volatile(index);
                }
                ptr::addr_of_mut!((*context).loop_count).write_volatile(call.loop_count);
                ptr::addr_of_mut!((*context).start).write_volatile(unwritten);
                ptr::addr_of_mut!((*context).end).write_volatile(unwritten);
                let delay = ((random >> 32) * u64::from(command.delay)) >> 32;
                stub::call_program(call.entry, delay + 1, restored);
                let start = ptr::addr_of!((*context).start).read_volatile();
                let end = ptr::addr_of!((*context).end).read_volatile();
                if start == unwritten || end == unwritten {
                    return Err(FENCE_READING);
                }
                if round >= warm_up {
                    samples.write_volatile(Sample { start, end });
                    samples = samples.add(1);
                }
            }
        }
    }
    Ok(())
}

/// Whether a snippet has changed what only the harness writes.
unsafe fn check_context(shared: &Shared, command: &Command, layout: &PlacedLayout) -> Result<(), u32> {
    let context: *const Context = shared.context();
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
