//! The length of the three bodies: repeats of each snippet, and iterations of the loop around them.
//!
//! Copies without a loop have to be many: their end overlaps with what follows, and the clock's
//! step has to be small beside them. In a loop the iterations do both. There the copies have to be
//! many enough that the loop's own branch is small beside them, and few enough for the cache of
//! decoded instructions.

use super::measurement_session::{LoopLength, MEMORY_ACCESSES_LEAST, MeasuredSnippet, MeasurementSession};

/// Fewest instructions in the shortest body: more than any scheduler holds (97 entries on Golden
/// Cove, 192 in total on Zen 4). A body that fits the scheduler ends differently from a longer one.
/// With 100 instructions, chains of `popcnt`, `bswap` and `cmov` read 1.9, 0.6 and 1.8 cycles too
/// little over 300 copies. With 200 or more, no chain was off by more than 0.4.
const INSTRUCTIONS_LEAST: usize = 200;
/// Initial bytes of the longest body: inside every op cache and half of a level 1 instruction
/// cache.
const BODY_BYTES: usize = 12 << 10;
/// Most bytes of the longest body after the unit grows.
const BODY_BYTES_MOST: usize = 128 << 10;
/// Initial core cycles of a function's shortest body, and the fewest calls in it. The first calls
/// after other code differ. Eight calls of a hash with a chain of 1 024 cycles took 1 047 cycles
/// each. Later calls took 911, since their last branch was predicted (Zen 5).
const ITERATED_CYCLES: f64 = 8_000.0;
const ITERATIONS_LEAST: usize = 8;
/// Core cycles of the longest body, initially and after the unit grows: well below a scheduler's
/// time slice.
const BODY_CYCLES: f64 = 400_000.0;
const BODY_CYCLES_MOST: f64 = 4_000_000.0;

/// Core cycles of the shortest iteration of a loop. An iteration ends with a group of instructions
/// that is not full, and the next one begins in a new group.
const ITERATION_CYCLES: f64 = 64.0;
/// Most instructions and bytes in the longest iteration of a loop. The cache of decoded
/// instructions holds 1 536 on Haswell to Skylake, 2 048 on Zen and 4 096 or more on later cores.
/// A line of it has code of 32 or 64 bytes, and two long immediates take a line of their own
/// (optimisation manuals of Intel and AMD).
const ITERATION_INSTRUCTIONS: usize = 1024;
const ITERATION_BYTES: usize = 6 << 10;
/// Most taken branches in the longest iteration of a loop, at first and after it grows. More
/// compete for the predictors' fastest entries: a call with its return and a jump took 4.1 cycles
/// up to 8 copies, 5.3 in 32, and 5.8 in 64 (Zen 5).
const ITERATION_BRANCHES: usize = 16;
const ITERATION_BRANCHES_MOST: usize = 256;
/// Initial core cycles by which the longest and the shortest looped body differ: hundreds of steps
/// of any TSC.
const LOOPED_SPAN_CYCLES: f64 = 24_000.0;
/// Fewest iterations where there is a choice. The first one comes from the decoders, and may take
/// twice the time of the others.
const ITERATIONS_LEAST_LOOPED: f64 = 400.0;

