//! The module's device: its presence, its properties and its calls.

use super::abi::{self, ModuleProperties};
use crate::lock;
use cyclescope_core::error::{RunError, Unavailable};
use cyclescope_core::machine::fact::{Fact, SystemFiles};
use cyclescope_core::machine::kernel_module::KernelModule;
use cyclescope_core::machine::kernel_release;
use cyclescope_platform::cpus::{self, ThreadCpus};
use cyclescope_platform::{device, error_code, files};
use std::fs::File;
use std::io;
use std::mem::size_of;
use std::time::{Duration, Instant};

/// Path of the module's device.
pub(crate) const DEVICE: &str = "/dev/cyclescope";
/// Time to wait for the module. A batch of another program takes some seconds at most, but that
/// program may be stopped while it holds the lock.
const LOCK_PATIENCE: Duration = Duration::from_secs(60);
const LOAD_REMEDY: &str = "build and load it (docs/kernel-safety.md); `cyclescope doctor` shows what prevents it here";

/// The module, opened.
#[derive(Debug)]
pub struct ModuleDevice {
    device: File,
    pub(super) info: ModuleProperties,
}

impl ModuleDevice {
    /// Opens the device and reads its properties.
    pub fn open() -> Result<ModuleDevice, Unavailable> {
        let device = File::options().read(true).write(true).open(DEVICE).map_err(|error| {
            let facts = KernelModule::detect(&SystemFiles::system(), &kernel_release());
            explain_open_failure(&error, &facts)
        })?;
        let mut info = ModuleProperties {
            size: size_of::<ModuleProperties>() as u32,
            version: abi::INTERFACE_VERSION,
            ..ModuleProperties::default()
        };
        // SAFETY: the module writes a struct of the size that the call gives.
        if let Err(error) = unsafe { device::call_device(&device, abi::GET_INFO, &raw mut info) } {
            let lack = format!("has another version of the interface than {} ({error})", abi::INTERFACE_VERSION);
            return Err(foreign_module_error(&lack));
        }
        Ok(ModuleDevice { device, info })
    }

    /// Opens the device where code can be run.
    pub(crate) fn open_for_code() -> Result<ModuleDevice, Unavailable> {
        let module = ModuleDevice::open()?;
        if !module.runs_code() {
            return Err(refused_machine_error(&KernelModule::detect(&SystemFiles::system(), &kernel_release())));
        }
        Ok(module)
    }

    /// The version of its interface.
    pub fn version(&self) -> u32 {
        self.info.version
    }

    /// The kernel's own calibration of the TSC's frequency, kHz.
    pub fn tsc_khz(&self) -> u32 {
        self.info.tsc_khz
    }

    /// Whether the processor counts APERF and MPERF.
    pub fn has_aperf(&self) -> bool {
        self.info.flags & abi::INFO_APERF != 0
    }

    /// Whether it runs code here. It has markers in any case.
    pub fn runs_code(&self) -> bool {
        self.info.flags & abi::INFO_RUN != 0
    }

    /// Whether a second CPU can end code that runs too long.
    pub fn has_deadline(&self) -> bool {
        self.info.flags & abi::INFO_DEADLINE != 0
    }

    /// Reserves the module for one batch: it runs one at a time. Waiting here does not count
    /// towards a run's deadline.
    pub(super) fn lock_device(&self) -> Result<(), RunError> {
        self.lock_within(LOCK_PATIENCE)
    }

    fn lock_within(&self, patience: Duration) -> Result<(), RunError> {
        const WAITING: &str = "waiting for the kernel module";
        match lock::wait_for_file(&self.device, Instant::now() + patience) {
            Ok(true) => Ok(()),
            Ok(false) => {
                let why = format!("another program keeps it for more than {} s", patience.as_secs());
                Err(RunError::from_harness(WAITING, why, "end that program; `fuser -v /dev/cyclescope` names it"))
            }
            Err(error) => Err(RunError::from_io(WAITING, &error)),
        }
    }

    /// Releases the module for others, as closing the device does.
    pub(super) fn unlock_device(&self) {
        files::unlock(&self.device);
    }

    /// Makes memory areas of these sizes, for this open device, and writes their addresses to the
    /// list.
    pub(super) fn set_areas(&self, areas: &mut [abi::ModuleArea]) -> Result<(), RunError> {
        let mut list = abi::ModuleAreaList {
            size: size_of::<abi::ModuleAreaList>() as u32,
            version: abi::INTERFACE_VERSION,
            flags: 0,
            areas: areas.len() as u32,
            area_list: areas.as_mut_ptr() as u64,
        };
        // SAFETY: the list is as long as its count says, and lives through the call.
        unsafe { self.call_device(abi::SET_AREAS, &mut list, "making memory areas in ring 0") }
    }

    /// Opens events on a CPU and closes them again. Returns how many count at the same time, from the
    /// first one, and the error number of the next one.
    pub(super) fn try_events(&self, cpu: u32, events: &[abi::ModuleEvent]) -> Result<(usize, i32), RunError> {
        let mut trial = abi::ModuleEventTrial {
            size: size_of::<abi::ModuleEventTrial>() as u32,
            version: abi::INTERFACE_VERSION,
            cpu,
            events: events.len() as u32,
            event_list: events.as_ptr() as u64,
            ..abi::ModuleEventTrial::default()
        };
        // SAFETY: the list is as long as its count says, and lives through the call, which only reads it.
        unsafe { self.call_device(abi::TRY_EVENTS, &mut trial, "trying events in ring 0") }?;
        Ok(((trial.fitting as usize).min(events.len()), trial.error as i32))
    }

