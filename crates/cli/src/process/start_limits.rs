//! Checks that a program which was started with little stack or memory has enough: otherwise the
//! kernel would end it without a word.
//!
//! The kernel lets the stack grow up to the soft limit of that moment, so that raising it helps a
//! running program too.

use crate::output::Failure;
use cyclescope::machine::fact::SystemFiles;
use cyclescope::machine::free_memory;

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
/// If the stack stays too small, or if little memory is free.
pub fn make_room() -> Result<(), Failure> {
    raise_stack_limit()?;
    match free_memory::read_free_bytes(&SystemFiles::system()).known() {
        Some(free) if *free < FREE_BYTES_LEAST => {
            let text = format!("only {} KiB of memory are free here, or in this control group", free >> 10);
            Err(Failure::internal(text).with_remedy("allow more: see `free -m`, and memory.max of the group"))
        }
        _ => Ok(()),
    }
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
