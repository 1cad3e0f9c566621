//! Which classes of instructions wait in the same queue.
//!
//! Some instructions of one class wait; then instructions of another class follow until one does
//! not fit. If the classes share a queue, fewer of the other class fit, by as many as wait. If each
//! has its own queue, as many fit as alone. If they share some of several queues, fewer fit by a
//! part. It may also be more, if instructions go to queues in turn and the first full queue stops
//! all. If another limit keeps a class from filling its queues, only the other direction shows the
//! sharing. The control has ready instructions of the first class: they take registers and reorder
//! buffer entries, but no room in a queue.

use super::conditions::RETRY_ONCE;
use super::knee::{KneeEdges, NoKnee};
use super::knee_search::search_knee;
use super::overlap::{MeasureOverlaps, OverlapProbe};
use super::overlap_test::StructureEnds;
use super::record::UarchRecord;
use super::spec::{FillerSpec, QueueClass, QueuesSpec, TestSpec};
use super::verdict::{SAME_ENTRIES, StructureEnd, TestVerdict, VerdictKind};
use cyclescope_core::error::RunError;
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;

/// The first class takes this part of the smaller structure.
const OCCUPIED_DIVISOR: usize = 2;
/// The least number of its instructions.
const MIN_OCCUPIED: usize = 6;
/// The largest number of its instructions.
const MAX_OCCUPIED: usize = 32;
/// The search for a knee goes this many fillers beyond a structure's end.
const SEARCH_MARGIN: usize = 40;
/// The largest part of the waiting instructions by which ready ones may move a knee.
const CONTROL_SHARE: f64 = 0.2;
/// The largest part that counts as zero if it is within the noise.
const SMALL_SHARE: f64 = 0.2;
/// Share by which two programs that agree may differ.
const SAME_SHARE: f64 = 0.15;
/// Number of searches for a knee. A burst of the sibling may last for a whole search.
const SEARCHES: usize = 3;
/// A search without an end is followed by one that goes this many times as far: a sibling leaves at
/// least half of a divided structure.
const SEARCH_GROWTH: usize = 2;

/// Measures each class with each other class, and judges.
pub(super) fn run_queues(
    core: &mut dyn MeasureOverlaps,
    knees: &StructureEnds,
    test: &'static TestSpec,
    queues: &'static QueuesSpec,
) -> Result<Vec<UarchRecord>, RunError> {
    let mut records = Vec::new();
    for class in queues.classes {
        for by in queues.classes.iter().filter(|by| by.name != class.name) {
            let size = |class: &QueueClass| match knees.get(class.size_test) {
                Some(StructureEnd::At(size)) => Ok(size),
                _ => Err(TestVerdict::new(
                    VerdictKind::Unclear,
                    format!("no test found how many {} can wait", class.name),
                )),
            };
            let verdict = match size(class).and_then(|own| Ok((own, size(by)?))) {
                Ok((own, others)) => retry_if_unclear(|| measure_pair(core, queues, [class, by], [own, others]))?,
                Err(unclear) => unclear,
            };
            records.push(UarchRecord::new(test, pair_key(test, class, by), verdict, Unit::Ratio));
        }
    }
    Ok(records)
}

/// Measures a pair, and once more if it is unclear.
fn retry_if_unclear(pair: impl FnMut() -> Result<TestVerdict, RunError>) -> Result<TestVerdict, RunError> {
    RETRY_ONCE.retry_while(|verdict| verdict.kind == VerdictKind::Unclear, pair)
}

/// The key of a pair of classes.
pub(super) fn pair_key(test: &TestSpec, class: &QueueClass, by: &QueueClass) -> String {
    format!("{}.{}_beside_{}", test.name, class.name, by.name)
}

/// How many of the other class wait beforehand, from the numbers of each that can wait.
pub(super) fn waiting_count(own: usize, others: usize) -> usize {
    (own.min(others) / OCCUPIED_DIVISOR).min(MAX_OCCUPIED)
}

