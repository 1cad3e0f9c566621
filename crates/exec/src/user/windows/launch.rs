//! Starts the process of a worker: this program again, in a job of its own.
//!
//! The new process finds its arguments before `main` and becomes a worker: see `worker`.

use super::areas::UserAreas;
use super::confinement::ConfinementArguments;
use super::handle::{SystemHandle, handle_from_number};
use super::options::UserOptions;
use super::process::{STARTING_WORKER, WorkerProcess, last_errno};
use super::regions::WorkerRegions;
use super::setup::{self, WorkerOrigin, WorkerStart};
use super::worker_contents;
use super::worker_events::WorkerEvents;
use cyclescope_core::error::RunError;
use cyclescope_worker::area::AreaBacking;
use std::ffi::OsString;
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::ptr;
use windows_sys::Win32::Foundation::{ERROR_INTERNAL_ERROR, HANDLE};
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_ACTIVE_PROCESS,
    JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, JOB_OBJECT_LIMIT_PROCESS_MEMORY,
    JOB_OBJECT_UILIMIT_DESKTOP, JOB_OBJECT_UILIMIT_DISPLAYSETTINGS, JOB_OBJECT_UILIMIT_EXITWINDOWS,
    JOB_OBJECT_UILIMIT_GLOBALATOMS, JOB_OBJECT_UILIMIT_HANDLES, JOB_OBJECT_UILIMIT_READCLIPBOARD,
    JOB_OBJECT_UILIMIT_SYSTEMPARAMETERS, JOB_OBJECT_UILIMIT_WRITECLIPBOARD, JOBOBJECT_BASIC_UI_RESTRICTIONS,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectBasicUIRestrictions, JobObjectExtendedLimitInformation,
    SetInformationJobObject,
};
use windows_sys::Win32::System::Threading::{
    CREATE_SUSPENDED, CreateEventW, CreateProcessW, DETACHED_PROCESS, DeleteProcThreadAttributeList,
    EXTENDED_STARTUPINFO_PRESENT, HIGH_PRIORITY_CLASS, InitializeProcThreadAttributeList,
    PROC_THREAD_ATTRIBUTE_HANDLE_LIST, PROCESS_INFORMATION, ResumeThread, STARTUPINFOEXW, TerminateProcess,
    UpdateProcThreadAttribute,
};

/// Attempts to make a process. On a busy machine Wine (8.0) makes one that ends before it has begun,
/// once in some thousand, and calls that an internal error.
const ATTEMPTS_MOST: u32 = 3;

/// The first argument of a worker's process, by which it knows what it is.
pub(super) const WORKER_NAME: &str = "cyclescope-worker";

/// Why there is no worker.
#[expect(dead_code, reason = "Windows runs this program again, or fails")]
pub(super) enum StartFailure {
    /// The system refuses its job, with this error.
    Refused(i32),
    /// Its program can't be run, with this error.
    NotExecuted(i32),
    /// Anything else.
    Failed(RunError),
}

fn failed(call: &'static str) -> impl Fn(io::Error) -> StartFailure {
    move |error| {
        let errno = error.raw_os_error().unwrap_or(0);
        StartFailure::Failed(RunError::from_system_call(STARTING_WORKER, call, errno))
    }
}

/// Makes a worker. Its first answer, in the word `done`, says whether its set-up succeeded.
pub(super) fn launch_worker(
    regions: &mut WorkerRegions,
    areas: &UserAreas,
    options: &UserOptions,
    _events: &WorkerEvents,
    start: WorkerStart,
    confinement: ConfinementArguments,
) -> Result<WorkerProcess, StartFailure> {
    let (wake, done) = (create_event()?, create_event()?);
    let written = setup::write_setup(regions, areas, options, start, [wake.number(), done.number()]);
    written.map_err(StartFailure::Failed)?;
    let [shared, code] = regions.shared_files();
    let mut inherited: Vec<HANDLE> = vec![shared.raw(), code.raw(), wake.raw(), done.raw()];
    for area in areas.area_setups() {
        inherited.push(handle_from_number(area.source));
        if let AreaBacking::Repeated { fd, .. } = area.backing {
            inherited.push(handle_from_number(fd));
        }
    }
    inherited.extend(worker_contents::inherited_handles());
    inherited.sort_unstable();
    inherited.dedup();
    let [process, thread] = create_process(shared.number(), start.origin, &inherited)?;
    let pid = thread_number(&thread);
    let job = match confinement.in_job.then(|| make_job(&process, confinement.memory)) {
        None => None,
        Some(Ok(job)) => Some(job),
        Some(Err(error)) => {
            // SAFETY: the process was made just now, and has not begun.
            unsafe { TerminateProcess(process.raw(), 1) };
            return Err(StartFailure::Refused(error.raw_os_error().unwrap_or(0)));
        }
    };
    let worker =
        WorkerProcess { pid, process, _job: job, wake, done, made_by: std::thread::current().id(), reaped: false };
    // SAFETY: the thread's handle is open.
    match unsafe { ResumeThread(thread.raw()) } {
        u32::MAX => Err(failed("ResumeThread")(io::Error::last_os_error())),
        _ => Ok(worker),
    }
}

