//! Whether two chains overlap across a number of instructions. It needs neither performance
//! counters nor cache misses.
//!
//! ```text
//!     lfence; first chain; n fillers; second chain             both
//!     lfence; first chain; n fillers                           alone
//!     lfence; first chain; n fillers; lfence; second chain     fenced
//! ```
//!
//! Each instruction of a chain waits for the one before. While the core can hold everything
//! between the chains, it executes both at once, and `both` takes as long as `alone`. With more
//! fillers the second chain begins late: at worst after the end of the first one, as in `fenced`.
//!
//! The overlap is (fenced − both) / (fenced − alone): 1 if the chains run at once, 0 if one runs
//! after the other. It has no unit. All three programs run in the same rounds, which cancels
//! frequency and disturbances.

use super::conditions::RunConditions;
use super::null_number::nan_for_null;
use super::spec::{CHAIN_LINKS, FillerSpec, FirstChain, SECOND_CHAIN_LINK, assemble};
use cyclescope_code::program::{Program, ProgramRecipe};
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::median;
use cyclescope_exec::Executor;
use cyclescope_measure::Plan;
use cyclescope_measure::rounds::{LayoutRounds, RulerRounds};
use cyclescope_measure::ruler::least_unshared_width;
use cyclescope_measure::sibling::{Retries, SiblingPolicy};

/// Executions of a program per call. The first one may have to fetch the code.
pub(super) const OVERLAP_ITERATIONS: u64 = 8;
/// Number of programs per count.
const PROGRAMS_PER_COUNT: usize = 3;
/// While the sibling is busy, more layouts follow, this often in a test: some seconds. On a Zen 4,
/// a sibling that ran another tenant was busy for 3 ms to 4.5 s at a time. A sibling that is nearly
/// always busy has no quieter time.
pub(super) const OVERLAP_SIBLING_POLICY: SiblingPolicy =
    SiblingPolicy { least_share: 0.0, retries: 100, resting_share: 0.9, ..SiblingPolicy::USUAL };

/// The instructions of an overlap experiment.
#[derive(Debug, Clone, Copy)]
pub(super) struct OverlapProbe {
    /// The first chain.
    pub first_chain: FirstChain,
    /// The instructions between the chains.
    pub filler: &'static FillerSpec,
    /// No-operations before the first chain. They shift its links within the groups that a core
    /// allocates at once.
    pub lead_nops: usize,
    /// Other fillers before the counted ones, and their number.
    pub occupied: Option<(&'static FillerSpec, usize)>,
}

/// The overlap at a number of fillers.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct OverlapReading {
    /// The number of fillers.
    pub n: usize,
    /// The overlap: the median over layouts of their median rounds.
    #[serde(deserialize_with = "nan_for_null")]
    pub overlap: f64,
    /// Share of all rounds in which the overlap was at least a half.
    #[serde(deserialize_with = "nan_for_null")]
    pub fast: f64,
}

/// Measures overlaps on a core.
pub(super) trait MeasureOverlaps {
    /// The overlaps at these numbers of fillers, in the same rounds.
    fn measure_overlaps(&mut self, probe: &OverlapProbe, counts: &[usize]) -> Result<Vec<OverlapReading>, RunError>;
}

/// A core that an executor measures.
pub(super) struct MeasuredCore<'a> {
    /// Runs the programs.
    pub executor: &'a mut dyn Executor,
    /// The timing method, and the numbers of layouts and rounds.
    pub plan: &'a Plan,
    /// The source of all randomness.
    pub random: Random,
    /// Whether it has vector registers of 512 bits, and so 32 vector registers.
    pub zmm: bool,
    /// How often more layouts may follow if something else used the core: two threads may own half
    /// of each structure.
    pub retries: Retries,
    /// Background load during the measurement.
    pub conditions: &'a mut RunConditions,
}

impl MeasureOverlaps for MeasuredCore<'_> {
    fn measure_overlaps(&mut self, probe: &OverlapProbe, counts: &[usize]) -> Result<Vec<OverlapReading>, RunError> {
        let programs = counts.iter().flat_map(|n| build_programs(self.plan, probe, *n, self.zmm));
        let rounds = RulerRounds::new(self.plan.clock, self.plan.step)
            .with_programs(programs, true)
            .with_iterations(&[OVERLAP_ITERATIONS]);
        let layouts = self.measure_unshared_layouts(&rounds)?;
        Ok(counts.iter().enumerate().map(|(number, n)| summarize_overlaps(*n, number, &layouts)).collect())
    }
}

