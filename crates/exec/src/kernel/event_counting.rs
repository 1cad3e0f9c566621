//! Performance events in ring 0, which the module opens for a run and reads around its slices.
//!
//! Limits: the counts of a slice include the way in and out of it, less than ten thousand core cycles
//! in 2 ms. All events count ring 0: no slice has code of user mode.

use super::KernelExecutor;
use super::abi::ModuleEvent;
use crate::isolated_call::{divide_count, isolate_call};
use crate::{Batch, Layout, Sample};
use cyclescope_core::error::{RunError, Unavailable};
use cyclescope_events::{EventCode, EventRefusal, MOST_TOGETHER, RefusalCause};
use std::time::Instant;

/// How often a call runs again whose slices were all interrupted.
const MOST_ATTEMPTS: usize = 8;

impl ModuleEvent {
    fn from_code(code: &EventCode) -> ModuleEvent {
        let EventCode { unit, config, config1, config2, .. } = *code;
        ModuleEvent { kind: unit, reserved: 0, config, config1, config2, count: 0 }
    }
}

impl KernelExecutor {
    /// How many events count at the same time, found by trying.
    pub(super) fn try_events(&self, codes: &[EventCode]) -> Result<usize, EventRefusal> {
        let events: Vec<ModuleEvent> = codes.iter().take(MOST_TOGETHER).map(ModuleEvent::from_code).collect();
        let tried = self.module.try_events(self.options.cpu as u32, &events).map_err(|error| {
            let remedy = "count events with --executor user";
            EventRefusal::new(RefusalCause::NotInThisMode, error.to_string(), remedy)
        })?;
        match (tried, codes.first()) {
            ((0, errno), Some(first)) => {
                Err(EventRefusal::from_errno(errno, first.is_software(), false, &self.machine))
            }
            ((fitting, _), _) => Ok(fitting),
        }
    }

    /// The events of a batch, if all of them count at the same time.
    pub(super) fn prepare_events(&self, codes: &[EventCode]) -> Result<Vec<ModuleEvent>, RunError> {
        let fitting = match codes.is_empty() {
            true => 0,
            false => self.try_events(codes).map_err(|refusal| RunError::Unavailable(refusal.into()))?,
        };
        if fitting < codes.len() {
            let why = format!("{fitting} of {} events count at the same time", codes.len());
            return Err(RunError::from_harness("counting events", why, "name fewer events"));
        }
        Ok(codes.iter().map(ModuleEvent::from_code).collect())
    }

    /// Counts events of a layout: each call of a round runs by itself, in all rounds.
    pub(super) fn count_layout(
        &mut self,
        batch: &Batch,
        layout: &Layout,
        events: &[ModuleEvent],
        until: Instant,
    ) -> Result<Vec<Sample>, RunError> {
        let (calls, mut samples) = (batch.calls(), vec![Sample::default(); batch.samples_per_layout()]);
        for (number, call) in layout.round.iter().enumerate() {
            let [untimed, counted] = isolate_call(batch, layout, *call);
            self.run_layout(&untimed, &untimed.layouts[0], until, &mut [])?;
            let counts = self.count_call(&counted, events, until)?;
            for (event, count) in counts.into_iter().enumerate() {
                for (round, sample) in divide_count(0, count, batch.rounds as usize).enumerate() {
                    samples[(round * calls + number) * events.len() + event] = sample;
                }
            }
        }
        Ok(samples)
    }

    /// The counts of one call in all rounds of a batch. Rounds of interrupted slices count like the
    /// others.
    fn count_call(&mut self, batch: &Batch, events: &[ModuleEvent], until: Instant) -> Result<Vec<u64>, RunError> {
        for _ in 0..MOST_ATTEMPTS {
            let mut events = events.to_vec();
            let run = self.run_layout(batch, &batch.layouts[0], until, &mut events);
            let counted = match run {
                Err(RunError::System { errno: libc::ENODATA | libc::EBUSY, .. }) => {
                    return Err(RunError::Unavailable(EventRefusal::from_lost_counter().into()));
                }
                run => u128::from(run?.counted_rounds),
            };
            if counted != 0 {
                let of_all = |count: u64| (u128::from(count) * u128::from(batch.rounds) / counted) as u64;
                return Ok(events.iter().map(|event| of_all(event.count)).collect());
            }
        }
        Err(RunError::Unavailable(Unavailable {
            what: "counting events in ring 0".to_string(),
            why: format!("interrupts ended all slices of {MOST_ATTEMPTS} runs"),
            remedy: "leave `sti` out, or count on a CPU that gets fewer interrupts".to_string(),
        }))
    }
}
