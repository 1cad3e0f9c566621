//! A task that ptrace has stopped: its registers, memory and single steps.

use super::task_registers::TaskRegisters;
use super::xsave_image::XsaveImage;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// The register set of XSAVE (Linux, `elf.h`: `NT_X86_XSTATE`).
const XSAVE_REGISTERS: usize = 0x202;
/// Bytes of the largest register set.
const XSAVE_BYTES: usize = 16 << 10;
/// Time during which the next stop is awaited actively. Most breakpoints are hit again within it.
const ACTIVE_WAIT: Duration = Duration::from_micros(500);
/// Time between two looks for a stop after that.
const PASSIVE_WAIT: Duration = Duration::from_micros(200);

/// A thread or process of the run.
pub type TaskNumber = libc::pid_t;

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramEnd {
    /// With an exit code.
    Exit(i32),
    /// By a signal.
    Signal(i32),
}

/// A stopped task of the run, and its memory.
pub struct StoppedTask {
    task: TaskNumber,
    memory: File,
}

/// What a single step did.
pub enum StepEnd {
    /// The instruction, or one iteration of it, has run.
    Done,
    /// It raised this signal.
    Fault(i32),
    /// The task ended.
    Ended,
}

/// The status of a task as `waitpid` returns it.
#[derive(Clone, Copy)]
pub struct WaitStatus(libc::c_int);

impl WaitStatus {
    /// How the task ended; `None` if it stopped.
    pub fn end(self) -> Option<ProgramEnd> {
        if libc::WIFEXITED(self.0) {
            return Some(ProgramEnd::Exit(libc::WEXITSTATUS(self.0)));
        }
        libc::WIFSIGNALED(self.0).then(|| ProgramEnd::Signal(libc::WTERMSIG(self.0)))
    }

    /// The signal that stopped it.
    pub fn signal(self) -> i32 {
        libc::WSTOPSIG(self.0)
    }

    /// The event of ptrace that caused the stop; 0 for a signal.
    pub fn event(self) -> i32 {
        self.0 >> 16
    }
}

impl StoppedTask {
    /// A task that is stopped.
    pub fn open(task: TaskNumber) -> io::Result<StoppedTask> {
        let memory = File::options().read(true).write(true).open(format!("/proc/{task}/mem"))?;
        Ok(StoppedTask { task, memory })
    }

    /// The task's number.
    pub fn number(&self) -> u32 {
        self.task as u32
    }

    /// The registers.
    pub fn registers(&self) -> io::Result<TaskRegisters> {
        // SAFETY: all of the structure's fields are integers.
        let mut registers: TaskRegisters = unsafe { std::mem::zeroed() };
        request(libc::PTRACE_GETREGS, self.task, 0, &raw mut registers as usize)?;
        Ok(registers)
    }

    /// Sets the registers.
    pub fn set_registers(&self, registers: &TaskRegisters) -> io::Result<()> {
        request(libc::PTRACE_SETREGS, self.task, 0, &raw const *registers as usize)
    }

    /// The vector, mask and floating point registers.
    pub fn xsave_image(&self) -> io::Result<XsaveImage> {
        let mut bytes = vec![0u8; XSAVE_BYTES];
        let mut vector = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        request(libc::PTRACE_GETREGSET, self.task, XSAVE_REGISTERS, &raw mut vector as usize)?;
        bytes.truncate(vector.iov_len);
        Ok(XsaveImage::new(bytes))
    }

    /// Reads bytes of its memory.
    pub fn read_memory(&self, address: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.memory.read_exact_at(bytes, address)
    }

    /// Writes a byte of its memory, code included, and returns the old one.
    pub fn replace_byte(&self, address: u64, byte: u8) -> io::Result<u8> {
        let mut old = [0];
        self.memory.read_exact_at(&mut old, address)?;
        self.memory.write_all_at(&[byte], address)?;
        Ok(old[0])
    }

    /// Runs one instruction, or one iteration of a repeated one. Signals from outside are dropped.
    /// A system call may wait for long, so an instruction that does not end by the deadline is an
    /// error of the kind [`TimedOut`](io::ErrorKind::TimedOut).
    pub fn step(&self, deadline: Instant) -> io::Result<StepEnd> {
        loop {
            request(libc::PTRACE_SINGLESTEP, self.task, 0, 0)?;
            let Some((_, status)) = wait_for(self.task, deadline)? else {
                return Err(io::ErrorKind::TimedOut.into());
            };
            if status.end().is_some() {
                return Ok(StepEnd::Ended);
            }
            if status.event() != 0 {
                return Ok(StepEnd::Done);
            }
            match status.signal() {
                libc::SIGTRAP => return Ok(StepEnd::Done),
                signal if self.is_fault()? => return Ok(StepEnd::Fault(signal)),
                _ => {}
            }
        }
    }

    /// Whether an instruction of the task raised the signal that stopped it.
    fn is_fault(&self) -> io::Result<bool> {
        // SAFETY: all of the structure's fields are integers.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        request(libc::PTRACE_GETSIGINFO, self.task, 0, &raw mut info as usize)?;
        let of_instruction = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];
        // Signals of other processes have codes of 0 and below.
        Ok(info.si_code > 0 && of_instruction.contains(&info.si_signo))
    }
}

/// Lets the parent trace this process, which calls exec next.
pub fn trace_this_process() -> io::Result<()> {
    request(libc::PTRACE_TRACEME, 0, 0, 0)
}

/// A request of ptrace(2) whose answer is only success or failure.
pub fn request(request: libc::c_uint, task: TaskNumber, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: the pointers of all requests of this file live until the call returns, and the kernel
    // writes only into them.
    match unsafe { libc::ptrace(request, task, address, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Lets a task go on, with this signal; 0 for none.
pub fn resume(task: TaskNumber, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_CONT, task, 0, signal as usize)
}

/// Waits until any task stops or ends; `None` if none does in time.
pub fn wait_for_any(deadline: Instant) -> io::Result<Option<(TaskNumber, WaitStatus)>> {
    wait_for(-1, deadline)
}

/// Waits until a task stops or ends, any one for -1; `None` if none does in time.
pub fn wait_for(task: TaskNumber, deadline: Instant) -> io::Result<Option<(TaskNumber, WaitStatus)>> {
    let active = Instant::now() + ACTIVE_WAIT;
    let mut status = 0;
    loop {
        // SAFETY: the status outlives the call.
        match unsafe { libc::waitpid(task, &mut status, libc::__WALL | libc::WNOHANG) } {
            -1 => return Err(io::Error::last_os_error()),
            0 => {}
            task => return Ok(Some((task, WaitStatus(status)))),
        }
        match Instant::now() {
            now if now >= deadline => return Ok(None),
            now if now >= active => cyclescope_platform::time::sleep(PASSIVE_WAIT),
            _ => std::thread::yield_now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_task_that_does_not_stop_is_awaited_for_the_given_time() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("a program");
        let begun = Instant::now();
        let found = wait_for(child.id() as TaskNumber, begun + Duration::from_millis(20)).expect("a child");
        let waited = begun.elapsed();
        child.kill().expect("a child");
        child.wait().expect("a child");
        assert!(found.is_none() && waited >= Duration::from_millis(20));
    }
}
