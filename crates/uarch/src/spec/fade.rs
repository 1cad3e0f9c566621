//! Tests of how long a slow start lasts, as data.

use super::program::ProgramFamily;
use iced_x86::CpuidFeature;

/// A test of how long work is slow that follows a rest.
#[derive(Debug)]
pub(crate) struct FadesSpec {
    /// The kinds of work.
    pub rows: &'static [FadeRow],
    /// The least extra cost of the first work behind a rest, in core cycles. Less counts as none.
    pub tolerance: f64,
    /// The shortest and the longest time to try, in core cycles.
    pub time_range: [usize; 2],
}

/// Work of one kind.
#[derive(Debug)]
pub(crate) struct FadeRow {
    /// The key of its record, behind the test's name.
    pub name: &'static str,
    /// Two different programs, by the core cycles for which such work has gone on since the rest.
    /// The control is the same work without a rest.
    pub programs: [ProgramFamily; 2],
    /// CPU features that they need beyond x86-64.
    pub required_features: &'static [CpuidFeature],
}
