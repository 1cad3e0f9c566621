//! A simulated performance monitoring unit: some counters, and events with known counts.
//!
//! Counts follow from the instructions of a program's body, or from the simulated core that runs it.
//! Its limit: one kind of general counter.

use cyclescope_code::asm::CodeMode;
use cyclescope_code::program::Program;
use cyclescope_core::error::{RunError, Unavailable};
use cyclescope_events::{EventCode, EventRefusal, RefusalCause};
use cyclescope_exec::{Batch, Layout, ProgramCall, Sample};
use iced_x86::{Decoder, DecoderOptions, Mnemonic};

/// The counters and the events of a simulated core.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SimulatedPmu {
    /// Counters that count any event.
    pub general: usize,
    /// Events with a counter of their own.
    pub fixed: Vec<EventCode>,
    /// All events, with their counts.
    pub events: Vec<SimulatedEvent>,
    /// Events that the simulated core counts itself.
    pub core_events: Vec<(EventCode, CoreCount)>,
    /// The batch of events, from 0, in which something else takes a counter away.
    pub taken_in_batch: Option<u32>,
    /// Whether something else has some of the counters for a share of the time.
    pub multiplexed: bool,
    /// What counters begin with: near 2⁶⁴ they overflow in the first calls.
    pub start: u64,
}

/// What a simulated core counts itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoreCount {
    /// Instructions.
    Instructions,
    /// Slots of issue groups.
    Slots,
    /// µops of the port or unit with this number.
    Port(u32),
    /// Core cycles.
    Cycles,
}

/// What the core itself counts in a call of a program's body with this number of iterations.
pub(crate) type CountBody<'a> = dyn FnMut(&Program, u64, CoreCount) -> f64 + 'a;

/// An event of a simulated core.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedEvent {
    /// The event.
    pub code: EventCode,
    /// Counts of each call besides its body.
    pub per_call: u64,
    /// Counts of each instruction without a count of its own.
    pub per_instruction: u64,
    /// Counts of the instructions with these mnemonics.
    pub per_mnemonic: Vec<(Mnemonic, u64)>,
}

impl SimulatedEvent {
    /// The count of a snippet's machine code.
    pub fn count_of(&self, code: &[u8]) -> u64 {
        self.count_in_mode(code, CodeMode::default())
    }

    fn count_in_mode(&self, code: &[u8], mode: CodeMode) -> u64 {
        let decoder = Decoder::new(mode.bits(), code, DecoderOptions::NONE);
        let of_instruction = |mnemonic| {
            let own = self.per_mnemonic.iter().find(|(known, _)| *known == mnemonic);
            own.map_or(self.per_instruction, |(_, count)| *count)
        };
        decoder.into_iter().map(|instruction| of_instruction(instruction.mnemonic())).sum()
    }

    fn count_of_call(&self, program: &Program, loop_count: u64) -> u64 {
        let iterations = if program.is_looped() { loop_count } else { 1 };
        self.per_call + iterations * program.copies() as u64 * self.count_in_mode(program.snippet(), program.mode())
    }
}

/// The counters of a simulated machine while it runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunningPmu {
    pmu: SimulatedPmu,
    batches: u32,
    counts: Vec<u64>,
}

impl RunningPmu {
    pub(crate) fn new(pmu: SimulatedPmu) -> RunningPmu {
        let counts = vec![pmu.start; pmu.events.len() + pmu.core_events.len()];
        RunningPmu { pmu, batches: 0, counts }
    }

    /// Whether there is a counter of core cycles for programs to read.
    pub(crate) fn counts_cycles(&self) -> bool {
        self.count_fitting(&[EventCode::core_cycles()]).is_ok()
    }

    fn find_event(&self, code: EventCode) -> Option<usize> {
        let own = self.pmu.events.iter().map(|event| event.code);
        own.chain(self.pmu.core_events.iter().map(|(code, _)| *code)).position(|known| known == code)
    }

    /// See [`Executor::count_fitting`](cyclescope_exec::Executor::count_fitting).
    pub(crate) fn count_fitting(&self, codes: &[EventCode]) -> Result<usize, EventRefusal> {
        let (mut general, mut fitting) = (self.pmu.general, 0);
        for code in codes {
            let has_own = self.pmu.fixed.contains(code);
            if self.find_event(*code).is_none() || !has_own && general == 0 {
                break;
            }
            general -= usize::from(!has_own);
            fitting += 1;
        }
        match (fitting, codes.first().and_then(|code| self.find_event(*code))) {
            (0, None) if self.counts.is_empty() => {
                Err(EventRefusal::new(RefusalCause::NoPmu, "the simulated core has no counters", "give it some"))
            }
            (0, None) => {
                Err(EventRefusal::new(RefusalCause::NotOnThisCore, "the core has no such event", "name another one"))
            }
            (0, Some(_)) => {
                Err(EventRefusal::new(RefusalCause::ReservedByAnother, "no counter is free", "end its other user"))
            }
            (fitting, _) => Ok(fitting),
        }
    }

    /// Runs a batch that counts events: samples of each layout.
    pub(crate) fn count_batch(
        &mut self,
        batch: &Batch,
        take: &mut dyn FnMut(&[Sample]),
        count_body: &mut CountBody,
    ) -> Result<(), RunError> {
        let lost = |why: &str| {
            let (what, why) = ("the events".to_string(), why.to_string());
            RunError::Unavailable(Unavailable { what, why, remedy: "end the other user of the counters".to_string() })
        };
        let fits = self.count_fitting(&batch.events) == Ok(batch.events.len());
        if !fits || self.pmu.multiplexed {
            return Err(lost("they share their counters"));
        }
        if self.pmu.taken_in_batch == Some(self.batches) {
            return Err(lost("something took a counter away"));
        }
        self.batches += 1;
        for layout in &batch.layouts {
            take(&self.count_layout(batch, layout, count_body));
        }
        Ok(())
    }

    fn count_layout(&mut self, batch: &Batch, layout: &Layout, count_body: &mut CountBody) -> Vec<Sample> {
        let events: Vec<usize> = batch.events.iter().filter_map(|code| self.find_event(*code)).collect();
        let mut samples = Vec::with_capacity(batch.samples_per_layout());
        let mut count_call = |call: &ProgramCall, event: usize| {
            let program = &batch.programs[layout.code[call.place].program];
            match self.pmu.events.get(event) {
                Some(event) => event.count_of_call(program, call.loop_count),
                None => {
                    let (_, what) = self.pmu.core_events[event - self.pmu.events.len()];
                    count_body(program, call.loop_count, what).round() as u64
                }
            }
        };
        // Every round counts the same.
        let round_counts: Vec<Vec<u64>> =
            layout.round.iter().map(|call| events.iter().map(|event| count_call(call, *event)).collect()).collect();
        for round in 0..batch.warm_up + batch.rounds {
            for counts in &round_counts {
                for (event, count) in events.iter().zip(counts) {
                    let start = self.counts[*event];
                    self.counts[*event] = start.wrapping_add(*count);
                    if round >= batch.warm_up {
                        samples.push(Sample { start, end: self.counts[*event] });
                    }
                }
            }
        }
        samples
    }
}
