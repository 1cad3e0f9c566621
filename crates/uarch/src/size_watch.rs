//! Checks sizes again while other tests run.
//!
//! Another thread of the core takes a part of a structure, and a waiting thread may do so too. On a
//! Zen 4 whose sibling belonged to another tenant, 46 and 40 mask registers were spare in turn,
//! each for some seconds. Once 168 integer registers were spare instead of 188, without any other
//! trace of the sibling. A test takes less time than that. So the records of sizes wait until all
//! tests are done. Between tests, the overlap at the edges of a size is measured again. A size that
//! has moved is searched for again. The interval spans all ends that were found, and the largest is
//! the value: other threads only make a structure smaller. If the end has moved, the record also
//! has the size alone, the largest, and as a tenant, with what the other thread held. Checks beside a
//! busy sibling count for the latter only.

use super::conditions::BusyShare;
use super::knee::KneeEdges;
use super::knee_search::ProbedKnee;
use super::overlap::MeasureOverlaps;
use super::record::UarchRecord;
use super::verdict::{VerdictKind, WitnessResult, is_same_knee};
use cyclescope_core::error::RunError;
use cyclescope_measure::result::record::Quantity;

/// Sizes to check between two tests.
const SIZES_PER_CHECK: usize = 2;

/// A size and its rechecks.
#[derive(Debug)]
pub(super) struct WatchedSize {
    record: UarchRecord,
    ending: ProbedKnee,
    recheck_count: usize,
    /// Knees elsewhere.
    other_knees: Vec<KneeEdges>,
    /// Knees beside a busy sibling.
    shared_knees: Vec<KneeEdges>,
}

/// The sizes of completed tests.
#[derive(Debug, Default)]
pub(super) struct SizeWatch {
    sizes: Vec<WatchedSize>,
    recheck_count: usize,
}

impl SizeWatch {
    /// Keeps the records to check again, and returns the others.
    pub(super) fn take_sizes(&mut self, records: Vec<UarchRecord>) -> Vec<UarchRecord> {
        let mut rest = Vec::new();
        for record in records {
            match record.probed_knee.filter(|_| record.verdict == VerdictKind::Found) {
                Some(ending) => {
                    let (other_knees, shared_knees) = Default::default();
                    self.sizes.push(WatchedSize { record, ending, recheck_count: 0, other_knees, shared_knees })
                }
                None => rest.push(record),
            }
        }
        rest
    }

    /// The sizes whose turn it is.
    pub(super) fn due_sizes(&mut self) -> Vec<&mut WatchedSize> {
        let from = self.recheck_count % self.sizes.len().max(1);
        self.recheck_count += SIZES_PER_CHECK;
        let together = SIZES_PER_CHECK.min(self.sizes.len());
        let (before, after) = self.sizes.split_at_mut(from);
        after.iter_mut().chain(before).take(together).collect()
    }

    /// A test's size, with the ends of all checks so far.
    pub(super) fn present_size(&self, test: &str) -> Option<Quantity> {
        self.sizes.iter().find(|size| size.record.what == test).map(WatchedSize::present_size)
    }

    /// The records, with the results of all rechecks.
    pub(super) fn into_records(self) -> Vec<UarchRecord> {
        self.sizes.into_iter().map(WatchedSize::into_record).collect()
    }
}

impl WatchedSize {
    /// The present knee.
    pub(super) fn recheck_knee(&self, core: &mut dyn MeasureOverlaps) -> Result<Option<KneeEdges>, RunError> {
        self.ending.recheck(|probe, counts| core.measure_overlaps(probe, counts))
    }

    /// Records a recheck. It ignores curves without a knee.
    pub(super) fn record_recheck(&mut self, knee: Option<KneeEdges>, busy: BusyShare) {
        let Some(knee) = knee else { return };
        if busy.is_significant() {
            self.shared_knees.push(knee);
            return;
        }
        self.recheck_count += 1;
        if !is_same_knee(knee, self.ending.knee) {
            self.other_knees.push(knee);
        }
    }

    /// The size, with the ends of all checks on an idle core: the interval spans them.
    pub(super) fn present_size(&self) -> Quantity {
        let found = self.record.value;
        self.other_knees.iter().fold(found, |value, knee| {
            let [low, one, high] = self.sizes_at(*knee);
            Quantity {
                low: value.low.zip(low).map(|(least, low)| least.min(low)),
                value: value.value.zip(one).map(|(most, one)| most.max(one)),
                high: value.high.zip(high).map(|(most, high)| most.max(high)),
                ..value
            }
        })
    }

