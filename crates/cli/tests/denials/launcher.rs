//! Starts the program in a system that refuses one of its system calls.
//!
//! A seccomp filter passes that call to this process, which counts it and answers with an error
//! from some occurrence on (seccomp_unotify(2)). All other calls run as usual, except that the
//! locks of CPUs are always free: other runs on this machine delay no test.
//!
//! Counting begins when the program installs its own signal handlers. What comes before belongs to
//! the dynamic loader and to the language's runtime.

use cyclescope_worker::view::CALL_AT;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The code that makes a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallSource {
    /// The program, and the copies of it that load libraries.
    Program,
    /// The harness of its worker.
    Worker,
    /// A program that it starts.
    Tool,
}

/// A refusal of one system call.
#[derive(Debug, Clone, Copy)]
pub struct CallDenial {
    /// The system call's number.
    pub call: i64,
    /// Whose call it is.
    pub caller: CallSource,
    /// The answer.
    pub errno: i32,
    /// The first refused occurrence, counted from 1.
    pub first: u32,
    /// The number of refused occurrences.
    pub count: u32,
}

/// What a launcher does with system calls.
#[derive(Debug, Clone, Copy)]
pub enum LauncherTask {
    /// Nothing, except that locks are free.
    Locks,
    /// Counts all of them.
    Count,
    /// Refuses one of them.
    Deny(CallDenial),
}

/// How a launched program ended.
pub struct Outcome {
    /// Its status; `None` if it was killed because it did not end in time.
    pub status: Option<ExitStatus>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Wall time from its start to its end.
    pub wall: Duration,
    /// Processes that outlived it, as `/proc` describes them.
    pub survivors: Vec<String>,
    /// Names of the files that it left in the folder for temporary files.
    pub files: Vec<String>,
    /// The number of calls of each kind, or that of the refused kind.
    pub calls: BTreeMap<(CallSource, i64), u32>,
}

impl Outcome {
    /// The exit code, if it has one.
    pub fn code(&self) -> Option<i32> {
        self.status.and_then(|status| status.code())
    }

    /// The outcome for the message of a failed test.
    pub fn describe(&self) -> String {
        let Outcome { status, stdout, stderr, wall, survivors, files, .. } = self;
        let shown: Vec<String> = stdout.lines().map(|line| line.chars().take(400).collect()).collect();
        format!("  {status:?} in {wall:?}, {shown:?}, {stderr:?}, {survivors:?}, {files:?}")
    }
}

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
/// Offsets in `struct seccomp_data` (Linux, include/uapi/linux/seccomp.h): the number, the lower
/// half of the address after the call, and those of its first two arguments.
const NUMBER_AT: u32 = 0;
const ADDRESS_AT: u32 = 8;
const ARGUMENT_AT: u32 = 16;
const SECOND_ARGUMENT_AT: u32 = 24;
/// The operation of a futex call that wakes those who wait for a lock. The starting thread may have a lock of the
/// allocator for which the watcher waits, so the watcher can't answer this call.
const WAKE: u32 = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as u32;

const fn step(code: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt, jf, k }
}

/// The address after the system call instruction of the worker's harness. SYSCALL has two bytes.
const AFTER_WORKER_CALL: u64 = CALL_AT + 2;

/// Builds the filter.
fn build_filter(watch: LauncherTask) -> Vec<libc::sock_filter> {
    let notify = step(RETURN, libc::SECCOMP_RET_USER_NOTIF, 0, 0);
    let allow = step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0);
    let grant = step(RETURN, libc::SECCOMP_RET_ERRNO, 0, 0);
    let number = step(LOAD, NUMBER_AT, 0, 0);
    let is_flock = step(EQUAL, libc::SYS_flock as u32, 0, 1);
    let without_wake = [
        number,
        step(EQUAL, libc::SYS_futex as u32, 0, 3),
        step(LOAD, SECOND_ARGUMENT_AT, 0, 0),
        step(EQUAL, WAKE, 0, 1),
        allow,
    ];
    let denial = match watch {
        LauncherTask::Locks => return vec![number, is_flock, grant, allow],
        LauncherTask::Count => return [&without_wake[..], &[number, is_flock, grant, notify]].concat(),
        LauncherTask::Deny(denial) => denial,
    };
    let (of_worker, of_others) = if denial.caller == CallSource::Worker { (notify, allow) } else { (allow, notify) };
    let watched = [
        number,
        step(EQUAL, denial.call as u32, 0, 4),
        step(LOAD, ADDRESS_AT, 0, 0),
        step(EQUAL, AFTER_WORKER_CALL as u32, 0, 1),
        of_worker,
        of_others,
        is_flock,
        grant,
        step(EQUAL, libc::SYS_rt_sigaction as u32, 0, 2),
        step(LOAD, ARGUMENT_AT, 0, 0),
        step(EQUAL, libc::SIGINT as u32, 1, 0),
        allow,
        notify,
    ];
    [&without_wake[..], &watched].concat()
}

