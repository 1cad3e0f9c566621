//! From a batch to commands: layouts whose code does not overlap go in one command together.

use super::command::{FENCED_AT, LAYOUTS_AT, PlacedCall, PlacedLayout, SAMPLES_FENCE};
use super::memory::{AREA, ARENA, COMMAND, Memory, SAMPLES, view};
use crate::context::Context;
use crate::error::RunError;
use crate::executor::placement::{Code, check, middle, placed_code};
use crate::executor::{Batch, Layout, Sample};
use std::mem::size_of;
use std::ops::Range;
use std::ptr;

/// Layouts that go in one command.
pub(super) struct Chunk {
    pub(super) layouts: Range<usize>,
}

/// Splits a batch into commands.
pub(super) fn split(batch: &Batch) -> Result<Vec<Chunk>, RunError> {
    let calls = batch.calls();
    let samples = batch.rounds as usize * calls * size_of::<Sample>();
    let words = calls * size_of::<PlacedCall>() + size_of::<PlacedLayout>();
    let most = (SAMPLES - 2 * SAMPLES_FENCE).checked_div(samples).unwrap_or(usize::MAX);
    let most = most.min((COMMAND - LAYOUTS_AT) / words);
    if most == 0 {
        let why = "they are more than the worker has memory for";
        let remedy = "take fewer rounds or calls in a layout";
        return Err(RunError::machinery("holding the samples of one layout", why, remedy));
    }
    let mut chunks: Vec<Chunk> = Vec::new();
    let mut taken: Vec<Code> = Vec::new();
    for (index, layout) in batch.layouts.iter().enumerate() {
        check(batch, layout, AREA)?;
        let own = placed_code(batch, layout, ARENA)?;
        let fits = own.iter().all(|code| taken.iter().all(|other| !code.collides(other)));
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

impl Chunk {
    /// Writes code, command and fences, and returns the number of samples to come. No worker may be running.
    pub(super) fn write(&self, batch: &Batch, memory: &mut Memory, canary: u64) -> usize {
        let layouts = &batch.layouts[self.layouts.clone()];
        let samples = layouts.len() * batch.rounds as usize * batch.calls();
        let arena = memory.in_worker(view::ARENA_AT);
        let context_at = memory.in_worker(view::CONTEXT_AT + FENCED_AT);
        for layout in layouts {
            for place in &layout.code {
                let at = place.offset as usize;
                batch.programs[place.program].place(arena + at as u64, context_at, &mut memory.arena()[at..]);
            }
        }
        let placed = memory.command_bytes(LAYOUTS_AT).cast::<PlacedLayout>();
        let calls = placed.wrapping_add(layouts.len()).cast::<PlacedCall>();
        let mut context = Context::new(batch.element);
        context.eviction = memory.in_worker(view::EVICTION_AT);
        context.clock_gettime = libc::clock_gettime as *const () as u64;
        let command = memory.command();
        // SAFETY: the region is mapped for writing, `split` made sure that all of this fits, and no worker
        // reads it now.
        unsafe {
            ptr::addr_of_mut!((*command).canary).write(canary);
            ptr::addr_of_mut!((*command).layouts).write(layouts.len() as u32);
            ptr::addr_of_mut!((*command).calls).write(batch.calls() as u32);
            ptr::addr_of_mut!((*command).warm_up).write(batch.warm_up);
            ptr::addr_of_mut!((*command).rounds).write(batch.rounds);
            ptr::addr_of_mut!((*command).touches_memory).write(batch.touches_memory.into());
            ptr::addr_of_mut!((*command).delay).write(batch.delay.max(1));
            ptr::addr_of_mut!((*command).context).write(context);
            for (index, layout) in layouts.iter().enumerate() {
                placed.add(index).write(place(layout, memory));
                for (number, call) in layout.round.iter().enumerate() {
                    let entry = arena + u64::from(layout.code[call.place].offset);
                    let at = calls.add(index * batch.calls() + number);
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
        let middle = view::area_at(area) + middle(area, AREA);
        *address = memory.in_worker(middle).wrapping_add_signed(i64::from(layout.data[area]));
    }
    PlacedLayout { areas, seed: layout.seed }
}
