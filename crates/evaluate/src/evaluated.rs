//! What was found about one timing method.

use super::Candidate;
use super::contamination::Contamination;
use super::method::Method;
use super::parts::Parts;
use super::resolution::Resolution;

/// What was found about one timing method.
#[derive(Debug, Clone)]
pub struct Evaluated {
    /// The method, and where it ran.
    pub candidate: Candidate,
    /// Its samples; none where no duration was sane.
    pub method: Option<Method<'static>>,
    /// What neighbouring code does to its readings.
    pub contamination: Vec<Contamination>,
    /// What it tells apart.
    pub resolution: Resolution,
    /// What its pair takes its time for; none where too much was disturbed, or the machine is emulated.
    pub parts: Option<Parts>,
}
