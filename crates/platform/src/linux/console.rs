//! The terminal and the standard streams.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether standard output was closed when the program started.
static STDOUT_CLOSED: AtomicBool = AtomicBool::new(false);

/// Checks whether standard output is closed. Before `main`, Rust's runtime replaces a closed stream
/// by /dev/null, so the loader calls this earlier, as a constructor.
extern "C" fn ask() {
    // SAFETY: takes no pointers; a closed descriptor only returns an error.
    let closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1;
    STDOUT_CLOSED.store(closed, Ordering::Relaxed);
}

// SAFETY: the section holds pointers to functions without results that may ignore their arguments.
// `ask` uses nothing that is initialized later.
#[used]
#[unsafe(link_section = ".init_array")]
static ASK: extern "C" fn() = ask;

/// Whether standard output was closed when the program started.
pub fn is_stdout_closed() -> bool {
    // The use keeps the constructor in every program that asks.
    std::hint::black_box(&ASK);
    STDOUT_CLOSED.load(Ordering::Relaxed)
}

/// Prepares the terminal for text in UTF-8 with colours. Those of Linux are.
pub fn prepare_terminal() {}

/// Writes to standard error without a lock or memory.
pub fn write_to_stderr(text: &[u8]) {
    // SAFETY: the text outlives the call. Nothing more can be done if it fails.
    unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}
