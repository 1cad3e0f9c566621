//! Executors run programs and return raw readings. They compute no statistics.

#![warn(unreachable_pub)]

mod background_code;
mod batch;
mod capabilities;
mod executor;
mod executor_list;
mod fault;
mod isolated_call;
pub mod kernel;
mod layout;
mod lock;
#[cfg_attr(windows, path = "user/windows/lock_files.rs")]
mod lock_files;
mod offer;
mod placement;
mod protection;
mod remote;
mod secret;
mod thread_end;
pub mod user;

pub use background_code::{BackgroundCode, LoadOutcome, LoadPlan, LoadRound, LoadRuler};
pub use batch::{Batch, CounterProgress, DEFAULT_DELAY, ObtainedPages, PlacedArea, Sample};
pub use capabilities::{
    Capabilities, CounterAvailability, ExecutorMemory, MissingCapability, PrivilegeRing, TimingOrigin,
};
pub use cyclescope_worker::interruption::is_interrupted;
pub use executor::Executor;
pub use executor::real_time;
pub use executor_list::{DEFAULT_OFFER, EXECUTOR_OFFERS};
pub use fault::FaultReport;
pub use layout::{Layout, PlacedProgram, ProgramCall};
pub use lock::{CpuLock, LockState};
pub use offer::failing_opener;
pub use offer::{ExecutorOffer, ExecutorOpener, OpenError, OpenOptions, OpenResult};
pub use protection::CodeProtection;
pub use remote::{RemoteExecutor, RemoteOutcome, RepeatingBatch};
pub use secret::draw_secret;
