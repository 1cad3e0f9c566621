//! One fault of one method as programs beside the ruler, and how they are weighed.

use super::fault::Fault;
use super::neighbours::{LEADING, Neighbour, Piece};
use super::sides::Reference;
use cyclescope_code::clock::{Clock, Step};
use cyclescope_code::program::{Program, Recipe, Vectors, World};
use cyclescope_measure::contrast::Contrast;

/// `lfence`: all earlier instructions have executed, no later one has begun.
const LFENCE: &[u8] = &[0x0f, 0xae, 0xe8];
/// `mfence`: what stores are left does not meet the next program of the round.
const MFENCE: &[u8] = &[0x0f, 0xae, 0xf0];

/// `mfence; lfence` before all else: stores that the program's caller left in the store buffer are globally visible, so
/// that an end which waits for stores does not wait for those. With a store to an uncached line before each call MFENCE
/// added 403 core cycles behind 6 square roots and 104 behind 24; with the store buffer drained first it added 56.1 to
/// 57.4 behind 1 to 54 (Zen 5, family 26, model 2, in a guest of KVM).
const DRAINED: &[u8] = &[0x0f, 0xae, 0xf0, 0x0f, 0xae, 0xe8];

/// Programs that run beside the ruler, and what they are for.
pub(super) struct Trial {
    /// The pair that reads the ruler: a fenced one, for the method under trial may not see the end of a chain.
    pub(super) ruler: Clock,
    pub(super) programs: Vec<Program>,
    /// What contaminations cost: sums of programs' times.
    pub(super) costs: Vec<Contrast>,
    /// What the neighbour takes; none where nobody asks.
    pub(super) size: Option<Contrast>,
    /// By how much the end's own time exceeds that of the code before what it may miss; none where nobody asks.
    pub(super) overlap: Option<Contrast>,
}

/// Code around and between two readings.
#[derive(Clone, Copy, Default)]
struct Around<'a> {
    leading: &'a [u8],
    body: &'a [u8],
    following: &'a [u8],
}

/// Builds the programs of a trial.
struct Bench<'a> {
    clock: &'a Clock,
    reference: Reference,
    programs: Vec<Program>,
}

impl<'a> Bench<'a> {
    fn new(clock: &'a Clock) -> Bench<'a> {
        Bench { clock, reference: Reference::of(clock), programs: Vec::new() }
    }

    /// Adds the program with these sides; returns its number.
    fn add(&mut self, start: &'static [Step], end: &'static [Step], around: Around) -> usize {
        let clock = Clock { start, end, ..*self.clock };
        let recipe = Recipe {
            // Chains of square roots need numbers in vector registers.
            world: World { vectors: Vectors::Legacy, ..World::default() },
            init: &[DRAINED, around.leading].concat(),
            snippet: around.body,
            copies: usize::from(!around.body.is_empty()),
            following: around.following,
            ..Recipe::empty(&clock)
        };
        self.programs.push(recipe.build());
        self.programs.len() - 1
    }

    /// What some code takes between fenced readings.
    fn size(&mut self, code: Piece) -> Contrast {
        let fenced = self.reference.fenced;
        let with = self.add(fenced, fenced, Around { body: &code.code(), ..Around::default() });
        let without = self.add(fenced, fenced, Around::default());
        difference(with, without)
    }

    fn trial(self, costs: Vec<Contrast>, size: Option<Contrast>, overlap: Option<Contrast>) -> Trial {
        let fenced = self.reference.fenced;
        let ruler = Clock { start: fenced, end: fenced, ..*self.clock };
        Trial { ruler, programs: self.programs, costs, size, overlap }
    }
}

fn difference(with: usize, without: usize) -> Contrast {
    Contrast::slope([without, with], 1.0)
}

impl Trial {
    /// The trial of one fault beside one neighbour.
    pub(super) fn new(clock: &Clock, fault: Fault, neighbour: &Neighbour) -> Trial {
        let mut bench = Bench::new(clock);
        let (cost, size) = bench.cost(fault, neighbour, &[]);
        bench.complete(fault, neighbour, vec![cost], size)
    }

    /// The trial that speaks for a breach where each of its contrasts shows it: beside this neighbour, and
    ///
    /// - less what is still to be seen where a fence that the method should have stands between it and the neighbour
    ///   (for leading and following code that is the cost already);
    /// - of a body that is unfinished, beside twice the neighbour, and by how much that is more. What a fence hides of
    ///   its own time behind a body does not grow with the body.
    pub(super) fn against(clock: &Clock, fault: Fault, neighbour: &Neighbour) -> Trial {
        let mut bench = Bench::new(clock);
        let (cost, size) = bench.cost(fault, neighbour, &[]);
        let mut costs = vec![cost.clone()];
        if let Some(fence) = missing_fence(fault) {
            let (fenced, _) = bench.cost(fault, neighbour, fence);
            costs.push(cost.clone().less(&fenced));
        }
        if fault == Fault::BodyUnfinished {
            let longer = Neighbour { code: neighbour.code.twice(), ..*neighbour };
            let (more, _) = bench.cost(fault, &longer, &[]);
            costs.extend([more.clone(), more.less(&cost)]);
        }
        bench.complete(fault, neighbour, costs, size)
    }

