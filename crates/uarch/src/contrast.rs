//! What an event costs: the difference between a program with the event and its control, which has
//! all but the event.

use super::cost::{CostPoint, MeasureCosts, measure_median_costs};
use super::cpu_resources::CpuResources;
use super::record::UarchRecord;
use super::shared_figures::{find_families, measure_settled_costs};
use super::spec::{ContrastSpec, ProgramFamily, TestRow, TestSpec};
use super::verdict::{TestVerdict, VerdictKind};
use cyclescope_core::error::RunError;
use cyclescope_core::statistics::{Interval, value_range};
use std::fmt::Display;

/// Measures the programs of each event that this CPU can run, and judges them.
pub(super) fn run_contrast(
    core: &mut dyn MeasureCosts,
    test: &'static TestSpec,
    contrast: &'static ContrastSpec,
    cpu: &CpuResources,
) -> Result<Vec<UarchRecord>, RunError> {
    let slots = measure_slots(core, contrast)?;
    let of_row = |row: &TestRow| {
        let families = find_families(row, cpu.has);
        let verdict = match measure_settled_costs(core, &families, row.n, cpu.passes_of(test, row)) {
            Err(RunError::Unavailable(reason)) => {
                return Ok(UarchRecord::unavailable(test, row.record_key(test.name), &reason, contrast.unit()));
            }
            points => {
                let found: Vec<(String, Interval)> = families
                    .iter()
                    .zip(points?)
                    .enumerate()
                    .filter_map(|(program, (family, point))| {
                        let unit_cost = slots.get(program).copied().unwrap_or(Some(1.0))?;
                        Some((family.label(), event_cost(&point?, unit_cost * row.amount_per_step)))
                    })
                    .collect();
                judge_event(&found, families.len(), contrast, row)
            }
        };
        let told = cpu.describe_times(test, row).filter(|_| verdict.kind == VerdictKind::Found);
        Ok(UarchRecord { told, ..UarchRecord::new(test, row.record_key(test.name), verdict, contrast.unit()) })
    };
    contrast.rows.iter().map(of_row).collect()
}

/// Core cycles of one slot in each program; `None` if they can't be measured.
fn measure_slots(core: &mut dyn MeasureCosts, contrast: &ContrastSpec) -> Result<Vec<Option<f64>>, RunError> {
    let families: Vec<&ProgramFamily> = contrast.slot_costs.iter().collect();
    let points = measure_median_costs(core, &families, 0)?;
    Ok(points.into_iter().map(|point| point.filter(|point| point.low > 0.0).map(|point| point.cost)).collect())
}

/// The cost of one event, from a step with `each` events.
fn event_cost(point: &CostPoint, each: f64) -> Interval {
    Interval { value: point.cost / each, low: point.low / each, high: point.high / each }
}

