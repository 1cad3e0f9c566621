//! How long a line takes from one CPU to another, for each pair of CPUs.
//!
//! One CPU sends messages through a line, the other one answers. Neither waits forever: a message
//! without an answer takes as long as all of its tries. The control measures that time, with
//! answers in another line. If exchanges of a batch take half of it or longer, the other CPU did
//! not run, and the batch is dropped. The result is the median of the other batches.
//!
//! A line's address decides where its home in the last cache is, and so the distance: one line took
//! 57 ns, another one 77. So each pass uses another line, the same one for all pairs.
//!
//! Limit: with many CPUs there is only time for the pairs of a few.

use super::exchange_pairs::{ExchangePair, cluster_times, record_pairs};
use super::record::UarchRecord;
use super::reported_machine::CpuLocation;
use super::spec::{ExchangeProgram, ExchangesSpec, TestSpec};
use cyclescope_core::error::RunError;
use cyclescope_core::statistics::quantiles;
use cyclescope_core::unit::Hertz;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time for one pass of a pair: both programs and their start.
const PASS_TIME: Duration = Duration::from_millis(5);
/// Time to create the executors of a CPU.
const OPEN_TIME: Duration = Duration::from_millis(25);
/// The least and the largest number of measurements of a pair and its control.
const PASSES: [usize; 2] = [4, 32];
/// The quantile of a batch's rounds that represents it: more than half of them may be disturbed.
const USUAL_QUANTILE: f64 = 0.25;

/// A measurement to make.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExchangeRequest {
    /// The CPU that sends messages, and the CPU that answers.
    pub cpus: [u32; 2],
    /// The program.
    pub program: &'static ExchangeProgram,
    /// The number of the line.
    pub line: usize,
    /// Whether the answers go to another line: the control.
    pub is_control: bool,
}

/// The times of exchanges.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct ExchangeTicks {
    /// Number of exchanges by which the longer call of a round exceeds the shorter one.
    pub more: u64,
    /// TSC ticks of the shorter and the longer call of each round, by batch.
    pub batches: Vec<Vec<[u64; 2]>>,
}

/// Lets CPUs exchange messages.
pub(super) trait ExchangeMessages {
    /// Lets two CPUs exchange messages, or returns why one can't.
    fn exchange_messages(&mut self, asked: &ExchangeRequest) -> Result<Result<ExchangeTicks, String>, RunError>;

    /// Releases a CPU.
    fn release_cpu(&mut self, cpu: u32);
}

/// A clock and a time limit.
pub(super) struct TimeBudget<'a> {
    /// The time now.
    pub now: &'a dyn Fn() -> Duration,
    /// How long the test may take.
    pub max: Duration,
}

/// Measures all pairs of these CPUs, or the pairs of as many CPUs as time allows.
pub(super) fn run_exchanges(
    all: &mut dyn ExchangeMessages,
    asked: &'static ExchangesSpec,
    cpus: &[u32],
    time: &TimeBudget,
) -> Result<Vec<ExchangePair>, RunError> {
    let end = (time.now)() + time.max;
    let rows = choose_rows(cpus, time.max);
    let mut pairs: Vec<ExchangePair> = Vec::new();
    // Column by column: this holds at most one CPU more than there are rows.
    for column in cpus {
        let partners = rows.iter().filter(|row| *row != column);
        // Two rows' CPUs form one pair, not two.
        let partners = partners.filter(|row| !rows.contains(column) || **row < *column);
        pairs.extend(partners.map(|row| ExchangePair::new([*row.min(column), *row.max(column)])));
    }
    let steps = order_passes(pairs.len(), passes_in_time(pairs.len(), time.max), rows.len() == cpus.len());
    let mut last = BTreeMap::new();
    for (step, (number, _)) in steps.iter().enumerate() {
        last.extend(pairs[*number].cpus.map(|cpu| (cpu, step)));
    }
    for (step, (number, pass)) in steps.into_iter().enumerate() {
        if (time.now)() >= end {
            break;
        }
        let pair = &mut pairs[number];
        pair.tried = true;
        measure_pass(all, asked, pair, pass)?;
        pair.cpus.iter().filter(|cpu| last[*cpu] == step).for_each(|cpu| all.release_cpu(*cpu));
    }
    Ok(pairs)
}