/// Installs a filter for the calling thread and what it starts. Returns the descriptor on which its
/// calls arrive.
fn install_filter(filter: &[libc::sock_filter]) -> io::Result<i32> {
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the filter outlives both calls, which change only this thread.
    let descriptor = unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
        let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
    };
    if descriptor < 0 { Err(io::Error::last_os_error()) } else { Ok(descriptor as i32) }
}

/// Whether this system lets a process watch the system calls of its children; the reason if not.
pub fn check_support() -> io::Result<()> {
    let filter = [step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0)];
    let installed = std::thread::spawn(move || install_filter(&filter)).join().expect("the thread ends");
    // SAFETY: the descriptor is new.
    installed.map(|descriptor| drop(unsafe { OwnedFd::from_raw_fd(descriptor) }))
}

/// Answers the watched system calls of one program.
struct CallWatcher {
    listener: OwnedFd,
    watch: LauncherTask,
    program: PathBuf,
    /// Whether the program has reached its own code.
    has_begun: bool,
    calls: BTreeMap<(CallSource, i64), u32>,
}

impl CallWatcher {
    /// Waits some milliseconds for a call, and answers it.
    fn wait_for_call(&mut self) {
        let mut ready = libc::pollfd { fd: self.listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the structure outlives the call.
        unsafe { libc::poll(&raw mut ready, 1, 2) };
        if ready.revents & libc::POLLIN != 0 {
            self.answer_call();
        }
    }

    /// Handles a call that waits for an answer. A caller that was killed meanwhile needs none.
    fn answer_call(&mut self) {
        // SAFETY: zeros are valid, and the kernel demands them.
        let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        let fd = self.listener.as_raw_fd();
        // SAFETY: the structure outlives the call, which fills it.
        if unsafe { libc::ioctl(fd, libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) } != 0 {
            return;
        }
        let number = i64::from(call.data.nr);
        let go_on = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
        let (val, error, flags) = match self.refuse(&call) {
            // The kernel answers with the end of the heap as it is, and never with an error (brk(2)).
            Some(_) if number == libc::SYS_brk => match find_heap_end(&call) {
                Some(end) => (end, 0, 0),
                None => (0, 0, go_on),
            },
            Some(errno) => (0, -errno, 0),
            // Locks are free.
            None if number == libc::SYS_flock => (0, 0, 0),
            None => (0, 0, go_on),
        };
        let mut answer = libc::seccomp_notif_resp { id: call.id, val, error, flags };
        // SAFETY: the structure outlives the call.
        unsafe { libc::ioctl(fd, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) };
    }

    /// Counts a call, and returns the error to refuse it with, if any.
    fn refuse(&mut self, call: &libc::seccomp_notif) -> Option<i32> {
        let number = i64::from(call.data.nr);
        let caller = self.find_caller(call);
        let begins = number == libc::SYS_rt_sigaction && call.data.args[0] == libc::SIGINT as u64;
        self.has_begun |= begins && caller == CallSource::Program;
        if !self.has_begun && caller != CallSource::Worker {
            return None;
        }
        let LauncherTask::Deny(denial) = self.watch else {
            *self.calls.entry((caller, number)).or_default() += 1;
            return None;
        };
        if (number, caller) != (denial.call, denial.caller) {
            return None;
        }
        let seen = self.calls.entry((caller, number)).or_default();
        *seen += 1;
        let is_refused = *seen >= denial.first && *seen - denial.first < denial.count;
        is_refused.then_some(denial.errno)
    }

    fn find_caller(&self, call: &libc::seccomp_notif) -> CallSource {
        if call.data.instruction_pointer == AFTER_WORKER_CALL {
            return CallSource::Worker;
        }
        match std::fs::read_link(format!("/proc/{}/exe", call.pid)) {
            Ok(exe) if exe == self.program => CallSource::Program,
            _ => CallSource::Tool,
        }
    }
}

/// The end of the heap of a process that asks for another one; `None` if it asks for its end.
fn find_heap_end(call: &libc::seccomp_notif) -> Option<i64> {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", call.pid)).ok()?;
    let heap = maps.lines().find(|line| line.ends_with("[heap]")).filter(|_| call.data.args[0] != 0)?;
    i64::from_str_radix(heap.split(['-', ' ']).nth(1)?, 16).ok()
}

/// The listener of a thread that has not tried to install the filter.
const NOT_YET: i32 = i32::MIN;

/// A thread with the filter, which starts a command. The filter may stop each of its system calls,
/// so it tells everything in memory, and nobody waits for its end.
struct StartingThread {
    /// The descriptor on which calls arrive, or a negated error number. Nobody answers calls before
    /// it is known, so it has no lock, which might wait.
    listener: AtomicI32,
    child: Mutex<Option<io::Result<Child>>>,
}

impl StartingThread {
    /// Starts the thread; returns it with the descriptor on which calls arrive.
    fn start(mut command: Command, filter: Vec<libc::sock_filter>) -> io::Result<(Arc<StartingThread>, OwnedFd)> {
        let thread = StartingThread { listener: AtomicI32::new(NOT_YET), child: Mutex::new(None) };
        let thread = Arc::new(thread);
        let told = Arc::clone(&thread);
        std::thread::spawn(move || {
            let installed = install_filter(&filter);
            let code = installed.as_ref().map_or_else(|error| -error.raw_os_error().unwrap_or(libc::EINVAL), |fd| *fd);
            told.listener.store(code, Ordering::Release);
            if installed.is_ok() {
                let child = command.spawn();
                *told.child.lock().expect("no panic") = Some(child);
            }
        });
        loop {
            match thread.listener.load(Ordering::Acquire) {
                NOT_YET => std::thread::sleep(Duration::from_micros(100)),
                // SAFETY: the descriptor is new, and nobody else uses it.
                fd @ 0.. => return Ok((thread, unsafe { OwnedFd::from_raw_fd(fd) })),
                failed => return Err(io::Error::from_raw_os_error(-failed)),
            }
        }
    }

