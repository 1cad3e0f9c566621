//! How a worker publishes the result of a command, and how it ends.

use super::command::{SharedPointers, WorkerCommand, WorkerStatus};
use super::kernel::{FUTEX_WAKE, call};
use super::stub;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// The status that this process's fault handler writes.
pub(super) static SHARED_STATUS: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());

/// The command whose sequence number the current command ends with.
pub(super) static SHARED_COMMAND: AtomicPtr<WorkerCommand> = AtomicPtr::new(ptr::null_mut());

/// Ends the process at once, with a status.
///
/// # Safety
///
/// Only in the worker.
pub unsafe fn exit_process(status: usize) -> ! {
    loop {
        // SAFETY: does not return.
        unsafe { stub::syscall(call::EXIT_GROUP, status, 0, 0, 0, 0, 0) };
    }
}

/// Publishes the status and wakes the caller.
///
/// # Safety
///
/// Only in the worker, after its memory was mapped.
pub unsafe fn finish_command(sequence: u32) {
    let status = status_pointer();
    // SAFETY: mapped for as long as the worker lives; the word is accessed atomically on both
    // sides.
    let done = unsafe { &(*status).done };
    done.store(sequence, Ordering::Release);
    let address = ptr::from_ref(done) as usize;
    // SAFETY: wakes at most one waiter on a word of the shared memory.
    unsafe { stub::syscall(call::FUTEX, address, FUTEX_WAKE, 1, 0, 0, 0) };
}

/// The worker's answer.
pub(super) fn status_pointer() -> *mut WorkerStatus {
    let page = SHARED_STATUS.load(Ordering::Relaxed);
    SharedPointers { context_page: page, status_page: page, samples: page }.status_pointer()
}

/// Reports a failure that ends the worker.
///
/// # Safety
///
/// As for [`finish_command`].
pub unsafe fn report_failure(what: u32, fill: impl FnOnce(*mut WorkerStatus)) -> ! {
    let status = status_pointer();
    fill(status);
    // SAFETY: mapped for as long as the worker lives; the caller reads after `done` has changed.
    unsafe {
        ptr::addr_of_mut!((*status).answer.outcome).write_volatile(what);
        let command = SHARED_COMMAND.load(Ordering::Relaxed);
        finish_command((*command).sequence.load(Ordering::Acquire));
        exit_process(0)
    }
}
