//! Comparisons on a simulated machine whose truth is known: how often they raise false alarms, and
//! what they find.

use super::{ChangeVerdict, PairedComparison, ProgramRanking, RankingOutcome, SAME_WITHIN};
use cyclescope_core::random::{Random, mix_seeds};
use cyclescope_core::statistics::quantiles;

/// Properties of a program that noise acts on.
#[derive(Debug, Clone, Copy)]
struct SimulatedProgram {
    /// Milliseconds per run.
    run: f64,
    /// Number of samples with rulers that it measures itself. With one sample, the system measures
    /// the CPU time, including that of the program's start.
    samples: usize,
    /// Standard deviation over layouts, as a share.
    layout: f64,
    /// Extra share of another mode of a layout, and the share of runs in it.
    mode: [f64; 2],
    /// Factor on its time with a busy sibling.
    beside: f64,
    /// Milliseconds added after another program had the CPU: its caches are cold.
    cold: f64,
}

/// Twenty kinds: ten programs of 1 to 10 ms with measured CPU time, and ten benchmarks with 16
/// samples per run. They range from undisturbed ones to those that layouts change by some per cent
/// and a busy sibling by a half.
fn kinds() -> Vec<SimulatedProgram> {
    let kind = |number: usize| {
        let part = (number % 10) as f64 / 9.0;
        let other = (number * 7 % 10) as f64 / 9.0;
        let samples = if number < 10 { 1 } else { 16 };
        SimulatedProgram {
            run: if samples == 1 { 10f64.powf(other) } else { 16.0 * 0.1 * 5f64.powf(other) },
            samples,
            layout: 0.0005 * 12f64.powf(part),
            mode: if number % 4 == 3 { [0.02, 0.3] } else { [0.0, 0.0] },
            beside: 1.02 + if samples == 1 { 0.1 } else { 0.5 } * part,
            cold: 0.02 * part,
        }
    };
    (0..20).map(kind).collect()
}

/// Long-running and much disturbed programs: one per cent can't be detected in ten seconds.
fn hard() -> Vec<SimulatedProgram> {
    let kind = |run| SimulatedProgram { run, samples: 1, layout: 0.01, mode: [0.05, 0.5], beside: 1.5, cold: 0.05 };
    [20.0, 50.0, 200.0, 1000.0].map(kind).to_vec()
}

/// A machine whose core clock moves. Another tenant uses the sibling a fifth of the time. There are
/// interrupts and, if `busy`, a program that takes every second slice of the CPU.
struct NoisyMachine {
    random: Random,
    busy: bool,
    /// Milliseconds until the sibling turns from busy to idle or back.
    left: f64,
    sibling: bool,
    /// The core's clock, relative.
    clock: f64,
    /// Milliseconds since the start.
    now: f64,
}

/// Milliseconds to start a program.
const START: f64 = 0.5;
/// Mean milliseconds for which the sibling is busy, and for which it is idle.
const SPELLS: [f64; 2] = [10.0, 40.0];
/// Milliseconds per slice of the CPU.
const SLICE: f64 = 4.0;

impl NoisyMachine {
    fn new(seed: u64, busy: bool) -> NoisyMachine {
        NoisyMachine { random: Random::new(seed), busy, left: 0.0, sibling: true, clock: 1.0, now: 0.0 }
    }

    /// Reads the ruler: nearly the relative clock.
    fn ruler(&mut self) -> f64 {
        self.now += 0.2;
        self.clock * (1.0 + 0.0007 * self.random.normal())
    }

    /// The CPU time of work that takes `work` milliseconds at a clock of 1.
    fn work(&mut self, mut work: f64, kind: &SimulatedProgram) -> f64 {
        let mut took = 0.0;
        while work > 0.0 {
            if self.left <= 0.0 {
                self.sibling = !self.sibling;
                self.left = SPELLS[usize::from(!self.sibling)] * self.random.exponential();
            }
            // A random walk pulled back to 1: a tenth of a per cent in 4 ms, half a per cent in the
            // long run.
            self.clock += 0.02 * (1.0 - self.clock) + 0.001 * self.random.normal();
            let speed = self.clock / if self.sibling { kind.beside } else { 1.0 };
            let time = (work / speed).min(self.left.max(0.01)).min(SLICE);
            work -= time * speed;
            self.left -= time;
            // 250 interrupts per second, 4 microseconds each.
            let interrupted = if self.random.happens(0.25 * time) { 0.004 * self.random.exponential() } else { 0.0 };
            let cold = if self.busy && time > 1.0 { kind.cold * self.random.exponential() } else { 0.0 };
            took += time + interrupted + cold;
            self.now += time * if self.busy { 2.0 } else { 1.0 };
        }
        took
    }

    /// Core cycles of a run of a program slowed down by the share `more`.
    fn run(&mut self, kind: &SimulatedProgram, more: f64) -> f64 {
        let layout = (kind.layout * self.random.normal()).exp();
        let mode = if self.random.happens(kind.mode[1]) { 1.0 + kind.mode[0] } else { 1.0 };
        let work = kind.run * layout * mode * (1.0 + more) / kind.samples as f64;
        let start = START * (1.0 + 0.05 * self.random.exponential()) * (1.0 + more);
        if kind.samples > 1 {
            self.work(start, kind);
            let mut samples: Vec<f64> = (0..kind.samples).map(|_| self.sample(work, kind)).collect();
            return quantiles(&mut samples, [0.25])[0];
        }
        // The system reports whole microseconds.
        (self.sample(start + work, kind) * 1000.0).round()
    }

