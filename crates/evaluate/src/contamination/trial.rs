//! The programs and contrasts that test one fault of one method.

use super::fault::ContaminationFault;
use super::neighbour_code::{CodePiece, LEADING_CHAIN, NeighbourCode};
use super::reference_reading::ReferenceReading;
use crate::TestedClock;
use cyclescope_code::asm::CodeMode;
use cyclescope_code::clock::{Clock, ClockStep};
use cyclescope_code::program::{EntryState, Program, ProgramRecipe, VectorSetup};
use cyclescope_measure::contrast::Contrast;

/// `lfence`: all earlier instructions have executed, no later one has begun.
const LFENCE: &[u8] = &[0x0f, 0xae, 0xe8];
/// `mfence`: pending stores do not reach the next program of the round.
const MFENCE: &[u8] = &[0x0f, 0xae, 0xf0];

/// `mfence; lfence` first: stores of the program's caller become globally visible, so that the end
/// does not wait for them.
///
/// With a store to an uncached line before each call, MFENCE added 403 core cycles after 6 square
/// roots and 104 after 24. With the store buffer drained first, it added 56.1 to 57.4 after 1 to 54
/// (Zen 5, family 26, model 2, in a guest of KVM).
const DRAIN_STORES: &[u8] = &[0x0f, 0xae, 0xf0, 0x0f, 0xae, 0xe8];

/// Programs that run together with the ruler, and the contrasts between them.
pub(super) struct ContaminationTrial {
    /// The method that reads the ruler. It is fenced, because the tested method may miss the end of
    /// a chain.
    pub(super) ruler: Clock,
    pub(super) programs: Vec<Program>,
    /// Costs of contaminations: sums of programs' times.
    pub(super) costs: Vec<Contrast>,
    /// Cost of the neighbouring code; `None` if not needed.
    pub(super) size: Option<Contrast>,
    /// The end's own time minus the time of the code before the part that it may miss; `None` if
    /// not needed.
    pub(super) overlap: Option<Contrast>,
}

/// Code around and between two readings.
#[derive(Clone, Copy, Default)]
struct SurroundingCode<'a> {
    leading: &'a [u8],
    body: &'a [u8],
    following: &'a [u8],
}

/// Builds the programs of a trial.
struct TrialBuilder<'a> {
    clock: &'a Clock,
    mode: CodeMode,
    reference: ReferenceReading,
    programs: Vec<Program>,
}

impl<'a> TrialBuilder<'a> {
    fn new(tested: &'a TestedClock) -> TrialBuilder<'a> {
        let TestedClock { clock, mode, .. } = *tested;
        TrialBuilder { clock, mode, reference: ReferenceReading::from_clock(clock), programs: Vec::new() }
    }

    /// Adds the program with these sides and returns its number.
    fn add_program(
        &mut self,
        start: &'static [ClockStep],
        end: &'static [ClockStep],
        around: SurroundingCode,
    ) -> usize {
        let clock = Clock { start, end, ..*self.clock };
        let recipe = ProgramRecipe {
            // Chains of square roots need numeric values in vector registers.
            world: EntryState { mode: self.mode, vectors: VectorSetup::Legacy, ..EntryState::default() },
            init: &[DRAIN_STORES, around.leading].concat(),
            snippet: around.body,
            copies: usize::from(!around.body.is_empty()),
            following: around.following,
            ..ProgramRecipe::empty(&clock)
        };
        self.programs.push(recipe.build());
        self.programs.len() - 1
    }

    /// Adds the programs for the cost of some code between fenced readings.
    fn add_size_contrast(&mut self, code: CodePiece) -> Contrast {
        let fenced = self.reference.fenced;
        let with = self.add_program(
            fenced,
            fenced,
            SurroundingCode { body: &code.assemble(self.mode), ..SurroundingCode::default() },
        );
        let without = self.add_program(fenced, fenced, SurroundingCode::default());
        difference_contrast(with, without)
    }

    fn build_trial(
        self,
        costs: Vec<Contrast>,
        size: Option<Contrast>,
        overlap: Option<Contrast>,
    ) -> ContaminationTrial {
        let fenced = self.reference.fenced;
        let ruler = Clock { start: fenced, end: fenced, ..*self.clock };
        ContaminationTrial { ruler, programs: self.programs, costs, size, overlap }
    }
}

fn difference_contrast(with: usize, without: usize) -> Contrast {
    Contrast::slope_between([without, with], 1.0)
}

impl ContaminationTrial {
    /// The trial of one fault with one kind of neighbouring code.
    pub(super) fn new(
        tested: &TestedClock,
        fault: ContaminationFault,
        neighbour: &NeighbourCode,
    ) -> ContaminationTrial {
        let mut bench = TrialBuilder::new(tested);
        let (cost, size) = bench.add_fault_contrast(fault, neighbour, &[]);
        bench.complete_trial(fault, neighbour, vec![cost], size)
    }

