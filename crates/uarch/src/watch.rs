//! Sizes that are looked at again while other tests run.
//!
//! What another thread of the core holds of a structure is not spare, and a thread that waits may hold some: of a Zen 4 whose other
//! thread belongs to another tenant 46 and 40 mask registers were spare in turn, each for some seconds, and once 168 integer
//! registers instead of 188, while nothing else showed that it ran. A test takes less time than that. So the records of sizes wait
//! until all tests are done; between tests the overlap at a size's edges is measured again, and where it has moved its end is
//! searched for. All the ends that were met are the interval, and the most is the value: what others hold is never more.

use super::conditions::Busy;
use super::knee::Knee;
use super::overlap::Overlaps;
use super::record::UarchRecord;
use super::search::{Ending, search};
use super::verdict::{Kind, Witness, same};
use cyclescope_core::error::RunError;

/// Sizes that are looked at between two tests.
const TOGETHER: usize = 2;
/// An end that is where it was overlaps by half at least before it, and by less behind it.
const HALF: f64 = 0.5;

/// A size and what was met of it.
#[derive(Debug)]
pub(super) struct Watched {
    record: UarchRecord,
    ending: Ending,
    looks: usize,
    /// Ends elsewhere.
    others: Vec<Knee>,
}

/// The sizes of tests that are done.
#[derive(Debug, Default)]
pub(super) struct Watch {
    sizes: Vec<Watched>,
    looks: usize,
}

impl Watch {
    /// Keeps records that are to be looked at again, and gives back the others.
    pub(super) fn take(&mut self, records: Vec<UarchRecord>) -> Vec<UarchRecord> {
        let mut rest = Vec::new();
        for record in records {
            match record.ending.filter(|_| record.verdict == Kind::Found) {
                Some(ending) => self.sizes.push(Watched { record, ending, looks: 0, others: Vec::new() }),
                None => rest.push(record),
            }
        }
        rest
    }

    /// Those whose turn it is.
    pub(super) fn due(&mut self) -> Vec<&mut Watched> {
        let from = self.looks % self.sizes.len().max(1);
        self.looks += TOGETHER;
        let together = TOGETHER.min(self.sizes.len());
        let (before, after) = self.sizes.split_at_mut(from);
        after.iter_mut().chain(before).take(together).collect()
    }

    /// The records, with what was met.
    pub(super) fn records(self) -> Vec<UarchRecord> {
        self.sizes.into_iter().map(Watched::record).collect()
    }
}

impl Watched {
    /// Where it ends now.
    pub(super) fn look(&self, core: &mut dyn Overlaps) -> Result<Option<Knee>, RunError> {
        let Ending { probe, most, knee } = self.ending;
        let points = core.at(&probe, &[knee.low, knee.high + 1])?;
        let here: Vec<bool> = points.iter().map(|point| point.overlap >= HALF).collect();
        if here == [true, false] {
            return Ok(Some(knee));
        }
        Ok(search(most, |counts| core.at(&probe, counts))?.knee.ok())
    }

    /// Takes what a look met. A curve without an end tells nothing, nor does one beside a busy sibling.
    pub(super) fn met(&mut self, knee: Option<Knee>, busy: Busy) {
        let Some(knee) = knee.filter(|_| !busy.counts()) else { return };
        self.looks += 1;
        if !same(knee, self.ending.knee) {
            self.others.push(knee);
        }
    }

