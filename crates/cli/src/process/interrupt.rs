//! Handles the signals that end the program, and removes its temporary files on the way out.

use crate::output::Failure;
use crate::output::terminal::escape_controls;
use crate::process::temp_cleanup;
use cyclescope::record::exit;
use std::ffi::CString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};
use tempfile::TempDir;

/// Leader of the process group that the handler kills; 0 without a group.
static GROUP_LEADER: AtomicI32 = AtomicI32::new(0);
/// Whether this process leads its own group, which ends with it.
static LEADS_GROUP: AtomicBool = AtomicBool::new(false);
/// Whether the leader exits cleanly on its own. If so, the other processes of its group run until
/// then.
static LEADER_IS_ORDERLY: AtomicBool = AtomicBool::new(false);

/// Whether standard error shows a progress line, so that the shell's prompt would follow it.
static PROGRESS_DRAWN: AtomicBool = AtomicBool::new(false);

/// Sets whether standard error shows a progress line.
pub fn set_progress_drawn(drawn: bool) {
    PROGRESS_DRAWN.store(drawn, Ordering::Release);
}

/// Text to print on standard error if the program is interrupted; null for nothing.
static INTERRUPT_TEXT: AtomicPtr<String> = AtomicPtr::new(ptr::null_mut());

/// Sets the text that is printed when the program is interrupted; `None` prints nothing.
pub fn set_interrupt_text(text: Option<String>) {
    // The old text is leaked, some hundred bytes each time: the handler may be reading it.
    let text = text.map_or(ptr::null_mut(), |text| Box::into_raw(Box::new(format!("{}\n", escape_controls(&text)))));
    INTERRUPT_TEXT.store(text, Ordering::Release);
}

/// A group of processes that ends with this one. Only one group can exist at a time.
pub struct ProcessGroup(i32);

impl ProcessGroup {
    /// The group that this process leads.
    pub fn from_leader(leader: i32) -> ProcessGroup {
        LEADER_IS_ORDERLY.store(false, Ordering::Release);
        GROUP_LEADER.store(leader, Ordering::Release);
        ProcessGroup(leader)
    }

    /// The group of a forked copy of this process, which exits cleanly on a signal.
    pub fn from_forked_leader(leader: i32) -> ProcessGroup {
        LEADER_IS_ORDERLY.store(true, Ordering::Release);
        GROUP_LEADER.store(leader, Ordering::Release);
        ProcessGroup(leader)
    }

    /// Makes this forked process the leader of a group that ends with it on a signal.
    pub fn become_leader() {
        // SAFETY: takes no pointers.
        let leads = unsafe { libc::setsid() } != -1;
        LEADS_GROUP.store(leads, Ordering::Release);
    }

    /// Makes a new process die when the thread that started it ends, even by a signal without a
    /// handler. `parent` is the process of that thread, which may have ended already.
    pub fn die_with_parent(parent: u32) {
        // SAFETY: none of the calls takes pointers, and all may be called between fork and exec.
        // `_exit` ends the process at once.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            let (parent, now) = (parent as libc::pid_t, libc::getppid());
            // A filter may refuse to tell either.
            if parent > 0 && now > 0 && now != parent {
                libc::_exit(1);
            }
        }
    }

    /// Kills all processes of the group. The leader must not have been reaped.
    pub fn kill(&self) {
        // SAFETY: takes no pointers.
        unsafe { libc::kill(-self.0, libc::SIGKILL) };
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        GROUP_LEADER.store(0, Ordering::Release);
    }
}

/// Holds back the signals that end the program until it is dropped. By then, a process that was
/// just started is registered and ends with this one.
pub struct HeldSignals(libc::sigset_t);

