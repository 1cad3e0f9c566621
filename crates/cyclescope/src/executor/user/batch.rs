//! From a batch to commands: layouts whose code does not overlap go in one command together.

use super::command::{FENCED_AT, LAYOUTS_AT, PlacedCall, PlacedLayout, SAMPLES_FENCE};
use super::memory::{AREA, ARENA, COMMAND, MAX_SHIFT, Memory, SAMPLES, view};
use crate::context::Context;
use crate::error::RunError;
use crate::executor::{Batch, Layout, Sample};
use std::mem::size_of;
use std::ops::Range;
use std::ptr;

/// Layouts that go in one command.
pub(super) struct Chunk {
    pub(super) layouts: Range<usize>,
}

/// Distances that keep the areas' registers apart modulo 4096: odd multiples of 320, all in lines of their
/// own.
const STAGGER: usize = 320;

fn refused(doing: &'static str) -> RunError {
    RunError::System { doing, errno: libc::EINVAL }
}

/// Splits a batch into commands.
pub(super) fn split(batch: &Batch) -> Result<Vec<Chunk>, RunError> {
    if batch.round.iter().any(|call| call.program >= batch.programs.len()) {
        return Err(refused("finding the program of a call"));
    }
    let calls = batch.round.len();
    let samples = batch.rounds as usize * calls * size_of::<Sample>();
    let words = calls * size_of::<PlacedCall>() + size_of::<PlacedLayout>();
    let most = (SAMPLES - 2 * SAMPLES_FENCE).checked_div(samples).unwrap_or(usize::MAX);
    let most = most.min((COMMAND - LAYOUTS_AT) / words);
    if most == 0 {
        return Err(RunError::System { doing: "holding the samples of one layout", errno: libc::ENOMEM });
    }
    let mut chunks: Vec<Chunk> = Vec::new();
    let mut taken: Vec<Range<usize>> = Vec::new();
    for (index, layout) in batch.layouts.iter().enumerate() {
        let own = code_ranges(batch, layout)?;
        let fits = own.iter().all(|range| taken.iter().all(|other| !overlap(range, other)));
        match chunks.last_mut() {
            Some(chunk) if fits && chunk.layouts.len() < most => {
                chunk.layouts.end = index + 1;
                taken.extend(own);
            }
            _ => {
                chunks.push(Chunk { layouts: index..index + 1 });
                taken = own;
            }
        }
    }
    Ok(chunks)
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// Where a layout's programs lie, sorted.
fn code_ranges(batch: &Batch, layout: &Layout) -> Result<Vec<Range<usize>>, RunError> {
    let doing = "placing code in the arena";
    if layout.code.len() != batch.programs.len() {
        return Err(refused(doing));
    }
    let place = |(program, at): (&crate::program::Program, &u32)| *at as usize..*at as usize + program.len();
    let mut ranges: Vec<_> = batch.programs.iter().zip(&layout.code).map(place).collect();
    ranges.sort_by_key(|range| range.start);
    let overlapping = ranges.windows(2).any(|pair| overlap(&pair[0], &pair[1]));
    if overlapping || ranges.last().is_some_and(|range| range.end > ARENA) {
        return Err(refused(doing));
    }
    if layout.data.iter().any(|shift| shift.unsigned_abs() > MAX_SHIFT) {
        return Err(refused("moving a register in its memory area"));
    }
    Ok(ranges)
}

impl Chunk {
    /// Writes code, command and fences, and returns the number of samples to come. No worker may be running.
    pub(super) fn write(&self, batch: &Batch, memory: &mut Memory, canary: u64) -> usize {
        let layouts = &batch.layouts[self.layouts.clone()];
        let samples = layouts.len() * batch.rounds as usize * batch.round.len();
        let arena = memory.in_worker(view::ARENA_AT);
        let context_at = memory.in_worker(view::CONTEXT_AT + FENCED_AT);
        for layout in layouts {
            for (program, code) in batch.programs.iter().zip(&layout.code) {
                let at = *code as usize;
                program.place(arena + at as u64, context_at, &mut memory.arena()[at..]);
            }
        }
        let placed = memory.command_bytes(LAYOUTS_AT).cast::<PlacedLayout>();
        let calls = placed.wrapping_add(layouts.len()).cast::<PlacedCall>();
        let mut context = Context::new(batch.element);
        context.clock_gettime = libc::clock_gettime as *const () as u64;
        let command = memory.command();
        // SAFETY: the region is mapped for writing, `split` made sure that all of this fits, and no worker
        // reads it now.
        unsafe {
            ptr::addr_of_mut!((*command).canary).write(canary);
            ptr::addr_of_mut!((*command).layouts).write(layouts.len() as u32);
            ptr::addr_of_mut!((*command).calls).write(batch.round.len() as u32);
            ptr::addr_of_mut!((*command).warm_up).write(batch.warm_up);
            ptr::addr_of_mut!((*command).rounds).write(batch.rounds);
            ptr::addr_of_mut!((*command).context).write(context);
            for (index, layout) in layouts.iter().enumerate() {
                placed.add(index).write(place(layout, memory));
                for (number, call) in batch.round.iter().enumerate() {
                    let entry = arena + u64::from(layout.code[call.program]);
                    let at = calls.add(index * batch.round.len() + number);
                    at.write(PlacedCall { entry, loop_count: call.loop_count });
                }
            }
            memory.shared().set_fences(samples, canary);
        }
        samples
    }
}

fn place(layout: &Layout, memory: &Memory) -> PlacedLayout {
    let mut areas = [0; 5];
    for (area, address) in areas.iter_mut().enumerate() {
        let middle = view::area_at(area) + AREA / 2 + STAGGER * (2 * area + 1);
        *address = memory.in_worker(middle).wrapping_add_signed(i64::from(layout.data[area]));
    }
    PlacedLayout { areas, seed: layout.seed }
}
