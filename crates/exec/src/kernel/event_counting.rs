//! Performance events in ring 0, which the module opens for a run and reads around its slices.
//!
//! Limits: the counts of a slice include the way in and out of it, less than ten thousand core cycles
//! in 2 ms. All events count ring 0: no slice has code of user mode.

use super::abi::ModuleEvent;
use super::device::ModuleDevice;
use crate::isolated_call::{divide_count, isolate_call};
use crate::{Batch, Layout, Sample};
use cyclescope_core::error::{RunError, Unavailable};
use cyclescope_core::machine::Machine;
use cyclescope_events::{EventCode, EventRefusal, MOST_TOGETHER, OpenAttempt, RefusalCause};
use cyclescope_platform::error_code;

/// How often a call runs again whose slices were all interrupted.
const MOST_ATTEMPTS: usize = 8;

/// Runs the only layout of a batch and counts events. Returns the number of rounds in which they were
/// counted.
pub(super) type CountingRun<'a> = &'a mut dyn FnMut(&Batch, &mut [ModuleEvent]) -> Result<u32, RunError>;

impl ModuleEvent {
    fn from_code(code: &EventCode) -> ModuleEvent {
        let EventCode { unit, config, config1, config2, .. } = *code;
        ModuleEvent { kind: unit, reserved: 0, config, config1, config2, count: 0 }
    }
}

/// The CPU of a module's runs.
pub(super) struct CountedCpu<'a> {
    pub(super) module: &'a ModuleDevice,
    pub(super) cpu: usize,
    pub(super) machine: &'a Machine,
}

impl CountedCpu<'_> {
    /// How many events count at the same time, found by trying.
    pub(super) fn try_events(&self, codes: &[EventCode]) -> Result<usize, EventRefusal> {
        let events: Vec<ModuleEvent> = codes.iter().take(MOST_TOGETHER).map(ModuleEvent::from_code).collect();
        let tried = self.module.try_events(self.cpu as u32, &events).map_err(|error| {
            let remedy = "count events with --executor user";
            EventRefusal::new(RefusalCause::NotInThisMode, error.to_string(), remedy)
        })?;
        match (tried, codes.first()) {
            ((0, errno), Some(code)) => {
                let attempt = OpenAttempt { code: *code, is_further: false, counts_all: false };
                Err(EventRefusal::from_errno(errno, attempt, self.machine))
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
}

/// Counts events of a layout: each call of a round runs by itself, in all rounds.
pub(super) fn count_layout(
    batch: &Batch,
    layout: &Layout,
    events: &[ModuleEvent],
    run: CountingRun<'_>,
) -> Result<Vec<Sample>, RunError> {
    let (calls, mut samples) = (batch.calls(), vec![Sample::default(); batch.samples_per_layout()]);
    for (number, call) in layout.round.iter().enumerate() {
        let [untimed, counted] = isolate_call(batch, layout, *call);
        run(&untimed, &mut [])?;
        for (event, count) in count_call(&counted, events, run)?.into_iter().enumerate() {
            for (round, sample) in divide_count(0, count, batch.rounds as usize).enumerate() {
                samples[(round * calls + number) * events.len() + event] = sample;
            }
        }
    }
    Ok(samples)
}

/// The counts of one call in all rounds of a batch. Rounds of interrupted slices count like the
/// others.
fn count_call(batch: &Batch, events: &[ModuleEvent], run: CountingRun<'_>) -> Result<Vec<u64>, RunError> {
    for _ in 0..MOST_ATTEMPTS {
        let mut events = events.to_vec();
        let counted = match run(batch, &mut events) {
            Err(RunError::System { errno: error_code::ENODATA | error_code::EBUSY, .. }) => {
                return Err(RunError::Unavailable(EventRefusal::from_lost_counter().into()));
            }
            counted => u128::from(counted?),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PlacedProgram, ProgramCall};
    use cyclescope_code::context::FloatElement;
    use cyclescope_code::program::memory::ProgramMemory;
    use std::time::Duration;

    /// The counts of two calls in ten rounds, one of an event each, by a module that answers like this.
    fn count_with(mut answer: impl FnMut() -> Result<(u64, u32), RunError>) -> Result<Vec<u64>, RunError> {
        let call = ProgramCall { place: 0, loop_count: 1 };
        let code = vec![PlacedProgram { program: 0, offset: 0 }];
        let layout = Layout { code, round: vec![call; 2], data: Vec::new(), seed: 0 };
        let batch = Batch {
            programs: Vec::new(),
            warm_up: 3,
            rounds: 10,
            layouts: vec![layout],
            memory: ProgramMemory::standard(FloatElement::default(), false),
            delay: 1,
            events: vec![EventCode::core_cycles()],
            deadline: Duration::from_secs(1),
        };
        let events = [ModuleEvent::from_code(&batch.events[0])];
        let run = &mut |batch: &Batch, events: &mut [ModuleEvent]| {
            assert_eq!(batch.warm_up == 0, !events.is_empty());
            let [event] = events else { return Ok(0) };
            let (count, rounds) = answer()?;
            event.count = count;
            Ok(rounds)
        };
        let samples = count_layout(&batch, &batch.layouts[0], &events, run)?;
        Ok((0..2)
            .map(|call| samples.iter().skip(call).step_by(2).map(|sample| sample.end - sample.start).sum())
            .collect())
    }

    #[test]
    fn rounds_that_were_interrupted_count_like_the_others() {
        let mut answers = [(70, 10), (0, 0), (42, 6)].into_iter();
        assert_eq!(count_with(|| Ok(answers.next().expect("three runs"))), Ok(vec![70, 70]));
        assert!(
            matches!(count_with(|| Ok((5, 0))), Err(RunError::Unavailable(Unavailable { why, .. })) if why.contains("8 runs"))
        );
    }

    #[test]
    fn a_counter_that_is_lost_is_no_count() {
        let lost = || Err(RunError::System { doing: "running code in ring 0", errno: error_code::ENODATA });
        assert!(
            matches!(count_with(lost), Err(RunError::Unavailable(Unavailable { why, .. })) if why.contains("something else"))
        );
    }
}