impl HeldSignals {
    /// Starts to hold back the signals.
    pub fn new() -> HeldSignals {
        // SAFETY: fills two sets, which outlive the calls.
        unsafe {
            let mut ending = std::mem::zeroed();
            let mut before = std::mem::zeroed();
            libc::sigemptyset(&mut ending);
            for signal in ENDING_SIGNALS {
                libc::sigaddset(&mut ending, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &ending, &mut before);
            HeldSignals(before)
        }
    }

    /// For a new process to call before exec: restores the signal handling with which this program
    /// was started.
    pub fn unblock_in_child(&self) -> impl Fn() + Send + Sync + 'static {
        let before = self.0;
        move || {
            // SAFETY: `signal` and `pthread_sigmask` may be called between fork and exec, and the
            // set outlives the call. This program's handler, which removes its files, is reset
            // before a signal can reach it.
            unsafe {
                for (signal, ignored) in HANDLED_SIGNALS.into_iter().zip(&INITIALLY_IGNORED) {
                    let ignored = ignored.load(Ordering::Acquire);
                    libc::signal(signal, if ignored { libc::SIG_IGN } else { libc::SIG_DFL });
                }
                libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
            }
        }
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        // SAFETY: the set outlives the call.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, ptr::null_mut()) };
    }
}

/// Signals that end the program.
const ENDING_SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Signals that this program handles or ignores.
const HANDLED_SIGNALS: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGXFSZ];
static INITIALLY_IGNORED: [AtomicBool; HANDLED_SIGNALS.len()] =
    [const { AtomicBool::new(false) }; HANDLED_SIGNALS.len()];

/// The most recently created files for the handler to remove; null if none.
static LAST_DOOMED: AtomicPtr<DoomedFiles> = AtomicPtr::new(ptr::null_mut());

/// Files, and the folder that holds them.
struct DoomedFiles {
    files: Vec<CString>,
    folder: CString,
    /// Whether they are already removed.
    gone: AtomicBool,
    /// The entry created before this one.
    before: *const DoomedFiles,
}

impl DoomedFiles {
    /// Removes them. Calls only async-signal-safe functions.
    fn remove(&self) {
        // SAFETY: the names outlive the calls.
        unsafe {
            for file in &self.files {
                libc::unlink(file.as_ptr());
            }
            libc::rmdir(self.folder.as_ptr());
        }
    }
}

/// Ends the process with 130 on Ctrl-C and as usual on SIGTERM and SIGHUP, and removes its
/// temporary files. The worker dies with its parent; output written so far stays. A process started
/// by nohup(1) ignores SIGHUP.
pub fn install_handlers() {
    let handler: extern "C" fn(libc::c_int) = end;
    for (signal, ignored) in HANDLED_SIGNALS.into_iter().zip(&INITIALLY_IGNORED) {
        // With SIGXFSZ ignored, a write beyond the file size limit fails with an error instead.
        let action = if signal == libc::SIGXFSZ { libc::SIG_IGN } else { handler as libc::sighandler_t };
        // SAFETY: the handler calls only async-signal-safe functions, and ignoring a signal calls
        // nothing.
        unsafe {
            let before = libc::signal(signal, action);
            ignored.store(before == libc::SIG_IGN, Ordering::Release);
            if signal == libc::SIGHUP && before == libc::SIG_IGN {
                libc::signal(signal, before);
            }
        }
    }
}

