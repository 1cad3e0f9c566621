//! What a sibling leaves of a structure, and whether it has to fill the structure for that.
//!
//! If a part is lost as soon as the sibling executes anything, the structure is partitioned. If
//! PAUSE on the sibling leaves it whole and load that fills it does not, the siblings compete for
//! it.

use super::cost::BackgroundCpus;
use super::cpu_resources::CpuResources;
use super::overlap::MeasureOverlaps;
use super::overlap_test::{OverlapTester, StructureEnds};
use super::spec::{BackgroundLoad, Experiment, SharingSpec};
use super::test_list::TESTS;
use super::verdict::{TestVerdict, VerdictKind};
use cyclescope_core::error::RunError;
use cyclescope_core::statistics::Interval;

/// The slowdown above which two CPUs surely share a core, if the work uses nothing outside the
/// core.
const SAME_CORE: f64 = 1.5;
/// The largest remaining share of a structure that shows a loss.
const LEFT_SHARE: f64 = 0.9;
/// The least share of the time in which the other CPU has to execute its code.
const BUSY_SHARE: f64 = 0.9;

/// The largest number of fillers per structure, as each is measured twice. A size needs two that
/// agree.
const MAX_FILLERS: usize = 3;

/// Sizes of the structures while the sibling is idle.
pub(super) struct AloneBaseline<'a> {
    /// The fillers that this CPU can execute.
    pub cpu: &'a CpuResources<'a>,
    /// The size that the test of this name found.
    pub size_of: &'a dyn Fn(&str) -> Option<Interval>,
}

/// The evidence that a CPU is the sibling, from the slowdown of each kind of work; or a verdict if
/// it is not the sibling or this is unknown.
pub(super) fn judge_shared_core(
    sharing: &SharingSpec,
    verdicts: &[TestVerdict],
    cpu: u32,
) -> Result<&'static str, TestVerdict> {
    let first = &verdicts[0];
    if first.kind == VerdictKind::Found && first.size.is_some_and(|size| size.value >= SAME_CORE) {
        return Ok("; both CPUs are of one core");
    }
    // The first kind of work is bound by a resource that no two cores share.
    let apart = sharing
        .rows
        .iter()
        .zip(verdicts)
        .find(|(work, verdict)| sharing.sibling_proofs.contains(&work.name) && verdict.kind == VerdictKind::None);
    Err(match apart {
        Some((work, _)) => {
            let why = format!("CPU {cpu} does not share this core: {} takes no longer", work.name);
            TestVerdict::new(VerdictKind::None, why)
        }
        None => TestVerdict::new(VerdictKind::Unclear, "whether another CPU shares this core is not known".to_string()),
    })
}

/// What another CPU of the same core leaves of each structure.
pub(super) fn measure_partitions(
    core: &mut dyn MeasureOverlaps,
    others: &mut dyn BackgroundCpus,
    sharing: &'static SharingSpec,
    cpu: u32,
    alone: &AloneBaseline,
) -> Result<Vec<TestVerdict>, RunError> {
    let mut sizes_with_load = |text| {
        others.start_load(cpu, BackgroundLoad::new(text), None)?;
        let sizes = measure_sizes(core, sharing, alone.cpu);
        let busy = others.stop_load()? >= BUSY_SHARE;
        sizes.map(|sizes| sizes.into_iter().map(|size| size.filter(|_| busy)).collect::<Vec<_>>())
    };
    let (idle, full) = (sizes_with_load(sharing.idle_load)?, sizes_with_load(sharing.filling_load)?);
    let judge = |(name, (idle, full))| judge_partition((alone.size_of)(name), idle, full, cpu);
    Ok(sharing.structures.iter().copied().zip(idle.into_iter().zip(full)).map(judge).collect())
}

/// The present sizes of the structures.
fn measure_sizes(
    core: &mut dyn MeasureOverlaps,
    sharing: &'static SharingSpec,
    cpu: &CpuResources,
) -> Result<Vec<Option<Interval>>, RunError> {
    let mut knees = StructureEnds::new();
    let mut sizes = Vec::new();
    for name in sharing.structures {
        let test = TESTS.iter().find(|test| test.name == *name).expect("a structure has a test");
        let Experiment::Overlap(window) = &test.experiment else { unreachable!("its structures are of the window") };
        let mut fillers = cpu.runnable_fillers(test);
        fillers.truncate(MAX_FILLERS);
        let record = OverlapTester::new(core, &mut knees).run(test, window, &fillers)?;
        let quantity = record.value;
        let size = quantity.value.filter(|_| record.verdict == VerdictKind::Found).map(|value| Interval {
            value,
            low: quantity.low.unwrap_or(value),
            high: quantity.high.unwrap_or(value),
        });
        sizes.push(size);
    }
    Ok(sizes)
}

