//! Consistency of a batch's parts, which every executor checks before it writes.

use super::batch::Batch;
use super::layout::{Layout, PlacedProgram};
use cyclescope_code::program::memory::{AreaFill, ProgramMemory};
use cyclescope_core::error::BadBatch;
use std::ops::Range;

/// A placed program.
#[derive(PartialEq)]
pub(super) struct ProgramRange {
    pub(super) program: usize,
    pub(super) range: Range<usize>,
}

impl ProgramRange {
    /// Whether two placed programs overlap in the arena. The same program at the same place is no
    /// collision.
    pub(super) fn collides_with(&self, other: &ProgramRange) -> bool {
        let overlap = self.range.start < other.range.end && other.range.start < self.range.end;
        overlap && self != other
    }
}

fn bad_layout_error(what: String, expected: &str) -> BadBatch {
    BadBatch { part: "a layout".to_string(), what, expected: expected.to_string() }
}

/// Checks that a layout refers to existing programs, places and areas.
pub(super) fn check_layout(batch: &Batch, layout: &Layout) -> Result<(), BadBatch> {
    let calls = batch.calls();
    if layout.round.len() != calls {
        let what = format!("its round has {} calls, that of the first layout {calls}", layout.round.len());
        return Err(bad_layout_error(what, "rounds of one length"));
    }
    if let Some(call) = layout.round.iter().find(|call| call.place >= layout.code.len()) {
        let what = format!("a call goes to place {} of {}", call.place, layout.code.len());
        return Err(bad_layout_error(what, "the number of one of its places"));
    }
    if let Some(place) = layout.code.iter().find(|place| place.program >= batch.programs.len()) {
        let what = format!("it places program {} of {}", place.program, batch.programs.len());
        return Err(bad_layout_error(what, "the number of one of the batch's programs"));
    }
    check_pointer_shifts(&batch.memory, &layout.data)
}

fn check_pointer_shifts(memory: &ProgramMemory, data: &[i32]) -> Result<(), BadBatch> {
    if data.len() != memory.areas.len() {
        let what = format!("it moves {} pointers of {} areas", data.len(), memory.areas.len());
        return Err(bad_layout_error(what, "one number for each area"));
    }
    for (area, shift) in data.iter().enumerate() {
        let allowed = memory.allowed_shifts(area);
        if !allowed.contains(&i64::from(*shift)) {
            let what = format!("it moves the pointer into area {area} by {shift} bytes");
            return Err(bad_layout_error(what, &format!("{} to {} bytes", allowed.start(), allowed.end())));
        }
        let AreaFill::Ring(ring) = memory.areas[area].fill else { continue };
        if shift.unsigned_abs() % ring.stride != 0 {
            let what = format!("it moves the pointer into the ring of area {area} by {shift} bytes");
            return Err(bad_layout_error(what, "a multiple of the ring's stride, so that it points to an element"));
        }
    }
    Ok(())
}

/// A layout's programs in the order of their offsets in an arena of this many bytes.
pub(super) fn sort_program_ranges(batch: &Batch, layout: &Layout, arena: usize) -> Result<Vec<ProgramRange>, BadBatch> {
    let code = |place: &PlacedProgram| {
        let at = place.offset as usize;
        ProgramRange { program: place.program, range: at..at + batch.programs[place.program].len() }
    };
    let mut placed: Vec<ProgramRange> = layout.code.iter().map(code).collect();
    placed.sort_by_key(|code| code.range.start);
    if let Some(pair) = placed.windows(2).find(|pair| pair[0].range.end > pair[1].range.start) {
        let what = format!("programs {} and {} overlap in the arena", pair[0].program, pair[1].program);
        return Err(bad_layout_error(what, "places that lie apart"));
    }
    match placed.last().filter(|last| last.range.end > arena) {
        Some(last) => {
            let what = format!("program {} ends at byte {} of the arena", last.program, last.range.end);
            Err(bad_layout_error(what, &format!("an end of at most {arena}")))
        }
        None => Ok(placed),
    }
}