impl MeasuredCore<'_> {
    /// The layouts during which nothing else used the core if there are enough, or else all.
    fn measure_unshared_layouts(&mut self, rounds: &RulerRounds) -> Result<Vec<LayoutRounds>, RunError> {
        let known = self.plan.adders.map(least_unshared_width);
        let policy = SiblingPolicy { least: self.plan.layouts, ..OVERLAP_SIBLING_POLICY };
        let width = |layout: &LayoutRounds| {
            layout.read().map_or((f64::NAN, 0.0), |reading| (reading.width, reading.width_error))
        };
        let (mut layouts, mut missing) = (Vec::new(), self.plan.layouts);
        loop {
            let more = rounds.run(self.executor, missing, self.plan.rounds, &mut self.random)?;
            self.conditions.add_layouts(&more, self.plan.rounds);
            layouts.extend(more);
            let all = layouts.len();
            let kept = policy.keep_unshared(layouts, self.conditions.quiet_width(known), width);
            layouts = kept.used;
            missing = self.plan.layouts.saturating_sub(all - kept.shared_count);
            if missing == 0 || !self.retries.retry_if_shared(self.conditions.shared_share(known)) {
                break;
            }
        }
        self.conditions.add_used(&layouts.iter().filter_map(LayoutRounds::read).collect::<Vec<_>>());
        Ok(layouts)
    }
}

fn summarize_overlaps(n: usize, number: usize, layouts: &[LayoutRounds]) -> OverlapReading {
    let (mut medians, mut all): (Vec<f64>, Vec<f64>) = Default::default();
    for layout in layouts {
        let mut overlaps: Vec<f64> =
            layout.further_durations().map(|round| compute_overlap(&round[PROGRAMS_PER_COUNT * number..])).collect();
        overlaps.retain(|overlap| overlap.is_finite());
        if !overlaps.is_empty() {
            all.extend(&overlaps);
            medians.push(median(&mut overlaps));
        }
    }
    let fast = all.iter().filter(|overlap: &&f64| **overlap >= 0.5).count() as f64 / all.len() as f64;
    OverlapReading { n, overlap: if medians.is_empty() { f64::NAN } else { median(&mut medians) }, fast }
}

fn compute_overlap(durations: &[f64]) -> f64 {
    let [both, alone, fenced] = [durations[0], durations[1], durations[2]];
    (fenced - both) / (fenced - alone)
}

/// The programs of a count, in the order of [`compute_overlap`].
pub(super) fn build_programs(plan: &Plan, probe: &OverlapProbe, n: usize, zmm: bool) -> [Program; PROGRAMS_PER_COUNT] {
    let held = fill_registers(zmm);
    build_bodies(probe, n).map(|body| {
        let snippet = Snippet::new(body, assemble(probe.first_chain.init), "");
        let init = [&held, snippet.init()].concat();
        let world = snippet.outline(plan.avx).world;
        ProgramRecipe { world, init: &init, ..ProgramRecipe::with_loop(plan.clock, snippet.code(), 1) }.build()
    })
}

/// Writes each MMX register, and each mask and vector register that programs do not load. Unwritten
/// registers take no room from results, and whether they are unwritten depends on earlier code. On
/// Zen 4, 12 more vector registers and 6 more mask registers were spare after the kernel had not
/// reloaded the state of the process.
fn fill_registers(zmm: bool) -> Vec<u8> {
    let mut text: Vec<String> = (0..8).map(|number| format!("movq mm{number}, rax")).collect();
    text.push("emms".into());
    if zmm {
        text.extend((16..32).map(|number| format!("vmovq xmm{number}, rax")));
        text.extend((0..8).map(|number| format!("kmovw k{number}, eax")));
    }
    text.iter().flat_map(|instruction| assemble(instruction)).collect()
}

/// The code of the three programs.
pub(super) fn build_bodies(probe: &OverlapProbe, n: usize) -> [Vec<u8>; PROGRAMS_PER_COUNT] {
    let mut start = assemble("lfence");
    start.extend(assemble("nop").repeat(probe.lead_nops));
    // Legacy code is slow while upper halves of vector registers are not zero.
    let encoding = usize::from(!probe.filler.required_features.is_empty());
    let (head, tail) = (assemble(probe.first_chain.link[encoding]), assemble(SECOND_CHAIN_LINK[encoding]));
    start.extend(head.repeat(probe.first_chain.link_count));
    for (filler, number) in probe.occupied.into_iter().chain([(probe.filler, n)]) {
        filler.prologue.iter().for_each(|instruction| start.extend(assemble(instruction)));
        append_fillers(&mut start, filler, number);
    }
    let second = tail.repeat(CHAIN_LINKS);
    [[&start[..], &second].concat(), start.clone(), [&start[..], &assemble("lfence"), &second].concat()]
}

