//! Counted events as witnesses of a knee: before it and behind it.
//!
//! Which events a knee must show is data. A cache's size, for example, is where its misses begin. If
//! such an event does not rise there, the record has a caveat. Other events are reported without a
//! judgement.

use super::knee_counter::KneeCounter;
use super::record::UarchRecord;
use super::spec::{Experiment, ProgramFamily, TestSpec};
use super::step_counts::CountSteps;
use super::verdict::VerdictKind;
use cyclescope_core::error::RunError;
use cyclescope_core::unit::Unit;
use cyclescope_measure::result::caveat::{Caveat, CaveatKind};
use cyclescope_measure::result::counter_record::CountedEvents;

/// Events that begin at a knee.
struct KneeEvents {
    /// The records of the knee.
    whats: &'static [&'static str],
    /// The names of the events: those of a core's table, and perf's.
    names: &'static [&'static str],
    /// How many more of them a step causes behind the knee, at least.
    min_rise: f64,
}

/// Misses per load: beyond a level, most loads of a ring in random order miss it.
const MOST_LOADS: f64 = 0.5;
/// Mispredictions per step, where steps take some cycles longer: a misprediction costs 10 to 25.
const SOME_STEPS: f64 = 0.05;

const KNEE_EVENTS: &[KneeEvents] = &[
    KneeEvents {
        whats: &["data_caches.1.size", "data_caches_huge.1.size"],
        names: &["l1-misses", "l1-replacements", "l1-fills", "L1-dcache-load-misses"],
        min_rise: MOST_LOADS,
    },
    KneeEvents {
        whats: &["data_caches.2.size", "data_caches_huge.2.size"],
        names: &["l2-misses"],
        min_rise: MOST_LOADS,
    },
    KneeEvents { whats: &["data_caches.3.size"], names: &["l3-misses", "LLC-load-misses"], min_rise: MOST_LOADS },
    KneeEvents { whats: &["data_tlb.2.size"], names: &["load-page-walks"], min_rise: MOST_LOADS },
    KneeEvents {
        whats: &["direction_predictor.1.size", "predictor_reach.1.size", "return_stack"],
        names: &["branch-misses", "mispredicted-branches"],
        min_rise: SOME_STEPS,
    },
];

/// How far from a knee events are counted: at this share of its low edge, or before, and at this
/// multiple of its high edge, or behind.
const BEFORE: f64 = 0.75;
const BEHIND: f64 = 1.5;

/// Counts events beside each knee of a test's records.
pub(super) fn count_beside_knees(
    core: &mut dyn CountSteps,
    test: &TestSpec,
    records: &mut [UarchRecord],
) -> Result<(), RunError> {
    let walk = records.iter().flat_map(|record| &record.walks).next();
    let counts: Vec<usize> = walk.map_or(Vec::new(), |walk| walk.curve.iter().map(|point| point.n).collect());
    let family = walk.and_then(|walk| list_families(test).find(|family| family.name == walk.name));
    for record in records.iter_mut().filter(|record| record.verdict == VerdictKind::Found) {
        if let Some(knee) = record.probed_knee {
            let [low, high] = [knee.knee.low, knee.knee.high];
            let [before, behind] = [(BEFORE * low as f64) as usize, (BEHIND * high as f64).ceil() as usize];
            let counted = [core.count_chains(&knee.probe, before)?, core.count_chains(&knee.probe, behind)?];
            record.add_counters([before, behind], &counted);
            continue;
        }
        let is_size = walked_unit(test) == Some(record.value.unit);
        let (Some(family), Some(low), Some(high), true) = (family, record.value.low, record.value.high, is_size) else {
            continue;
        };
        let before = counts.iter().copied().filter(|n| *n as f64 <= BEFORE * low).max();
        let behind = counts.iter().copied().filter(|n| *n as f64 >= BEHIND * high).min();
        if let (Some(before), Some(behind)) = (before, behind) {
            let counted = [core.count_step(family, before)?, core.count_step(family, behind)?];
            record.add_counters([before, behind], &counted);
        }
    }
    Ok(())
}

/// The programs of a test whose curves have knees.
fn list_families(test: &TestSpec) -> impl Iterator<Item = &'static ProgramFamily> {
    let (programs, fallback): (&'static [ProgramFamily], &'static [ProgramFamily]) = match &test.experiment {
        Experiment::Levels(levels) => (levels.programs, levels.fallback_programs),
        Experiment::Batches(batches) => (batches.programs, &[]),
        _ => (&[], &[]),
    };
    programs.iter().chain(fallback)
}

/// The unit of sizes of such a test.
fn walked_unit(test: &TestSpec) -> Option<Unit> {
    match &test.experiment {
        Experiment::Levels(levels) => Some(levels.unit),
        Experiment::Batches(_) => Some(Unit::Count),
        _ => None,
    }
}