    /// The trial that confirms a breach if each of its contrasts shows it:
    ///
    /// - the cost next to this neighbour;
    /// - the same minus the cost with the missing fence between method and neighbour (leading and
    ///   following code have that cost already);
    /// - for an unfinished body, the cost with twice the neighbour, and its increase. The hidden
    ///   time of a fence after a body does not grow with the body.
    pub(super) fn confirming_breach(
        tested: &TestedClock,
        fault: ContaminationFault,
        neighbour: &NeighbourCode,
    ) -> ContaminationTrial {
        let mut bench = TrialBuilder::new(tested);
        let (cost, size) = bench.add_fault_contrast(fault, neighbour, &[]);
        let mut costs = vec![cost.clone()];
        if let Some(fence) = find_missing_fence(fault) {
            let (fenced, _) = bench.add_fault_contrast(fault, neighbour, fence);
            costs.push(cost.clone().minus(&fenced));
        }
        if fault == ContaminationFault::BodyUnfinished {
            let longer = NeighbourCode { code: neighbour.code.with_double_copies(), ..*neighbour };
            let (more, _) = bench.add_fault_contrast(fault, &longer, &[]);
            costs.extend([more.clone(), more.minus(&cost)]);
        }
        bench.complete_trial(fault, neighbour, costs, size)
    }

    /// The trial that compares several kinds of following code.
    pub(super) fn comparing_following(tested: &TestedClock, candidates: &[NeighbourCode]) -> ContaminationTrial {
        let mut bench = TrialBuilder::new(tested);
        let costs = candidates.iter().map(|candidate| contrast_following_in_the_way(&mut bench, candidate)).collect();
        bench.build_trial(costs, None, None)
    }
}

/// Whether two methods have the same trials for a fault: they differ only in the side that the
/// fault does not concern.
pub(super) fn has_same_trials(one: &Clock, other: &Clock, fault: ContaminationFault) -> bool {
    let same_side = if fault.is_of_start() { one.start == other.start } else { one.end == other.end };
    same_side && one.counts == other.counts && ReferenceReading::from_clock(one) == ReferenceReading::from_clock(other)
}

/// The fence that excludes the fault when placed between neighbour and method; `None` if the cost
/// is already the difference to such a fence.
fn find_missing_fence(fault: ContaminationFault) -> Option<&'static [u8]> {
    match fault {
        ContaminationFault::LeadingUnfinished | ContaminationFault::FollowingInTheWay => None,
        ContaminationFault::BodyStartedEarly | ContaminationFault::BodyUnfinished => Some(LFENCE),
        ContaminationFault::StoresNotDrained => Some(DRAIN_STORES),
    }
}

impl TrialBuilder<'_> {
    /// Adds the contrast for the cost of a fault. The bytes `between` separate neighbour and
    /// method. Also returns the size of the neighbour.
    fn add_fault_contrast(
        &mut self,
        fault: ContaminationFault,
        neighbour: &NeighbourCode,
        between: &[u8],
    ) -> (Contrast, Contrast) {
        let ReferenceReading { fenced, draining } = self.reference;
        match fault {
            ContaminationFault::LeadingUnfinished => {
                (contrast_leading_unfinished(self, neighbour), self.add_size_contrast(neighbour.code))
            }
            ContaminationFault::BodyStartedEarly => contrast_body_started_early(self, neighbour, between),
            ContaminationFault::BodyUnfinished => contrast_end_too_early(self, neighbour, between, fenced),
            ContaminationFault::FollowingInTheWay => {
                (contrast_following_in_the_way(self, neighbour), self.add_size_contrast(neighbour.code))
            }
            ContaminationFault::StoresNotDrained => contrast_end_too_early(self, neighbour, between, draining),
        }
    }

    fn complete_trial(
        mut self,
        fault: ContaminationFault,
        neighbour: &NeighbourCode,
        costs: Vec<Contrast>,
        size: Contrast,
    ) -> ContaminationTrial {
        let overlap = (fault == ContaminationFault::BodyUnfinished).then(|| contrast_overlap(&mut self, neighbour));
        self.build_trial(costs, Some(size), overlap)
    }
}

