//! Where a layout's code and data go: what every executor checks before it writes.

use super::{Batch, Layout, Placed};
use crate::error::RunError;
use std::ops::Range;

/// Distances that keep the areas' registers apart modulo 4096: odd multiples of 320, all in lines of their own.
const STAGGER: usize = 320;

/// How far from an area's start its register points, before a layout moves it.
pub(super) const fn middle(area: usize, bytes: usize) -> usize {
    bytes / 2 + STAGGER * (2 * area + 1)
}

/// How far a layout may move a register from the middle of an area of so many bytes.
pub(super) const fn most_shift(bytes: usize) -> u32 {
    (bytes / 2 - (64 << 10)) as u32
}

/// A program in the arena.
#[derive(PartialEq)]
pub(super) struct Code {
    pub(super) program: usize,
    pub(super) range: Range<usize>,
}

impl Code {
    /// Whether the two can't be in the arena together. One program at one place is no collision.
    pub(super) fn collides(&self, other: &Code) -> bool {
        let overlap = self.range.start < other.range.end && other.range.start < self.range.end;
        overlap && self != other
    }
}

pub(super) fn refused(doing: &'static str) -> RunError {
    RunError::System { doing, errno: libc::EINVAL }
}

/// Whether a layout's parts refer to what there is, in areas of so many bytes.
pub(super) fn check(batch: &Batch, layout: &Layout, area: usize) -> Result<(), RunError> {
    let calls = batch.calls();
    if layout.round.len() != calls || layout.round.iter().any(|call| call.place >= layout.code.len()) {
        return Err(refused("finding the program of a call"));
    }
    if layout.code.iter().any(|place| place.program >= batch.programs.len()) {
        return Err(refused("finding a layout's program"));
    }
    if layout.data.iter().any(|shift| shift.unsigned_abs() > most_shift(area)) {
        return Err(refused("moving a register in its memory area"));
    }
    Ok(())
}

/// A layout's programs, by where they lie in an arena of so many bytes.
pub(super) fn placed_code(batch: &Batch, layout: &Layout, arena: usize) -> Result<Vec<Code>, RunError> {
    let code = |place: &Placed| {
        let at = place.offset as usize;
        Code { program: place.program, range: at..at + batch.programs[place.program].len() }
    };
    let mut placed: Vec<Code> = layout.code.iter().map(code).collect();
    placed.sort_by_key(|code| code.range.start);
    let overlapping = placed.windows(2).any(|pair| pair[0].range.end > pair[1].range.start);
    if overlapping || placed.last().is_some_and(|last| last.range.end > arena) {
        return Err(refused("placing code in the arena"));
    }
    Ok(placed)
}
