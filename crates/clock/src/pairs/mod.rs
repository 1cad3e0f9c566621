//! The timing methods that user mode can run.
//!
//! Generated from those of the library by its test `generated_files_match_the_methods`.

// A method is in the module of the clock that it reads. Those of the time stamp counter differ in
// the instruction that starts them.
mod core_counter;
mod direct_tsc;
mod fenced_tsc;
mod serialized_tsc;
#[cfg(target_os = "linux")]
mod system_clock;

pub use core_counter::{Rdpmc, Rdpru};
pub use direct_tsc::{Rdtsc, Rdtscp, RdtscpCpuid, RdtscpLfence};
pub use fenced_tsc::{LfenceRdtsc, LfenceRdtscLfence, LfenceRdtscRdtscpLfence, MfenceLfenceRdtsc, MfenceRdtscpLfence};
pub use serialized_tsc::{CpuidRdtsc, CpuidRdtscCpuid, CpuidRdtscRdtscp, CpuidRdtscRdtscpCpuid, SerializeRdtsc};
#[cfg(target_os = "linux")]
pub use system_clock::ClockGettime;