/// Judges the costs of an event in its programs. `programs` is their number; disturbed programs are
/// missing from `all`. If the row's event may be hidden, programs without it are ignored as long
/// as two others show it.
fn judge_event<N: Display>(
    all: &[(N, Interval)],
    programs: usize,
    contrast: &ContrastSpec,
    row: &TestRow,
) -> TestVerdict {
    let TestRow { may_be_hidden: hidden, varies_by_place: varies, .. } = *row;
    let why = all.iter().map(|(name, cost)| format!("{name} {:.2}", cost.value)).collect::<Vec<_>>().join(", ");
    // If some programs may hide the event, noise must not count as showing it.
    let sure = |cost: &Interval| !hidden || cost.low > 0.0;
    let shows = |(_, cost): &&(N, Interval)| cost.value >= contrast.tolerance && sure(cost);
    let reversed = all.iter().any(|(_, cost)| cost.value <= -contrast.tolerance);
    let few = !hidden || reversed || all.iter().filter(shows).count() < 2;
    let found: Vec<_> = all.iter().filter(|one| few || shows(one)).collect();
    let [least, most] = value_range(found.iter().map(|(_, cost)| cost.value));
    if programs == 0 {
        return TestVerdict::new(VerdictKind::None, "this CPU has no such instructions");
    }
    if all.len() < programs {
        return TestVerdict::new(VerdictKind::Unclear, "other work disturbed all of a program's layouts");
    }
    if most < contrast.tolerance && least > -contrast.tolerance {
        return TestVerdict::new(VerdictKind::None, format!("it costs less than {}: {why}", contrast.tolerance));
    }
    // A control must not cost more than its program.
    if least < -contrast.tolerance {
        return TestVerdict::new(VerdictKind::Unclear, format!("a program without the event takes longer: {why}"));
    }
    if least < contrast.tolerance {
        return TestVerdict::new(VerdictKind::Unclear, format!("one program alone shows it: {why}"));
    }
    // The visible part of a hidden event depends on the program's bottleneck. The two programs that
    // show most of it have to agree.
    let mut costs: Vec<f64> = found.iter().map(|(_, cost)| cost.value).collect();
    costs.sort_by(f64::total_cmp);
    let compared = if few { least } else { costs[costs.len() - 2] };
    // If the cost depends on the place of the code, all programs have to show it.
    let sure = varies && found.iter().all(|(_, cost)| cost.low > 0.0);
    if !sure && most - compared > contrast.tolerance.max(contrast.tolerance_share * most) {
        return TestVerdict::new(VerdictKind::Unclear, format!("no two programs agree: {why}"));
    }
    let low = found.iter().map(|(_, cost)| cost.low).fold(f64::INFINITY, f64::min);
    let high = found.iter().map(|(_, cost)| cost.high).fold(f64::NEG_INFINITY, f64::max);
    let size = Some(Interval { value: (least + most) / 2.0, low, high });
    TestVerdict { size, ..TestVerdict::new(VerdictKind::Found, why) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Experiment, StepLoop};
    use crate::test_list::TESTS;
    use cyclescope_core::error::Unavailable;

    /// A core on which each step costs this much by program, and much more in every third
    /// measurement.
    struct Core([f64; 2], usize);

    impl MeasureCosts for Core {
        fn measure_cost(&mut self, family: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError> {
            self.1 += 1;
            let disturbed = if self.1 % 3 == 1 { 30.0 } else { 0.0 };
            let cost = self.0[usize::from(family.name.contains("jnc"))] + disturbed;
            Ok(Some(CostPoint { n, cost, low: cost - 0.1, high: cost + 0.1 }))
        }
    }

    fn penalty(costs: [f64; 2]) -> UarchRecord {
        let found = TESTS.iter().find_map(|test| match &test.experiment {
            Experiment::Contrast(contrast) if test.name == "misprediction" => Some((*test, contrast)),
            _ => None,
        });
        let (test, contrast) = found.unwrap();
        let cpu = CpuResources { has: &|_| true, memory: 0, shared: None };
        super::run_contrast(&mut Core(costs, 0), test, contrast, &cpu).unwrap().remove(0)
    }

    #[test]
    fn two_programs_that_agree_prove_the_cost_of_an_event() {
        // Every second step has the event.
        let found = penalty([8.0, 8.25]);
        assert_eq!((found.verdict, found.value.value), (VerdictKind::Found, Some(16.25)));
        assert!(found.value.low.unwrap() < 16.0 && found.value.high.unwrap() > 16.5);
    }

    #[test]
    fn every_event_has_a_control() {
        for test in TESTS.iter().filter(|test| matches!(test.experiment, Experiment::Contrast(_))) {
            for (row, variant) in
                test.rows().iter().flat_map(|row| row.variants.iter().map(move |variant| (row, variant)))
            {
                let event = variant.family.program(row.n);
                let control = variant.family.control(row.n).expect("an event is a difference");
                let name = format!("{}, {}", row.record_key(test.name), variant.family.label());
                let all = |steps: &StepLoop| {
                    let memory = format!("{:?}", steps.memory);
                    [steps.init.clone(), steps.body.clone(), memory.into_bytes()].concat()
                };
                assert_ne!(all(&event), all(&control), "{name}");
            }
        }
    }

    #[test]
    fn an_unavailable_program_has_no_cost() {
        struct Without;
        impl MeasureCosts for Without {
            fn measure_cost(&mut self, _: &ProgramFamily, _: usize) -> Result<Option<CostPoint>, RunError> {
                let [what, why, remedy] = ["pages of 2 MiB", "none came", "ask for some"].map(str::to_string);
                Err(RunError::Unavailable(Unavailable { what, why, remedy }))
            }
        }
        let test = *TESTS.iter().find(|test| test.name == "huge_pages").unwrap();
        let Experiment::Contrast(contrast) = &test.experiment else { panic!("it is a contrast") };
        let cpu = CpuResources { has: &|_| true, memory: 0, shared: None };
        let found = super::run_contrast(&mut Without, test, contrast, &cpu).unwrap().remove(0);
        assert_eq!((found.verdict, found.value.value), (VerdictKind::None, None));
        assert_eq!(found.why, "pages of 2 MiB: none came");
    }

    #[test]
    fn two_programs_are_enough_for_an_event_that_others_hide() {
        let contrast = ContrastSpec::new(&[], 1.0, 0.1);
        let judge = |costs: &[f64], hidden| {
            let found: Vec<_> = costs.iter().map(|&value| ("", Interval { value, low: value, high: value })).collect();
            let row = TestRow { may_be_hidden: hidden, ..TestRow::new("", &[]) };
            let verdict = judge_event(&found, costs.len(), &contrast, &row);
            (verdict.kind, verdict.size.map(|size| size.value))
        };
        assert_eq!(judge(&[0.0, 4.0, 0.1, 4.0], true), (VerdictKind::Found, Some(4.0)));
        assert_eq!(judge(&[0.0, 1.5, 4.5, 4.5], true), (VerdictKind::Found, Some(3.0)));
        assert_eq!(judge(&[0.0, 1.5, 1.5, 4.5], true), (VerdictKind::Unclear, None));
        assert_eq!(judge(&[0.0, 4.0, 0.1, 4.0], false), (VerdictKind::Unclear, None));
        assert_eq!(judge(&[2.0, 4.0, 4.0], false), (VerdictKind::Unclear, None));
        assert_eq!(judge(&[0.0, 4.0, 0.1, 0.0], true), (VerdictKind::Unclear, None));
        assert_eq!(judge(&[0.0, 4.0, 0.1, 6.0], true), (VerdictKind::Unclear, None));
        assert_eq!(judge(&[-3.0, 4.0, 0.1, 4.0], true), (VerdictKind::Unclear, None));
        assert_eq!(judge(&[0.0, 0.2, 0.1, 0.0], true), (VerdictKind::None, None));
    }

    #[test]
    fn programs_bound_by_units_show_what_others_hide() {
        let judge = |test: &str, row: &str, costs: &[f64]| {
            let test = TESTS.iter().find(|other| other.name == test).expect("it is in the list");
            let Experiment::Contrast(contrast) = &test.experiment else { panic!("it is a contrast") };
            let row = contrast.rows.iter().find(|other| other.name == row).expect("it has this row");
            assert_eq!(row.variants.len(), costs.len());
            let found: Vec<_> = costs.iter().map(|&value| ("", Interval { value, low: value, high: value })).collect();
            judge_event(&found, costs.len(), contrast, row).kind
        };
        // Costs of a Turin (family 26, model 2), among not, not and nop, nop, mov, and movsxd.
        assert_eq!(judge("macro_fusion", "cmp_load", &[0.35, 0.0, 0.0, 0.0, 0.41]), VerdictKind::Found);
        // These two do not fuse: the order alone costs as much.
        assert_eq!(judge("macro_fusion", "inc_carry", &[0.12, 0.0, 0.0, 0.0, 0.15]), VerdictKind::None);
        assert_eq!(judge("macro_fusion", "bt_carry", &[0.10, 0.0, 0.0, 0.0, 0.13]), VerdictKind::None);
        assert_eq!(judge("stack_engine", "compare", &[0.10, 0.0, 0.09]), VerdictKind::Found);
        assert_eq!(judge("stack_engine", "move", &[-0.02, 0.04, 0.0]), VerdictKind::None);
    }

    #[test]
    fn an_event_that_depends_on_place_has_an_interval_if_all_programs_show_it() {
        let contrast = ContrastSpec::new(&[], 0.5, 0.2);
        let judge = |costs: [[f64; 3]; 2], row: TestRow| {
            let found = costs.map(|[low, value, high]| ("", Interval { value, low, high }));
            let verdict = judge_event(&found, 2, &contrast, &row);
            (verdict.kind, verdict.size.map(|size| [size.low, size.high]))
        };
        let row = || TestRow::new("", &[]);
        let apart = [[1.4, 1.5, 19.0], [24.0, 25.0, 31.0]];
        assert_eq!(judge(apart, row().varying_by_place()), (VerdictKind::Found, Some([1.4, 31.0])));
        assert_eq!(judge(apart, row()), (VerdictKind::Unclear, None));
        // One program shows noise, or nothing at all.
        assert_eq!(judge([[-0.1, 1.5, 19.0], apart[1]], row().varying_by_place()), (VerdictKind::Unclear, None));
        assert_eq!(judge([[0.1, 0.2, 0.3], apart[1]], row().varying_by_place()), (VerdictKind::Unclear, None));
    }

    #[test]
    fn programs_that_differ_or_show_nothing_prove_no_number() {
        assert_eq!(penalty([8.0, 12.0]).verdict, VerdictKind::Unclear);
        assert_eq!(penalty([0.1, 0.0]).verdict, VerdictKind::None);
        let dearer = penalty([0.1, -3.0]);
        assert!(dearer.verdict == VerdictKind::Unclear && dearer.why.contains("takes longer"), "{}", dearer.why);
        assert_eq!(
            penalty([0.9, 1.1]).verdict,
            VerdictKind::Unclear,
            "one is an event of 1.8, and they differ by less than 2"
        );
        assert_eq!(penalty([8.0, 12.0]).value.value, None);
    }

    #[test]
    fn noise_and_unmeasured_programs_show_no_event() {
        let contrast = ContrastSpec::new(&[], 1.0, 0.1);
        let row = TestRow { may_be_hidden: true, ..TestRow::new("", &[]) };
        let judge = |lows: [f64; 3], programs| {
            let found = lows.map(|low| ("", Interval { value: 4.0, low, high: 5.0 }));
            judge_event(&found, programs, &contrast, &row).kind
        };
        assert_eq!(judge([3.0; 3], 3), VerdictKind::Found);
        assert_eq!(judge([3.0; 3], 4), VerdictKind::Unclear, "one was disturbed");
        // Two of four programs show the event, one of them only within its noise.
        let noisy = [(4.0, 3.0), (4.0, -1.0), (0.0, 0.0), (0.0, 0.0)];
        let found = noisy.map(|(value, low)| ("", Interval { value, low, high: 5.0 }));
        assert_eq!(judge_event(&found, 4, &contrast, &row).kind, VerdictKind::Unclear);
    }
}
