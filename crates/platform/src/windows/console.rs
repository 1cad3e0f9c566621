//! The console and the standard streams.

use std::io::Write;
use windows_sys::Win32::Foundation::INVALID_HANDLE_VALUE;
use windows_sys::Win32::System::Console::{
    ENABLE_VIRTUAL_TERMINAL_PROCESSING, GetConsoleMode, GetStdHandle, STD_ERROR_HANDLE, STD_OUTPUT_HANDLE,
    SetConsoleMode, SetConsoleOutputCP,
};

/// Number of the code page of UTF-8.
const UTF_8: u32 = 65001;

/// Whether standard output was closed when the program started. A program without a console has
/// none either; its output is not printed to it.
pub fn is_stdout_closed() -> bool {
    // SAFETY: takes no pointers.
    let stdout = unsafe { GetStdHandle(STD_OUTPUT_HANDLE) };
    stdout.is_null() || stdout == INVALID_HANDLE_VALUE
}

/// Prepares the console for text in UTF-8 with colours. A stream that is no console stays as it is.
pub fn prepare_terminal() {
    // SAFETY: the mode lives through its calls; the others take no pointers.
    unsafe {
        SetConsoleOutputCP(UTF_8);
        for stream in [STD_OUTPUT_HANDLE, STD_ERROR_HANDLE] {
            let (console, mut mode) = (GetStdHandle(stream), 0);
            if GetConsoleMode(console, &mut mode) != 0 {
                SetConsoleMode(console, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
            }
        }
    }
}

/// Writes to standard error.
pub fn write_to_stderr(text: &[u8]) {
    // Nothing more can be done if it fails.
    let _ = std::io::stderr().write_all(text);
}
