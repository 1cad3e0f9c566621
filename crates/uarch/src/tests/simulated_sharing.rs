//! Work with load on another CPU, if programs or their controls differ.

use crate::cost::{BackgroundCpus, CostPoint, MeasureCosts};
use crate::cpu_resources::CpuResources;
use crate::overlap::{MeasureOverlaps, OverlapProbe, OverlapReading};
use crate::partition::AloneBaseline;
use crate::record::UarchRecord;
use crate::sharing::run_sharing;
use crate::spec::{BackgroundLoad, Experiment, ProgramFamily, SharingSpec, TestSpec};
use crate::test_list::TESTS;
use crate::verdict::VerdictKind;
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_core::error::RunError;
use std::cell::Cell;

/// The state of the other CPU: how often its code was started, and whether it does the work now.
#[derive(Debug, Clone, Copy, Default)]
struct LoadCourse {
    begun: usize,
    works: bool,
}

/// A core with given costs, by the state of the other CPU and the program's index.
struct SharingCore<'a, F>(&'a Cell<LoadCourse>, &'static SharingSpec, F);

impl<F: Fn(LoadCourse, usize) -> f64> MeasureCosts for SharingCore<'_, F> {
    fn measure_cost(&mut self, family: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError> {
        let place = |variants: &[ProgramFamily; 2]| variants.iter().position(|variant| std::ptr::eq(variant, family));
        let variant = self.1.rows.iter().find_map(|row| place(&row.programs)).expect("it is a row's program");
        let cost = (self.2)(self.0.get(), variant);
        Ok(Some(CostPoint { n, cost, low: 0.99 * cost, high: 1.01 * cost }))
    }
}

impl<F> MeasureOverlaps for SharingCore<'_, F> {
    fn measure_overlaps(&mut self, _: &OverlapProbe, _: &[usize]) -> Result<Vec<OverlapReading>, RunError> {
        unreachable!("the test asks for no structures")
    }
}

/// The other CPU. It runs for a given share of the time, by the number of its starts.
struct SimulatedOtherCpu<'a, F>(&'a Cell<LoadCourse>, &'static SharingSpec, F);

impl<F: Fn(usize) -> f64> BackgroundCpus for SimulatedOtherCpu<'_, F> {
    fn start_load(&mut self, _: u32, load: BackgroundLoad, _: Option<ProgramMemory>) -> Result<(), RunError> {
        let begun = self.0.get().begun + 1;
        self.0.set(LoadCourse { begun, works: load.text != self.1.idle_load });
        Ok(())
    }

    fn stop_load(&mut self) -> Result<f64, RunError> {
        Ok((self.2)(self.0.get().begun))
    }
}

/// The first record of the test of false sharing.
fn first(cost: impl Fn(LoadCourse, usize) -> f64, share: impl Fn(usize) -> f64) -> UarchRecord {
    let find = |test: &&'static TestSpec| match &test.experiment {
        Experiment::Sharing(asked) if asked.structures.is_empty() => Some((*test, asked)),
        _ => None,
    };
    let (test, asked) = TESTS.iter().find_map(find).expect("a test asks for no structures");
    let course = Cell::new(LoadCourse::default());
    let cpu = CpuResources { has: &|_| false, memory: 0, shared: None };
    let alone = AloneBaseline { cpu: &cpu, size_of: &|_| None };
    let (mut core, mut other) = (SharingCore(&course, asked, cost), SimulatedOtherCpu(&course, asked, share));
    run_sharing(&mut core, &mut other, test, asked, &[5], &alone).expect("all is simulated").remove(0)
}

#[test]
fn both_programs_have_to_agree() {
    let judge =
        |ratios: [f64; 2]| first(|course, variant| if course.works { 4.0 * ratios[variant] } else { 4.0 }, |_| 0.99);
    let found = judge([2.0, 2.1]);
    assert_eq!((found.verdict, found.value.value), (VerdictKind::Found, Some(2.0)));
    for (ratios, why) in [([1.0, 2.0], "not every program shows it"), ([2.0, 3.0], "no two programs agree")] {
        let unclear = judge(ratios);
        assert!(unclear.verdict == VerdictKind::Unclear && unclear.why.starts_with(why), "{}", unclear.why);
    }
}

#[test]
fn the_control_runs_before_and_after() {
    for disturbed in [1, 3] {
        let cost = |course: LoadCourse, _| match course {
            LoadCourse { works: true, .. } => 8.0,
            LoadCourse { begun, .. } if begun == disturbed => 7.6,
            _ => 4.0,
        };
        let found = first(cost, |_| 0.99);
        assert_eq!(found.value.value, Some(2.0), "{}", found.why);
    }
}

#[test]
fn a_cpu_that_did_not_run_is_tried_again() {
    let cost = |course: LoadCourse, _| if course.works { 8.0 } else { 4.0 };
    assert_eq!(first(cost, |begun| if begun == 1 { 0.5 } else { 0.99 }).value.value, Some(2.0));
    assert_eq!(first(cost, |_| 0.5).verdict, VerdictKind::Unclear);
}