impl UarchRecord {
    /// Adds events that were counted before the knee and behind it.
    fn add_counters(&mut self, at: [usize; 2], [before, behind]: &[CountedEvents; 2]) {
        let expected = KNEE_EVENTS.iter().find(|events| events.whats.contains(&self.what.as_ref()));
        for (before, behind) in before.counters.iter().zip(&behind.counters) {
            let rise = behind.quantity.value.zip(before.quantity.value).map(|(behind, before)| behind - before);
            let of_event = expected.filter(|events| events.names.contains(&before.name.as_str()));
            let agrees = of_event.zip(rise).map(|(events, rise)| rise >= events.min_rise);
            if let (Some(false), Some(events), Some(rise)) = (agrees, of_event, rise) {
                let text = format!(
                    "a step behind this knee, at {}, causes {rise:.3} more {} than one before it, at {}: at least {} \
                     are expected",
                    at[1], before.name, at[0], events.min_rise
                );
                self.caveats.push(Caveat { code: CaveatKind::CountersDisagree, text });
            }
            self.counters.push(KneeCounter {
                name: before.name.clone(),
                at,
                before: before.quantity,
                behind: behind.quantity,
                agrees,
                lost: before.lost.clone().or_else(|| behind.lost.clone()),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::CostPoint;
    use crate::level_records::size_key;
    use crate::overlap::OverlapProbe;
    use crate::record::WalkRecord;
    use crate::test_list::find_test;
    use crate::verdict::TestVerdict;
    use cyclescope_core::statistics::Interval;
    use cyclescope_measure::result::counter_record::CounterRecord;
    use cyclescope_measure::result::record::Quantity;
    use cyclescope_sim::{HeldShares, MemoryHierarchy};

    /// A core whose counter of misses knows its caches; or another one that never counts.
    struct CountedRings {
        hierarchy: MemoryHierarchy,
        is_right: bool,
    }

    impl CountSteps for CountedRings {
        fn count_step(&mut self, family: &ProgramFamily, n: usize) -> Result<CountedEvents, RunError> {
            let cost = self.hierarchy.cost_of_load(&family.program(n).memory, &HeldShares::default());
            let first = self.hierarchy.caches[0].cost;
            let misses = if self.is_right && cost > 1.5 * first { 1.0 } else { 0.0 };
            let counter = |name: &str, value: f64| CounterRecord {
                name: name.to_string(),
                quantity: Quantity::new(Interval::with_margin(value, 0.01), Unit::Count),
                pass: 1,
                lost: None,
            };
            let counters = vec![counter("l1-misses", misses), counter("instructions", 1.0)];
            Ok(CountedEvents { counters, passes: 1, cycles: None })
        }

        fn count_chains(&mut self, _: &OverlapProbe, _: usize) -> Result<CountedEvents, RunError> {
            unreachable!("caches have no chains")
        }
    }

    /// The record of the first cache of this size, with the counts of a curve.
    fn record_first_cache(bytes: f64) -> UarchRecord {
        let test = find_test("data_caches");
        let size = Some(Interval::with_margin(bytes, 0.0));
        let verdict = TestVerdict { size, ..TestVerdict::new(VerdictKind::Found, "it is simulated") };
        let mut record = UarchRecord::new(test, "data_caches.1.size".to_string(), verdict, Unit::Bytes);
        let curve = (2..9).map(|n| CostPoint { n: 1 << (11 + n), cost: 4.0, low: 4.0, high: 4.0 }).collect();
        record.walks.push(WalkRecord { name: "each line".into(), levels: Vec::new(), curve });
        record
    }

    #[test]
    fn misses_begin_at_the_knee_of_the_first_cache() {
        let hierarchy = MemoryHierarchy::from_seed(3);
        let bytes = hierarchy.caches[0].bytes;
        for is_right in [true, false] {
            let mut records = vec![record_first_cache(bytes)];
            let mut core = CountedRings { hierarchy: hierarchy.clone(), is_right };
            count_beside_knees(&mut core, find_test("data_caches"), &mut records).expect("nothing fails");
            let [misses, instructions] = &records[0].counters[..] else { panic!("two events are counted") };
            assert!((misses.at[0] as f64) < bytes && misses.at[1] as f64 > bytes, "{:?}", misses.at);
            assert_eq!((misses.agrees, instructions.agrees), (Some(is_right), None));
            let caveats: Vec<CaveatKind> = records[0].caveats.iter().map(|caveat| caveat.code).collect();
            assert_eq!(caveats, if is_right { vec![] } else { vec![CaveatKind::CountersDisagree] });
        }
    }

    #[test]
    fn expected_events_belong_to_records_of_tests() {
        let of_test = |what: &str| {
            let test = find_test(what.split('.').next().unwrap_or_default());
            let Experiment::Levels(spec) = &test.experiment else { return false };
            (0..3).any(|number| size_key(test, spec, number) == what)
        };
        let whats = || KNEE_EVENTS.iter().flat_map(|events| events.whats);
        assert!(whats().all(|what| of_test(what)), "{:?}", whats().find(|what| !of_test(what)));
    }
}