    fn record(self) -> UarchRecord {
        let Watched { mut record, ending, looks, others } = self;
        if looks == 0 {
            return record;
        }
        let moved = others.len();
        let found = record.value;
        for knee in others {
            // A size is a knee and what the chains and their links take.
            let more = knee.high as f64 - ending.knee.high as f64;
            let value = &mut record.value;
            value.low = value.low.zip(found.low).map(|(least, low)| least.min(low + more));
            value.value = value.value.zip(found.value).map(|(most, one)| most.max(one + more));
            value.high = value.high.zip(found.high).map(|(most, high)| most.max(high + more));
        }
        let text = match moved {
            0 => format!("it ended there at {looks} other times too"),
            _ => format!(
                "it ended elsewhere at {moved} of {looks} other times: what another thread of the core holds is not spare"
            ),
        };
        if moved > 0 {
            record.why = format!("{}; {text}", record.why);
            record.told = Some(format!("elsewhere at {moved} of {looks} other times"));
        }
        record.witnesses.push(Witness { name: "other times", holds: moved == 0, text });
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overlap::{Point, Probe};
    use crate::test::chain::SQRTSD;
    use crate::test::{Filler, Look};
    use crate::trial::{Knees, Trials};
    use crate::window::masks;

    const ALONE: Busy = Busy { share: 0.0, of_all: 0.0 };

    /// A core in which so much is spare.
    struct Spare(usize);

    impl Overlaps for Spare {
        fn at(&mut self, probe: &Probe, counts: &[usize]) -> Result<Vec<Point>, RunError> {
            let occupied = probe.occupied.map_or(0, |(_, number)| number);
            let nothing = probe.filler.name == "nop";
            let overlap = |n: usize| if nothing || n + occupied <= self.0 { 0.98 } else { 0.04 };
            Ok(counts.iter().map(|&n| Point { n, overlap: overlap(n), fast: overlap(n) }).collect())
        }
    }

    /// A size of 40, looked at where so much is spare.
    fn after(spare: &[usize]) -> UarchRecord {
        let Look::Overlap(window) = &masks::TEST.look else { panic!("it is a size") };
        let fillers: Vec<&Filler> = masks::TEST.fillers().iter().collect();
        let mut core = Spare(40);
        let mut knees = Knees::new();
        let record = Trials::new(&mut core, &mut knees).run(&masks::TEST, window, &fillers).unwrap();
        assert_eq!((record.verdict, record.value.value), (Kind::Found, Some(40.0)), "{}", record.why);
        let mut watch = Watch::default();
        assert!(watch.take(vec![record]).is_empty());
        for spare in spare {
            for size in watch.due() {
                let knee = size.look(&mut Spare(*spare)).unwrap();
                size.met(knee, ALONE);
            }
        }
        watch.records().pop().unwrap()
    }

    fn interval(record: &UarchRecord) -> [Option<f64>; 3] {
        [record.value.low, record.value.value, record.value.high]
    }

    #[test]
    fn all_ends_that_were_met_are_the_interval_and_the_most_is_the_value() {
        assert_eq!(interval(&after(&[40, 46, 40, 46])), [Some(40.0), Some(46.0), Some(46.0)]);
        assert_eq!(interval(&after(&[42])), [Some(40.0); 3]);
        assert_eq!(interval(&after(&[34, 40])), [Some(34.0), Some(40.0), Some(40.0)]);
        let record = after(&[34, 46, 40]);
        assert_eq!(interval(&record), [Some(34.0), Some(46.0), Some(46.0)]);
        assert!(record.why.ends_with(
            "elsewhere at 2 of 3 other times: what another thread of the core holds is not spare"
        ));
        assert!(!record.witnesses.last().unwrap().holds);
        assert_eq!(record.told.as_deref(), Some("elsewhere at 2 of 3 other times"));
    }

    #[test]
    fn what_stays_is_told_as_a_witness() {
        let record = after(&[40, 40, 40]);
        assert_eq!(interval(&record), [Some(40.0); 3]);
        let witness = record.witnesses.last().unwrap();
        assert_eq!((witness.holds, witness.text.as_str()), (true, "it ended there at 3 other times too"));
        assert_eq!(after(&[]).witnesses.len() + 1, record.witnesses.len());
    }

    #[test]
    fn each_size_has_its_turn() {
        let ending = Ending {
            probe: Probe { head: SQRTSD, filler: &masks::TEST.fillers()[0], lead: 0, occupied: None },
            most: 100,
            knee: Knee { low: 40, high: 40 },
        };
        let mut watch = Watch::default();
        assert!(watch.due().is_empty());
        let records: Vec<UarchRecord> = (0..5)
            .map(|number| {
                let record = after(&[]);
                UarchRecord { ending: Some(ending), what: number.to_string(), ..record }
            })
            .collect();
        watch.take(records);
        for _ in 0..10 {
            watch.due().into_iter().for_each(|size| size.met(Some(ending.knee), ALONE));
        }
        let looks = 2 * TOGETHER;
        let text = format!("it ended there at {looks} other times too");
        for record in watch.records() {
            assert_eq!(record.witnesses.last().unwrap().text, text, "{}", record.what);
        }
    }

    #[test]
    fn a_look_beside_a_busy_sibling_tells_nothing() {
        let mut watch = Watch::default();
        watch.take(vec![after(&[])]);
        for size in watch.due() {
            let knee = size.look(&mut Spare(20)).unwrap();
            assert_eq!(knee, Some(Knee { low: 20, high: 20 }));
            size.met(knee, Busy { share: 0.5, of_all: 0.5 });
        }
        let record = watch.records().pop().unwrap();
        assert_eq!(
            (interval(&record), record.witnesses.len()),
            ([Some(40.0); 3], after(&[]).witnesses.len())
        );
    }

    #[test]
    fn what_is_no_size_does_not_wait() {
        let mut watch = Watch::default();
        let record = UarchRecord { verdict: Kind::Unclear, ..after(&[]) };
        let other = UarchRecord { ending: None, ..after(&[]) };
        assert_eq!(watch.take(vec![record, other]).len(), 2);
        assert!(watch.records().is_empty());
    }
}
