//! Checks that a program which was started with little stack or memory has enough: otherwise the
//! kernel would end it without a word. So would the C library where threads can't wait.
//!
//! The kernel lets the stack grow up to the soft limit of that moment, so that raising it helps a
//! running program too.

use crate::output::Failure;
use cyclescope::error::RunError;
use cyclescope::machine::fact::SystemFiles;
use cyclescope::machine::free_memory;
use std::sync::atomic::AtomicU32;

/// Bytes of stack that every command has enough of. Parsing the options takes a tenth.
const STACK_BYTES: libc::rlim_t = 4 << 20;
/// Bytes without which no command starts.
const STACK_BYTES_LEAST: libc::rlim_t = 256 << 10;

/// Free bytes without which no command measures. A short run takes five million after its start
/// (`memory.max_usage_in_bytes`).
const FREE_BYTES_LEAST: u64 = 6 << 20;

/// Raises the limit of the stack if it is small and may be raised.
///
/// # Errors
///
/// If the stack stays too small, if little memory is free, or if threads can't wait for each other.
pub fn make_room() -> Result<(), Failure> {
    raise_stack_limit()?;
    check_futex()?;
    match free_memory::read_free_bytes(&SystemFiles::system()).known() {
        Some(free) if *free < FREE_BYTES_LEAST => {
            let text = format!("only {} KiB of memory are free here, or in this control group", free >> 10);
            Err(Failure::internal(text).with_remedy("allow more: see `free -m`, and memory.max of the group"))
        }
        _ => Ok(()),
    }
}

/// The C library aborts where the system refuses futex(2).
fn check_futex() -> Result<(), Failure> {
    let word = AtomicU32::new(0);
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word outlives the call, which wakes nobody.
    if unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, 1) } >= 0 {
        return Ok(());
    }
    let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    Err(RunError::from_system_call("waking a thread", "futex", errno).into())
}

fn raise_stack_limit() -> Result<(), Failure> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure outlives the calls.
    let most = unsafe {
        if libc::getrlimit(libc::RLIMIT_STACK, &mut limit) != 0 || limit.rlim_cur >= STACK_BYTES {
            return Ok(());
        }
        let raised = libc::rlimit { rlim_cur: STACK_BYTES.min(limit.rlim_max), ..limit };
        if libc::setrlimit(libc::RLIMIT_STACK, &raised) == 0 { raised.rlim_cur } else { limit.rlim_cur }
    };
    if most >= STACK_BYTES_LEAST {
        return Ok(());
    }
    let text = format!("the stack is limited to {} KiB, which is too little", most >> 10);
    Err(Failure::internal(text).with_remedy("allow more, such as `ulimit -s 8192`"))
}
