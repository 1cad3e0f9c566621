//! Reasons to distrust a marker's numbers.

use super::placement_cost::PlacementCost;
use super::speeds::OtherSpeed;
use super::visit_ledger::{CaseFinding, case_aim};
use cyclescope_core::statistics::{median, quartiles};
use cyclescope_measure::result::caveat::{Caveat, CaveatKind};

/// The rulers disagree if their ratio is off by more than this share, as in
/// [`cyclescope_measure::result::caveat`].
const RULER_SHARE: f64 = 0.01;
/// The caveat about a busy sibling applies above this share of shared visits.
const SHARED_SHARE: f64 = 0.2;

/// The caveats of a finding. `own` is its loop's other speed, `over` that of the state below it.
pub(super) fn list_caveats(finding: &CaseFinding, own: Option<&OtherSpeed>, over: Option<&OtherSpeed>) -> Vec<Caveat> {
    let caveat = |code, text| Caveat { code, text };
    let all = finding.placements.len();
    let costs: Vec<&PlacementCost> = finding.placements.iter().flatten().collect();
    let moded = costs.iter().filter(|placement| !placement.modes.is_empty()).count();
    let visits = finding.visits + finding.shared;
    let found = [
        describe_wide_placements(finding).map(|text| caveat(CaveatKind::IntervalNotReached, text)),
        describe_differing_placements(finding).map(|text| caveat(CaveatKind::LayoutDependent, text)),
        own.map(|own| caveat(CaveatKind::OtherSpeed, describe_other_speed(own, all))),
        over.filter(|_| own.is_none()).map(|_| {
            let over = finding.case.state.over.unwrap_or_default();
            caveat(CaveatKind::OtherSpeed, format!("no step: with {over} the loop runs at another speed"))
        }),
        (moded > 0).then(|| {
            let text =
                format!("at {moded} of {all} placements visits fall into several modes; the most frequent one counts");
            caveat(CaveatKind::TwoModes, text)
        }),
        ((finding.add_link - 1.0).abs() > RULER_SHARE).then(|| {
            let text = format!("an add takes {:.3} cycles by the ruler, not 1", finding.add_link);
            caveat(CaveatKind::RulersDisagree, text)
        }),
        (finding.shared as f64 > SHARED_SHARE * visits as f64).then(|| {
            let text = format!("{} of {visits} visits with a busy sibling are excluded", finding.shared);
            caveat(CaveatKind::SiblingBusy, text)
        }),
    ];
    found.into_iter().flatten().collect()
}

/// Describes placements with intervals wider than their target.
fn describe_wide_placements(finding: &CaseFinding) -> Option<String> {
    let costs = || finding.placements.iter().flatten();
    let all = finding.placements.len();
    let missing = all - costs().count();
    let wide = costs().filter(|one| one.cost.half_width() > case_aim(&finding.case, &one.cost));
    let count = wide.clone().count() + missing;
    let widest = wide.max_by(|one, other| one.cost.half_width().total_cmp(&other.cost.half_width()));
    let Some(widest) = widest else {
        return (count > 0).then(|| format!("at {count} of {all} placements no visit was usable"));
    };
    let width = |[low, high]: [f64; 2]| high - low;
    let [base, site] = widest.spread;
    let (which, [low, high]) = if width(base) > width(site) { ("without", base) } else { ("with", site) };
    Some(format!(
        "at {count} of {all} placements the half width is above its target, at most {:.2} core cycles: the loop \
         {which} the marker varies between visits, half of {} visits lie between {low:.2} and {high:.2}",
        widest.cost.half_width(),
        widest.visits,
    ))
}

/// Describes an interval over placements that is wider than the target of one placement, if
/// [`describe_wide_placements`] does not explain it.
fn describe_differing_placements(finding: &CaseFinding) -> Option<String> {
    let cost = finding.cost?;
    let [half, aim] = [cost.half_width(), case_aim(&finding.case, &cost)];
    let mut costs: Vec<f64> = finding.placements.iter().flatten().map(|one| one.cost.value).collect();
    let mut own: Vec<f64> = finding.placements.iter().flatten().map(|one| one.cost.half_width()).collect();
    (half > aim.max(median(&mut own))).then(|| {
        let [low, _, high] = quartiles(&mut costs);
        format!(
            "the half width is {half:.2} core cycles instead of {aim:.2}: the cost depends on the code's address, \
             half of {} placements lie between {low:.2} and {high:.2}",
            costs.len(),
        )
    })
}

/// Describes a cost that is a change between two speeds of the loop.
fn describe_other_speed(other: &OtherSpeed, all: usize) -> String {
    let OtherSpeed { placements, without, with, certain, controls } = other;
    let speeds = format!(
        "at {placements} of {all} placements the loop takes {with:.1} core cycles with the marker and {without:.1} \
         without"
    );
    if !certain {
        return format!(
            "{speeds}, but elsewhere it takes as long without a marker: the difference may be a change of \
             speed"
        );
    }
    let controls = match controls.as_slice() {
        [] => String::new(),
        names => {
            format!("; it is also faster with only stores in the marker's place ({})", names.join(", "))
        }
    };
    format!("{speeds}, which are two speeds of the loop: the difference is not the marker's cost{controls}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::MarkerCase;
    use crate::simulated_bench::{IMUL_LATENCY, SimulatedBench};
    use crate::survey::VisitPlan;
    use cyclescope_core::random::Random;

    /// Codes and texts of the first row.
    fn first(loops: fn(&MarkerCase, usize) -> [f64; 2], luck: fn(&mut Random) -> f64) -> Vec<(CaveatKind, String)> {
        let mut bench = SimulatedBench { luck, ..SimulatedBench::new(loops) };
        bench.cases.truncate(1);
        let record = bench.measure_all(&VisitPlan::quick(IMUL_LATENCY, 3)).remove(0);
        record.caveats.into_iter().map(|caveat| (caveat.code, caveat.text)).collect()
    }

    #[test]
    fn an_interval_wider_than_its_target_is_explained() {
        let even = |_: &MarkerCase, _: usize| [1.0, 3.0];
        let still = |random: &mut Random| 0.01 * random.normal();
        assert_eq!(first(even, still), []);
        let visits = first(even, |random| 2.0 * random.uniform());
        let is_explained = |(code, text): &(CaveatKind, String)| {
            *code == CaveatKind::IntervalNotReached && text.contains("the loop with the marker varies")
        };
        assert!(visits.iter().any(is_explained), "{visits:?}");
        let placements = first(|_, placement| [1.0, 3.0 + (placement % 2) as f64], still);
        assert!(
            matches!(&placements[..], [(CaveatKind::LayoutDependent, text)] if text.contains("3.00")),
            "{placements:?}"
        );
        // Three deviating placements do not move the median.
        assert_eq!(first(|_, placement| [1.0, if placement < 3 { 5.0 } else { 3.0 }], still), []);
    }
}