/// Judges the three sizes: alone, with PAUSE on the sibling, and with load that fills the
/// structure.
fn judge_partition(alone: Option<Interval>, idle: Option<Interval>, full: Option<Interval>, cpu: u32) -> TestVerdict {
    let sizes = [alone, idle, full];
    let [Some(alone), Some(idle), Some(full)] = sizes else {
        let conditions = ["alone", "beside PAUSE", "beside work that fills it"];
        let missing = conditions.iter().zip(sizes).filter(|(_, size)| size.is_none()).map(|(condition, _)| *condition);
        let missing = missing.collect::<Vec<_>>().join(", ");
        return TestVerdict::new(VerdictKind::Unclear, format!("no size was found {missing}"));
    };
    let left = |size: Interval| size.value / alone.value;
    let told = format!("{} alone, {} beside PAUSE on CPU {cpu}, {} beside work", alone.value, idle.value, full.value);
    // Intervals that meet show no difference.
    let less = |size: Interval| left(size) <= LEFT_SHARE && size.high < alone.low;
    let how = match (less(idle), less(full)) {
        (false, false) if left(idle) > LEFT_SHARE && left(full) > LEFT_SHARE => {
            return TestVerdict::new(VerdictKind::None, format!("as much as alone is left: {told}"));
        }
        (false, false) => {
            return TestVerdict::new(VerdictKind::Unclear, format!("the sizes are not far enough apart: {told}"));
        }
        (true, false) => {
            return TestVerdict::new(
                VerdictKind::Unclear,
                format!("more is left beside work than beside PAUSE: {told}"),
            );
        }
        (true, true) if full.value >= LEFT_SHARE * idle.value => {
            "divided as soon as the other thread executes anything"
        }
        (true, true) => "divided, and a part goes to whoever takes it",
        (false, true) => "it goes to whoever takes it",
    };
    let size = Interval { value: left(full), low: full.low / alone.high, high: full.high / alone.low };
    TestVerdict { size: Some(size), ..TestVerdict::new(VerdictKind::Found, format!("{how}: {told}")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::TestSpec;
    use crate::tests::simulated_window::SimulatedWindow;
    use cyclescope_code::program::memory::ProgramMemory;

    #[test]
    fn a_part_is_lost_if_the_size_is_surely_smaller() {
        let size = |[low, value, high]: [f64; 3]| Some(Interval { value, low, high });
        let kind = |alone, idle, full| {
            let verdict = judge_partition(size(alone), size(idle), size(full), 1);
            (verdict.kind, verdict.size.map(|size| size.value))
        };
        let [whole, half] = [[100.0; 3], [50.0; 3]];
        assert_eq!(kind(whole, half, half), (VerdictKind::Found, Some(0.5)));
        assert_eq!(kind(whole, whole, half), (VerdictKind::Found, Some(0.5)));
        assert_eq!(kind(whole, whole, whole), (VerdictKind::None, None));
        // The size with work on the sibling exceeds the size alone.
        assert_eq!(kind(whole, half, whole), (VerdictKind::Unclear, None));
        // Intervals that meet, and a loss within the spread of sizes.
        assert_eq!(kind([80.0, 100.0, 110.0], whole, [70.0, 85.0, 90.0]), (VerdictKind::Unclear, None));
        assert_eq!(kind(whole, whole, [95.0; 3]), (VerdictKind::None, None));
        assert_eq!(judge_partition(size(whole), None, size(half), 1).kind, VerdictKind::Unclear);
    }

    /// Another CPU that runs its code for this share of the time, without load and with it.
    struct Others([f64; 2], bool);

    impl super::BackgroundCpus for Others {
        fn start_load(&mut self, _: u32, load: BackgroundLoad, _: Option<ProgramMemory>) -> Result<(), RunError> {
            self.1 = load.text == asked().filling_load;
            Ok(())
        }

        fn stop_load(&mut self) -> Result<f64, RunError> {
            Ok(self.0[usize::from(self.1)])
        }
    }

    fn asked() -> &'static SharingSpec {
        let find = |test: &&'static TestSpec| match &test.experiment {
            Experiment::Sharing(asked) if !asked.structures.is_empty() => Some(asked),
            _ => None,
        };
        TESTS.iter().find_map(find).expect("a test asks for structures")
    }

    #[test]
    fn a_partly_running_cpu_proves_nothing() {
        let size = |_: &str| Some(Interval { value: 100.0, low: 100.0, high: 100.0 });
        let missing = |shares: [f64; 2], said: &str| {
            let cpu = CpuResources { has: &|_| false, memory: 0, shared: None };
            let alone = AloneBaseline { cpu: &cpu, size_of: &size };
            let (mut core, mut others) = (SimulatedWindow::new(1), Others(shares, false));
            let verdicts = measure_partitions(&mut core, &mut others, asked(), 5, &alone).expect("all is simulated");
            verdicts.iter().filter(|verdict| verdict.why.contains(said)).count()
        };
        let all = asked().structures.len();
        assert_eq!(missing([0.99, 0.5], "beside work that fills it"), all);
        assert_eq!(missing([0.5, 0.99], "beside PAUSE"), all);
        assert!(missing([0.99, 0.99], "no size was found") < all);
    }
}
