//! Regions of a run of an executable: they are taken with ptrace, which only Linux has.

use crate::args::RunArgs;
use crate::output::Failure;
use cyclescope::error::Unavailable;
use cyclescope::program::memory::ProgramMemory;
use cyclescope::record::RegionRecord;
use cyclescope::study::run::RunSubject;
use std::convert::Infallible;

/// A region of an executable: none.
pub struct CapturedRegion {
    /// The memory of programs that run it.
    pub memory: ProgramMemory,
    /// What was taken.
    pub record: RegionRecord,
    never: Infallible,
}

impl CapturedRegion {
    /// Takes a region from a run of an executable.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn capture(_args: &RunArgs) -> Result<CapturedRegion, Failure> {
        Err(Failure::from(Unavailable {
            what: "a region of an executable".to_string(),
            why: "it is taken from a run under ptrace, which Windows lacks".to_string(),
            remedy: "measure it on Linux, or give its instructions as text or --hex".to_string(),
        }))
    }

    /// The subject of a run.
    pub fn build_subject(&self) -> RunSubject {
        match self.never {}
    }
}
