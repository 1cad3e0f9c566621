//! Signals that end the program, and the temporary files that must not outlive it.

use crate::output::Failure;
use crate::output::terminal::escape_controls;
use crate::process::temp_cleanup;
use std::ffi::CString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};
use tempfile::TempDir;

/// The leader of the process group that the handler ends; 0 where there is none.
static GROUP_LEADER: AtomicI32 = AtomicI32::new(0);
/// Whether this process leads a group itself, which ends with it.
static LEADS_GROUP: AtomicBool = AtomicBool::new(false);
/// Whether its leader ends in good order by itself: then the others are not disturbed before.
static LEADER_IS_ORDERLY: AtomicBool = AtomicBool::new(false);

/// Whether a progress line is being drawn on standard error, so that the prompt would follow it.
static PROGRESS_DRAWN: AtomicBool = AtomicBool::new(false);

/// Sets whether a progress line is being drawn.
pub fn set_progress_drawn(is: bool) {
    PROGRESS_DRAWN.store(is, Ordering::Release);
}

/// The text for standard error when the program is interrupted. Null where there is none.
static INTERRUPT_TEXT: AtomicPtr<String> = AtomicPtr::new(ptr::null_mut());

/// Sets the text that is printed when the program is interrupted; `None` prints nothing.
pub fn set_interrupt_text(text: Option<String>) {
    // Leaked, for the handler may be reading it when it is replaced: some hundred bytes each.
    let text = text.map_or(ptr::null_mut(), |text| Box::into_raw(Box::new(format!("{}\n", escape_controls(&text)))));
    INTERRUPT_TEXT.store(text, Ordering::Release);
}

/// Processes that end with this one. One group at a time.
pub struct ProcessGroup(i32);

impl ProcessGroup {
    /// The group of the process that leads it.
    pub fn from_leader(leader: u32) -> ProcessGroup {
        LEADER_IS_ORDERLY.store(false, Ordering::Release);
        GROUP_LEADER.store(leader as i32, Ordering::Release);
        ProcessGroup(leader as i32)
    }

    /// The group of a copy of this process, which ends in good order when it gets a signal.
    pub fn from_forked_leader(leader: i32) -> ProcessGroup {
        LEADER_IS_ORDERLY.store(true, Ordering::Release);
        GROUP_LEADER.store(leader, Ordering::Release);
        ProcessGroup(leader)
    }

    /// Makes this process, a copy of another one, the leader of a group that ends with it when it gets a signal.
    pub fn become_leader() {
        // SAFETY: takes no pointers.
        let leads = unsafe { libc::setsid() } != -1;
        LEADS_GROUP.store(leads, Ordering::Release);
    }

    /// In a new process: it is killed when the thread that started it ends, be that by a signal that no handler sees. `parent` is the
    /// process of that thread, which may have ended already.
    pub fn die_with_parent(parent: u32) {
        // SAFETY: all take no pointers and may be called between fork and exec; `_exit` ends the process at once.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::getppid() != parent as libc::pid_t {
                libc::_exit(1);
            }
        }
    }

    /// Kills all of them. The leader must not have been reaped.
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

/// Signals that end the program, held back until this is dropped: a process that has just been started is known by then, and
/// what it has started ends with it.
pub struct HeldSignals(libc::sigset_t);

impl HeldSignals {
    /// Holds them back.
    pub fn new() -> HeldSignals {
        // SAFETY: fills two sets, which live through the calls.
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

    /// What a new process calls before it becomes another program: signals find it as they found this one when it was started.
    pub fn unblock_in_child(&self) -> impl Fn() + Send + Sync + 'static {
        let before = self.0;
        move || {
            // SAFETY: `signal` and `pthread_sigmask` may be called between fork and exec, and the set lives through the call. This program's
            // handler, which removes its files, goes before a signal can reach it.
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
        // SAFETY: the set lives through the call.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, ptr::null_mut()) };
    }
}

/// Signals that end the program.
const ENDING_SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Signals of which this program changes what they do, and whether it was started with them ignored.
const HANDLED_SIGNALS: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGXFSZ];
static INITIALLY_IGNORED: [AtomicBool; HANDLED_SIGNALS.len()] =
    [const { AtomicBool::new(false) }; HANDLED_SIGNALS.len()];

/// What the handler removes, the last first. Null where there is nothing.
static LAST_DOOMED: AtomicPtr<DoomedFiles> = AtomicPtr::new(ptr::null_mut());

/// Files, and then their folder.
struct DoomedFiles {
    files: Vec<CString>,
    folder: CString,
    /// Whether they are gone already.
    gone: AtomicBool,
    /// What was made before.
    before: *const DoomedFiles,
}