    /// The size and its interval if the structure ends at this knee. A size includes the knee, and
    /// the entries of the chains and their links.
    fn sizes_at(&self, knee: KneeEdges) -> [Option<f64>; 3] {
        let more = knee.high as f64 - self.ending.knee.high as f64;
        let Quantity { low, value, high, .. } = self.record.value;
        [low, value, high].map(|edge| edge.map(|edge| edge + more))
    }

    /// The size with what the other thread held, and how many checks saw it: the ends before the
    /// largest one.
    fn tenant_size(&self) -> Option<(Quantity, usize)> {
        let ends = || [self.ending.knee].into_iter().chain(self.other_knees.iter().chain(&self.shared_knees).copied());
        let largest =
            [self.ending.knee].into_iter().chain(self.other_knees.iter().copied()).max_by_key(|knee| knee.high)?;
        let less = |knee: &KneeEdges| knee.high < largest.high && !is_same_knee(*knee, largest);
        let least = ends().filter(less).min_by_key(|knee| knee.high)?;
        let most = ends().filter(less).max_by_key(|knee| knee.high)?;
        let ([low, value, _], [.., high]) = (self.sizes_at(least), self.sizes_at(most));
        // Checks that found the first end again are not listed.
        let again = if less(&self.ending.knee) { self.recheck_count - self.other_knees.len() } else { 0 };
        let times = again + ends().skip(1).filter(less).count();
        Some((Quantity { low, value, high, ..self.record.value }, times))
    }

