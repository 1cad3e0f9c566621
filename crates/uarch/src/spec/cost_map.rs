//! Tests of a program's cost at each place of a row of places, as data.

use super::program::ProgramFamily;
use iced_x86::CpuidFeature;

/// A test of costs by place.
#[derive(Debug)]
pub(crate) struct CostMapSpec {
    /// The rows.
    pub rows: &'static [MapRow],
    /// Core cycles by which two equal costs may differ.
    pub tolerance: f64,
    /// Share of the larger cost by which two equal costs may differ.
    pub tolerance_share: f64,
}

/// A row of places.
#[derive(Debug)]
pub(crate) struct MapRow {
    /// The key of its record, behind the test's name.
    pub name: &'static str,
    /// The first place.
    pub first_place: isize,
    /// Number of places.
    pub place_count: usize,
    /// Distance from one place to the next.
    pub stride: usize,
    /// Two different programs, by the index of the place.
    pub programs: [ProgramFamily; 2],
    /// CPU features that they need beyond x86-64.
    pub required_features: &'static [CpuidFeature],
}

impl MapRow {
    /// The place with this index.
    pub(crate) fn place_at(&self, number: usize) -> isize {
        self.first_place + (number * self.stride) as isize
    }
}