/// Ends the process with 130 on Ctrl-C, and as usual on SIGTERM and SIGHUP, without temporary files left. The
/// worker dies with its parent, and what was written stays. What was started by nohup(1) goes on after a SIGHUP.
pub fn install_handlers() {
    let handler: extern "C" fn(libc::c_int) = end;
    for (signal, ignored) in HANDLED_SIGNALS.into_iter().zip(&INITIALLY_IGNORED) {
        // A limit on the size of files shall be an error of the write that meets it.
        let wanted = if signal == libc::SIGXFSZ { libc::SIG_IGN } else { handler as libc::sighandler_t };
        // SAFETY: the handler calls nothing but async-signal-safe functions, and ignoring a signal calls nothing.
        unsafe {
            let before = libc::signal(signal, wanted);
            ignored.store(before == libc::SIG_IGN, Ordering::Release);
            if signal == libc::SIGHUP && before == libc::SIG_IGN {
                libc::signal(signal, before);
            }
        }
    }
}

extern "C" fn end(signal: libc::c_int) {
    let (doomed, group) = (LAST_DOOMED.load(Ordering::Acquire), GROUP_LEADER.load(Ordering::Acquire));
    // SAFETY: what is stored there is never freed; `write`, `kill`, `waitid`, `nanosleep`, `unlink`, `rmdir`, `_exit`, `signal`
    // and `raise` are async-signal-safe.
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
        let mut next = doomed.cast_const();
        while let Some(doomed) = next.as_ref() {
            if !doomed.gone.load(Ordering::Acquire) {
                for file in &doomed.files {
                    libc::unlink(file.as_ptr());
                }
                libc::rmdir(doomed.folder.as_ptr());
            }
            next = doomed.before;
        }
        if LEADS_GROUP.load(Ordering::Acquire) {
            // Workers would wait until the kernel has taken this process apart: seconds, where it traces markers.
            libc::kill(0, libc::SIGKILL);
        }
        if signal == libc::SIGINT {
            libc::_exit(130);
        }
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Waits until a child has ended, for half a second at most. Calls nothing but async-signal-safe functions.
fn await_child_end(child: libc::pid_t) {
    const TRIES: u32 = 100;
    let pause = libc::timespec { tv_sec: 0, tv_nsec: 5_000_000 };
    for _ in 0..TRIES {
        // SAFETY: the structures live through the calls. The child is not reaped, so that its number stays its own.
        let over = unsafe {
            let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
            let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            let failed = libc::waitid(libc::P_PID, child as libc::id_t, info.as_mut_ptr(), options) != 0;
            failed || info.assume_init().si_pid() != 0
        };
        if over {
            return;
        }
        // SAFETY: the time lives through the call.
        unsafe { libc::nanosleep(&pause, ptr::null_mut()) };
    }
}

/// A temporary folder for certain files.
pub struct ScratchFolder {
    folder: TempDir,
    doomed: &'static DoomedFiles,
    /// By which others know that it is used.
    _held: File,
}

impl ScratchFolder {
    /// Makes a folder, in which these files may be made.
    pub fn new(files: &[&str]) -> Result<ScratchFolder, Failure> {
        temp_cleanup::remove_stale(&std::env::temp_dir());
        let made = tempfile::Builder::new().prefix(temp_cleanup::SCRATCH_PREFIX).tempdir();
        let made = made.and_then(|folder| Ok((temp_cleanup::lock_folder(folder.path())?, folder)));
        let (held, folder) = made.map_err(|error| {
            let remedy = "name a folder that can be written to in $TMPDIR";
            Failure::internal(format!("making a temporary folder failed: {error}")).with_remedy(remedy)
        })?;
        let name = |path: &Path| CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
        let files = files.iter().map(|file| name(&folder.path().join(file))).collect();
        // Leaked, for the handler may be reading it when the folder goes: some hundred bytes each.
        let before = LAST_DOOMED.load(Ordering::Acquire).cast_const();
        let folder_name = name(folder.path());
        let doomed =
            Box::into_raw(Box::new(DoomedFiles { files, folder: folder_name, gone: AtomicBool::new(false), before }));
        LAST_DOOMED.store(doomed, Ordering::Release);
        // SAFETY: it is never freed, and changes only in its atomic field.
        Ok(ScratchFolder { folder, doomed: unsafe { &*doomed }, _held: held })
    }

    /// The path of a file in the folder.
    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        self.doomed.gone.store(true, Ordering::Release);
    }
}