fn append_fillers(into: &mut Vec<u8>, filler: &FillerSpec, number: usize) {
    let period: Vec<Vec<u8>> = filler.code.iter().map(|instruction| assemble(instruction)).collect();
    period.iter().cycle().take(number).for_each(|instruction| into.extend(instruction));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::SQRTSD;
    use crate::window::reorder_buffer::NOP;
    use iced_x86::{CpuidFeature, Decoder, DecoderOptions, InstructionInfoFactory, OpAccess, Register};
    use std::collections::HashSet;

    #[test]
    fn programs_differ_in_the_second_chain_and_in_a_fence_before_it() {
        let probe = OverlapProbe { first_chain: SQRTSD, filler: &NOP, lead_nops: 2, occupied: None };
        let (fence, root, other) = ([0x0f, 0xae, 0xe8], [0xf2, 0x0f, 0x51, 0xc0], [0xf2, 0x0f, 0x51, 0xc9]);
        let before = [&fence[..], &[0x90; 2], &root.repeat(CHAIN_LINKS), &[0x90; 7]].concat();
        let second = other.repeat(CHAIN_LINKS);
        let [both, alone, fenced] = build_bodies(&probe, 7);
        assert_eq!(both, [&before[..], &second].concat());
        assert_eq!(alone, before);
        assert_eq!(fenced, [&before[..], &fence, &second].concat());
    }

    #[test]
    fn an_overlap_is_one_during_the_first_chain_and_zero_behind_it() {
        assert_eq!([100.0, 150.0, 200.0].map(|both| compute_overlap(&[both, 100.0, 200.0])), [1.0, 0.5, 0.0]);
    }

    #[test]
    fn occupied_entries_precede_counted_ones() {
        const CARRY: FillerSpec = FillerSpec::new("clc", &["clc"], &[]);
        let probe = OverlapProbe { first_chain: SQRTSD, filler: &NOP, lead_nops: 0, occupied: Some((&CARRY, 3)) };
        let [both, ..] = build_bodies(&probe, 2);
        let root = [0xf2, 0x0f, 0x51, 0xc0];
        let begin = [&[0x0f, 0xae, 0xe8][..], &root.repeat(CHAIN_LINKS), &[0xf8; 3], &[0x90; 2]].concat();
        assert!(both.starts_with(&begin), "{both:02x?}");
    }

    #[test]
    fn a_busy_sibling_is_waited_for_unless_it_never_rests() {
        let waits = [0.6, 0.95].map(|of_all| OVERLAP_SIBLING_POLICY.start_retries().retry_if_shared(of_all));
        assert_eq!(waits, [true, false]);
    }

    #[test]
    fn chains_have_the_encoding_of_their_fillers() {
        const WIDE: FillerSpec = FillerSpec {
            required_features: &[CpuidFeature::AVX],
            ..FillerSpec::new("wide", &["vpaddd ymm2, ymm3, ymm4"], &[])
        };
        for (filler, encoding) in [(&NOP, 0), (&WIDE, 1)] {
            let probe = OverlapProbe { first_chain: SQRTSD, filler, lead_nops: 0, occupied: None };
            let [both, ..] = build_bodies(&probe, 1);
            let begin = [assemble("lfence"), assemble(SQRTSD.link[encoding]).repeat(CHAIN_LINKS)].concat();
            assert!(
                both.starts_with(&begin) && both.ends_with(&assemble(SECOND_CHAIN_LINK[encoding])),
                "{}",
                filler.name
            );
        }
    }

    #[test]
    fn registers_that_programs_do_not_load_are_written() {
        let probe = OverlapProbe { first_chain: SQRTSD, filler: &NOP, lead_nops: 0, occupied: None };
        for (zmm, number) in [(true, 8 + 8 + 16), (false, 8)] {
            for program in build_programs(&Plan::simulated(), &probe, 1, zmm) {
                assert_eq!(written(program.init()).len(), number);
            }
        }
    }

    /// The MMX and mask registers that code writes, and vector registers beyond the sixteenth.
    fn written(init: &[u8]) -> HashSet<Register> {
        let mut factory = InstructionInfoFactory::new();
        let mut written = HashSet::new();
        for instruction in Decoder::new(64, init, DecoderOptions::NONE).iter() {
            let used = factory.info(&instruction).used_registers().iter();
            written.extend(used.filter(|used| used.access() == OpAccess::Write).map(|used| used.register()));
        }
        written.retain(|register| {
            register.is_mm() || register.is_k() || register.is_vector_register() && register.number() >= 16
        });
        written
    }
}
