//! What two CPUs share: how much longer work takes while the other CPU is busy with the same work.
//!
//! In the control, the other CPU runs something that uses nothing shared, such as a loop of PAUSE.
//! If work takes no longer than in the control, its bottleneck is not shared.

use super::conditions::RETRY_ONCE;
use super::cost::{BackgroundCpus, MeasureCosts, measure_median_costs};
use super::overlap::MeasureOverlaps;
use super::partition::{AloneBaseline, judge_shared_core, measure_partitions};
use super::record::UarchRecord;
use super::spec::{BackgroundLoad, ProgramFamily, SharedWork, SharingSpec, TestSpec};
use super::verdict::{TestVerdict, VerdictKind};
use cyclescope_core::error::RunError;
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;

/// The least ratio of two costs that shows sharing.
const MIN_SLOWDOWN: f64 = 1.1;
/// The least share of the time in which the other CPU has to do its work.
const BUSY_SHARE: f64 = 0.9;

/// Measures each kind of work with load on the CPU that slows the first kind most. Then measures
/// the share of each structure that this CPU leaves.
pub(super) fn run_sharing(
    core: &mut (impl MeasureCosts + MeasureOverlaps),
    others: &mut dyn BackgroundCpus,
    test: &'static TestSpec,
    sharing: &'static SharingSpec,
    cpus: &[u32],
    alone: &AloneBaseline,
) -> Result<Vec<UarchRecord>, RunError> {
    let (cpu, first) = match find_nearest(core, others, sharing, cpus)? {
        Ok(nearest) => nearest,
        Err(refused) => {
            let none = TestVerdict::new(VerdictKind::None, refused);
            let verdicts = |number| vec![none.clone(); number];
            return Ok(sharing_records(
                test,
                sharing,
                verdicts(sharing.rows.len()),
                verdicts(sharing.structures.len()),
            ));
        }
    };
    let mut verdicts = vec![judge_sharing(&first, cpu, sharing)];
    for work in &sharing.rows[1..] {
        verdicts.push(judge_sharing(&measure_ratios(core, others, work, sharing, cpu)?, cpu, sharing));
    }
    let left = match judge_shared_core(sharing, &verdicts, cpu) {
        _ if sharing.sibling_proofs.is_empty() => Vec::new(),
        Ok(evidence) => {
            verdicts[0].why.push_str(evidence);
            measure_partitions(core, others, sharing, cpu, alone)?
        }
        Err(verdict) => vec![verdict; sharing.structures.len()],
    };
    Ok(sharing_records(test, sharing, verdicts, left))
}

/// The CPU that slows the first kind of work most, and by how much; or why none does.
fn find_nearest(
    core: &mut dyn MeasureCosts,
    others: &mut dyn BackgroundCpus,
    sharing: &'static SharingSpec,
    cpus: &[u32],
) -> Result<Result<(u32, SlowdownRatios), String>, RunError> {
    let mut all = Vec::new();
    let mut refused = "this process may use no other CPU".to_string();
    for cpu in cpus {
        let first = match measure_ratios(core, others, &sharing.rows[0], sharing, *cpu) {
            // Code may not run on that CPU, or not on any CPU.
            Err(RunError::Unavailable(reason)) => {
                refused = format!("{}: {}", reason.what, reason.why);
                continue;
            }
            first => first?,
        };
        let slowed = first.iter().flatten().map(|(_, ratio)| ratio.value).fold(0.0, f64::max);
        all.push((slowed, *cpu, first));
    }
    all.sort_by(|one, other| other.0.total_cmp(&one.0));
    Ok(all.into_iter().next().map(|(_, cpu, first)| (cpu, first)).ok_or(refused))
}

/// The records of the kinds of work, and of the shares left of structures.
fn sharing_records(
    test: &TestSpec,
    sharing: &SharingSpec,
    worked: Vec<TestVerdict>,
    left: Vec<TestVerdict>,
) -> Vec<UarchRecord> {
    let record = |name: &str, definition, verdict| UarchRecord {
        definition,
        ..UarchRecord::new(test, format!("{}.{name}", test.name), verdict, Unit::Ratio)
    };
    let worked =
        sharing.rows.iter().zip(worked).map(|(work, verdict)| record(work.name, test.definition.into(), verdict));
    let left = sharing
        .structures
        .iter()
        .zip(left)
        .map(|(name, verdict)| record(name, sharing.structure_definition.into(), verdict));
    worked.chain(left).collect()
}