    fn into_record(self) -> UarchRecord {
        let present = self.present_size();
        let tenant = self.tenant_size();
        let WatchedSize { mut record, recheck_count: looks, other_knees: others, shared_knees: shared, .. } = self;
        if let Some((held, _)) = tenant {
            record.alone = Some(Quantity { low: present.value, ..present });
            record.as_tenant = Some(held);
        }
        record.value = present;
        let moved = others.len();
        if let (Some(alone), Some((held, times))) = (present.value, tenant) {
            let [least, most] = [held.value, held.high].map(Option::unwrap_or_default);
            let held = if least < most { format!("{least} to {most}") } else { format!("{least}") };
            let checks = looks + shared.len();
            record.told = Some(format!("{alone} alone, {held} as a tenant, at {times} of {checks} other times"));
        }
        if looks == 0 {
            return record;
        }
        let text = match moved {
            0 => format!("it ended there at {looks} other times too"),
            _ => format!(
                "it ended elsewhere at {moved} of {looks} other times: what another thread of the core holds is not \
                 spare"
            ),
        };
        if moved > 0 {
            record.why = format!("{}; {text}", record.why);
        }
        record.witnesses.push(WitnessResult { name: "other times".into(), holds: moved == 0, text });
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overlap::{OverlapProbe, OverlapReading};
    use crate::overlap_test::{OverlapTester, StructureEnds};
    use crate::spec::{Experiment, FillerSpec, SQRTSD};
    use crate::test_list::find_test;

    const ALONE: BusyShare = BusyShare { share: 0.0, of_all: 0.0 };

    /// A core with this number of spare entries.
    struct Spare(usize);

    impl MeasureOverlaps for Spare {
        fn measure_overlaps(
            &mut self,
            probe: &OverlapProbe,
            counts: &[usize],
        ) -> Result<Vec<OverlapReading>, RunError> {
            let occupied = probe.occupied.map_or(0, |(_, number)| number);
            let nothing = probe.filler.name == "nop";
            let overlap = |n: usize| if nothing || n + occupied <= self.0 { 0.98 } else { 0.04 };
            Ok(counts.iter().map(|&n| OverlapReading { n, overlap: overlap(n), fast: overlap(n) }).collect())
        }
    }

    /// A size of 40, rechecked with these numbers of spare entries.
    fn after(spare: &[usize]) -> UarchRecord {
        let Experiment::Overlap(window) = &find_test("mask_registers").experiment else { panic!("it is a size") };
        let fillers: Vec<&FillerSpec> = find_test("mask_registers").fillers().iter().collect();
        let mut core = Spare(40);
        let mut knees = StructureEnds::new();
        let record =
            OverlapTester::new(&mut core, &mut knees).run(find_test("mask_registers"), window, &fillers).unwrap();
        assert_eq!((record.verdict, record.value.value), (VerdictKind::Found, Some(40.0)), "{}", record.why);
        let mut watch = SizeWatch::default();
        assert!(watch.take_sizes(vec![record]).is_empty());
        for spare in spare {
            for size in watch.due_sizes() {
                let knee = size.recheck_knee(&mut Spare(*spare)).unwrap();
                size.record_recheck(knee, ALONE);
            }
        }
        watch.into_records().pop().unwrap()
    }

    fn interval(record: &UarchRecord) -> [Option<f64>; 3] {
        [record.value.low, record.value.value, record.value.high]
    }

    #[test]
    fn the_interval_spans_all_ends_and_the_value_is_the_largest() {
        assert_eq!(interval(&after(&[40, 46, 40, 46])), [Some(40.0), Some(46.0), Some(46.0)]);
        assert_eq!(interval(&after(&[42])), [Some(40.0); 3]);
        assert_eq!(interval(&after(&[34, 40])), [Some(34.0), Some(40.0), Some(40.0)]);
        let record = after(&[34, 46, 40]);
        assert_eq!(interval(&record), [Some(34.0), Some(46.0), Some(46.0)]);
        assert!(
            record.why.ends_with("elsewhere at 2 of 3 other times: what another thread of the core holds is not spare")
        );
        assert!(!record.witnesses.last().unwrap().holds);
        assert_eq!(record.told.as_deref(), Some("46 alone, 34 to 40 as a tenant, at 2 of 3 other times"));
        let edges = |size: Option<Quantity>| size.map(|size| [size.low, size.value, size.high].map(Option::unwrap));
        assert_eq!([edges(record.alone), edges(record.as_tenant)], [Some([46.0; 3]), Some([34.0, 34.0, 40.0])]);
        let stable = after(&[40, 40]);
        assert!(stable.alone.is_none() && stable.as_tenant.is_none() && stable.told.is_none());
    }

    #[test]
    fn a_stable_size_is_reported_as_a_witness() {
        let record = after(&[40, 40, 40]);
        assert_eq!(interval(&record), [Some(40.0); 3]);
        let witness = record.witnesses.last().unwrap();
        assert_eq!((witness.holds, witness.text.as_str()), (true, "it ended there at 3 other times too"));
        assert_eq!(after(&[]).witnesses.len() + 1, record.witnesses.len());
    }

    #[test]
    fn each_size_has_its_turn() {
        let ending = ProbedKnee {
            probe: OverlapProbe {
                first_chain: SQRTSD,
                filler: &find_test("mask_registers").fillers()[0],
                lead_nops: 0,
                occupied: None,
            },
            max_fillers: 100,
            knee: KneeEdges { low: 40, high: 40 },
        };
        let mut watch = SizeWatch::default();
        assert!(watch.due_sizes().is_empty());
        let records: Vec<UarchRecord> = (0..5)
            .map(|number| {
                let record = after(&[]);
                UarchRecord { probed_knee: Some(ending), what: number.to_string(), ..record }
            })
            .collect();
        watch.take_sizes(records);
        for _ in 0..10 {
            watch.due_sizes().into_iter().for_each(|size| size.record_recheck(Some(ending.knee), ALONE));
        }
        let looks = 2 * SIZES_PER_CHECK;
        let text = format!("it ended there at {looks} other times too");
        for record in watch.into_records() {
            assert_eq!(record.witnesses.last().unwrap().text, text, "{}", record.what);
        }
    }

    #[test]
    fn a_check_with_a_busy_sibling_shows_a_tenants_size_only() {
        let mut watch = SizeWatch::default();
        watch.take_sizes(vec![after(&[])]);
        for size in watch.due_sizes() {
            let knee = size.recheck_knee(&mut Spare(20)).unwrap();
            assert_eq!(knee, Some(KneeEdges { low: 20, high: 20 }));
            size.record_recheck(knee, BusyShare { share: 0.5, of_all: 0.5 });
        }
        let record = watch.into_records().pop().unwrap();
        assert_eq!((interval(&record), record.witnesses.len()), ([Some(40.0); 3], after(&[]).witnesses.len()));
        let values = [record.alone, record.as_tenant].map(|size| size.and_then(|size| size.value));
        assert_eq!(values, [Some(40.0), Some(20.0)]);
        assert_eq!(record.told.as_deref(), Some("40 alone, 20 as a tenant, at 1 of 1 other times"));
    }

    #[test]
    fn records_without_a_size_do_not_wait() {
        let mut watch = SizeWatch::default();
        let record = UarchRecord { verdict: VerdictKind::Unclear, ..after(&[]) };
        let other = UarchRecord { probed_knee: None, ..after(&[]) };
        assert_eq!(watch.take_sizes(vec![record, other]).len(), 2);
        assert!(watch.into_records().is_empty());
    }
}