impl MeasurementSession<'_> {
    pub(super) fn choose_first_unit(&self, part: &MeasuredSnippet) -> usize {
        if self.is_cold() {
            return 1;
        }
        if let Some(unit) = self.plan.unit {
            return unit;
        }
        if self.loop_length.is_chosen() {
            let by_cycles = (ITERATION_CYCLES / part.guess).ceil() as usize;
            return by_cycles.min(part.most_looped_unit(ITERATION_BRANCHES)).max(1);
        }
        let by_time = (BODY_CYCLES / 4.0 / (part.guess * self.loop_length.iterations() as f64)) as usize;
        let by_count = INSTRUCTIONS_LEAST.div_ceil(part.outline.instructions.max(1));
        if self.uses_iterations() {
            let by_cycles = (ITERATED_CYCLES / part.guess) as usize;
            return by_cycles.min(by_count).max(ITERATIONS_LEAST).min(by_time).max(1);
        }
        let by_memory = match part.outline.memory_accesses {
            0 => 1,
            accesses => unit_holding_copies(MEMORY_ACCESSES_LEAST.div_ceil(accesses))
                .max(part.outline.prepared.div_ceil(accesses)),
        };
        let bytes = 4 * self.bytes_per_repeat(part);
        let (by_bytes, by_bytes_most) = (BODY_BYTES / bytes, BODY_BYTES_MOST / bytes);
        by_count.min(by_bytes).max(by_memory.min(by_bytes_most)).min(by_time).max(1)
    }

    /// Chooses the iterations of a loop around these units, if the measurement is free to.
    pub(super) fn choose_iterations(&mut self, units: &[usize]) {
        if !self.loop_length.is_chosen() {
            return;
        }
        let cycles = self.parts.iter().zip(units).map(|(part, unit)| *unit as f64 * part.guess);
        let (least, most) =
            cycles.fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), unit| (least.min(unit), most.max(unit)));
        let wanted = (LOOPED_SPAN_CYCLES / (3.0 * least)).max(ITERATIONS_LEAST_LOOPED);
        let in_time = BODY_CYCLES / (4.0 * most);
        self.loop_length = LoopLength::Chosen(wanted.min(in_time).max(1.0) as u64);
    }

    /// Bytes that one more repeat adds to a body, at least 1.
    fn bytes_per_repeat(&self, part: &MeasuredSnippet) -> usize {
        if self.uses_iterations() { 1 } else { part.snippet.code().len().max(1) }
    }

    /// Doubles the units of snippets whose bodies may grow, and the iterations of a chosen loop. If
    /// the bodies are only too short for the instrument, iterations alone do. `None` if nothing may
    /// grow.
    pub(super) fn lengthen_bodies(&self, units: &[usize], only_short: bool) -> Option<(Vec<usize>, LoopLength)> {
        if self.plan.unit.is_some() || self.is_cold() {
            return None;
        }
        let iterations = self.loop_length.iterations() as f64;
        let longest = |part: &MeasuredSnippet, unit: usize| 4.0 * unit as f64 * part.guess * iterations;
        let is_chosen = self.loop_length.is_chosen();
        let grow = |(part, unit): (&MeasuredSnippet, &usize)| {
            let fits = match is_chosen {
                true => !only_short && 2 * unit <= part.most_looped_unit(ITERATION_BRANCHES_MOST),
                false => 8 * unit * self.bytes_per_repeat(part) <= BODY_BYTES_MOST,
            };
            if fits && longest(part, 2 * unit) <= BODY_CYCLES_MOST { 2 * unit } else { *unit }
        };
        let longer: Vec<usize> = self.parts.iter().zip(units).map(grow).collect();
        let more_fit = self.parts.iter().zip(&longer).all(|(part, unit)| 2.0 * longest(part, *unit) <= BODY_CYCLES);
        let length = match self.loop_length {
            LoopLength::Chosen(count) if more_fit => LoopLength::Chosen(2 * count),
            length => length,
        };
        (longer != units || length != self.loop_length).then_some((longer, length))
    }
}

impl MeasuredSnippet<'_> {
    /// The largest unit whose longest body fits the cache of decoded instructions, and has at most
    /// this number of taken branches. A quarter of a unit may be added to it.
    fn most_looped_unit(&self, branches: usize) -> usize {
        let in_longest = |most: usize, of_copy: usize| most * 4 / 17 / of_copy.max(1);
        let by_count = in_longest(ITERATION_INSTRUCTIONS, self.outline.instructions);
        let by_bytes = in_longest(ITERATION_BYTES, self.snippet.code().len());
        let by_branches = match self.outline.taken_branches {
            0 => by_count,
            of_copy => in_longest(branches, of_copy),
        };
        by_count.min(by_bytes).min(by_branches).max(1)
    }
}

/// The smallest unit whose bodies hold `least` copies even after they are shortened by a quarter.
fn unit_holding_copies(least: usize) -> usize {
    (4 * least).div_ceil(3)
}
