//! Fillers alone beside the bodies that count dispatch slots: they show whether a layout fits the scale.
//!
//! The scale is measured once, and bodies later. Meanwhile another user of the core may come or go. If it takes few
//! slots, no sentinel sees it: on Zen 3, fillers took 3 to 4 % longer beside a shell's loop, so that each
//! instance seemed to take a slot more. Fillers in the same rounds take longer too.

use super::filler_curves::{FillerCurves, build_filler_loop};
use super::program_reading::ProgramReading;
use super::timing::{LoopedProgram, ProgramTimer, ProgramTiming};
use crate::bodies::slot_filler::SlotFiller;

/// A loop of fillers alone, and what it takes on the scale.
#[derive(Debug, Clone, Copy)]
pub(super) struct FillerCheck {
    filler: SlotFiller,
    vex: bool,
    /// The number of fillers.
    count: usize,
    /// Core cycles of an iteration on the scale.
    cycles: f64,
}

impl FillerCheck {
    /// The check of bodies of about this many slots. `None` without a scale.
    pub(super) fn new(curves: &FillerCurves, slots: usize, vex: bool) -> Option<FillerCheck> {
        let (filler, count, cycles) = curves.find_fastest_loop(slots, vex)?;
        Some(FillerCheck { filler, vex, count, cycles })
    }

    /// Its program, with a longest call of about this many core cycles.
    pub(super) fn build_program(&self, timer: &ProgramTimer, call: f64) -> LoopedProgram {
        let loops = (call / 4.0 / self.cycles).max(1.0) as u64;
        build_filler_loop(timer, self.filler, self.vex, self.count, loops)
    }

    /// How much longer than on the scale the fillers took in a layout, as a share. `None` if the
    /// layout does not tell.
    pub(super) fn find_lost_share(&self, timing: &ProgramTiming) -> Option<f64> {
        let mut reading = ProgramReading::default();
        reading.add_rate_layout(timing);
        reading.cycles.first().map(|cycles| cycles / self.cycles - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::filler_curves::tests::curves_with_rates;
    use super::*;

    #[test]
    fn a_layout_loses_what_its_fillers_take_longer() {
        let curves = curves_with_rates(&[(SlotFiller::ZeroIdiom, 6.0), (SlotFiller::Move, 5.9)]);
        let check = FillerCheck::new(&curves, 100, false).unwrap();
        let lost = |cycles: f64| {
            let rounds = |figure: f64| vec![figure; 3];
            let (cycles, bend, floor) = (rounds(cycles), rounds(0.0), rounds(0.9 * cycles));
            check.find_lost_share(&ProgramTiming { whole: cycles.clone(), cycles, bend, floor, ..Default::default() })
        };
        assert!(lost(97.0 / 6.0).unwrap().abs() < 1e-9);
        assert!((lost(1.04 * 97.0 / 6.0).unwrap() - 0.04).abs() < 1e-9);
        assert!((lost(0.98 * 97.0 / 6.0).unwrap() + 0.02).abs() < 1e-9);
        assert_eq!(check.find_lost_share(&ProgramTiming::default()), None);
        assert!(FillerCheck::new(&FillerCurves::default(), 100, false).is_none());
    }
}
