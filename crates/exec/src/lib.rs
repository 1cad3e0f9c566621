//! Executors run programs and return raw readings. They compute no statistics.

#![warn(unreachable_pub)]

mod batch;
mod capabilities;
mod companion;
mod contract;
mod fault;
pub mod kernel;
mod layout;
mod list;
mod lock;
mod offer;
mod placement;
mod remote;
mod secret;
pub mod user;

pub use batch::{Batch, CounterProgress, DELAY, ObtainedPages, PlacedArea, Sample};
pub use capabilities::{Capabilities, CycleCounter, Lack, Ring, Room, Timing};
pub use companion::Companion;
pub use contract::Executor;
pub use contract::real_time;
pub use fault::FaultReport;
pub use layout::{Call, Layout, Placed};
pub use list::{ALL, DEFAULT};
pub use lock::{CpuLock, LockState};
pub use offer::closed;
pub use offer::{Offer, Open, OpenError, OpenOptions, Opened};
pub use remote::{Ran, Remote, Repeated};
use secret::random;
