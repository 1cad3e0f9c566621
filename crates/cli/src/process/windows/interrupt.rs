//! Handles Ctrl-C and the other events that end a console program, and removes its temporary files.
//!
//! Windows runs the handler in a thread of its own. Workers end with this program: their job does.

use crate::output::Failure;
use crate::output::terminal::escape_controls;
use cyclescope::record::exit;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;
use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, SetConsoleCtrlHandler};

/// Whether standard error shows a progress line, so that the shell's prompt would follow it.
static PROGRESS_DRAWN: AtomicBool = AtomicBool::new(false);

/// Sets whether standard error shows a progress line.
pub fn set_progress_drawn(drawn: bool) {
    PROGRESS_DRAWN.store(drawn, Ordering::Release);
}

/// Text to print on standard error if the program is interrupted.
static INTERRUPT_TEXT: Mutex<Option<String>> = Mutex::new(None);

/// Sets the text that is printed when the program is interrupted; `None` prints nothing.
pub fn set_interrupt_text(text: Option<String>) {
    if let Ok(mut set) = INTERRUPT_TEXT.lock() {
        *set = text.map(|text| escape_controls(&text).to_string());
    }
}

/// Folders to remove when the program ends early.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn remove_folders() {
    if let Ok(mut folders) = FOLDERS.lock() {
        // What can't be removed stays in the folder for temporary files.
        folders.drain(..).for_each(|folder| drop(std::fs::remove_dir_all(folder)));
    }
}

/// Ends the process with 130 on Ctrl-C and Ctrl-Break, and with 1 when its console closes or its user
/// logs off. Output written so far stays.
pub fn install_handlers() {
    // SAFETY: the handler is a function of this program.
    unsafe { SetConsoleCtrlHandler(Some(end), 1) };
}

/// Exit code after Ctrl-C.
const INTERRUPTED: i32 = 130;

unsafe extern "system" fn end(event: u32) -> i32 {
    if PROGRESS_DRAWN.load(Ordering::Acquire) {
        eprintln!();
    }
    if let Ok(Some(text)) = INTERRUPT_TEXT.try_lock().as_deref() {
        eprintln!("{text}");
    }
    remove_folders();
    let interrupted = matches!(event, CTRL_C_EVENT | CTRL_BREAK_EVENT);
    std::process::exit(if interrupted { INTERRUPTED } else { exit::INTERNAL.into() })
}

/// Ends this process as after an internal error, with its temporary files.
pub fn end_at_once() -> ! {
    remove_folders();
    std::process::exit(exit::INTERNAL.into())
}

/// A temporary folder for a known set of files.
pub struct ScratchFolder {
    folder: TempDir,
}

impl ScratchFolder {
    /// Creates a folder for these files.
    pub fn new(_files: &[&str]) -> Result<ScratchFolder, Failure> {
        let made = tempfile::Builder::new().prefix(".cyclescope-scratch-").tempdir();
        let folder = made.map_err(|error| {
            let remedy = "set %TEMP% to a writable folder";
            Failure::from_writing("can't create a temporary folder", &error, remedy)
        })?;
        if let Ok(mut folders) = FOLDERS.lock() {
            folders.push(folder.path().to_path_buf());
        }
        Ok(ScratchFolder { folder })
    }

    /// The path of a file in the folder.
    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        if let Ok(mut folders) = FOLDERS.lock() {
            folders.retain(|folder| folder != self.folder.path());
        }
    }
}