    /// The started program, once.
    fn take_child(&self) -> Option<io::Result<Child>> {
        self.child.try_lock().ok()?.take()
    }
}

/// Time that processes have to end after the program.
const ENDING: Duration = Duration::from_secs(5);

/// Runs the program with these arguments in a folder, and answers its system calls. It is killed
/// after `limit`.
pub fn launch(mut command: Command, folder: &Path, watch: LauncherTask, limit: Duration) -> Outcome {
    let scratch = folder.join("tmp");
    std::fs::create_dir_all(&scratch).expect("a folder");
    let new_file = |name: &str| {
        let options = File::options().create(true).truncate(true).read(true).write(true).open(folder.join(name));
        options.expect("a file")
    };
    let streams = ["stdout", "stderr"].map(new_file);
    let copies = streams.each_ref().map(|file| file.try_clone().expect("a file"));
    let [stdout, stderr] = copies;
    // The folder marks all processes of this run.
    command.current_dir(folder).env("TMPDIR", &scratch).stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    let program = PathBuf::from(command.get_program());
    let begun = Instant::now();
    let (thread, listener) = StartingThread::start(command, build_filter(watch)).expect("there are such filters");
    let mut watcher = CallWatcher { listener, watch, program, has_begun: false, calls: BTreeMap::new() };
    let mut child = loop {
        watcher.wait_for_call();
        if let Some(child) = thread.take_child() {
            break child.expect("the program starts");
        }
    };
    let mut status = None;
    while status.is_none() && begun.elapsed() < limit {
        watcher.wait_for_call();
        status = child.try_wait().expect("it is a child");
    }
    let wall = begun.elapsed();
    if status.is_none() {
        child.kill().expect("it is a child");
    }
    let until = Instant::now() + ENDING;
    let mut has_ended = status.is_some();
    while Instant::now() < until && !(has_ended && list_processes(folder).is_empty()) {
        watcher.wait_for_call();
        has_ended = has_ended || child.try_wait().expect("it is a child").is_some();
    }
    let survivors = list_processes(folder);
    for (process, _) in &survivors {
        // SAFETY: takes no pointers. The process works in the folder of this run.
        unsafe { libc::kill(*process, libc::SIGKILL) };
    }
    let [stdout, stderr] = streams.map(|file| read_whole(&file));
    let files = list_files(&scratch);
    let survivors = survivors.into_iter().map(|(_, what)| what).collect();
    Outcome { status, stdout, stderr, wall, survivors, files, calls: watcher.calls }
}

fn read_whole(file: &File) -> String {
    let mut bytes = vec![0; file.metadata().map_or(0, |facts| facts.len()) as usize];
    let length = file.read_at(&mut bytes, 0).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

/// Processes that work in a folder, each with its name and state.
fn list_processes(folder: &Path) -> Vec<(i32, String)> {
    let entries = std::fs::read_dir("/proc").expect("a folder").flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let inside = numbers.filter(|pid| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == folder));
    inside.map(|pid| (pid, std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default())).collect()
}

fn list_files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
