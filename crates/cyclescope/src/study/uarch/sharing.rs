//! How much longer work takes while another CPU does the same: what two CPUs share.
//!
//! The control is another CPU that is busy too but wants nothing of a core: a loop of PAUSE. Work beside the same work that takes no longer
//! shares nothing that bounds it.

use super::cost::{Costs, settled};
use super::record::UarchRecord;
use super::test::Test;
use super::test::sharing::{Sharing, Work};
use super::test::walk::Walk;
use super::verdict::{Kind, Verdict};
use crate::error::RunError;
use crate::statistics::Interval;
use crate::unit::Unit;

/// The least ratio of two costs that shows something, and the share by which two programs may differ that agree.
const SHOWN: f64 = 1.1;
const APART: f64 = 0.15;
/// The ratio above which two CPUs surely share a core, where the work uses nothing beyond it.
const SAME_CORE: f64 = 1.5;
/// The least share of the time in which the other CPU has to do its work.
const BUSY: f64 = 0.9;

/// Other CPUs that can be kept busy.
pub(super) trait Others {
    /// Starts code on a CPU, which runs until [`Others::end`].
    fn begin(&mut self, cpu: u32, text: &'static str) -> Result<(), RunError>;

    /// Ends it. Returns the share of the time in which it ran.
    fn end(&mut self) -> Result<f64, RunError>;
}

/// Measures each kind of work beside itself on another of these CPUs, the one that slows the first kind most.
pub(super) fn sharing(
    core: &mut dyn Costs,
    others: &mut dyn Others,
    test: &'static Test,
    sharing: &'static Sharing,
    cpus: &[u32],
) -> Result<Vec<UarchRecord>, RunError> {
    let mut all = Vec::new();
    for cpu in cpus {
        let first = match ratios(core, others, &sharing.rows[0], sharing.idle, *cpu) {
            // Nothing may run there.
            Err(RunError::Unavailable(_)) => continue,
            first => first?,
        };
        let slowed = first.iter().flatten().map(|(_, ratio)| ratio.value).fold(0.0, f64::max);
        all.push((slowed, *cpu, first));
    }
    all.sort_by(|one, other| other.0.total_cmp(&one.0));
    let Some((_, cpu, first)) = all.into_iter().next() else {
        let record = |work: &Work| {
            let verdict = Verdict::new(Kind::None, "this process may use no other CPU");
            UarchRecord::new(test, key(test, work), verdict, Unit::Ratio)
        };
        return Ok(sharing.rows.iter().map(record).collect());
    };
    let mut records = Vec::new();
    let mut first = Some(first);
    for work in sharing.rows {
        let proves = first.is_some();
        let ratios = match first.take() {
            Some(ratios) => ratios,
            None => ratios(core, others, work, sharing.idle, cpu)?,
        };
        let verdict = judged(&ratios, cpu, proves);
        records.push(UarchRecord::new(test, key(test, work), verdict, Unit::Ratio));
    }
    Ok(records)
}

fn key(test: &Test, work: &Work) -> String {
    format!("{}.{}", test.name, work.name)
}

/// How much longer each program of some work takes beside the same work; nothing where it was disturbed, or the other CPU was.
type Ratios = Vec<Option<(&'static str, Interval)>>;

fn ratios(
    core: &mut dyn Costs,
    others: &mut dyn Others,
    work: &'static Work,
    idle: &'static str,
    cpu: u32,
) -> Result<Ratios, RunError> {
    let walks: Vec<&Walk> = work.ways.iter().collect();
    let mut beside = |core: &mut dyn Costs, text| {
        others.begin(cpu, text)?;
        let costs = settled(core, &walks, 0);
        let busy = others.end()? >= BUSY;
        costs.map(|costs| costs.into_iter().map(|cost| cost.filter(|_| busy)).collect::<Vec<_>>())
    };
    let costs = [beside(core, idle)?, beside(core, work.beside)?, beside(core, idle)?];
    let of_walk = |number: usize| {
        let [before, during, after] = [0, 1, 2].map(|time| costs[time][number]);
        let (before, during, after) = (before?, during?, after?);
        let alone = before.cost.min(after.cost);
        let size = Interval {
            value: during.cost / alone,
            low: during.low / before.high.max(after.high),
            high: during.high / before.low.min(after.low),
        };
        let sure = alone > 0.0 && size.low > 0.0 && size.high.is_finite();
        sure.then_some((walks[number].name, size))
    };
    Ok((0..walks.len()).map(of_walk).collect())
}

/// What they show. Work that proves that both CPUs are of one core is bound by what no two cores share.
fn judged(ratios: &Ratios, cpu: u32, proves: bool) -> Verdict {
    let known: Vec<(&str, Interval)> = ratios.iter().flatten().copied().collect();
    let told: Vec<String> = known.iter().map(|(name, ratio)| format!("{name} {:.2}", ratio.value)).collect();
    let told = told.join(", ");
    if known.len() < ratios.len() {
        return Verdict::new(
            Kind::Unclear,
            "other work disturbed it, or the other CPU did not run all the time",
        );
    }
    let values = || known.iter().map(|(_, ratio)| ratio.value);
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let place = format!("beside the same work on CPU {cpu}");
    if most < SHOWN {
        return Verdict::new(Kind::None, format!("it takes no longer {place}: {told}"));
    }
    if least < SHOWN || most - least > APART * most {
        return Verdict::new(Kind::Unclear, format!("no two programs agree {place}: {told}"));
    }
    let edge = |of: fn(&Interval) -> f64| known.iter().map(move |(_, ratio)| of(ratio));
    let size = Interval {
        value: least,
        low: edge(|ratio| ratio.low).fold(f64::INFINITY, f64::min),
        high: edge(|ratio| ratio.high).fold(0.0, f64::max),
    };
    let proof = if proves && least >= SAME_CORE { "; both CPUs are of one core" } else { "" };
    Verdict { size: Some(size), ..Verdict::new(Kind::Found, format!("{place}: {told}{proof}")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::uarch::cost::CostPoint;
    use crate::study::uarch::list::TESTS;
    use crate::study::uarch::test::Look;
    use std::cell::Cell;
    use std::rc::Rc;

    /// What runs on another CPU, and which one that is.
    type Running = Rc<Cell<Option<(u32, &'static str)>>>;

    /// A core whose work takes twice as long beside the same work on CPU 5.
    struct Core(Running, f64, &'static [Walk; 2]);

    impl Costs for Core {
        fn cost(&mut self, walk: &Walk, n: usize) -> Result<Option<CostPoint>, RunError> {
            let idle = self.0.get().is_none_or(|(cpu, text)| cpu != 5 || text == "pause");
            // The first kind of work.
            let shared = self.2.iter().any(|own| std::ptr::eq(own, walk));
            let cost = if idle || !shared { 4.0 } else { 4.0 * self.1 };
            Ok(Some(CostPoint { n, cost, low: 0.99 * cost, high: 1.01 * cost }))
        }
    }

    struct Cpus(Running, f64);

    impl Others for Cpus {
        fn begin(&mut self, cpu: u32, text: &'static str) -> Result<(), RunError> {
            self.0.set(Some((cpu, text)));
            Ok(())
        }

        fn end(&mut self) -> Result<f64, RunError> {
            self.0.set(None);
            Ok(self.1)
        }
    }

    fn records(cpus: &[u32], slower: f64, busy: f64) -> Vec<UarchRecord> {
        let find = |test: &&'static Test| match &test.look {
            Look::Sharing(asked) => Some((*test, asked)),
            _ => None,
        };
        let (test, asked) = TESTS.iter().find_map(find).unwrap();
        let running = Running::default();
        let mut core = Core(running.clone(), slower, &asked.rows[0].ways);
        sharing(&mut core, &mut Cpus(running, busy), test, asked, cpus).unwrap()
    }

    #[test]
    fn a_hidden_sibling_is_found_and_what_it_takes() {
        let found = records(&[3, 5, 4], 2.0, 0.99);
        assert_eq!((found[0].verdict, found[0].value.value), (Kind::Found, Some(2.0)));
        assert!(found[0].why.contains("CPU 5") && found[0].why.ends_with("both CPUs are of one core"));
        assert!(found[1..].iter().all(|record| record.verdict == Kind::None), "{}", found[1].why);
        let part = records(&[5], 1.25, 0.99);
        assert_eq!((part[0].verdict, part[0].why.contains("one core")), (Kind::Found, false));
    }

    #[test]
    fn without_another_cpu_or_where_it_does_not_run_there_is_no_number() {
        let verdicts =
            |cpus: &[u32], busy| records(cpus, 2.0, busy).iter().map(|one| one.verdict).collect::<Vec<_>>();
        assert!(verdicts(&[], 0.99).iter().all(|verdict| *verdict == Kind::None));
        assert!(verdicts(&[3], 0.99).iter().all(|verdict| *verdict == Kind::None));
        assert!(verdicts(&[5], 0.5).iter().all(|verdict| *verdict == Kind::Unclear));
    }
}