    /// The trial of several kinds of following code, which only compares them.
    pub(super) fn of_following(clock: &Clock, candidates: &[Neighbour]) -> Trial {
        let mut bench = Bench::new(clock);
        let costs = candidates.iter().map(|candidate| following_in_the_way(&mut bench, candidate)).collect();
        bench.trial(costs, None, None)
    }
}

/// Whether the trials of a fault are the same for two methods: they differ in nothing but the side of the pair that the fault
/// does not concern.
pub(super) fn is_alike(one: &Clock, other: &Clock, fault: Fault) -> bool {
    let same_side = if fault.is_of_start() { one.start == other.start } else { one.end == other.end };
    same_side && one.counts == other.counts && Reference::of(one) == Reference::of(other)
}

/// The fence between a neighbour and the side of a method that lets nothing of it through; none where the cost of the
/// fault is the difference to such a fence.
fn missing_fence(fault: Fault) -> Option<&'static [u8]> {
    match fault {
        Fault::LeadingUnfinished | Fault::FollowingInTheWay => None,
        Fault::BodyStartedEarly | Fault::BodyUnfinished => Some(LFENCE),
        Fault::StoresNotDrained => Some(DRAINED),
    }
}

impl Bench<'_> {
    /// What a fault costs beside a neighbour, with these bytes between it and the method, and the size of the neighbour.
    fn cost(&mut self, fault: Fault, neighbour: &Neighbour, between: &[u8]) -> (Contrast, Contrast) {
        let Reference { fenced, draining } = self.reference;
        match fault {
            Fault::LeadingUnfinished => (leading_unfinished(self, neighbour), self.size(neighbour.code)),
            Fault::BodyStartedEarly => body_started_early(self, neighbour, between),
            Fault::BodyUnfinished => end_too_early(self, neighbour, between, fenced),
            Fault::FollowingInTheWay => (following_in_the_way(self, neighbour), self.size(neighbour.code)),
            Fault::StoresNotDrained => end_too_early(self, neighbour, between, draining),
        }
    }

    fn complete(
        mut self,
        fault: Fault,
        neighbour: &Neighbour,
        costs: Vec<Contrast>,
        size: Contrast,
    ) -> Trial {
        let overlap = (fault == Fault::BodyUnfinished).then(|| overlap(&mut self, neighbour));
        self.trial(costs, Some(size), overlap)
    }
}

/// The leading code with a fence before it, or behind: equally long.
fn leading_unfinished(bench: &mut Bench, neighbour: &Neighbour) -> Contrast {
    let (start, fenced) = (bench.clock.start, bench.reference.fenced);
    let code = neighbour.code.code();
    let [unfinished, done] = [[LFENCE, &code], [&code, LFENCE]].map(|parts| {
        let leading = parts.concat();
        bench.add(start, fenced, Around { leading: &leading, ..Around::default() })
    });
    difference(unfinished, done)
}

/// The body behind leading code, with the method's start and with a fenced one.
fn body_started_early(bench: &mut Bench, neighbour: &Neighbour, between: &[u8]) -> (Contrast, Contrast) {
    let fenced = bench.reference.fenced;
    let (leading, body) = (LEADING.code(), [between, &neighbour.code.code()].concat());
    let [seems, truly] = [bench.clock.start, fenced].map(|start| {
        let around = Around { leading: &leading, ..Around::default() };
        let with = bench.add(start, fenced, Around { body: &body, ..around });
        let without = bench.add(start, fenced, Around { body: between, ..around });
        difference(with, without)
    });
    (seems.less(&truly), truly)
}

/// The last part of a body before the method's end, and before one that waits for it.
fn end_too_early(
    bench: &mut Bench,
    neighbour: &Neighbour,
    between: &[u8],
    waiting: &'static [Step],
) -> (Contrast, Contrast) {
    let first = neighbour.body.code();
    let body = [&first[..], &neighbour.code.code(), between].concat();
    let first = [&first[..], between].concat();
    let fenced = bench.reference.fenced;
    let [seems, truly] = [bench.clock.end, waiting].map(|end| {
        let around = Around { following: MFENCE, ..Around::default() };
        let with = bench.add(fenced, end, Around { body: &body, ..around });
        let without = bench.add(fenced, end, Around { body: &first, ..around });
        difference(with, without)
    });
    (seems.less(&truly), truly)
}

/// What the method's end takes on its own, less the first part of a body: both beside what a fenced end takes.
fn overlap(bench: &mut Bench, neighbour: &Neighbour) -> Contrast {
    let (fenced, end) = (bench.reference.fenced, bench.clock.end);
    let alone = bench.add(fenced, end, Around { following: MFENCE, ..Around::default() });
    let first = neighbour.body.code();
    let first = bench.add(fenced, fenced, Around { body: &first, following: MFENCE, ..Around::default() });
    difference(alone, first)
}

/// Following code that begins at once, or behind a fence: equally long.
fn following_in_the_way(bench: &mut Bench, neighbour: &Neighbour) -> Contrast {
    let (fenced, end) = (bench.reference.fenced, bench.clock.end);
    let (body, code) = (neighbour.body.code(), neighbour.code.code());
    let [at_once, held_back] = [[&code, LFENCE], [LFENCE, &code]].map(|parts| {
        let following = parts.concat();
        bench.add(fenced, end, Around { body: &body, following: &following, ..Around::default() })
    });
    difference(at_once, held_back)
}