extern "C" fn end(signal: libc::c_int) {
    let group = GROUP_LEADER.load(Ordering::Acquire);
    // SAFETY: the stored values are never freed. `write`, `kill`, `waitid`, `nanosleep`, `unlink`,
    // `rmdir`, `_exit`, `signal` and `raise` are async-signal-safe.
    unsafe {
        if PROGRESS_DRAWN.load(Ordering::Acquire) {
            libc::write(libc::STDERR_FILENO, c"\n".as_ptr().cast(), 1);
        }
        if let Some(text) = INTERRUPT_TEXT.load(Ordering::Acquire).as_ref() {
            libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
        }
        if group > 0 {
            match LEADER_IS_ORDERLY.load(Ordering::Acquire) {
                true => libc::kill(group, signal),
                false => libc::kill(-group, libc::SIGTERM),
            };
            await_child_end(group);
            libc::kill(-group, libc::SIGKILL);
        }
        remove_doomed_files();
        if LEADS_GROUP.load(Ordering::Acquire) {
            // Workers would otherwise wait for the kernel to tear this process down, which takes
            // seconds while it traces markers.
            libc::kill(0, libc::SIGKILL);
        }
        if signal == libc::SIGINT {
            libc::_exit(130);
        }
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Removes the temporary files. Calls only async-signal-safe functions.
fn remove_doomed_files() {
    let mut next = LAST_DOOMED.load(Ordering::Acquire).cast_const();
    // SAFETY: the stored values are never freed.
    while let Some(doomed) = unsafe { next.as_ref() } {
        if !doomed.gone.load(Ordering::Acquire) {
            doomed.remove();
        }
        next = doomed.before;
    }
}

/// Exit code of a forked copy of this program that can't go on. A library that ends it rarely
/// chooses this one.
pub const COPY_ENDED_EARLY: u8 = 86;

/// Ends this process as after an internal error, with its group and its temporary files. Allocates
/// nothing and takes no lock.
pub fn end_at_once() -> ! {
    let group = GROUP_LEADER.load(Ordering::Acquire);
    // SAFETY: none of the calls takes pointers. The leader is not reaped yet.
    unsafe {
        if group > 0 {
            libc::kill(-group, libc::SIGKILL);
            await_child_end(group);
        }
        remove_doomed_files();
        libc::_exit(if LEADS_GROUP.load(Ordering::Acquire) { COPY_ENDED_EARLY } else { exit::INTERNAL }.into())
    }
}

/// Waits for a child to end, for at most half a second. Calls only async-signal-safe functions.
fn await_child_end(child: libc::pid_t) {
    const TRIES: u32 = 100;
    let pause = libc::timespec { tv_sec: 0, tv_nsec: 5_000_000 };
    for _ in 0..TRIES {
        // SAFETY: the structures outlive the calls. The child isn't reaped, so its number stays
        // valid.
        let over = unsafe {
            let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
            let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            let failed = libc::waitid(libc::P_PID, child as libc::id_t, info.as_mut_ptr(), options) != 0;
            failed || info.assume_init().si_pid() != 0
        };
        if over {
            return;
        }
        // SAFETY: the time outlives the call.
        unsafe { libc::nanosleep(&pause, ptr::null_mut()) };
    }
}

/// A temporary folder for a known set of files.
pub struct ScratchFolder {
    folder: TempDir,
    doomed: &'static DoomedFiles,
    /// The lock that marks the folder as in use.
    _held: File,
}

impl ScratchFolder {
    /// Creates a folder for these files.
    pub fn new(files: &[&str]) -> Result<ScratchFolder, Failure> {
        temp_cleanup::remove_stale(&std::env::temp_dir());
        let made = tempfile::Builder::new().prefix(temp_cleanup::SCRATCH_PREFIX).tempdir();
        let made = made.and_then(|folder| Ok((temp_cleanup::lock_folder(folder.path())?, folder)));
        let (held, folder) = made.map_err(|error| {
            let remedy = "set $TMPDIR to a writable folder";
            Failure::from_writing("can't create a temporary folder", &error, remedy)
        })?;
        let name = |path: &Path| CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
        let files = files.iter().map(|file| name(&folder.path().join(file))).collect();
        // Leaked, some hundred bytes each, because the handler may be reading it when the folder is
        // dropped.
        let before = LAST_DOOMED.load(Ordering::Acquire).cast_const();
        let folder_name = name(folder.path());
        let doomed =
            Box::into_raw(Box::new(DoomedFiles { files, folder: folder_name, gone: AtomicBool::new(false), before }));
        LAST_DOOMED.store(doomed, Ordering::Release);
        // SAFETY: it is never freed, and only its atomic field changes.
        Ok(ScratchFolder { folder, doomed: unsafe { &*doomed }, _held: held })
    }

    /// The path of a file in the folder.
    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // First by name, which needs fewer system calls. The folder goes with what else is in it.
        self.doomed.remove();
        self.doomed.gone.store(true, Ordering::Release);
    }
}
