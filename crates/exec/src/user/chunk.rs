//! From a batch to commands: layouts whose code does not overlap share a command.

use super::areas::UserAreas;
use super::process;
use super::regions::WorkerRegions;
use crate::placement::{ProgramRange, check_layout, sort_program_ranges};
use crate::{Batch, Layout, Sample};
use cyclescope_code::context::{self, ProgramContext};
use cyclescope_core::error::{RunError, Unavailable};
use cyclescope_worker::command::{FENCED_AT, LAYOUTS_AT, SAMPLES_FENCE, WorkerCall, WorkerLayout};
use cyclescope_worker::view::{self, ARENA_BYTES, COMMAND_BYTES, SAMPLES_BYTES};
use std::collections::BTreeMap;
use std::mem::size_of;
use std::ops::Range;
use std::ptr;

/// Layouts of one command.
pub(super) struct LayoutChunk {
    pub(super) layouts: Range<usize>,
}

/// Splits a batch into commands.
pub(super) fn split_batch(batch: &Batch) -> Result<Vec<LayoutChunk>, RunError> {
    let calls = batch.calls();
    let samples = batch.samples_per_layout() * size_of::<Sample>();
    let words = calls * size_of::<WorkerCall>() + size_of::<WorkerLayout>();
    let most = (SAMPLES_BYTES - 2 * SAMPLES_FENCE).checked_div(samples).unwrap_or(usize::MAX);
    let most = most.min((COMMAND_BYTES - LAYOUTS_AT) / words);
    if most == 0 {
        return Err(too_large_error(batch));
    }
    let mut chunks: Vec<LayoutChunk> = Vec::new();
    // What the last chunk holds, by its place: disjoint, so that the last range before an end has
    // the latest end.
    let mut taken: BTreeMap<usize, ProgramRange> = BTreeMap::new();
    for (index, layout) in batch.layouts.iter().enumerate() {
        check_layout(batch, layout).map_err(RunError::BadBatch)?;
        let own = sort_program_ranges(batch, layout, ARENA_BYTES).map_err(RunError::BadBatch)?;
        let last_before = |end: usize| taken.range(..end).next_back().map(|(_, other)| other);
        let fits = own.iter().all(|code| !last_before(code.range.end).is_some_and(|other| code.collides_with(other)));
        let own = own.into_iter().map(|code| (code.range.start, code));
        match chunks.last_mut() {
            Some(chunk) if fits && chunk.layouts.len() < most => {
                chunk.layouts.end = index + 1;
                taken.extend(own);
            }
            _ => {
                chunks.push(LayoutChunk { layouts: index..index + 1 });
                taken = own.collect();
            }
        }
    }
    Ok(chunks)
}

fn too_large_error(batch: &Batch) -> RunError {
    let error = Unavailable {
        what: format!("a layout of {} rounds of {} calls", batch.rounds, batch.calls()),
        why: format!(
            "this executor has {} MiB for samples and {} KiB for calls",
            SAMPLES_BYTES >> 20,
            COMMAND_BYTES >> 10
        ),
        remedy: "take fewer rounds in a layout".to_string(),
    };
    RunError::Unavailable(error)
}

impl LayoutChunk {
    /// Writes code, command and fences. Returns the number of expected samples. No worker may be
    /// running.
    pub(super) fn write_command(
        &self,
        batch: &Batch,
        segment: u16,
        regions: &mut WorkerRegions,
        areas: &UserAreas,
        canary: u64,
    ) -> usize {
        let layouts = &batch.layouts[self.layouts.clone()];
        let samples = layouts.len() * batch.samples_per_layout();
        let arena = regions.worker_address(view::ARENA_AT);
        let context_at = regions.worker_address(view::CONTEXT_AT + FENCED_AT);
        let mut code = Vec::new();
        for place in layouts.iter().flat_map(|layout| &layout.code) {
            let (program, at) = (&batch.programs[place.program], place.offset as usize);
            code.resize(program.len(), 0);
            program.relocate_into(arena + at as u64, context_at, &mut code);
            regions.write_code(at, &code);
        }
        let placed = regions.command_bytes_at(LAYOUTS_AT).cast::<WorkerLayout>();
        let calls = placed.wrapping_add(layouts.len()).cast::<WorkerCall>();
        let mut context = context::fresh_context(batch.memory.vectors);
        context.eviction = regions.worker_address(view::EVICTION_AT);
        [context.clock_gettime, context.memcpy] = process::called_functions();
        let addresses = areas.addresses();
        let command = regions.command_pointer();
        // SAFETY: the region is mapped for writing, `split` made sure that all of this fits, and no
        // worker reads it now.
        unsafe {
            ptr::addr_of_mut!((*command).canary).write(canary);
            ptr::addr_of_mut!((*command).layouts).write(layouts.len() as u32);
            ptr::addr_of_mut!((*command).calls).write(batch.calls() as u32);
            ptr::addr_of_mut!((*command).warm_up).write(batch.warm_up);
            ptr::addr_of_mut!((*command).rounds).write(batch.rounds);
            ptr::addr_of_mut!((*command).events).write(batch.events.len() as u32);
            ptr::addr_of_mut!((*command).code_segment).write(segment.into());
            ptr::addr_of_mut!((*command).reads_times).write(batch.reads_times().into());
            ptr::addr_of_mut!((*command).orders).write(areas.build_orders());
            ptr::addr_of_mut!((*command).delay).write(batch.delay.max(1));
            ptr::addr_of_mut!((*command).context).write(context.clone());
            for (index, layout) in layouts.iter().enumerate() {
                placed.add(index).write(place_layout(batch, layout, &addresses, &context));
                for (number, call) in layout.round.iter().enumerate() {
                    let entry = arena + u64::from(layout.code[call.place].offset);
                    let at = calls.add(index * batch.calls() + number);
                    at.write(WorkerCall { entry, loop_count: call.loop_count });
                }
            }
            regions.shared_pointers().set_fences(samples, canary);
        }
        samples
    }
}

fn place_layout(batch: &Batch, layout: &Layout, addresses: &[u64], context: &ProgramContext) -> WorkerLayout {
    let mut gpr = context.gpr;
    let mode = batch.mode().unwrap_or_default();
    for (register, value) in batch.memory.pointer_registers(addresses, &layout.data) {
        if let Some(number) = mode.general_number(register) {
            gpr[number] = value;
        }
    }
    WorkerLayout { gpr, seed: layout.seed }
}
