//! Tests of a structure by random visits, as data.

use super::program::ProgramFamily;
use cyclescope_core::unit::Unit;

/// A test of how many of some items a structure holds. Each step visits an item that nothing can
/// predict.
#[derive(Debug)]
pub(crate) struct RandomVisitsSpec {
    /// Different programs, by the number of items. A number needs the first two to agree. They fill
    /// other structures to different degrees, so that those end at different counts.
    pub programs: &'static [ProgramFamily],
    /// The smallest and the largest count.
    pub count_range: [usize; 2],
    /// What is counted.
    pub unit: Unit,
    /// The least extra cost of a visit to an item that is not held, in core cycles. Smaller ones are
    /// those of other structures.
    pub min_miss_cost: f64,
}
