//! What the exchanges of a pair of CPUs prove: the time of a transfer, or why it is unknown. Pairs
//! with similar times form clusters.

use super::record::{PairRecord, UarchRecord};
use super::reported_machine::CpuLocation;
use super::spec::{ExchangesSpec, TestSpec};
use super::verdict::{TestVerdict, VerdictKind};
use cyclescope_core::statistics::{Interval, quantiles, quartiles};
use cyclescope_core::unit::{Hertz, Unit};

/// An exchange was answered if it takes less than this share of an unanswered one.
const ANSWERED_SHARE: f64 = 0.5;
/// The quantile of a control's batches that represents it.
const CONTROL_QUANTILE: f64 = 0.25;
/// The least number of answered batches of a program.
const MIN_BATCHES: usize = 3;
/// Share by which two programs that agree may differ.
const TOLERANCE: f64 = 0.25;
/// The least ratio of two successive times, in ascending order, that separates two clusters.
const CLUSTER_RATIO: f64 = 1.4;
/// The least ratio of the first two clusters if CPUs of the first share more than a cache of many
/// cores.
const NEAREST_RATIO: f64 = 2.0;
/// Transfers of a line per exchange: one for the message, one for its answer.
const TRANSFERS: f64 = 2.0;

/// Two CPUs and their measurements.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ExchangePair {
    /// The CPUs, the smaller number first.
    pub cpus: [u32; 2],
    /// Whether there was time to measure it.
    pub tried: bool,
    /// TSC ticks of an exchange in each batch of each program.
    pub program_ticks: [Vec<f64>; 2],
    /// TSC ticks of an exchange that nobody answers.
    pub unanswered_ticks: Vec<f64>,
    /// Why some of it could not be measured.
    pub why: Option<String>,
}

impl ExchangePair {
    pub(super) fn new(cpus: [u32; 2]) -> ExchangePair {
        ExchangePair {
            cpus,
            tried: false,
            program_ticks: [Vec::new(), Vec::new()],
            unanswered_ticks: Vec::new(),
            why: None,
        }
    }

    /// The time of a transfer in nanoseconds, if the TSC has this rate.
    pub(super) fn judge_transfer(&self, asked: &'static ExchangesSpec, rate: Option<Hertz>) -> TestVerdict {
        let unclear = |why: String| TestVerdict::new(VerdictKind::Unclear, why);
        if !self.tried {
            return unclear("no time was left for it".to_string());
        }
        let mut controls = self.unanswered_ticks.clone();
        // Background load makes some of them longer.
        let Some([unanswered]) = (!controls.is_empty()).then(|| quantiles(&mut controls, [CONTROL_QUANTILE])) else {
            let why = "an exchange without an answer, its control, was not measured";
            return unclear(self.why.clone().unwrap_or_else(|| why.to_string()));
        };
        let Some(rate) = rate.filter(|rate| rate.0 > 0.0) else {
            return unclear("the rate of the time stamp counter is not known".to_string());
        };
        let nanos = |ticks: f64| ticks / TRANSFERS / rate.0 * 1e9;
        let mut found = Vec::new();
        let [one, other] = self.cpus;
        for ((variant, batches), cpus) in
            asked.programs.iter().zip(&self.program_ticks).zip([[one, other], [other, one]])
        {
            let answered = |ticks: &f64| *ticks > 0.0 && *ticks < ANSWERED_SHARE * unanswered;
            let mut times: Vec<f64> = batches.iter().copied().filter(answered).map(nanos).collect();
            let [asks, answers] = cpus;
            if times.len() < MIN_BATCHES {
                let why = self.why.clone().unwrap_or_else(|| {
                    format!("CPU {answers} did not answer CPU {asks} in time ({}): it did not run then", variant.name)
                });
                return unclear(why);
            }
            let [low, value, high] = quartiles(&mut times);
            let share = 100.0 * times.len() as f64 / batches.len() as f64;
            let text = format!("{} {value:.1} ns asked by CPU {asks}, {share:.0} % of batches answered", variant.name);
            found.push((Interval { value, low, high }, text));
        }
        let [(one, text), (other, more)] = &found[..] else { unreachable!("there are two programs") };
        let without = TRANSFERS * nanos(unanswered);
        let why = format!("{text}; {more}; an exchange without an answer {without:.0} ns");
        if (one.value - other.value).abs() > TOLERANCE * one.value.max(other.value) {
            return unclear(format!("the two programs do not agree: {why}"));
        }
        let value = (one.value + other.value) / 2.0;
        let size = Interval { value, low: one.low.min(other.low), high: one.high.max(other.high) };
        TestVerdict { size: Some(size), ..TestVerdict::new(VerdictKind::Found, why) }
    }
}

/// The cluster of each time, from 0, the fastest. A new cluster begins where the next time is far
/// above, beyond both intervals.
pub(super) fn cluster_times(times: &[Option<Interval>]) -> Vec<Option<usize>> {
    let mut order: Vec<(usize, Interval)> =
        times.iter().enumerate().filter_map(|(number, time)| Some((number, (*time)?))).collect();
    order.sort_by(|(_, one), (_, other)| one.value.total_cmp(&other.value));
    let mut clusters = vec![None; times.len()];
    let mut cluster = 0;
    for (place, (number, time)) in order.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| order[before].1);
        let apart = |before: Interval| time.value >= CLUSTER_RATIO * before.value && time.low > before.high;
        cluster += usize::from(before.is_some_and(apart));
        clusters[*number] = Some(cluster);
    }
    clusters
}

