//! Which CPUs threads run on. A CPU's number counts through the processor groups, each of which has
//! 64 numbers.

use std::io;
use windows_sys::Win32::Foundation::CloseHandle;
use windows_sys::Win32::System::Kernel::PROCESSOR_NUMBER;
use windows_sys::Win32::System::SystemInformation::GROUP_AFFINITY;
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetCurrentProcessorNumberEx, GetCurrentThread, GetCurrentThreadId, GetProcessAffinityMask,
    GetThreadGroupAffinity, OpenThread, SetThreadGroupAffinity, THREAD_QUERY_INFORMATION, THREAD_SET_INFORMATION,
};

/// CPUs in the numbers of one group.
const GROUP_CPUS: u32 = 64;

/// Number of CPUs that a thread can be moved to by number.
pub const MOST_NAMED: usize = 1024;

/// More CPUs than any system has.
pub const MOST_CPUS: u32 = 2048;

/// The CPUs that this process may run on, in the group of this thread.
///
/// # Errors
///
/// Says which call failed.
pub fn read_allowed_cpus() -> Result<Vec<u32>, String> {
    let current = ThreadCpus::read().map_err(|error| format!("GetThreadGroupAffinity failed: {error}"))?;
    let (mut process, mut system) = (0usize, 0usize);
    // SAFETY: both numbers live through the call.
    let read = unsafe { GetProcessAffinityMask(GetCurrentProcess(), &mut process, &mut system) } != 0;
    // It is 0 for a process with threads in several groups.
    let mask = if read && process != 0 { process } else { current.0.Mask };
    let first = u32::from(current.0.Group) * GROUP_CPUS;
    Ok((0..GROUP_CPUS).filter(|bit| mask >> bit & 1 == 1).map(|bit| first + bit).collect())
}

/// The CPUs that a thread ran on before it was moved.
#[derive(Clone)]
pub struct ThreadCpus(GROUP_AFFINITY);

impl PartialEq for ThreadCpus {
    fn eq(&self, other: &ThreadCpus) -> bool {
        self.0.Mask == other.0.Mask && self.0.Group == other.0.Group
    }
}

impl Eq for ThreadCpus {}

impl std::fmt::Debug for ThreadCpus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ThreadCpus({}, {:#x})", self.0.Group, self.0.Mask)
    }
}

impl ThreadCpus {
    /// Those of this thread.
    ///
    /// # Errors
    ///
    /// If the system does not tell them.
    pub fn read() -> io::Result<ThreadCpus> {
        let mut affinity = GROUP_AFFINITY::default();
        // SAFETY: the structure lives through the call.
        match unsafe { GetThreadGroupAffinity(GetCurrentThread(), &mut affinity) } {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(ThreadCpus(affinity)),
        }
    }

    /// Lets this thread run on them.
    ///
    /// # Errors
    ///
    /// If the system refuses it.
    pub fn restore(&self) -> io::Result<()> {
        // SAFETY: the structure lives through the call.
        match unsafe { SetThreadGroupAffinity(GetCurrentThread(), &self.0, std::ptr::null_mut()) } {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// Lets another thread of this process run on them.
    ///
    /// # Errors
    ///
    /// If the thread has ended.
    pub fn give_to(&self, thread: i32) -> io::Result<()> {
        // SAFETY: the handle is closed after its one use.
        unsafe {
            let handle = OpenThread(THREAD_SET_INFORMATION | THREAD_QUERY_INFORMATION, 0, thread as u32);
            if handle.is_null() {
                return Err(io::Error::last_os_error());
            }
            let done = SetThreadGroupAffinity(handle, &self.0, std::ptr::null_mut());
            let error = io::Error::last_os_error();
            CloseHandle(handle);
            if done == 0 { Err(error) } else { Ok(()) }
        }
    }
}

/// Moves this thread to a CPU below [`MOST_NAMED`].
///
/// # Errors
///
/// If the system refuses it.
pub fn move_thread(cpu: u32) -> io::Result<()> {
    let mask = 1usize << (cpu % GROUP_CPUS);
    ThreadCpus(GROUP_AFFINITY { Mask: mask, Group: (cpu / GROUP_CPUS) as u16, Reserved: [0; 3] }).restore()
}

/// The CPU that this thread runs on at this moment.
pub fn current_cpu() -> usize {
    let mut number = PROCESSOR_NUMBER::default();
    // SAFETY: the structure lives through the call.
    unsafe { GetCurrentProcessorNumberEx(&mut number) };
    usize::from(number.Group) * GROUP_CPUS as usize + usize::from(number.Number)
}

/// The number of this thread.
pub fn thread_number() -> i32 {
    // SAFETY: takes no pointers.
    unsafe { GetCurrentThreadId() as i32 }
}