/// The order of pairs and passes. If all CPUs can be held at once, each pass covers all pairs, and
/// changes affect all of them. If not, all passes of a pair come in a row.
fn order_passes(pairs: usize, passes: usize, whole: bool) -> Vec<(usize, usize)> {
    match whole {
        true => (0..passes).flat_map(|pass| (0..pairs).map(move |pair| (pair, pass))).collect(),
        false => (0..pairs).flat_map(|pair| (0..passes).map(move |pass| (pair, pass))).collect(),
    }
}

/// One pass of a pair in this line. In one program the first CPU asks, in the other one the second.
fn measure_pass(
    all: &mut dyn ExchangeMessages,
    asked: &'static ExchangesSpec,
    pair: &mut ExchangePair,
    line: usize,
) -> Result<(), RunError> {
    let [one, other] = pair.cpus;
    let sides = [[one, other], [other, one]];
    for (number, (variant, cpus)) in asked.programs.iter().zip(sides).enumerate() {
        match all.exchange_messages(&ExchangeRequest { cpus, program: variant, line, is_control: false })? {
            Ok(turns) => pair.program_ticks[number].extend(turns.ticks_per_batch()),
            Err(why) => {
                pair.why = Some(why);
                return Ok(());
            }
        }
    }
    if line < PASSES[0] {
        let control = ExchangeRequest { cpus: pair.cpus, program: &asked.programs[0], line, is_control: true };
        match all.exchange_messages(&control)? {
            Ok(turns) => pair.unanswered_ticks.extend(turns.ticks_per_batch()),
            Err(why) => pair.why = Some(why),
        }
    }
    Ok(())
}

impl ExchangeTicks {
    /// TSC ticks of an exchange in each batch.
    fn ticks_per_batch(&self) -> Vec<f64> {
        let of_call = |batch: &[[u64; 2]], call: usize| {
            let mut ticks: Vec<f64> = batch.iter().map(|round| round[call] as f64).collect();
            (!ticks.is_empty()).then(|| quantiles(&mut ticks, [USUAL_QUANTILE])[0])
        };
        let exchange = |batch: &Vec<[u64; 2]>| Some((of_call(batch, 1)? - of_call(batch, 0)?) / self.more as f64);
        self.batches.iter().filter_map(exchange).collect()
    }
}

/// The CPUs whose pairs with all others are measured: all CPUs, or the first one and others spread
/// evenly.
fn choose_rows(cpus: &[u32], time: Duration) -> Vec<u32> {
    let count = cpus.len();
    let opening = OPEN_TIME * count as u32;
    let each = PASS_TIME.as_secs_f64() * PASSES[0] as f64;
    let pairs = (time.saturating_sub(opening).as_secs_f64() / each) as usize;
    if count * count.saturating_sub(1) / 2 <= pairs {
        return cpus.to_vec();
    }
    let rows = (pairs / count.max(1)).clamp(1, count);
    (0..rows).map(|row| cpus[row * count / rows]).collect()
}

/// Number of measurements of each pair, from the number of pairs.
fn passes_in_time(pairs: usize, time: Duration) -> usize {
    let whole = PASS_TIME.as_secs_f64() * pairs.max(1) as f64;
    ((time.as_secs_f64() / whole) as usize).clamp(PASSES[0], PASSES[1])
}