/// The slowdown of each program while the other CPU does the same work; `None` if the program or
/// the other CPU was disturbed.
type SlowdownRatios = Vec<Option<(&'static str, Interval)>>;

fn measure_ratios(
    core: &mut dyn MeasureCosts,
    others: &mut dyn BackgroundCpus,
    work: &'static SharedWork,
    sharing: &'static SharingSpec,
    cpu: u32,
) -> Result<SlowdownRatios, RunError> {
    let families: Vec<&ProgramFamily> = work.programs.iter().collect();
    let mut costs_with_load = |core: &mut dyn MeasureCosts, load| {
        let measure = || {
            others.start_load(cpu, load, sharing.load_memory.map(|memory| memory()))?;
            let costs = measure_median_costs(core, &families, 0);
            let busy = others.stop_load()? >= BUSY_SHARE;
            Ok((costs?, busy))
        };
        // Background load may run on that CPU.
        let (costs, busy) = RETRY_ONCE.retry_while(|(_, busy)| !busy, measure)?;
        Ok::<_, RunError>(costs.into_iter().map(|cost| cost.filter(|_| busy)).collect::<Vec<_>>())
    };
    let idle = BackgroundLoad::new(sharing.idle_load);
    let costs =
        [costs_with_load(core, idle)?, costs_with_load(core, work.background_load)?, costs_with_load(core, idle)?];
    let slowdown = |number: usize| {
        let [before, during, after] = [0, 1, 2].map(|time| costs[time][number]);
        let (before, during, after) = (before?, during?, after?);
        let alone = before.cost.min(after.cost);
        let size = Interval {
            value: during.cost / alone,
            low: during.low / before.high.max(after.high),
            high: during.high / before.low.min(after.low),
        };
        let sure = alone > 0.0 && size.low > 0.0 && size.high.is_finite();
        sure.then_some((families[number].name, size))
    };
    Ok((0..families.len()).map(slowdown).collect())
}

/// Judges the slowdowns of a kind of work.
fn judge_sharing(ratios: &SlowdownRatios, cpu: u32, sharing: &SharingSpec) -> TestVerdict {
    let known: Vec<(&str, Interval)> = ratios.iter().flatten().copied().collect();
    let ratios_text: Vec<String> = known.iter().map(|(name, ratio)| format!("{name} {:.2}", ratio.value)).collect();
    let ratios_text = ratios_text.join(", ");
    if known.len() < ratios.len() {
        return TestVerdict::new(
            VerdictKind::Unclear,
            "other work disturbed it, or the other CPU did not run all the time",
        );
    }
    let values = || known.iter().map(|(_, ratio)| ratio.value);
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let place = format!("beside {} on CPU {cpu}", sharing.load_description);
    if most < MIN_SLOWDOWN {
        return TestVerdict::new(VerdictKind::None, format!("it takes no longer {place}: {ratios_text}"));
    }
    if least < MIN_SLOWDOWN {
        return TestVerdict::new(VerdictKind::Unclear, format!("not every program shows it {place}: {ratios_text}"));
    }
    if most - least > sharing.tolerance_share * most {
        return TestVerdict::new(VerdictKind::Unclear, format!("no two programs agree {place}: {ratios_text}"));
    }
    // The layouts of this ratio include 1.
    if let Some((name, ratio)) = known.iter().find(|(_, ratio)| ratio.low <= 1.0) {
        let span = format!("{name} {:.2} to {:.2}", ratio.low, ratio.high);
        return TestVerdict::new(VerdictKind::Unclear, format!("it may take no longer {place}: {span}"));
    }
    let edge = |field: fn(&Interval) -> f64| known.iter().map(move |(_, ratio)| field(ratio));
    let size = Interval {
        value: least,
        low: edge(|ratio| ratio.low).fold(f64::INFINITY, f64::min),
        high: edge(|ratio| ratio.high).fold(0.0, f64::max),
    };
    TestVerdict { size: Some(size), ..TestVerdict::new(VerdictKind::Found, format!("{place}: {ratios_text}")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::CostPoint;
    use crate::cpu_resources::CpuResources;
    use crate::overlap::{OverlapProbe, OverlapReading};
    use crate::spec::Experiment;
    use crate::test_list::TESTS;
    use crate::tests::simulated_window::SimulatedWindow;
    use cyclescope_code::program::VectorSetup;
    use cyclescope_code::program::memory::{PhysicalFrames, ProgramMemory};
    use cyclescope_code::snippet::Snippet;
    use std::cell::Cell;
    use std::rc::Rc;

    /// Share by which layouts of the simulated core differ without disturbance.
    const NOISE: f64 = 0.01;

    /// The CPU that runs code, and its code.
    type Running = Rc<Cell<Option<(u32, &'static str)>>>;

    /// A core whose work takes longer while CPU 5 runs anything but the idle load. It then also
    /// loses parts of its window.
    struct Core {
        running: Running,
        slower: f64,
        work: &'static [ProgramFamily; 2],
        /// The work of multiplications.
        multiply: &'static [ProgramFamily; 2],
        /// Whether multiplications take longer too.
        both: bool,
        /// Share by which layouts differ.
        noise: f64,
        /// The text that slows nothing. With `None`, the control slows work too.
        idle: Option<&'static str>,
        /// Windows alone, with PAUSE and with work on the other CPU.
        windows: [SimulatedWindow; 3],
    }

    impl MeasureCosts for Core {
        fn measure_cost(&mut self, family: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError> {
            let idle = self.running.get().is_none_or(|(cpu, text)| cpu != 5 || Some(text) == self.idle);
            // The first kind of work.
            let is_work = |work: &[ProgramFamily; 2]| work.iter().any(|own| std::ptr::eq(own, family));
            let shared = is_work(self.work) || self.both && is_work(self.multiply);
            let cost = if idle || !shared { 4.0 } else { 4.0 * self.slower };
            let [low, high] = [1.0 - self.noise, 1.0 + self.noise].map(|share| share * cost);
            Ok(Some(CostPoint { n, cost, low, high }))
        }
    }

    impl MeasureOverlaps for Core {
        fn measure_overlaps(
            &mut self,
            probe: &OverlapProbe,
            counts: &[usize],
        ) -> Result<Vec<OverlapReading>, RunError> {
            let window = match self.running.get() {
                Some((5, "pause")) => 1,
                Some((5, _)) => 2,
                _ => 0,
            };
            self.windows[window].measure_overlaps(probe, counts)
        }
    }

    struct Cpus(Running, f64);

    impl BackgroundCpus for Cpus {
        fn start_load(&mut self, cpu: u32, load: BackgroundLoad, _: Option<ProgramMemory>) -> Result<(), RunError> {
            self.0.set(Some((cpu, load.text)));
            Ok(())
        }

        fn stop_load(&mut self) -> Result<f64, RunError> {
            self.0.set(None);
            Ok(self.1)
        }
    }

    /// Sizes alone, with PAUSE and with work on the other CPU.
    const SIZES: [(&str, [usize; 3]); 7] = [
        ("rob", [500, 250, 250]),
        ("int_registers", [300, 300, 180]),
        ("vector_registers_xmm", [330, 330, 330]),
        ("loads_in_flight", [180, 90, 90]),
        ("stores_in_flight", [112, 56, 56]),
        ("integer_scheduler", [96, 96, 96]),
        ("load_scheduler", [70, 70, 40]),
    ];

    /// A test of the list, and its experiment.
    fn named(name: &str) -> (&'static TestSpec, &'static SharingSpec) {
        let find = |test: &&'static TestSpec| match &test.experiment {
            Experiment::Sharing(asked) if test.name == name => Some((*test, asked)),
            _ => None,
        };
        TESTS.iter().find_map(find).unwrap()
    }

    fn records(cpus: &[u32], slower: f64, busy: f64) -> Vec<UarchRecord> {
        records_of("resource_sharing", cpus, Slow { slower, both: false, noise: NOISE }, busy, true)
    }

    /// How much longer work takes with load on the other CPU, whether other kinds do too, and how
    /// far layouts differ.
    struct Slow {
        slower: f64,
        both: bool,
        noise: f64,
    }

    fn records_of(name: &str, cpus: &[u32], slow: Slow, busy: f64, control: bool) -> Vec<UarchRecord> {
        let Slow { slower, both, noise } = slow;
        let (test, asked) = named(name);
        let idle = control.then_some(asked.idle_load);
        let windows = [0, 1, 2].map(|when| {
            let mut window = SimulatedWindow::new(1);
            window.sizes.values_mut().for_each(|size| *size = 600);
            window.sizes.extend(SIZES.map(|(name, sizes)| (name, sizes[when])));
            window.sizes.insert("loads_uncompleted", 600);
            window
        });
        let running = Running::default();
        let [work, multiply] = [0, 1].map(|row| &asked.rows[row].programs);
        let mut core = Core { running: running.clone(), slower, work, multiply, both, noise, idle, windows };
        let size = |name: &str| {
            let (_, sizes) = SIZES.iter().find(|(own, _)| *own == name)?;
            let value = sizes[0] as f64;
            Some(Interval { value, low: value, high: value })
        };
        let cpu = CpuResources { has: &|_| false, memory: 0, shared: None };
        let alone = AloneBaseline { cpu: &cpu, size_of: &size };
        run_sharing(&mut core, &mut Cpus(running, busy), test, asked, cpus, &alone).unwrap()
    }

    #[test]
    fn a_hidden_sibling_and_its_share_are_found() {
        let found = records(&[3, 5, 4], 2.0, 0.99);
        assert_eq!((found[0].verdict, found[0].value.value), (VerdictKind::Found, Some(2.0)));
        assert!(found[0].why.contains("CPU 5") && found[0].why.ends_with("both CPUs are of one core"));
        let kinds = found.len() - SIZES.len();
        assert!(found[1..kinds].iter().all(|record| record.verdict == VerdictKind::None), "{}", found[1].why);
        let left: Vec<(&str, VerdictKind, f64, &str)> = found[kinds..]
            .iter()
            .map(|record| (&*record.what, record.verdict, record.value.value.unwrap_or_default(), &*record.why))
            .collect();
        let how = |number: usize, kind, share: f64, how: &str| {
            let (what, verdict, value, why) = left[number];
            let right = verdict == kind && (value - share).abs() < 0.01 && why.starts_with(how);
            assert!(right, "{what}: {verdict:?} {value} {why}");
        };
        let divided = "divided as soon as the other thread executes anything:";
        how(0, VerdictKind::Found, 0.5, divided);
        // It has more registers than the reorder buffer has entries left.
        how(1, VerdictKind::Unclear, 0.0, "no size was found beside PAUSE");
        how(3, VerdictKind::Found, 0.5, divided);
        how(4, VerdictKind::Found, 0.5, divided);
        how(5, VerdictKind::None, 0.0, "as much as alone is left");
        how(6, VerdictKind::Found, 40.0 / 70.0, "it goes to whoever takes it:");
    }

    #[test]
    fn siblings_are_detected_if_they_slow_each_other() {
        let kinds = records(&[5], 2.0, 0.99).len() - SIZES.len();
        let slow = |both, noise| Slow { slower: 1.25, both, noise };
        let part = |slow| records_of("resource_sharing", &[5], slow, 0.99, true);
        let both = part(slow(true, NOISE));
        assert_eq!((both[0].verdict, both[0].why.contains("one core")), (VerdictKind::Found, false));
        assert!(both[kinds..].iter().all(|record| record.verdict == VerdictKind::Unclear));
        // Each has its own multiplier.
        let own_multipliers = part(slow(false, NOISE));
        assert!(
            own_multipliers[kinds..].iter().all(|record| record.verdict == VerdictKind::None),
            "{}",
            own_multipliers[kinds].why
        );
        // Layouts that differ by as much show nothing.
        let noisy = part(slow(true, 0.15));
        assert_eq!((noisy[0].verdict, noisy[0].value.value), (VerdictKind::Unclear, None), "{}", noisy[0].why);
        assert!(noisy[kinds..].iter().all(|record| record.verdict == VerdictKind::Unclear));
    }

    #[test]
    fn every_cpu_executes_what_keeps_it_busy() {
        for test in TESTS {
            let Experiment::Sharing(asked) = &test.experiment else { continue };
            for text in
                asked.rows.iter().map(|work| work.background_load.text).chain([asked.idle_load, asked.filling_load])
            {
                let world = Snippet::parse(text).unwrap().outline(false).world;
                let needs = !matches!(world.vectors, VectorSetup::None | VectorSetup::Legacy) || world.masks;
                assert!(!needs, "not every x86-64 executes it: {text}");
            }
        }
    }

    #[test]
    fn without_another_running_cpu_there_is_no_number() {
        let verdicts =
            |cpus: &[u32], busy| records(cpus, 2.0, busy).iter().map(|record| record.verdict).collect::<Vec<_>>();
        assert!(verdicts(&[], 0.99).iter().all(|verdict| *verdict == VerdictKind::None));
        assert!(verdicts(&[3], 0.99).iter().all(|verdict| *verdict == VerdictKind::None));
        assert!(verdicts(&[5], 0.5).iter().all(|verdict| *verdict == VerdictKind::Unclear));
    }

    /// A core of two threads that share what a row is bound by, as long as the other one executes that
    /// row's load.
    struct SharedParts {
        running: Running,
        slowdowns: Vec<f64>,
        rows: &'static [SharedWork],
    }

    impl MeasureCosts for SharedParts {
        fn measure_cost(&mut self, family: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError> {
            let is_of = |row: &&SharedWork| row.programs.iter().any(|own| std::ptr::eq(own, family));
            let row = self.rows.iter().position(|row| is_of(&row)).expect("it is a row's program");
            let loaded = self.running.get() == Some((5, self.rows[row].background_load.text));
            let cost = if loaded { 4.0 * self.slowdowns[row] } else { 4.0 };
            Ok(Some(CostPoint { n, cost, low: 0.99 * cost, high: 1.01 * cost }))
        }
    }

    impl MeasureOverlaps for SharedParts {
        fn measure_overlaps(&mut self, _: &OverlapProbe, _: &[usize]) -> Result<Vec<OverlapReading>, RunError> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn decoders_caches_of_code_and_predictors_that_threads_share_are_found() {
        let (test, asked) = named("resource_sharing");
        // Each is shared, or each second one.
        for every in [1, 2] {
            let shared = |row: usize| row == 0 || row.is_multiple_of(every);
            let slowdown = |row: usize| if shared(row) { 1.4 + 0.1 * row as f64 } else { 1.0 };
            let slowdowns: Vec<f64> = (0..asked.rows.len()).map(slowdown).collect();
            let running = Running::default();
            let mut core = SharedParts { running: running.clone(), slowdowns: slowdowns.clone(), rows: asked.rows };
            let cpu = CpuResources { has: &|_| false, memory: 0, shared: None };
            let alone = AloneBaseline { cpu: &cpu, size_of: &|_| None };
            let records = run_sharing(&mut core, &mut Cpus(running, 0.99), test, asked, &[5], &alone).unwrap();
            for name in ["decoders", "uop_cache", "code_cache", "predictors"] {
                let row = asked.rows.iter().position(|row| row.name == name).expect("it is a row");
                let record = &records[row];
                assert_eq!(record.what, format!("resource_sharing.{name}"));
                let kind = if shared(row) { VerdictKind::Found } else { VerdictKind::None };
                assert_eq!(record.verdict, kind, "{}", record.why);
                let planted = shared(row).then_some(slowdowns[row]);
                assert!(record.value.value.zip(planted).is_none_or(|(value, planted)| (value - planted).abs() < 0.01));
            }
        }
    }

    #[test]
    fn loads_of_code_exceed_what_they_are_to_fill_and_leave_room_for_the_work() {
        let (_, asked) = named("resource_sharing");
        let bytes = |name: &str| {
            let row = asked.rows.iter().find(|row| row.name == name).expect("it is a row");
            let BackgroundLoad { text, copies } = row.background_load;
            Snippet::parse(text).unwrap().code().len() * copies
        };
        // Both threads' code together fits the smallest first cache, but for that of the cache itself.
        assert!(["decoders", "uop_cache"].iter().all(|name| (10 << 10..15 << 10).contains(&bytes(name))));
        assert!(bytes("code_cache") > 24 << 10);
    }

    #[test]
    fn slow_stores_to_one_line_prove_no_common_core() {
        let slow = || Slow { slower: 6.0, both: false, noise: NOISE };
        let found = records_of("false_sharing", &[5], slow(), 0.99, true);
        assert_eq!((found[0].verdict, found[0].value.value), (VerdictKind::Found, Some(6.0)));
        assert!(found[0].why.contains("stores") && !found[0].why.contains("one core"), "{}", found[0].why);
        // If stores to another line slow it as much, no line is shared.
        let same = records_of("false_sharing", &[5], slow(), 0.99, false);
        assert!(same.iter().all(|record| record.verdict == VerdictKind::None), "{}", same[0].why);
    }

    #[test]
    fn both_cpus_have_the_same_pages() {
        let (_, asked) = named("false_sharing");
        let other = asked.load_memory.expect("memory of its own")();
        for family in asked.rows.iter().flat_map(|row| &row.programs) {
            let own = family.program(0).memory;
            let [one, other] = [&own, &other].map(|memory| (memory.areas[0].frames, memory.areas[0].bytes));
            assert!(one == other && matches!(one.0, PhysicalFrames::Common(_)), "{one:?}");
        }
    }
}
