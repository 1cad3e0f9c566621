//! What a program costs at each place of a row of places, as data.

use super::walk::Walk;
use iced_x86::CpuidFeature;

/// A test of costs by place.
#[derive(Debug)]
pub(crate) struct Map {
    /// The rows.
    pub rows: &'static [Course],
    /// Core cycles by which two costs may differ that are the same; and the share.
    pub apart: f64,
    /// See `apart`.
    pub apart_share: f64,
}

/// Places in a row.
#[derive(Debug)]
pub(crate) struct Course {
    /// The rest of its key.
    pub name: &'static str,
    /// The first place.
    pub first: isize,
    /// How many there are.
    pub places: usize,
    /// How far one is from the next.
    pub apart: usize,
    /// Two unlike programs, by the number of a place.
    pub ways: [Walk; 2],
    /// The features that they need beside those of every x86-64.
    pub needs: &'static [CpuidFeature],
}

impl Course {
    /// The place of a number.
    pub(crate) fn place(&self, number: usize) -> isize {
        self.first + (number * self.apart) as isize
    }
}
