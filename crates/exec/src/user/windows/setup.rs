//! The setup of a worker, written before it starts.

use super::areas::UserAreas;
use super::options::UserOptions;
use super::process;
use super::regions::WorkerRegions;
use cyclescope_core::error::RunError;
use cyclescope_platform::processor;
use cyclescope_worker::setup::{CallerTie, UNLIMITED, WorkerSetup};
use cyclescope_worker::view;
use std::mem::MaybeUninit;

/// The process that a worker is made in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkerOrigin {
    /// A new process of this program.
    Own,
    /// A process that may load libraries, and then calls their functions.
    Copy,
}

/// How the next worker starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WorkerStart {
    /// The process that it is made in.
    pub(super) origin: WorkerOrigin,
    /// The number of the last command before its first one.
    pub(super) sequence: u32,
}

/// Everything that a worker needs to know.
#[repr(C)]
pub(super) struct LaunchSetup {
    /// What workers of all systems need.
    pub(super) worker: WorkerSetup,
    /// The event that is set after a new command.
    pub(super) wake: i32,
    /// The event that the worker sets after an answer.
    pub(super) done: i32,
    /// The section with the code.
    pub(super) code: i32,
    /// The shared section.
    pub(super) shared: i32,
    /// Addresses of the functions that programs call. A worker at another address refuses to start.
    pub(super) functions: [u64; 2],
}
const _: () = assert!(size_of::<LaunchSetup>() <= view::SETUP_BYTES);

/// Writes everything that the next worker needs to know. No worker may be running.
pub(super) fn write_setup(
    regions: &mut WorkerRegions,
    areas: &UserAreas,
    options: &UserOptions,
    start: WorkerStart,
    events: [i32; 2],
) -> Result<(), RunError> {
    let [shared, code] = regions.shared_files().map(|file| file.number());
    // SAFETY: zeros are valid for all fields that are not written below.
    let mut setup: Box<LaunchSetup> = unsafe { Box::new(MaybeUninit::zeroed().assume_init()) };
    let worker = &mut setup.worker;
    worker.view = regions.worker_address(0);
    for (place, area) in worker.areas.iter_mut().zip(areas.area_setups()) {
        *place = *area;
    }
    worker.area_count = areas.area_setups().len();
    worker.cpu = options.cpu;
    worker.caller = CallerTie { pid: std::process::id() as i32, descriptor: -1 };
    worker.data_limit = UNLIMITED;
    worker.avx = std::is_x86_feature_detected!("avx");
    worker.fsgsbase = processor::allows_fsgsbase();
    worker.sequence = start.sequence;
    (setup.wake, setup.done) = (events[0], events[1]);
    (setup.code, setup.shared) = (code, shared);
    setup.functions = process::called_functions();
    regions.write_setup(&setup);
    Ok(())
}

/// Bytes of memory that a worker takes at most: its view and areas, this program's own start, and
/// what called functions may get.
pub(super) fn worker_memory_limit(areas: &UserAreas, _copy: bool, heap: Option<u64>) -> u64 {
    const PROGRAM: u64 = 256 << 20;
    let areas: u64 = areas.area_setups().iter().map(|area| (area.bytes + area.source_bytes) as u64).sum();
    PROGRAM + view::VIEW_BYTES as u64 + areas + heap.unwrap_or(0)
}

/// The name of a system call of the set-up.
pub(super) fn setup_call_name(number: i64) -> Option<&'static str> {
    usize::try_from(number).ok().and_then(|number| SETUP_CALLS.get(number)).copied()
}

/// Calls that a worker makes in its set-up, by the number that it reports.
pub(super) const SETUP_CALLS: [&str; 4] =
    ["VirtualAlloc", "MapViewOfFileEx", "SetThreadGroupAffinity", "AddVectoredExceptionHandler"];