    /// Work between two rulers.
    fn sample(&mut self, work: f64, kind: &SimulatedProgram) -> f64 {
        let before = self.ruler();
        let took = self.work(work, kind);
        took * (before + self.ruler()) / 2.0
    }

    /// Compares a program with a copy slowed down by the share `more`, within ten seconds.
    fn compare(&mut self, kind: &SimulatedProgram, more: f64) -> ChangeVerdict {
        let mut comparison = PairedComparison::new(SAME_WITHIN);
        let end = self.now + 10_000.0;
        while !comparison.is_decided() && self.now < end {
            let first = self.random.happens(0.5);
            let [one, other] = if first { [0.0, more] } else { [more, 0.0] }.map(|more| self.run(kind, more));
            let [old, new] = if first { [one, other] } else { [other, one] };
            comparison.add_pair(old, new);
        }
        comparison.outcome().verdict
    }
}

impl NoisyMachine {
    /// Ranks copies of a program, each slowed down by a share, within five seconds for each.
    fn rank(&mut self, kind: &SimulatedProgram, slowed: &[f64]) -> RankingOutcome {
        let mut ranking = ProgramRanking::new(slowed.len(), SAME_WITHIN);
        let end = self.now + 5_000.0 * slowed.len() as f64;
        let mut order: Vec<usize> = (0..slowed.len()).collect();
        while ranking.open_pairs() > 0 && self.now < end {
            self.random.shuffle(&mut order);
            let mut times = vec![None; slowed.len()];
            order.iter().for_each(|program| times[*program] = Some(self.run(kind, slowed[*program])));
            ranking.add_round(&times);
        }
        ranking.outcome(|_, outcome| outcome)
    }
}

/// The ranks in many rankings of programs that are slowed down by these shares.
fn rankings(kinds: &[SimulatedProgram], rankings: usize, slowed: &[f64]) -> Vec<Vec<usize>> {
    let one = |part: usize| -> Vec<Vec<usize>> {
        let numbers = (part..rankings).step_by(2);
        let ranks = numbers.map(|number| {
            let (kind, busy) = (number % kinds.len(), number / kinds.len() % 2 == 1);
            let mut machine = NoisyMachine::new(mix_seeds(slowed.len() as u64, number as u64), busy);
            machine.rank(&kinds[kind], slowed).ranks().into_iter().flatten().collect()
        });
        ranks.collect()
    };
    std::thread::scope(|scope| {
        [scope.spawn(|| one(0)), scope.spawn(|| one(1))].into_iter().flat_map(|part| part.join().unwrap()).collect()
    })
}

/// Number of comparisons with each verdict: slower, faster, same, unclear.
fn verdicts(kinds: &[SimulatedProgram], comparisons: usize, more: f64) -> [usize; 4] {
    let one = |part: usize| {
        let mut counts = [0; 4];
        for number in (part..comparisons).step_by(2) {
            let (kind, busy) = (number % kinds.len(), number / kinds.len() % 2 == 1);
            let mut machine = NoisyMachine::new(mix_seeds(more.to_bits(), number as u64), busy);
            counts[machine.compare(&kinds[kind], more) as usize] += 1;
        }
        counts
    };
    std::thread::scope(|scope| {
        let parts = [scope.spawn(|| one(0)), scope.spawn(|| one(1))].map(|part| part.join().unwrap());
        std::array::from_fn(|verdict| parts[0][verdict] + parts[1][verdict])
    })
}

#[test]
fn a_program_does_not_differ_from_itself() {
    for (kinds, comparisons) in [(kinds(), 10_000), (hard(), 400)] {
        let [slower, faster, same, unclear] = verdicts(&kinds, comparisons, 0.0);
        println!("A/A of {comparisons}: {slower} slower, {faster} faster, {same} the same, {unclear} unclear");
        assert!((slower + faster) * 1000 < comparisons.max(1001), "{slower} slower and {faster} faster");
        assert!(same > comparisons * 9 / 10 || kinds.len() < 20, "{same} the same");
    }
}

#[test]
fn slowdowns_are_found() {
    for (more, least, comparisons) in [(0.01, 0.95, 1000), (-0.01, 0.95, 1000), (0.02, 0.999, 3000)] {
        let [slower, faster, ..] = verdicts(&kinds(), comparisons, more);
        let [found, wrong] = if more > 0.0 { [slower, faster] } else { [faster, slower] };
        println!("{more}: {found} found, {wrong} wrong");
        assert!(found as f64 >= comparisons as f64 * least && wrong == 0, "{more}: {found} found, {wrong} wrong");
    }
}

#[test]
fn equal_programs_share_their_rank() {
    let all = rankings(&kinds(), 1000, &[0.0; 5]);
    let false_alarms = all.iter().filter(|ranks| ranks.iter().any(|rank| *rank != 1)).count();
    println!("{false_alarms} of 1000 rankings of five equal programs have a false alarm");
    assert!(false_alarms <= 10, "{false_alarms}");
}

#[test]
fn different_programs_are_ranked() {
    let all = rankings(&kinds(), 400, &[0.02, 0.0, 0.04, 0.0, 0.06]);
    let found = all.iter().filter(|ranks| **ranks == [3, 1, 4, 1, 5]).count();
    println!("{found} of 400 rankings are complete");
    assert!(found >= 380, "{found}");
    // The fastest is never ranked behind a slower one.
    let wrong = all.iter().filter(|ranks| ranks[1] != 1 || ranks[3] != 1 || ranks[2] < ranks[0] || ranks[4] < ranks[2]);
    assert_eq!(wrong.count(), 0);
}