/// The leading code with a fence before it or after it. Both programs are equally long.
fn contrast_leading_unfinished(bench: &mut TrialBuilder, neighbour: &NeighbourCode) -> Contrast {
    let (start, fenced) = (bench.clock.start, bench.reference.fenced);
    let code = neighbour.code.assemble(bench.mode);
    let [unfinished, done] = [[LFENCE, &code], [&code, LFENCE]].map(|parts| {
        let leading = parts.concat();
        bench.add_program(start, fenced, SurroundingCode { leading: &leading, ..SurroundingCode::default() })
    });
    difference_contrast(unfinished, done)
}

/// The body after leading code, with the method's start and with a fenced one.
fn contrast_body_started_early(
    bench: &mut TrialBuilder,
    neighbour: &NeighbourCode,
    between: &[u8],
) -> (Contrast, Contrast) {
    let fenced = bench.reference.fenced;
    let (leading, body) =
        (LEADING_CHAIN.assemble(bench.mode), [between, &neighbour.code.assemble(bench.mode)].concat());
    let [seems, truly] = [bench.clock.start, fenced].map(|start| {
        let around = SurroundingCode { leading: &leading, ..SurroundingCode::default() };
        let with = bench.add_program(start, fenced, SurroundingCode { body: &body, ..around });
        let without = bench.add_program(start, fenced, SurroundingCode { body: between, ..around });
        difference_contrast(with, without)
    });
    (seems.minus(&truly), truly)
}

/// The last part of a body before the method's end, and before an end that waits for it.
fn contrast_end_too_early(
    bench: &mut TrialBuilder,
    neighbour: &NeighbourCode,
    between: &[u8],
    waiting: &'static [ClockStep],
) -> (Contrast, Contrast) {
    let first = neighbour.body.assemble(bench.mode);
    let body = [&first[..], &neighbour.code.assemble(bench.mode), between].concat();
    let first = [&first[..], between].concat();
    let fenced = bench.reference.fenced;
    let [seems, truly] = [bench.clock.end, waiting].map(|end| {
        let around = SurroundingCode { following: MFENCE, ..SurroundingCode::default() };
        let with = bench.add_program(fenced, end, SurroundingCode { body: &body, ..around });
        let without = bench.add_program(fenced, end, SurroundingCode { body: &first, ..around });
        difference_contrast(with, without)
    });
    (seems.minus(&truly), truly)
}

/// The time of the method's end minus the time of a body's first part, each relative to a fenced
/// end.
fn contrast_overlap(bench: &mut TrialBuilder, neighbour: &NeighbourCode) -> Contrast {
    let (fenced, end) = (bench.reference.fenced, bench.clock.end);
    let alone = bench.add_program(fenced, end, SurroundingCode { following: MFENCE, ..SurroundingCode::default() });
    let first = neighbour.body.assemble(bench.mode);
    let first = bench.add_program(
        fenced,
        fenced,
        SurroundingCode { body: &first, following: MFENCE, ..SurroundingCode::default() },
    );
    difference_contrast(alone, first)
}

/// Following code that begins at once or after a fence. Both programs are equally long.
fn contrast_following_in_the_way(bench: &mut TrialBuilder, neighbour: &NeighbourCode) -> Contrast {
    let (fenced, end) = (bench.reference.fenced, bench.clock.end);
    let (body, code) = (neighbour.body.assemble(bench.mode), neighbour.code.assemble(bench.mode));
    let [at_once, held_back] = [[&code, LFENCE], [LFENCE, &code]].map(|parts| {
        let following = parts.concat();
        bench.add_program(
            fenced,
            end,
            SurroundingCode { body: &body, following: &following, ..SurroundingCode::default() },
        )
    });
    difference_contrast(at_once, held_back)
}