/// An event that lets one waiter pass each time that it is set.
fn create_event() -> Result<SystemHandle, StartFailure> {
    let attributes = super::regions::inherited_attributes();
    // SAFETY: the attributes live through the call; the event has no name.
    SystemHandle::take(unsafe { CreateEventW(&attributes, 0, 0, ptr::null()) }).map_err(failed("CreateEvent"))
}

/// The number of a thread.
fn thread_number(thread: &SystemHandle) -> i32 {
    // SAFETY: the handle is open.
    unsafe { windows_sys::Win32::System::Threading::GetThreadId(thread.raw()) as i32 }
}

/// Makes a process of this program that has not begun, with these handles and no others: the process
/// and its thread.
fn create_process(shared: i32, origin: WorkerOrigin, inherited: &[HANDLE]) -> Result<[SystemHandle; 2], StartFailure> {
    let program = std::env::current_exe().map_err(failed("GetModuleFileName"))?;
    let wide = |text: &std::ffi::OsStr| text.encode_wide().chain([0]).collect::<Vec<u16>>();
    let program = wide(program.as_os_str());
    let mut line = OsString::from(format!("{WORKER_NAME} {shared}"));
    if origin == WorkerOrigin::Copy {
        line.push(worker_contents::describe_contents());
    }
    let mut line = wide(&line);
    let mut bytes = 0;
    // SAFETY: the first call only says how long the list is. All that the others use lives until the
    // process is made.
    unsafe {
        InitializeProcThreadAttributeList(ptr::null_mut(), 1, 0, &mut bytes);
        let mut list = vec![0u64; bytes.div_ceil(8)];
        let attributes = list.as_mut_ptr().cast();
        if InitializeProcThreadAttributeList(attributes, 1, 0, &mut bytes) == 0 {
            return Err(failed("InitializeProcThreadAttributeList")(io::Error::last_os_error()));
        }
        let what = PROC_THREAD_ATTRIBUTE_HANDLE_LIST as usize;
        let (handles, length) = (inherited.as_ptr().cast(), size_of_val(inherited));
        let updated = UpdateProcThreadAttribute(attributes, 0, what, handles, length, ptr::null_mut(), ptr::null());
        let mut information = PROCESS_INFORMATION::default();
        let mut start = STARTUPINFOEXW::default();
        start.StartupInfo.cb = size_of::<STARTUPINFOEXW>() as u32;
        start.lpAttributeList = attributes;
        let flags = CREATE_SUSPENDED | DETACHED_PROCESS | EXTENDED_STARTUPINFO_PRESENT | HIGH_PRIORITY_CLASS;
        let (mut made, mut errno, mut attempts) = (false, ERROR_INTERNAL_ERROR as i32, 0);
        while !made && errno == ERROR_INTERNAL_ERROR as i32 && attempts < ATTEMPTS_MOST {
            made = updated != 0
                && CreateProcessW(
                    program.as_ptr(),
                    line.as_mut_ptr(),
                    ptr::null(),
                    ptr::null(),
                    1,
                    flags,
                    ptr::null(),
                    ptr::null(),
                    &start.StartupInfo,
                    &mut information,
                ) != 0;
            errno = last_errno();
            attempts += 1;
        }
        DeleteProcThreadAttributeList(attributes);
        if !made {
            return Err(StartFailure::Failed(RunError::from_system_call(STARTING_WORKER, "CreateProcess", errno)));
        }
        let take = |handle| SystemHandle::take(handle).map_err(failed("CreateProcess"));
        Ok([take(information.hProcess)?, take(information.hThread)?])
    }
}

/// Puts a process into a job: it may make no process, take no more memory, touch no window of others,
/// and ends when this program does.
fn make_job(process: &SystemHandle, memory: u64) -> io::Result<SystemHandle> {
    let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_ACTIVE_PROCESS
        | JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
        | JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION
        | JOB_OBJECT_LIMIT_PROCESS_MEMORY;
    limits.BasicLimitInformation.ActiveProcessLimit = 1;
    limits.ProcessMemoryLimit = memory as usize;
    let windows = JOBOBJECT_BASIC_UI_RESTRICTIONS {
        UIRestrictionsClass: JOB_OBJECT_UILIMIT_DESKTOP
            | JOB_OBJECT_UILIMIT_DISPLAYSETTINGS
            | JOB_OBJECT_UILIMIT_EXITWINDOWS
            | JOB_OBJECT_UILIMIT_GLOBALATOMS
            | JOB_OBJECT_UILIMIT_HANDLES
            | JOB_OBJECT_UILIMIT_READCLIPBOARD
            | JOB_OBJECT_UILIMIT_SYSTEMPARAMETERS
            | JOB_OBJECT_UILIMIT_WRITECLIPBOARD,
    };
    // SAFETY: both structures live through their calls and say what they are.
    unsafe {
        let job = SystemHandle::take(CreateJobObjectW(ptr::null(), ptr::null()))?;
        let set = |what, limits: *const core::ffi::c_void, bytes: usize| {
            SetInformationJobObject(job.raw(), what, limits, bytes as u32) != 0
        };
        let limited = set(JobObjectExtendedLimitInformation, ptr::from_ref(&limits).cast(), size_of_val(&limits))
            && set(JobObjectBasicUIRestrictions, ptr::from_ref(&windows).cast(), size_of_val(&windows))
            && AssignProcessToJobObject(job.raw(), process.raw()) != 0;
        if limited { Ok(job) } else { Err(io::Error::last_os_error()) }
    }
}
