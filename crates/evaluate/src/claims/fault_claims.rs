//! Claims about code around a reading, judged by the provoked contamination.
//!
//! A fault concerns one side of a pair. Methods with the same side get the same trials, at
//! different times. Their results are combined, and a contradiction leaves the claim undecided.
//!
//! This matters with CPUID, which exits to the hypervisor in a virtual machine. The code after it
//! must be fetched again. At some times it begins 20 to 30 core cycles early, at others no early
//! start is visible (Zen 5, family 26, model 2, in a guest of KVM). A missing early start after
//! CPUID therefore neither proves nor contradicts anything.

use super::claim_judgement::{
    ClaimEvidence, ClaimFigure, ClaimJudgement, ClaimResult, all_hold, is_near_zero, subtract_intervals,
};
use crate::contamination::{Contamination, ContaminationFault, STAND_IN, is_measured_alike};
use crate::method_evaluation::MethodEvaluation;
use cyclescope_code::clock::ClockStep;
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;

/// The paper's method for processors without RDTSCP.
pub(super) const CR0_METHOD: &str = "cpuid-rdtsc-cr0-rdtsc";

fn find_cost_row(rows: &[Contamination], fault: ContaminationFault) -> Result<(&Contamination, Interval), String> {
    let row = rows.iter().find(|row| row.fault == fault).ok_or("it was not measured")?;
    let cost = row.cost.known().ok_or_else(|| row.cost.why().unwrap_or_default().to_string())?;
    Ok((row, *cost))
}

fn fault_figure(fault: ContaminationFault, cost: Interval) -> ClaimFigure {
    ClaimFigure::new(fault.describe(), cost, Unit::CoreCycles)
}

/// The result of one method for a fault.
struct FaultWitness<'a> {
    found: &'a MethodEvaluation,
    row: &'a Contamination,
    cost: Interval,
    /// See [`is_fault_excluded`].
    excluded: Option<bool>,
}

impl<'a> FaultWitness<'a> {
    fn from_method(
        seen: &ClaimEvidence,
        found: &'a MethodEvaluation,
        fault: ContaminationFault,
        bound: f64,
    ) -> Result<FaultWitness<'a>, String> {
        let (row, cost) = find_cost_row(&found.contamination, fault)?;
        let exits_to_hypervisor =
            found.candidate.clock.start.contains(&ClockStep::Cpuid) && seen.cpuid_exit_cost().is_some();
        let hidden = row.fault == ContaminationFault::BodyStartedEarly && exits_to_hypervisor;
        let excluded = is_fault_excluded(row, &cost, bound).filter(|excluded| !(*excluded && hidden));
        Ok(FaultWitness { found, row, cost, excluded })
    }

    /// Whether one of them certainly excludes the fault and the other has another figure.
    fn contradicts(&self, other: &FaultWitness) -> bool {
        let apart = self.cost.high < other.cost.low || other.cost.high < self.cost.low;
        let one_excludes = (self.excluded == Some(true)) != (other.excluded == Some(true));
        one_excludes && apart
    }
}

/// The evidence for a fault of a method: its own row, and the rows of methods with the same side.
struct FaultEvidence<'a> {
    own: &'a MethodEvaluation,
    witnesses: Vec<FaultWitness<'a>>,
}

impl<'a> FaultEvidence<'a> {
    fn collect_witnesses(
        seen: &ClaimEvidence<'a>,
        method: &str,
        fault: ContaminationFault,
    ) -> Result<FaultEvidence<'a>, String> {
        let own = seen.find_method(method)?;
        let bound = seen.detection_bound(method)?;
        let has_same_trials = |found: &&MethodEvaluation| {
            found.candidate.executor == own.candidate.executor
                && is_measured_alike(found.candidate.clock, own.candidate.clock, fault)
        };
        let witness = |found| FaultWitness::from_method(seen, found, fault, bound);
        let witnesses: Vec<FaultWitness> =
            seen.methods.iter().filter(has_same_trials).filter_map(|found| witness(found).ok()).collect();
        if witnesses.is_empty() {
            return witness(own).map(|own_row| FaultEvidence { own, witnesses: vec![own_row] });
        }
        Ok(FaultEvidence { own, witnesses })
    }

    /// Whether two of the rows contradict each other.
    fn is_contradictory(&self) -> bool {
        let pair = |one: &FaultWitness| self.witnesses.iter().any(|other| one.contradicts(other));
        self.witnesses.iter().any(pair)
    }

    /// Whether the fault does not occur, according to all rows; `None` if they contradict each
    /// other.
    fn is_excluded(&self) -> Option<bool> {
        let says = |answer| self.witnesses.iter().any(|witness| witness.excluded == Some(answer));
        match (self.is_contradictory(), says(false), says(true)) {
            (true, ..) | (_, false, false) => None,
            (_, shown, _) => Some(!shown),
        }
    }

    fn is_own(&self, witness: &FaultWitness) -> bool {
        witness.found.candidate.clock.name == self.own.candidate.clock.name
    }

    /// The method's own figure, and the first contradicting one.
    fn figures(&self) -> Vec<ClaimFigure> {
        let own = self.witnesses.iter().find(|witness| self.is_own(witness));
        let other = |witness: &&FaultWitness| {
            own.is_none_or(|own| own.excluded != witness.excluded || own.contradicts(witness))
        };
        let is_decided = |witness: &&FaultWitness| witness.excluded.is_some();
        let other = self.witnesses.iter().filter(is_decided).find(other);
        let text = |witness: &FaultWitness| {
            let ClaimFigure { what, quantity } = fault_figure(witness.row.fault, witness.cost);
            match self.is_own(witness) {
                true => ClaimFigure { what, quantity },
                false => {
                    let what = format!("{what}, seen with {}", witness.found.candidate.clock.name);
                    ClaimFigure { what, quantity }
                }
            }
        };
        own.into_iter().chain(other).map(text).collect()
    }
}