/// A note on the fastest cluster's pairs, if all others are far above and no CPU is in two of them.
fn describe_nearest(pairs: &[ExchangePair], times: &[Option<Interval>], clusters: &[Option<usize>]) -> Option<String> {
    let pairs_of = |cluster: usize| {
        let is_member = move |number: &usize| clusters[*number] == Some(cluster);
        (0..pairs.len()).filter(is_member)
    };
    let value = |number: usize| times[number].map(|time| time.value);
    let slowest = pairs_of(0).filter_map(value).fold(0.0, f64::max);
    let next = pairs_of(1).filter_map(value).fold(f64::INFINITY, f64::min);
    let mut cpus: Vec<u32> = pairs_of(0).flat_map(|number| pairs[number].cpus).collect();
    let count = cpus.len();
    cpus.sort_unstable();
    cpus.dedup();
    let alone = cpus.len() == count && next.is_finite() && next >= NEAREST_RATIO * slowest;
    alone.then(|| {
        let ratio = next / slowest;
        format!(
            "all other clusters take {ratio:.1} times as long or longer: as two CPUs of one core, or of a cache \
                 that two cores share"
        )
    })
}

/// The records of pairs with these verdicts.
pub(super) fn record_pairs(
    test: &TestSpec,
    pairs: &[ExchangePair],
    judged: Vec<TestVerdict>,
    clusters: &[Option<usize>],
    places: &[CpuLocation],
) -> Vec<UarchRecord> {
    if pairs.is_empty() {
        let verdict = TestVerdict::new(VerdictKind::None, "this process may use no other CPU");
        return vec![UarchRecord::new(test, test.name.to_string(), verdict, Unit::Nanos)];
    }
    let times: Vec<_> = judged.iter().map(|verdict| verdict.size).collect();
    let nearest = describe_nearest(pairs, &times, clusters);
    let count = clusters.iter().flatten().max().map_or(0, |last| last + 1);
    let record = |((pair, mut verdict), cluster): ((&ExchangePair, TestVerdict), &Option<usize>)| {
        let [one, other] = pair.cpus;
        if let (Some(cluster), true) = (cluster, count > 1) {
            verdict.why += &format!("; cluster {} of {count}", cluster + 1);
            if let (Some(nearest), 0) = (&nearest, cluster) {
                verdict.why += &format!(", and {nearest}");
            }
        }
        let what = format!("{}.{one}.{other}", test.name);
        let record = UarchRecord::new(test, what, verdict, Unit::Nanos);
        let told = CpuLocation::describe_pair(places, pair.cpus);
        UarchRecord { pair: Some(PairRecord { cpus: pair.cpus, cluster: cluster.map(|one| one + 1) }), told, ..record }
    };
    pairs.iter().zip(judged).zip(clusters).map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Experiment;
    use crate::test_list::TESTS;

    fn asked() -> &'static ExchangesSpec {
        let find = |test: &&'static TestSpec| match &test.experiment {
            Experiment::Exchanges(asked) => Some(asked),
            _ => None,
        };
        TESTS.iter().find_map(find).expect("there is a test of exchanges")
    }

    fn pair(cpus: [u32; 2], answered: usize, controls: usize) -> ExchangePair {
        let variant = vec![100.0; answered];
        ExchangePair {
            tried: true,
            program_ticks: [variant.clone(), variant],
            unanswered_ticks: vec![9000.0; controls],
            ..ExchangePair::new(cpus)
        }
    }

    #[test]
    fn a_pair_needs_its_control_and_some_answers() {
        let kind = |answered, controls| pair([0, 1], answered, controls).judge_transfer(asked(), Some(Hertz(1e9))).kind;
        assert_eq!(kind(MIN_BATCHES, 1), VerdictKind::Found);
        assert_eq!([kind(MIN_BATCHES - 1, 1), kind(MIN_BATCHES, 0)], [VerdictKind::Unclear; 2]);
        assert_eq!(pair([0, 1], MIN_BATCHES, 1).judge_transfer(asked(), None).kind, VerdictKind::Unclear);
    }

    #[test]
    fn times_with_overlapping_intervals_form_one_cluster() {
        let time = |value: f64, share: f64| Some(Interval { value, low: value / share, high: value * share });
        assert_eq!(cluster_times(&[time(50.0, 1.05), time(80.0, 1.05), None]), [Some(0), Some(1), None]);
        assert_eq!(cluster_times(&[time(50.0, 1.3), time(80.0, 1.3)]), [Some(0), Some(0)]);
    }

    #[test]
    fn a_cpu_in_two_nearest_pairs_identifies_no_core() {
        let time = |value: f64| Some(Interval { value, low: value, high: value });
        let has_note = |cpus: [[u32; 2]; 3]| {
            let pairs = cpus.map(|cpus| pair(cpus, MIN_BATCHES, 1));
            let times = [time(10.0), time(10.0), time(50.0)];
            describe_nearest(&pairs, &times, &cluster_times(&times)).is_some()
        };
        assert!(has_note([[0, 1], [2, 3], [0, 2]]));
        assert!(!has_note([[0, 1], [1, 2], [0, 2]]));
    }
}