/// The records of pairs, if the TSC has this rate.
pub(super) fn exchange_records(
    test: &'static TestSpec,
    asked: &'static ExchangesSpec,
    pairs: &[ExchangePair],
    places: &[CpuLocation],
    rate: Option<Hertz>,
) -> Vec<UarchRecord> {
    let judged: Vec<_> = pairs.iter().map(|pair| pair.judge_transfer(asked, rate)).collect();
    let sizes: Vec<_> = judged.iter().map(|verdict| verdict.size).collect();
    let clusters = cluster_times(&sizes);
    record_pairs(test, pairs, judged, &clusters, places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Experiment;
    use crate::test_list::TESTS;
    use crate::verdict::VerdictKind;
    use std::cell::Cell;
    use std::collections::BTreeSet;

    /// Ticks of an unanswered exchange.
    const UNANSWERED: u64 = 9000;
    /// Ticks of the readings around a call.
    const READINGS: u64 = 40;
    /// Ticks per nanosecond.
    const RATE: f64 = 2.0;

    /// CPUs with simulated exchange times in ticks, by the two CPUs and the program's number;
    /// `None` if nobody answers.
    struct Simulated<F> {
        ticks: F,
        unanswered: u64,
        /// Factor of the control's time in the first line, as with background load.
        late: u64,
        /// One batch in this many is answered.
        every: usize,
        held: BTreeSet<u32>,
        most: usize,
        /// How often each line was used.
        lines: Vec<usize>,
    }

    impl<F: Fn([u32; 2], usize) -> Option<u64>> Simulated<F> {
        fn new(ticks: F) -> Simulated<F> {
            Simulated {
                ticks,
                unanswered: UNANSWERED,
                late: 1,
                every: 1,
                held: BTreeSet::new(),
                most: 0,
                lines: vec![0; PASSES[1]],
            }
        }

        fn found(&mut self, cpus: &[u32]) -> Vec<UarchRecord> {
            let (test, asked) = test();
            let now = Cell::new(Duration::ZERO);
            let step = || {
                now.set(now.get() + Duration::from_millis(1));
                now.get()
            };
            let time = TimeBudget { now: &step, max: Duration::from_secs(2) };
            let pairs = run_exchanges(self, asked, cpus, &time).unwrap();
            exchange_records(test, asked, &pairs, &[], Some(Hertz(RATE * 1e9)))
        }
    }

    impl<F: Fn([u32; 2], usize) -> Option<u64>> ExchangeMessages for Simulated<F> {
        fn exchange_messages(&mut self, asked: &ExchangeRequest) -> Result<Result<ExchangeTicks, String>, RunError> {
            self.held.extend(asked.cpus);
            self.most = self.most.max(self.held.len());
            self.lines[asked.line] += usize::from(!asked.is_control);
            let (_, spec) = test();
            let number = spec.programs.iter().position(|variant| std::ptr::eq(variant, asked.program)).unwrap();
            let ticks = (self.ticks)(asked.cpus, number).filter(|_| !asked.is_control);
            let batch = |batch: usize| {
                let late = if asked.is_control && asked.line == 0 { self.late } else { 1 };
                let each = late * ticks.filter(|_| batch.is_multiple_of(self.every)).unwrap_or(self.unanswered);
                // An interrupt in every fifth round, in one call and the other in turn.
                let round = |round: u64| {
                    let late = [(0, 20_000), (1, 50_000)]
                        .map(|(turn, ticks)| if round % 5 == turn { ticks } else { round % 3 });
                    [READINGS + 16 * each + late[0], READINGS + 32 * each + late[1]]
                };
                (0..24).map(round).collect()
            };
            Ok(Ok(ExchangeTicks { more: 16, batches: (0..8).map(batch).collect() }))
        }

        fn release_cpu(&mut self, cpu: u32) {
            self.held.remove(&cpu);
        }
    }

    fn test() -> (&'static TestSpec, &'static ExchangesSpec) {
        let find = |test: &&'static TestSpec| match &test.experiment {
            Experiment::Exchanges(asked) => Some((*test, asked)),
            _ => None,
        };
        TESTS.iter().find_map(find).unwrap()
    }

    fn find_pair(records: &[UarchRecord], cpus: [u32; 2]) -> (VerdictKind, Option<f64>, Option<usize>) {
        let has_cpus = |record: &&UarchRecord| record.pair.as_ref().is_some_and(|pair| pair.cpus == cpus);
        let record = records.iter().find(has_cpus).expect("a record of the pair");
        (record.verdict, record.value.value, record.pair.as_ref().and_then(|pair| pair.cluster))
    }

    /// Two sockets of three CPUs. 0 and 4 belong to one core, and 5 does not answer.
    fn machine([one, other]: [u32; 2], _: usize) -> Option<u64> {
        let core = [one.min(other), one.max(other)] == [0, 4];
        let socket = one % 2 == other % 2;
        (one != 5 && other != 5).then_some(if core {
            40
        } else if socket {
            220
        } else {
            600
        })
    }

    #[test]
    fn a_simulated_matrix_is_recovered_with_its_clusters() {
        let found = Simulated::new(machine).found(&[5, 0, 1, 2, 3, 4]);
        assert_eq!(found.len(), 15);
        let near = |cpus, nanos: f64, cluster| {
            let (kind, value, found_cluster) = find_pair(&found, cpus);
            assert!(kind == VerdictKind::Found && (value.unwrap() - nanos).abs() < 0.02 * nanos, "{cpus:?} {value:?}");
            assert_eq!(found_cluster, Some(cluster), "{cpus:?}");
        };
        near([0, 4], 10.0, 1);
        near([0, 2], 55.0, 2);
        near([1, 3], 55.0, 2);
        near([1, 2], 150.0, 3);
        for record in &found {
            let cpus = record.pair.as_ref().unwrap().cpus;
            assert_eq!(record.why.contains("of one core"), cpus == [0, 4], "{cpus:?}: {}", record.why);
            assert_eq!(record.verdict == VerdictKind::Unclear, cpus[1] == 5, "{cpus:?}");
            assert_eq!(record.what, format!("core_to_core.{}.{}", cpus[0], cpus[1]));
        }
        assert!(find_pair(&found, [2, 5]).1.is_none());
    }

    #[test]
    fn unanswered_messages_yield_no_latency() {
        let mut silent = Simulated::new(|_: [u32; 2], _| None);
        silent.unanswered = 120;
        let found = silent.found(&[0, 1]);
        assert_eq!(find_pair(&found, [0, 1]), (VerdictKind::Unclear, None, None));
        assert!(found[0].why.contains("did not answer"), "{}", found[0].why);
    }

    #[test]
    fn a_partly_running_cpu_yields_the_time_of_answered_messages() {
        let mut part = Simulated::new(machine);
        (part.every, part.late) = (4, 3);
        let (kind, value, _) = find_pair(&part.found(&[0, 2]), [0, 2]);
        assert!(kind == VerdictKind::Found && (value.unwrap() - 55.0).abs() < 1.0, "{value:?}");
    }

    #[test]
    fn programs_that_differ_yield_no_number() {
        let found = Simulated::new(|_: [u32; 2], variant| Some([100, 150][variant])).found(&[0, 1]);
        assert_eq!(find_pair(&found, [0, 1]).0, VerdictKind::Unclear);
        assert!(found[0].why.contains("do not agree"), "{}", found[0].why);
        // The two programs ask from different CPUs, so a longer path in one direction shows too.
        let found = Simulated::new(|[one, _]: [u32; 2], _| Some(if one == 0 { 100 } else { 200 })).found(&[0, 1]);
        assert_eq!(find_pair(&found, [0, 1]).0, VerdictKind::Unclear);
    }

    #[test]
    fn a_single_cpu_yields_one_record_with_verdict_none() {
        for cpus in [&[][..], &[3]] {
            let found = Simulated::new(machine).found(cpus);
            assert_eq!((found.len(), found[0].verdict, found[0].what.as_str()), (1, VerdictKind::None, "core_to_core"));
        }
    }

    #[test]
    fn time_limits_the_rows_of_many_cpus() {
        let cpus: Vec<u32> = (0..24).map(|cpu| (cpu + 7) % 24).collect();
        let mut simulated = Simulated::new(machine);
        let found = simulated.found(&cpus);
        let rows = choose_rows(&cpus, Duration::from_secs(2));
        assert!(rows.contains(&7) && (2..20).contains(&rows.len()), "{rows:?}");
        let pairs = rows.len() * (rows.len() - 1) / 2 + rows.len() * (cpus.len() - rows.len());
        assert_eq!(found.len(), pairs);
        assert!(simulated.held.is_empty() && simulated.most <= rows.len() + 1, "{} held", simulated.most);
        // Both programs of all pairs use the same lines.
        assert!(simulated.lines[..PASSES[0]].iter().all(|times| *times == 2 * pairs), "{:?}", simulated.lines);
    }

    #[test]
    fn pairs_without_time_are_unclear() {
        let (test, asked) = test();
        let now = Cell::new(0);
        let step = || {
            now.set(now.get() + 1);
            Duration::from_secs(now.get())
        };
        let time = TimeBudget { now: &step, max: Duration::from_secs(3) };
        let pairs = run_exchanges(&mut Simulated::new(machine), asked, &[0, 1, 2], &time).unwrap();
        let records = exchange_records(test, asked, &pairs, &[], Some(Hertz(RATE * 1e9)));
        let late = records.iter().filter(|record| record.why.contains("no time was left")).count();
        assert!(late == 1 && records.len() == 3, "{late}");
    }
}