    /// Runs code once.
    ///
    /// # Safety
    ///
    /// Each address in `run` points to a buffer as long as its count says.
    pub(super) unsafe fn run_code(&self, run: &mut abi::ModuleRun) -> Result<(), RunError> {
        run.size = size_of::<abi::ModuleRun>() as u32;
        run.version = abi::INTERFACE_VERSION;
        // SAFETY: as the caller promises.
        unsafe { self.call_device(abi::RUN, run, "running code in ring 0") }
    }

    /// Makes one call of the device.
    ///
    /// # Safety
    ///
    /// The argument is the struct of that call and says its size. Each address in it points to a
    /// buffer as long as its count says.
    pub(super) unsafe fn call_device<T>(
        &self,
        call: u64,
        argument: &mut T,
        doing: &'static str,
    ) -> Result<(), RunError> {
        // SAFETY: as the caller promises.
        let called = unsafe { device::call_device(&self.device, call, argument) };
        match called.map_err(|error| error.raw_os_error().unwrap_or(0)) {
            Ok(()) => Ok(()),
            Err(error_code::EACCES) => Err(RunError::Unavailable(lockdown_error())),
            Err(errno) => Err(RunError::System { doing, errno }),
        }
    }
}

/// The error for a loaded module of another program.
pub(super) fn foreign_module_error(lack: &str) -> Unavailable {
    kernel_unavailable(
        format!("the module that is loaded {lack}"),
        "build and load the module that came with this program",
    )
}

/// The error for an answer of the module that this version does not know.
pub(super) fn unknown_answer_error(why: impl Into<String>) -> RunError {
    let remedy = "build and load the module that came with this program";
    RunError::from_harness("understanding the module's answer", why, remedy)
}

fn kernel_unavailable(why: String, remedy: &str) -> Unavailable {
    Unavailable { what: "executor kernel".to_string(), why, remedy: remedy.to_string() }
}

/// Why the device can't be opened.
pub(super) fn explain_open_failure(error: &io::Error, facts: &KernelModule) -> Unavailable {
    let loaded = facts.loaded == Fact::Known(true);
    match error.raw_os_error() {
        Some(error_code::ENOENT) if loaded => {
            kernel_unavailable(format!("the module is loaded, but there is no {DEVICE}"), "mount devtmpfs on /dev")
        }
        Some(error_code::ENOENT) => not_loaded_error(facts),
        Some(error_code::EACCES) if matches!(facts.lockdown, Fact::Known(Some(_))) => lockdown_error(),
        Some(error_code::EACCES | error_code::EPERM) => kernel_unavailable(
            format!("{DEVICE} is for root with CAP_SYS_RAWIO and CAP_SYS_MODULE"),
            "run as root, outside of containers",
        ),
        Some(error_code::ENODEV) => refused_machine_error(facts),
        Some(error_code::EBUSY) => {
            kernel_unavailable("too many runs have the module open".to_string(), "wait until one has ended")
        }
        _ => kernel_unavailable(format!("{DEVICE} can't be opened: {error}"), LOAD_REMEDY),
    }
}

/// Why a loaded module refuses this machine.
fn refused_machine_error(facts: &KernelModule) -> Unavailable {
    let why = facts.refused.known().cloned().flatten();
    let why = why.unwrap_or_else(|| "the module runs no code on this machine".to_string());
    kernel_unavailable(why, "measure in user mode")
}

fn lockdown_error() -> Unavailable {
    kernel_unavailable(
        "the kernel is locked down".to_string(),
        "boot without Secure Boot or with lockdown=none; measure in user mode otherwise",
    )
}

fn not_loaded_error(facts: &KernelModule) -> Unavailable {
    let why = "the kernel module is not loaded".to_string();
    match facts.list_obstacles().into_iter().find(|obstacle| obstacle.remedy.is_none()) {
        Some(obstacle) => kernel_unavailable(format!("{why}: {}", obstacle.text), "measure in user mode"),
        None => kernel_unavailable(why, LOAD_REMEDY),
    }
}

const PINNING: &str = "moving to the CPU to measure on";

/// Pins this thread to one CPU until dropped.
pub(super) struct PinnedThread {
    before: ThreadCpus,
}

impl PinnedThread {
    pub(super) fn pin(cpu: usize) -> Result<PinnedThread, RunError> {
        if cpu >= cpus::MOST_NAMED {
            return Err(RunError::from_harness(PINNING, format!("there is no CPU {cpu}"), "see --cpu"));
        }
        let failed = |error: io::Error| RunError::System { doing: PINNING, errno: error.raw_os_error().unwrap_or(0) };
        let before = ThreadCpus::read().map_err(failed)?;
        cpus::move_thread(cpu as u32).map_err(failed)?;
        Ok(PinnedThread { before })
    }
}

impl Drop for PinnedThread {
    fn drop(&mut self) {
        // A failure needs no handling.
        let _ = self.before.restore();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_another_program_keeps_is_not_waited_for_without_end() {
        let path = std::env::temp_dir().join(format!("cyclescope-device-{}", std::process::id()));
        let open = || {
            let device = File::options().read(true).write(true).create(true).truncate(false).open(&path);
            ModuleDevice { device: device.expect("a file"), info: ModuleProperties::default() }
        };
        let (holder, other) = (open(), open());
        std::fs::remove_file(&path).expect("it is there");
        holder.lock_device().expect("it is free");
        let error = other.lock_within(Duration::from_millis(5)).expect_err("it is taken");
        assert!(error.to_string().contains("another program keeps it"), "{error}");
        holder.unlock_device();
        other.lock_device().expect("it is free");
    }
}