/// Measures the first class with the other one.
fn measure_pair(
    core: &mut dyn MeasureOverlaps,
    queues: &QueuesSpec,
    [class, by]: [&'static QueueClass; 2],
    [own, others]: [usize; 2],
) -> Result<TestVerdict, RunError> {
    let number = waiting_count(own, others);
    if number < MIN_OCCUPIED {
        return Ok(TestVerdict::new(VerdictKind::Unclear, format!("{number} entries tell no part of a queue")));
    }
    let mut knee = |filler: &'static FillerSpec, number: usize| {
        let probe = OverlapProbe {
            first_chain: queues.first_chain,
            filler: class.waiting[0],
            lead_nops: 0,
            occupied: Some((filler, number)),
        };
        // A first size only says where to begin: when its test ran, another thread may have held a
        // part.
        let mut most = own + SEARCH_MARGIN;
        for _ in 0..SEARCHES {
            match search_knee(most, |counts| core.measure_overlaps(&probe, counts))?.knee {
                Ok(knee) => return Ok(Some(knee)),
                Err(NoKnee::AlwaysOverlaps) => most *= SEARCH_GROWTH,
                Err(_) => {}
            }
        }
        Ok::<_, RunError>(None)
    };
    let [one, other] = by.waiting;
    // The instruction that makes operands wait takes entries too, and is in all programs.
    let alone = knee(one, 0)?;
    let behind_waiting = [knee(one, number)?, knee(other, number)?];
    Ok(judge_pair(by, number, alone, behind_waiting, knee(by.ready, number)?))
}