const CONTRADICTORY: &str = "methods with the same side contradict each other";

/// Whether a fault does not occur. It does if the row's verdict says so. It does not if the whole
/// interval is closer to 0 than the bound.
fn is_fault_excluded(row: &Contamination, cost: &Interval, bound: f64) -> Option<bool> {
    match row.verdict.fault_happens() {
        Some(true) => Some(false),
        _ => is_near_zero(cost, bound).filter(|within| *within),
    }
}

/// Whether a row is undecided: the fault is neither certainly present nor certainly absent.
/// Undrained stores have no bound.
pub(super) fn is_row_undecided(row: &Contamination, cost: &Interval, bound: f64) -> bool {
    match row.fault {
        ContaminationFault::StoresNotDrained => row.verdict.fault_happens().is_none(),
        _ => is_fault_excluded(row, cost, bound).is_none(),
    }
}

/// Judges whether a method excludes these faults.
pub(super) fn judge_excludes(seen: &ClaimEvidence, method: &str, faults: &[ContaminationFault]) -> ClaimResult {
    let evidence = faults.iter().map(|fault| FaultEvidence::collect_witnesses(seen, method, *fault));
    let evidence: Vec<FaultEvidence> = evidence.collect::<Result<_, _>>()?;
    let holds = all_hold(evidence.iter().map(FaultEvidence::is_excluded));
    let judged = ClaimJudgement::from_figures(holds, evidence.iter().flat_map(FaultEvidence::figures).collect());
    Ok(match evidence.iter().any(FaultEvidence::is_contradictory) {
        true => judged.with_remark(CONTRADICTORY),
        false => judged,
    })
}

/// Judges whether a method lets a fault occur.
pub(super) fn judge_lets_in(seen: &ClaimEvidence, method: &str, fault: ContaminationFault) -> ClaimResult {
    let evidence = FaultEvidence::collect_witnesses(seen, method, fault)?;
    let happens = evidence.is_excluded() == Some(false);
    let judged = ClaimJudgement::from_figures(happens.then_some(true), evidence.figures());
    Ok(match (happens, evidence.is_contradictory()) {
        (true, _) => judged,
        (false, true) => judged.with_remark(CONTRADICTORY),
        (false, false) => judged.with_remark("not seen here, which refutes nothing"),
    })
}

/// Judges whether a method ignores pending stores.
pub(super) fn judge_leaves_stores(seen: &ClaimEvidence, method: &str) -> ClaimResult {
    let (row, cost) = find_cost_row(&seen.find_method(method)?.contamination, ContaminationFault::StoresNotDrained)?;
    Ok(ClaimJudgement::from_figures(row.verdict.fault_happens(), vec![fault_figure(row.fault, cost)]))
}

/// Judges whether two methods differ by less than a step, in the cost of their pair and in these
/// faults.
pub(super) fn judge_alike(seen: &ClaimEvidence, [one, other]: [&str; 2], faults: &[ContaminationFault]) -> ClaimResult {
    let step = seen.require_step(one)?;
    let in_steps = |what: String, one: &Interval, other: &Interval| {
        let difference = subtract_intervals(one, other);
        let scaled =
            Interval { value: difference.value / step, low: difference.low / step, high: difference.high / step };
        (is_near_zero(&scaled, 1.0), ClaimFigure::new(what, scaled, Unit::Steps))
    };
    let mut compared = vec![in_steps(
        "overhead, difference".to_string(),
        &seen.require_overhead(one)?,
        &seen.require_overhead(other)?,
    )];
    for &fault in faults {
        let (_, first) = find_cost_row(&seen.find_method(one)?.contamination, fault)?;
        let (_, second) = find_cost_row(&seen.find_method(other)?.contamination, fault)?;
        compared.push(in_steps(format!("{}, difference", fault.describe()), &first, &second));
    }
    let holds = all_hold(compared.iter().map(|(same, _)| *same));
    Ok(ClaimJudgement::from_figures(holds, compared.into_iter().map(|(_, figure)| figure).collect()))
}

/// Judges whether following code interferes with the paper's CR0 method, which has nothing after
/// its second reading. In user mode, SERIALIZE replaces the write to CR0.
pub(super) fn judge_nothing_behind(seen: &ClaimEvidence) -> ClaimResult {
    let fault = ContaminationFault::FollowingInTheWay;
    let refused = match seen.find_method(CR0_METHOD) {
        Ok(_) => return judge_excludes(seen, CR0_METHOD, &[fault]),
        Err(refused) => refused,
    };
    let ClaimEvidence { stand_in, methods, .. } = *seen;
    let stand_in = stand_in.ok_or(&refused)?;
    let bound =
        methods.iter().find_map(|found| seen.detection_bound(found.candidate.clock.name).ok()).ok_or(&refused)?;
    let (row, cost) = find_cost_row(stand_in, fault)?;
    let judged = ClaimJudgement::from_figures(is_fault_excluded(row, &cost, bound), vec![fault_figure(fault, cost)]);
    let judged = judged.with_remark(&format!("SERIALIZE in place of the write to CR0, for {refused}"));
    Ok(ClaimJudgement { stand_in: Some(STAND_IN.name), ..judged })
}
