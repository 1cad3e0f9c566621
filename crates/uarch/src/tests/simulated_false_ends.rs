//! Windows in which overlaps end without a full structure. In each case one experiment detects
//! this, and there is no size.

use crate::knee_search::MIN_COUNT;
use crate::overlap::{MeasureOverlaps, OverlapProbe, OverlapReading};
use crate::overlap_test::{OverlapTester, StructureEnds};
use crate::record::UarchRecord;
use crate::spec::{Experiment, FirstChain, TestSpec};
use crate::test_list::TESTS;
use crate::verdict::VerdictKind;
use crate::window::reorder_buffer::NOP;
use cyclescope_core::error::RunError;

/// Fillers up to which the chains overlap.
const ROOM: usize = 60;
/// The same behind another first chain, if the first chain matters.
const BEHIND: usize = 45;
/// Extra entries of a core that allocates instructions in groups.
const MORE: usize = 6;

/// Why the overlap ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum EndCause {
    /// A structure is full in which each filler takes an entry.
    Entries,
    /// The first chain ends, as when fillers take longer.
    Chain,
    /// A structure that only the counted fillers occupy; earlier fillers take nothing of it.
    Counted,
    /// Slots that every instruction takes, including no-operations.
    Places,
    /// As `Entries`, but another thread comes and goes during the first run; earlier fillers take
    /// nothing.
    Thread,
    /// As `Entries`, but a burst disturbs every other search.
    Burst,
    /// As `Entries`, but more fit if a group of instructions begins with the last link.
    Group,
}

struct FalseEndWindow {
    cause: EndCause,
    first: FirstChain,
    /// Whether no-operations are fillers of the test, and no control.
    nops: bool,
    /// Searches so far, and searches with earlier fillers.
    searches: usize,
    occupied: usize,
}

impl MeasureOverlaps for FalseEndWindow {
    fn measure_overlaps(&mut self, probe: &OverlapProbe, counts: &[usize]) -> Result<Vec<OverlapReading>, RunError> {
        let FalseEndWindow { cause, first, nops, .. } = *self;
        // A search begins with few fillers.
        let begins = usize::from(counts[0] == MIN_COUNT && counts.len() > 1);
        self.searches += begins;
        self.occupied += begins * usize::from(probe.occupied.is_some());
        let chain = |head: &FirstChain| (head.link, head.link_count);
        let another = chain(&probe.first_chain) != chain(&first);
        let room = match cause {
            EndCause::Chain if another => BEHIND,
            EndCause::Group if probe.lead_nops == 3 => ROOM + MORE,
            _ => ROOM,
        };
        let occupied = probe.occupied.map_or(0, |(_, number)| number);
        let unmoved = cause == EndCause::Counted || cause == EndCause::Thread && self.occupied == 1;
        let before = if unmoved { 0 } else { occupied };
        let control = probe.filler.name == NOP.name && !nops && cause != EndCause::Places;
        let torn = cause == EndCause::Burst && self.searches % 2 == 1;
        let point = |(place, n): (usize, &usize)| {
            let overlap = match n + before <= room || control {
                _ if torn => [0.9, 0.1, 0.5][place % 3],
                true => 0.95,
                false => 0.05,
            };
            OverlapReading { n: *n, overlap, fast: f64::from(u8::from(overlap > 0.5)) }
        };
        Ok(counts.iter().enumerate().map(point).collect())
    }
}

/// Whether a test has no-operations as fillers.
fn counts_nops(test: &TestSpec) -> bool {
    test.fillers().iter().any(|filler| filler.name == NOP.name)
}

fn measured(test: &'static TestSpec, cause: EndCause) -> Option<UarchRecord> {
    let Experiment::Overlap(window) = &test.experiment else { return None };
    let fillers: Vec<_> = test.fillers().iter().collect();
    let mut core =
        FalseEndWindow { cause, first: window.first_chains[0][0], nops: counts_nops(test), searches: 0, occupied: 0 };
    let mut knees = StructureEnds::new();
    Some(OverlapTester::new(&mut core, &mut knees).run(test, window, &fillers).expect("all is simulated"))
}

#[test]
fn an_end_is_a_size_only_if_every_experiment_agrees() {
    for test in TESTS {
        let Some(record) = measured(test, EndCause::Entries) else { continue };
        assert_eq!(record.verdict, VerdictKind::Found, "{}: {}", test.name, record.why);
        for (cause, name) in [
            (EndCause::Chain, "another first chain"),
            (EndCause::Counted, "entries that were occupied"),
            (EndCause::Places, "no-operations"),
        ] {
            if cause == EndCause::Places && counts_nops(test) {
                continue;
            }
            let record = measured(test, cause).expect("it is one of the window");
            assert_eq!(record.verdict, VerdictKind::Unclear, "{}, {cause:?}: {}", test.name, record.why);
            assert!(record.why.starts_with(name), "{}, {cause:?}: {}", test.name, record.why);
            let failed = record.witnesses.iter().filter(|witness| !witness.holds);
            assert_eq!(failed.map(|witness| witness.name.clone()).collect::<Vec<_>>(), [name], "{}", test.name);
        }
    }
}

#[test]
fn a_sibling_that_comes_and_goes_hides_no_size() {
    for test in TESTS {
        for cause in [EndCause::Thread, EndCause::Burst] {
            let Some(record) = measured(test, cause) else { continue };
            assert_eq!(record.verdict, VerdictKind::Found, "{}, {cause:?}: {}", test.name, record.why);
        }
    }
}

#[test]
fn a_core_that_allocates_in_groups_shows_all_entries() {
    let named = |name: &str| *TESTS.iter().find(|test| test.name == name).expect("it is in the list");
    let test = named("rob");
    let Experiment::Overlap(window) = &test.experiment else { panic!("it is one of the window") };
    let record = measured(test, EndCause::Group).expect("it is one of the window");
    let entries = (ROOM + MORE + window.chain_entries) as f64;
    assert_eq!((record.verdict, record.value.value), (VerdictKind::Found, Some(entries)), "{}", record.why);
}