/// Judges four knees of a class: alone, behind waiting instructions of the other class in two
/// programs, and behind ready ones.
fn judge_pair(
    by: &QueueClass,
    number: usize,
    alone: Option<KneeEdges>,
    behind_waiting: [Option<KneeEdges>; 2],
    ready: Option<KneeEdges>,
) -> TestVerdict {
    let (Some(alone), [Some(one), Some(other)], Some(ready)) = (alone, behind_waiting, ready) else {
        return TestVerdict::new(VerdictKind::Unclear, "a curve does not fall in one place");
    };
    let less = |knee: KneeEdges| alone.high as f64 - knee.high as f64;
    let links = [one, other, alone].map(|knee| knee.link_slack()).into_iter().max().unwrap_or_default();
    let [one, other, ready] = [one, other, ready].map(less);
    // Ready instructions in front shift the others into other groups, and so into other queues.
    // Knees within this distance are equal.
    let apart = SAME_ENTRIES + links as f64 + ready.abs() / 2.0;
    let [shown, shown_too] = [one, other].map(|fewer| fewer - ready / 2.0);
    let number = number as f64;
    let why = format!(
        "{} wait alone, beside {number} of {} {one:.0} fewer, beside as many of {} {other:.0} fewer",
        alone.high, by.waiting[0].name, by.waiting[1].name,
    );
    let unclear = |said: String| TestVerdict::new(VerdictKind::Unclear, format!("{said}: {why}"));
    let (least, most) = (shown.min(shown_too), shown.max(shown_too));
    if ready.abs() > CONTROL_SHARE * number {
        return unclear(format!("{ready:.0} fewer are there beside {number} of {} that do not wait", by.name));
    }
    if least < -apart {
        return unclear("more than alone are there".to_string());
    }
    if most - least > apart.max(SAME_SHARE * most) {
        return unclear("programs differ".to_string());
    }
    // A part within the noise counts as zero only if it is small.
    if most <= apart {
        let small = apart <= SMALL_SHARE * number;
        return if small {
            TestVerdict::new(VerdictKind::None, why)
        } else {
            unclear(format!("less than {apart:.0} may be either"))
        };
    }
    if least <= apart {
        return unclear("one alone shows it".to_string());
    }
    let size = Interval { value: (least + most) / 2.0, low: least - apart / 2.0, high: most + apart / 2.0 };
    let each = |fewer: f64| (fewer / number).max(0.0);
    let size = Interval { value: each(size.value), low: each(size.low), high: each(size.high) };
    TestVerdict { size: Some(size), ..TestVerdict::new(VerdictKind::Found, why) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knee_search::MIN_COUNT as LEAST_COUNT;
    use crate::overlap::OverlapReading;
    use crate::spec::Experiment;
    use crate::test_list::TESTS;

    fn by() -> &'static QueueClass {
        let found = TESTS.iter().find_map(|test| match &test.experiment {
            Experiment::Queues(queues) => Some(&queues.classes[0]),
            _ => None,
        });
        found.expect("there is a test of queues")
    }

    /// The verdict on 60 entries with 24 of the other class: how many fewer fit behind each waiting
    /// kind, and behind ready ones.
    fn fewer([one, other, ready]: [i64; 3]) -> (VerdictKind, Option<f64>) {
        let knee = |fewer: i64| Some(KneeEdges { low: (60 - fewer) as usize, high: (60 - fewer) as usize });
        let verdict = judge_pair(by(), 24, knee(0), [knee(one), knee(other)], knee(ready));
        (verdict.kind, verdict.size.map(|size| (size.value * 100.0).round() / 100.0))
    }

    #[test]
    fn a_queue_with_fewer_free_entries_is_shared() {
        assert_eq!(fewer([24, 24, 0]), (VerdictKind::Found, Some(1.0)));
        assert_eq!(fewer([12, 12, 0]), (VerdictKind::Found, Some(0.5)));
        // Queues that take turns.
        assert_eq!(fewer([34, 34, -3]), (VerdictKind::Found, Some(1.48)));
        assert_eq!(fewer([0, 1, -1]), (VerdictKind::None, None));
        // If many fewer fit, programs may differ by a share.
        assert_eq!(fewer([34, 30, 0]), (VerdictKind::Found, Some(1.33)));
    }

    #[test]
    fn the_width_of_knees_limits_the_precision() {
        let knee = |low: usize, high: usize| Some(KneeEdges { low, high });
        let size = |alone, behind_waiting| judge_pair(by(), 24, alone, [behind_waiting; 2], alone).size;
        let sharp = size(knee(60, 60), knee(36, 36)).expect("it was found");
        assert_eq!([sharp.low, sharp.value, sharp.high].map(|share| (share * 24.0).round()), [23.0, 24.0, 25.0]);
        // A difference of four is nothing if the overlap ends link by link.
        assert_eq!(size(knee(48, 60), knee(44, 56)), None);
        assert!(size(knee(60, 60), knee(56, 56)).is_some());
    }

    #[test]
    fn a_shift_that_ready_instructions_cause_too_proves_no_queue() {
        // As with full registers, if each instruction takes one.
        assert_eq!(fewer([24, 24, 24]), (VerdictKind::Unclear, None));
        assert_eq!(fewer([8, 8, 8]), (VerdictKind::Unclear, None));
        assert_eq!(fewer([24, 12, 0]), (VerdictKind::Unclear, None));
        assert_eq!(fewer([4, 0, 0]), (VerdictKind::Unclear, None));
        assert_eq!(fewer([4, 2, 0]), (VerdictKind::Unclear, None), "one alone shows it");
        // Ready instructions move it by more than a part of the waiting ones.
        assert_eq!(fewer([24, 24, 6]), (VerdictKind::Unclear, None));
        assert_eq!(fewer([6, 6, 4]), (VerdictKind::None, None), "and half of that may be what the others show");
        assert_eq!(fewer([-9, -9, 0]), (VerdictKind::Unclear, None));
        let knee = |fewer: usize| Some(KneeEdges { low: 60 - fewer, high: 60 - fewer });
        let few = judge_pair(by(), 8, knee(0), [knee(1), knee(1)], knee(0));
        assert_eq!(few.kind, VerdictKind::Unclear, "a part of so few and nothing are alike");
    }

    #[test]
    fn a_curve_without_a_knee_proves_nothing() {
        let knee = Some(KneeEdges { low: 60, high: 60 });
        for missing in 0..4 {
            let knees: Vec<_> = (0..4).map(|place| knee.filter(|_| place != missing)).collect();
            let verdict = judge_pair(by(), 24, knees[0], [knees[1], knees[2]], knees[3]);
            assert_eq!(verdict.kind, VerdictKind::Unclear);
        }
    }

    #[test]
    fn an_unclear_pair_is_measured_again() {
        for (kinds, expected, times) in [
            ([VerdictKind::Unclear, VerdictKind::Found, VerdictKind::None], VerdictKind::Found, 2),
            ([VerdictKind::None, VerdictKind::Found, VerdictKind::None], VerdictKind::None, 1),
            ([VerdictKind::Unclear, VerdictKind::Unclear, VerdictKind::Found], VerdictKind::Unclear, 2),
        ] {
            let mut measured = 0;
            let verdict = retry_if_unclear(|| {
                measured += 1;
                Ok(TestVerdict::new(kinds[measured - 1], ""))
            });
            assert_eq!((verdict.expect("it was measured").kind, measured), (expected, times));
        }
    }

    #[test]
    fn a_part_of_the_smaller_structure_is_occupied() {
        assert_eq!([waiting_count(96, 48), waiting_count(12, 96), waiting_count(200, 160)], [24, 6, MAX_OCCUPIED]);
    }
    /// A core on which `room` of each class can wait. `taken` is how many entries one of the other
    /// class takes: of the first waiting kind, of the second, and of the ready ones.
    struct Shared {
        room: f64,
        taken: [f64; 3],
        /// Searches that a burst disturbs, by number, and the number of the next search.
        torn: &'static [usize],
        searches: usize,
    }

    impl MeasureOverlaps for Shared {
        fn measure_overlaps(
            &mut self,
            probe: &OverlapProbe,
            counts: &[usize],
        ) -> Result<Vec<OverlapReading>, RunError> {
            assert_eq!(probe.first_chain, asked().1.first_chain);
            self.searches += usize::from(counts[0] == LEAST_COUNT && counts.len() > 1);
            let torn = self.torn.contains(&(self.searches - 1));
            let entries = probe.occupied.map_or(0.0, |(filler, number)| {
                let by = asked().1.classes.iter().find_map(|class| {
                    let [one, other] = class.waiting;
                    [one, other, class.ready].iter().position(|known| known.name == filler.name)
                });
                self.taken[by.expect("it is of a class")] * number as f64
            });
            let point = |(place, n): (usize, &usize)| {
                let overlap = match *n as f64 + entries <= self.room {
                    _ if torn => [0.9, 0.1, 0.5][place % 3],
                    true => 0.95,
                    false => 0.05,
                };
                OverlapReading { n: *n, overlap, fast: overlap.round() }
            };
            Ok(counts.iter().enumerate().map(point).collect())
        }
    }

    fn asked() -> (&'static TestSpec, &'static QueuesSpec) {
        let found = TESTS.iter().find_map(|test| match &test.experiment {
            Experiment::Queues(queues) => Some((*test, queues)),
            _ => None,
        });
        found.expect("there is a test of queues")
    }

    /// The verdict on the first class with another one, if the end of both is known.
    fn judge_shared(core: Shared, end: StructureEnd) -> (VerdictKind, Option<f64>, String) {
        let (test, queues) = asked();
        let knees: StructureEnds = queues.classes.iter().map(|class| (class.size_test, end)).collect();
        let mut core = core;
        let mut records = super::run_queues(&mut core, &knees, test, queues).expect("all is simulated");
        assert_eq!(records.len(), queues.classes.len() * (queues.classes.len() - 1));
        let record = records.swap_remove(0);
        (record.verdict, record.value.value, record.why)
    }

    #[test]
    fn both_waiting_programs_and_the_ready_one_count() {
        let core = |taken| Shared { room: 60.0, taken, torn: &[], searches: 0 };
        let kind = |taken| {
            let (kind, number, _) = judge_shared(core(taken), StructureEnd::At(60));
            (kind, number)
        };
        assert_eq!(kind([1.0, 1.0, 0.0]), (VerdictKind::Found, Some(1.0)));
        assert_eq!(kind([0.0, 0.0, 0.0]), (VerdictKind::None, None));
        for differ in [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 1.0]] {
            assert_eq!(kind(differ), (VerdictKind::Unclear, None), "{differ:?}");
        }
        // More fit behind this chain than the class's own test found.
        let past = Shared { room: 90.0, ..core([1.0, 1.0, 0.0]) };
        assert_eq!(judge_shared(past, StructureEnd::At(60)).1, Some(1.0));
        // Another thread held a part when that test ran.
        let twice = Shared { room: 150.0, ..core([1.0, 1.0, 0.0]) };
        assert_eq!(judge_shared(twice, StructureEnd::At(60)).1, Some(1.0));
    }

    #[test]
    fn a_burst_is_rejected_and_a_size_must_be_known_and_large() {
        let core = |torn| Shared { room: 60.0, taken: [1.0, 1.0, 0.0], torn, searches: 0 };
        // A burst at the first search, and one at the last.
        assert_eq!(judge_shared(core(&[0, 4]), StructureEnd::At(60)).1, Some(1.0));
        let (kind, _, why) = judge_shared(core(&[]), StructureEnd::AtLeast(60));
        assert!(kind == VerdictKind::Unclear && why.starts_with("no test found"), "{why}");
        let (kind, _, why) = judge_shared(Shared { room: 10.0, ..core(&[]) }, StructureEnd::At(10));
        assert!(kind == VerdictKind::Unclear && why.ends_with("tell no part of a queue"), "{why}");
    }
}
