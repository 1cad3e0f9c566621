//! The calls of a round: the ruler, then each program between two probes and two sentinels.

use cyclescope_code::program::Program;
use cyclescope_exec::ProgramCall;
use cyclescope_measure::ruler::{column, sentinel_loops};
use cyclescope_measure::schedule;

/// A program to time.
#[derive(Debug, Clone)]
pub(crate) struct LoopedProgram {
    /// The program, looped.
    pub program: Program,
    /// Instances in its body.
    pub copies: usize,
    /// Iterations of its shortest call.
    pub loops: u64,
}

/// Parameters of the calls in one layout's rounds.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoundCalls {
    /// Iterations of the ruler's chains.
    pub(super) loops: u64,
    /// Resolution of the clock in raw units.
    pub(super) step: f64,
    /// The size of the wake-up check among the calls, if any: 0 has 256 bits, 1 has 512.
    pub(super) wake_up: Option<usize>,
    /// See [`TimingSurroundings::emptied`](super::TimingSurroundings::emptied).
    pub(super) emptied: bool,
}

/// Lengths of each program's calls, as multiples of its iterations.
pub(super) const CALL_LENGTHS: [u64; 3] = [1, 2, 4];
/// Calls of the ruler and the width sentinel at the start of a round. The sentinel gets its untimed call here.
pub(super) const RULER_CALLS: usize = column::BRIEF;
/// Iterations of the ruler's long loop per iteration of a probe.
const PROBE_DIVISOR: u64 = 3;
/// Iterations of the two calls of the wake-up check: one wakes the units, the other checks them.
pub(super) const WAKE_UP_LOOPS: [u64; 2] = [200, 50];

impl RoundCalls {
    /// The calls. A layout with fewer programs than `most` gets further calls of the
    /// ruler, because all layouts of a batch have as many calls.
    pub(super) fn list(self, programs: &[LoopedProgram], most: usize) -> Vec<ProgramCall> {
        let RoundCalls { loops, step, wake_up, emptied } = self;
        let ruler = schedule::ruler_calls::<RULER_CALLS>(loops, sentinel_loops(step));
        let sentinel = ruler[column::BRIEF_SENTINEL];
        let probe = ProgramCall { place: column::IMUL_LONG, loop_count: count_probe_loops(loops) };
        // Wide vector units slept while the ruler ran.
        let wake_up_calls: Vec<ProgramCall> = match wake_up.is_some() {
            true => WAKE_UP_LOOPS.map(|loop_count| ProgramCall { place: RULER_CALLS, loop_count }).to_vec(),
            false => Vec::new(),
        };
        let first = RULER_CALLS + usize::from(wake_up.is_some());
        let mut calls = ruler.to_vec();
        calls.extend(&wake_up_calls);
        // A sibling may be busy for a part of the round, so each program is between two sentinels.
        calls.extend([probe, sentinel]);
        let start = calls.len();
        for (index, timed) in programs.iter().enumerate() {
            // An untimed call: other programs have trained the branch predictors since the previous
            // round.
            calls.push(ProgramCall { place: first + index, loop_count: timed.loops });
            for length in CALL_LENGTHS {
                calls.push(ProgramCall { place: first + index, loop_count: timed.loops * length });
            }
            calls.extend(emptied.then_some(probe));
            calls.extend([probe, sentinel]);
        }
        calls.resize(start + most * count_program_calls(emptied), ProgramCall { loop_count: 1, ..probe });
        if emptied {
            // The ruler of the next round gets an untimed call too.
            calls.extend(ruler);
        }
        calls
    }
}

/// Calls of a program, its probe and its sentinel in a round.
pub(super) fn count_program_calls(emptied: bool) -> usize {
    1 + CALL_LENGTHS.len() + 2 + usize::from(emptied)
}

/// Iterations of a probe.
pub(super) fn count_probe_loops(loops: u64) -> u64 {
    loops.div_ceil(PROBE_DIVISOR)
}
