//! Loops with several speeds: records whose cost is a change of speed and not the marker's.
//!
//! A loop may run at several speeds, depending on its surroundings: the address of its code, or the
//! number of stores waiting after its own (the design `stores-8`). A marker that changes the
//! surroundings changes the speed, and the difference exceeds the time of its own instructions.
//! This is certain if the loop takes less time with the marker than without, because more
//! instructions alone make no loop faster. It is possible if the loop takes as long with the marker
//! as it takes elsewhere without one.
//!
//! Limits: if the loop without a marker never shows its slower speed, a change to that speed looks
//! like a cost.

use super::source::design::{Enabling, SiteDesign};
use super::visit_ledger::{CaseFinding, case_aim};
use cyclescope_core::statistics::{Interval, median};
use serde::Serialize;

/// A loop that runs at another speed with the marker than without.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OtherSpeed {
    /// Number of placements with another speed.
    pub placements: usize,
    /// Core cycles per iteration without the marker: the median over these placements.
    pub without: f64,
    /// Core cycles per iteration with the marker: the median over these placements.
    pub with: f64,
    /// Whether the marker's own cost is excluded as an explanation, because the loop is faster with
    /// the marker. Otherwise the loop alone takes as long elsewhere. The cost may then come from
    /// the marker, the other speed, or both.
    pub certain: bool,
    /// Controls, with only stores in the marker's place, that also make the loop faster.
    pub controls: Vec<&'static str>,
}

/// Largest chance probability at which the placements of a row count as another speed. Ten surveys
/// have about a thousand rows.
const ROW_CHANCE: f64 = 1e-4;
/// Smallest relative distance between two speeds, and smallest distance in multiples of a cost's
/// error.
const APART_SHARE: f64 = 0.01;
const APART_AIMS: f64 = 4.0;

/// The other speed of each finding, if it has one.
pub(crate) fn find_other_speeds(findings: &[CaseFinding], confidence: f64) -> Vec<Option<OtherSpeed>> {
    let mut found: Vec<Option<OtherSpeed>> = findings
        .iter()
        .map(|finding| {
            let least = least_placements(finding.placements.len(), (1.0 - confidence) / 2.0);
            find_faster(finding, least).or_else(|| find_slower(finding, &list_speeds(finding, findings, least), least))
        })
        .collect();
    let faster: Vec<bool> = found.iter().map(|other| other.as_ref().is_some_and(|other| other.certain)).collect();
    let control =
        |finding: &CaseFinding| finding.case.design.enabling == Enabling::Never && !finding.case.design.site.is_empty();
    for (finding, other) in findings.iter().zip(&mut found) {
        let Some(other) = other.as_mut().filter(|other| other.certain) else { continue };
        let controls = findings.iter().zip(&faster).filter(|(other, faster)| **faster && control(other));
        let same_loop = controls.filter(|(other, _)| has_same_loop(finding, other));
        other.controls = same_loop.map(|(other, _)| other.case.design.name).collect();
    }
    found
}

/// Whether two findings have the same loop without the marker. The base of some designs calls a
/// function, and others use another compiler.
fn has_same_loop(one: &CaseFinding, other: &CaseFinding) -> bool {
    let text = |design: &SiteDesign| (design.base, design.language);
    one.case.context == other.case.context && text(one.case.design) == text(other.case.design)
}

/// Smallest number of placements that chance reaches in fewer than [`ROW_CHANCE`] of the rows, if
/// it picks each placement with this probability.
fn least_placements(placements: usize, probability: f64) -> usize {
    let odds = probability / (1.0 - probability);
    let mut chance = (1.0 - probability).powi(placements as i32);
    let mut below = chance;
    for count in 1..=placements {
        if 1.0 - below < ROW_CHANCE {
            return count;
        }
        chance *= odds * (placements - count + 1) as f64 / count as f64;
        below += chance;
    }
    placements + 1
}

/// Placements at which the loop is faster with the marker than without.
fn find_faster(finding: &CaseFinding, least: usize) -> Option<OtherSpeed> {
    let faster = |cost: Interval| cost.high < -case_aim(&finding.case, &cost);
    let placements = finding.placements.iter().flatten().filter(|one| faster(one.cost));
    from_loops(placements.map(|one| [one.base, one.site]).collect(), least, true)
}

/// Placements at which the loop with the marker is as slow as the loop without one is elsewhere,
/// but not here.
fn find_slower(finding: &CaseFinding, speeds: &[[f64; 2]], least: usize) -> Option<OtherSpeed> {
    let placements = finding.placements.iter().flatten().filter(|one| {
        let error = case_aim(&finding.case, &one.cost);
        let within = |[low, high]: &[f64; 2]| (low - error..=high + error).contains(&one.site);
        let above = |[low, _]: &[f64; 2]| *low > one.base + error;
        one.cost.low > error && speeds.iter().any(|speed| above(speed) && within(speed))
    });
    from_loops(placements.map(|one| [one.base, one.site]).collect(), least, false)
}

fn from_loops(loops: Vec<[f64; 2]>, least: usize, certain: bool) -> Option<OtherSpeed> {
    if loops.len() < least.max(1) {
        return None;
    }
    let middle = |which: usize| median(&mut loops.iter().map(|one| one[which]).collect::<Vec<_>>());
    let (without, with) = (middle(0), middle(1));
    Some(OtherSpeed { placements: loops.len(), without, with, certain, controls: Vec::new() })
}

/// The speeds of a finding's loop without any marker, each with its lowest and highest figure. They
/// come from all placements of all designs with the same loop. Empty if there is only one speed.
fn list_speeds(finding: &CaseFinding, all: &[CaseFinding], least: usize) -> Vec<[f64; 2]> {
    let placements =
        all.iter().filter(|other| has_same_loop(finding, other)).flat_map(|other| other.placements.iter().flatten());
    let mut bases: Vec<f64> = placements.map(|one| one.base).collect();
    bases.sort_by(f64::total_cmp);
    let Some(first) = bases.first() else { return Vec::new() };
    let error = case_aim(&finding.case, &Interval::with_margin(0.0, 0.0));
    let apart = (APART_AIMS * error).max(APART_SHARE * first);
    let groups: Vec<&[f64]> = bases.chunk_by(|one, next| next - one < apart).collect();
    let ends = |group: &&[f64]| [group[0], group[group.len() - 1]];
    let often: Vec<[f64; 2]> = groups.iter().filter(|group| group.len() >= least).map(ends).collect();
    if often.len() > 1 { often } else { Vec::new() }
}

#[cfg(test)]
mod tests;
