//! From a batch to commands: layouts whose code does not overlap go in one command together.

use super::areas::Areas;
use super::regions::Regions;
use crate::placement::{Code, check, placed_code};
use crate::{Batch, Layout, Sample};
use cyclescope_code::context::{self, Context};
use cyclescope_core::error::{RunError, Unavailable};
use cyclescope_worker::command::{FENCED_AT, LAYOUTS_AT, PlacedCall, PlacedLayout, SAMPLES_FENCE};
use cyclescope_worker::view::{self, ARENA, COMMAND, SAMPLES};
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
        return Err(too_large(batch));
    }
    let mut chunks: Vec<Chunk> = Vec::new();
    let mut taken: Vec<Code> = Vec::new();
    for (index, layout) in batch.layouts.iter().enumerate() {
        check(batch, layout).map_err(RunError::BadBatch)?;
        let own = placed_code(batch, layout, ARENA).map_err(RunError::BadBatch)?;
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

fn too_large(batch: &Batch) -> RunError {
    let error = Unavailable {
        what: format!("a layout of {} rounds of {} calls", batch.rounds, batch.calls()),
        why: format!(
            "this executor has {} MiB for samples and {} KiB for calls",
            SAMPLES >> 20,
            COMMAND >> 10
        ),
        remedy: "take fewer rounds in a layout".to_string(),
    };
    RunError::Unavailable(error)
}

impl Chunk {
    /// Writes code, command and fences, and returns the number of samples to come. No worker may be running.
    pub(super) fn write(&self, batch: &Batch, regions: &mut Regions, areas: &Areas, canary: u64) -> usize {
        let layouts = &batch.layouts[self.layouts.clone()];
        let samples = layouts.len() * batch.rounds as usize * batch.calls();
        let arena = regions.in_worker(view::ARENA_AT);
        let context_at = regions.in_worker(view::CONTEXT_AT + FENCED_AT);
        for layout in layouts {
            for place in &layout.code {
                let at = place.offset as usize;
                batch.programs[place.program].place(
                    arena + at as u64,
                    context_at,
                    &mut regions.arena()[at..],
                );
            }
        }
        let placed = regions.command_bytes(LAYOUTS_AT).cast::<PlacedLayout>();
        let calls = placed.wrapping_add(layouts.len()).cast::<PlacedCall>();
        let mut context = context::fresh(batch.memory.vectors);
        context.eviction = regions.in_worker(view::EVICTION_AT);
        context.clock_gettime = libc::clock_gettime as *const () as u64;
        let addresses = areas.addresses();
        let command = regions.command();
        // SAFETY: the region is mapped for writing, `split` made sure that all of this fits, and no worker
        // reads it now.
        unsafe {
            ptr::addr_of_mut!((*command).canary).write(canary);
            ptr::addr_of_mut!((*command).layouts).write(layouts.len() as u32);
            ptr::addr_of_mut!((*command).calls).write(batch.calls() as u32);
            ptr::addr_of_mut!((*command).warm_up).write(batch.warm_up);
            ptr::addr_of_mut!((*command).rounds).write(batch.rounds);
            ptr::addr_of_mut!((*command).orders).write(areas.orders());
            ptr::addr_of_mut!((*command).delay).write(batch.delay.max(1));
            ptr::addr_of_mut!((*command).context).write(context.clone());
            for (index, layout) in layouts.iter().enumerate() {
                placed.add(index).write(place(batch, layout, &addresses, &context));
                for (number, call) in layout.round.iter().enumerate() {
                    let entry = arena + u64::from(layout.code[call.place].offset);
                    let at = calls.add(index * batch.calls() + number);
                    at.write(PlacedCall { entry, loop_count: call.loop_count });
                }
            }
            regions.shared().set_fences(samples, canary);
        }
        samples
    }
}

fn place(batch: &Batch, layout: &Layout, addresses: &[u64], context: &Context) -> PlacedLayout {
    let mut gpr = context.gpr;
    for (register, value) in batch.memory.registers(addresses, &layout.data) {
        gpr[register] = value;
    }
    PlacedLayout { gpr, seed: layout.seed }
}
