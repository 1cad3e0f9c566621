//! What a program costs at each place of a row of places, as data.

use super::program::ProgramFamily;
use iced_x86::CpuidFeature;

/// A test of costs by place.
#[derive(Debug)]
pub(crate) struct CostMapSpec {
    /// The rows.
    pub rows: &'static [MapRow],
    /// Core cycles by which two costs may differ that are the same; and the share.
    pub tolerance: f64,
    /// See `apart`.
    pub tolerance_share: f64,
}

/// Places in a row.
#[derive(Debug)]
pub(crate) struct MapRow {
    /// The rest of its key.
    pub name: &'static str,
    /// The first place.
    pub first_place: isize,
    /// How many there are.
    pub place_count: usize,
    /// How far one is from the next.
    pub stride: usize,
    /// Two unlike programs, by the number of a place.
    pub programs: [ProgramFamily; 2],
    /// The features that they need beside those of every x86-64.
    pub required_features: &'static [CpuidFeature],
}

impl MapRow {
    /// The place of a number.
    pub(crate) fn place_at(&self, number: usize) -> isize {
        self.first_place + (number * self.stride) as isize
    }
}
