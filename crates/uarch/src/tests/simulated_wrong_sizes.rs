//! Sizes that depend on another one, which was measured while another thread held a part. A first
//! wrong size must make no later one wrong.

use crate::overlap::{MeasureOverlaps, OverlapProbe, OverlapReading};
use crate::overlap_test::{OverlapTester, StructureEnds};
use crate::record::UarchRecord;
use crate::spec::{Experiment, FillerSpec};
use crate::test_list::find_test;
use crate::verdict::VerdictKind;
use cyclescope_core::error::RunError;

/// A core whose two structures have these sizes.
struct TwoStructures {
    /// Instructions in the reorder buffer.
    rob: usize,
    /// Results in integer registers.
    registers: usize,
}

impl MeasureOverlaps for TwoStructures {
    fn measure_overlaps(&mut self, probe: &OverlapProbe, counts: &[usize]) -> Result<Vec<OverlapReading>, RunError> {
        let takes_register = probe.filler.also_occupies.contains(&"rob");
        let room = if takes_register { self.rob.min(self.registers) } else { self.rob };
        let before = probe.occupied.map_or(0, |(_, number)| number);
        let overlap = |n: usize| if n + before <= room { 0.95 } else { 0.05 };
        Ok(counts.iter().map(|&n| OverlapReading { n, overlap: overlap(n), fast: overlap(n).round() }).collect())
    }
}

/// The record of the integer registers, if the reorder buffer has these entries when each of both
/// tests runs.
fn registers_behind(rob: [usize; 2], registers: usize) -> UarchRecord {
    let mut knees = StructureEnds::new();
    let mut record = None;
    for (name, rob) in ["rob", "int_registers"].into_iter().zip(rob) {
        let test = find_test(name);
        let Experiment::Overlap(window) = &test.experiment else { panic!("{name} is one of the window") };
        let fillers: Vec<&FillerSpec> = test.fillers().iter().collect();
        let mut core = TwoStructures { rob, registers };
        record = Some(OverlapTester::new(&mut core, &mut knees).run(test, window, &fillers).expect("it is simulated"));
    }
    record.expect("both ran")
}

#[test]
fn a_first_wrong_size_makes_no_later_size_wrong() {
    for (rob, registers, kind, size) in [
        ([320, 320], 180, VerdictKind::Found, Some(180.0)),
        // Another thread held half of the buffer when its test ran: it ended near these registers.
        ([160, 320], 162, VerdictKind::Found, Some(162.0)),
        ([160, 320], 250, VerdictKind::Found, Some(250.0)),
        // It holds half of it now, which all fillers meet.
        ([320, 160], 250, VerdictKind::Limited, None),
        ([320, 160], 120, VerdictKind::Found, Some(120.0)),
    ] {
        let record = registers_behind(rob, registers);
        assert_eq!((record.verdict, record.value.value), (kind, size), "{rob:?} {registers}: {}", record.why);
    }
}
