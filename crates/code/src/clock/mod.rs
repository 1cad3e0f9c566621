//! Timing methods: how a program reads a clock before and after the measured body.
//!
//! A method is data: the steps of its start and of its end. Its other properties follow from the
//! steps: required CPU features, clobbered registers, and whether it runs in user mode. Each method
//! has its own file that exports `CLOCK`; [`ALL_CLOCKS`] lists them by name.

pub mod by_name;
mod clock_gettime;
mod cpuid_rdtsc;
mod cpuid_rdtsc_cpuid;
mod cpuid_rdtsc_cr0_rdtsc;
mod cpuid_rdtsc_rdtscp;
mod cpuid_rdtsc_rdtscp_cpuid;
mod lfence_rdtsc;
mod lfence_rdtsc_lfence;
mod lfence_rdtsc_rdtscp_lfence;
mod mfence_lfence_rdtsc;
mod mfence_rdtscp_lfence;
mod preference;
mod rdpmc;
mod rdpru;
mod rdtsc;
mod rdtscp;
mod rdtscp_cpuid;
mod rdtscp_lfence;
mod serialize_rdtsc;
pub mod source;
mod step;
mod timing_method;

pub use preference::{find_or_list_names, preference_rank, preferred_clocks};
pub use step::ClockStep;
pub use timing_method::{Clock, ClockSide, OrderingPromises, StepEdit};

/// Every timing method, sorted by name.
pub const ALL_CLOCKS: &[Clock] = &[
    clock_gettime::CLOCK,
    cpuid_rdtsc::CLOCK,
    cpuid_rdtsc_cpuid::CLOCK,
    cpuid_rdtsc_cr0_rdtsc::CLOCK,
    cpuid_rdtsc_rdtscp::CLOCK,
    cpuid_rdtsc_rdtscp_cpuid::CLOCK,
    lfence_rdtsc::CLOCK,
    lfence_rdtsc_lfence::CLOCK,
    lfence_rdtsc_rdtscp_lfence::CLOCK,
    mfence_lfence_rdtsc::CLOCK,
    mfence_rdtscp_lfence::CLOCK,
    rdpmc::CLOCK,
    rdpru::CLOCK,
    rdtsc::CLOCK,
    rdtscp::CLOCK,
    rdtscp_cpuid::CLOCK,
    rdtscp_lfence::CLOCK,
    serialize_rdtsc::CLOCK,
];

impl Clock {
    /// Finds a method by its name, or by a name from the literature.
    pub fn find_named(name: &str) -> Option<&'static Clock> {
        ALL_CLOCKS.iter().find(|clock| clock.name == name || clock.also.contains(&name))
    }
}

#[cfg(test)]
mod tests;
