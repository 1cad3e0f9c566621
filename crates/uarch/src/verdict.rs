//! What knees prove: a size, what limits it, or why it is unknown.
//!
//! A knee is a size only if two different fillers agree, and neither stops at the end of another
//! structure that it also occupies. Three experiments have to confirm it: fillers of another kind
//! in front take their part of it, another first chain shows the same, and no-operations still
//! overlap beyond it. If a competing structure's size is unknown, the verdict has no number.

use super::knee::{KneeEdges, NoKnee};
use super::spec::{FillerSpec, OverlapSpec, TestSpec};
use cyclescope_core::statistics::Interval;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Share, and number of entries, by which two equal knees may differ.
const SAME_SHARE: f64 = 0.02;
pub(super) const SAME_ENTRIES: f64 = 2.0;

/// Whether two knees are equal within the experiment's resolution.
pub(super) fn is_same_knee(one: KneeEdges, other: KneeEdges) -> bool {
    let links = one.link_slack().max(other.link_slack()) as f64;
    counts_agree(one.high, other.high, links)
}

fn counts_agree(one: usize, other: usize, more: f64) -> bool {
    one.abs_diff(other) as f64 <= SAME_ENTRIES.max(SAME_SHARE * one.max(other) as f64) + more
}

/// Where a structure is full, in fillers that take one entry each, without entries of the chains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StructureEnd {
    /// At this number, which its test found.
    At(usize),
    /// At this number or later: its test found no size.
    AtLeast(usize),
}

impl StructureEnd {
    /// The least number at which it may be full.
    pub(super) fn min_entries(self) -> usize {
        let (StructureEnd::At(least) | StructureEnd::AtLeast(least)) = self;
        least
    }
}

/// The result of a filler.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FillerResult {
    /// The filler's name.
    pub name: &'static str,
    /// Tests of structures in which the filler takes entries too.
    also_occupies: &'static [&'static str],
    /// Tests of structures in which the filler may take entries.
    may_occupy: &'static [&'static str],
    /// Whether some cores pack several fillers into one entry.
    may_pack: bool,
    /// The knee, or the reason why it has no knee.
    pub knee: Result<KneeEdges, NoKnee>,
}

impl FillerResult {
    pub(super) fn new(filler: &FillerSpec, knee: Result<KneeEdges, NoKnee>) -> FillerResult {
        let FillerSpec { name, also_occupies: takes, may_occupy: shares, may_pack: packs, .. } = *filler;
        FillerResult { name, also_occupies: takes, may_occupy: shares, may_pack: packs, knee }
    }

    /// A number of fillers that surely fits the test's structure, if the curve shows one.
    pub(super) fn min_room(&self, window: &OverlapSpec) -> Option<usize> {
        match self.knee {
            _ if self.may_pack => None,
            Ok(knee) => Some(knee.low),
            Err(NoKnee::AlwaysOverlaps) => Some(window.max_fillers),
            Err(_) => None,
        }
    }
}

/// Tests of the structures in which fillers with a knee take entries, or may take some.
pub(super) fn occupied_structures(filled: &[FillerResult]) -> BTreeSet<&'static str> {
    let ended = filled.iter().filter(|filler| filler.knee.is_ok());
    ended.flat_map(|filler| filler.also_occupies.iter().chain(filler.may_occupy)).copied().collect()
}

/// An experiment that would disagree if the size were wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WitnessResult {
    /// The experiment's name.
    pub name: Cow<'static, str>,
    /// Whether it confirms the size.
    pub holds: bool,
    /// Its result, as text.
    pub text: String,
}

/// The kinds of verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// The size is known.
    Found,
    /// Another structure is full first.
    Limited,
    /// No end up to the largest number, or the CPU lacks the structure.
    None,
    /// The experiments contradict each other.
    Unclear,
}

impl VerdictKind {
    /// The verdict's name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            VerdictKind::Found => "found",
            VerdictKind::Limited => "limited",
            VerdictKind::None => "none",
            VerdictKind::Unclear => "unclear",
        }
    }
}

/// A verdict on a structure, with its reason.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TestVerdict {
    /// Its kind.
    pub kind: VerdictKind,
    /// The number, if it was found.
    pub size: Option<Interval>,
    /// The test of the structure that is full first, if another one is.
    pub limited_by: Option<&'static str>,
    /// The reason, as text.
    pub why: String,
}

impl TestVerdict {
    pub(super) fn new(kind: VerdictKind, why: impl Into<String>) -> TestVerdict {
        TestVerdict { kind, size: None, limited_by: None, why: why.into() }
    }

    /// The verdict on a structure that this CPU has no instructions for.
    pub(super) fn absent(test: &TestSpec) -> TestVerdict {
        TestVerdict::new(VerdictKind::None, format!("this CPU has no instructions that take {}", test.name))
    }
}

/// A filler with a knee.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FillerKnee {
    /// The filler's name.
    pub name: &'static str,
    /// The edges of the knee.
    pub knee: KneeEdges,
    /// Whether some cores pack several fillers into one entry.
    may_pack: bool,
}

/// Fillers with a knee, by the structure that stops them.
#[derive(Debug, Default)]
pub(super) struct ClassifiedFillers {
    /// Fillers that no other structure stops.
    pub own: Vec<FillerKnee>,
    /// Fillers that another structure stops, and the test of that structure.
    limited: Vec<(FillerKnee, &'static str)>,
    /// Fillers that pass the end of a structure in which each should take an entry, and the test of
    /// that structure.
    past: Vec<(FillerKnee, &'static str)>,
    /// Fillers that end where another structure of unknown size may be full, and the test of that
    /// structure.
    doubted: Vec<(FillerKnee, &'static str)>,
}

/// Sorts fillers by the structure that stops them. `end_of` returns the end of another test's
/// structure.
pub(super) fn classify_fillers(
    filled: &[FillerResult],
    end_of: &dyn Fn(&str) -> Option<StructureEnd>,
) -> ClassifiedFillers {
    let mut limits = ClassifiedFillers::default();
    for FillerResult { name, also_occupies: takes, may_occupy: shares, may_pack: packs, knee } in filled {
        let Ok(knee) = *knee else { continue };
        let named = FillerKnee { name, knee, may_pack: *packs };
        let is_near = |end: usize| counts_agree(knee.high, end, knee.link_slack() as f64);
        let stops = |other: &&&'static str| matches!(end_of(other), Some(StructureEnd::At(end)) if is_near(end));
        let passes = |other: &&&'static str| matches!(end_of(other), Some(StructureEnd::At(end)) if knee.high > end);
        let doubts = |other: &&&'static str| matches!(end_of(other), Some(StructureEnd::AtLeast(least)) if knee.high >= least || is_near(least));
        let all = || takes.iter().chain(*shares);
        if let Some(other) = all().find(stops) {
            limits.limited.push((named, *other));
        } else if let Some(other) = takes.iter().find(passes) {
            limits.past.push((named, *other));
        } else if let Some(other) = all().find(doubts) {
            limits.doubted.push((named, *other));
        } else {
            limits.own.push(named);
        }
    }
    limits
}

/// The knees that agree with the most popular one. Groups of packable fillers alone prove no
/// entries.
pub(super) fn find_agreeing_group(own: &[FillerKnee]) -> Vec<FillerKnee> {
    let around = |middle: &FillerKnee| {
        own.iter().filter(|named| is_same_knee(named.knee, middle.knee)).copied().collect::<Vec<_>>()
    };
    // Among groups of equal size, the smallest count wins: a structure that is used less makes a
    // knee later.
    own.iter()
        .map(around)
        .filter(|group| group.iter().any(|named| !named.may_pack))
        .max_by_key(|group| (group.len(), std::cmp::Reverse(group[0].knee.high)))
        .unwrap_or_default()
}

/// Whether a filler's knee equals another one's, or is a multiple of it because an entry holds
/// several.
fn is_packed_multiple(named: &FillerKnee, base: &FillerKnee) -> bool {
    let entries = base.knee.high;
    let number = (named.knee.high as f64 / entries as f64).round().max(1.0) as usize;
    let links = number * named.knee.link_slack().max(base.knee.link_slack());
    counts_agree(named.knee.high, number * entries, links as f64)
}

/// The size that follows from knees, in entries of the structure.
pub(super) fn size_from_knees(window: &OverlapSpec, group: &[FillerKnee]) -> Option<Interval> {
    let high = group.iter().map(|named| named.knee.high).max()?;
    let low = group.iter().map(|named| named.knee.high).min()?;
    let more = group.iter().map(|named| named.knee.link_slack()).max()?;
    let entries = |fillers: usize| (fillers + window.chain_entries) as f64;
    Some(Interval { value: entries(high), low: entries(low), high: entries(high + more) })
}

/// Judges a structure.
pub(super) fn judge_structure(
    test: &TestSpec,
    window: &OverlapSpec,
    filled: &[FillerResult],
    witnesses: &[WitnessResult],
    end_of: &dyn Fn(&str) -> Option<StructureEnd>,
) -> TestVerdict {
    if filled.is_empty() {
        return TestVerdict::absent(test);
    }
    let limits = classify_fillers(filled, end_of);
    let ClassifiedFillers { own, .. } = &limits;
    let group = find_agreeing_group(own);
    if group.len() < 2 {
        return judge_disagreement(window, filled, &limits);
    }
    if let Some(witness) = witnesses.iter().find(|witness| !witness.holds) {
        return TestVerdict::new(VerdictKind::Unclear, format!("{}: {}", witness.name, witness.text));
    }
    if let Some(other) =
        own.iter().find(|named| named.may_pack && !group.iter().any(|one| is_packed_multiple(named, one)))
    {
        let why = format!("{} is no whole multiple of {}", describe_knees(&[*other]), describe_knees(&group));
        return TestVerdict::new(VerdictKind::Unclear, why);
    }
    TestVerdict {
        size: size_from_knees(window, &group),
        ..TestVerdict::new(VerdictKind::Found, format!("{} agree", describe_knees(&group)))
    }
}

/// The verdict if no two fillers agree.
fn judge_disagreement(window: &OverlapSpec, filled: &[FillerResult], limits: &ClassifiedFillers) -> TestVerdict {
    let ClassifiedFillers { own, limited, past, doubted } = limits;
    // If another filler passes the end of this one, this end is not the structure's.
    let furthest = limited.iter().max_by_key(|(named, _)| named.knee.high);
    let passed = |named: &FillerKnee| furthest.is_some_and(|(last, _)| last.knee.high > named.knee.high);
    let unclear = |why: String| TestVerdict::new(VerdictKind::Unclear, why);
    if let Some((filler, other)) = furthest.filter(|_| own.iter().all(passed)) {
        let why = format!("{} stops where {other} ends", filler.name);
        return TestVerdict { limited_by: Some(other), ..TestVerdict::new(VerdictKind::Limited, why) };
    }
    if !own.is_empty() {
        return unclear(format!("no two fillers agree: {}", describe_knees(own)));
    }
    if filled.iter().all(|filler| filler.knee == Err(NoKnee::AlwaysOverlaps)) {
        return TestVerdict::new(VerdictKind::None, format!("no end up to {}", window.max_fillers));
    }
    match (past.first(), doubted.first()) {
        (Some((filler, other)), _) => {
            unclear(format!("{} goes on past where {other} ends, and may not take it", filler.name))
        }
        (None, Some((filler, other))) => {
            unclear(format!("{}: {other} may end there, and no test found where it does", describe_knees(&[*filler])))
        }
        (None, None) => unclear("no curve falls in one place".to_string()),
    }
}

fn describe_knees(knees: &[FillerKnee]) -> String {
    let describe = |FillerKnee { name, knee, .. }: &FillerKnee| match knee.low == knee.high {
        true => format!("{name} {}", knee.high),
        false => format!("{name} {} to {}", knee.low, knee.high),
    };
    knees.iter().map(describe).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Experiment;
    use crate::test_list::TESTS;

    fn test(name: &str) -> &'static TestSpec {
        TESTS.iter().find(|test| test.name == name).unwrap()
    }

    /// Results of the test's own fillers with these knees.
    fn filled(test: &TestSpec, knees: &[Result<usize, NoKnee>]) -> Vec<FillerResult> {
        let sharp = |count| KneeEdges { low: count, high: count };
        test.fillers().iter().zip(knees).map(|(filler, knee)| FillerResult::new(filler, knee.map(sharp))).collect()
    }

    /// A reorder buffer of 500 entries and 250 integer registers.
    fn others(name: &str) -> Option<StructureEnd> {
        [("rob", 500), ("int_registers", 250)]
            .iter()
            .find(|(other, _)| *other == name)
            .map(|(_, knee)| StructureEnd::At(*knee))
    }

    fn judged(name: &str, knees: &[Result<usize, NoKnee>], witnesses: &[WitnessResult]) -> TestVerdict {
        let test = test(name);
        let Experiment::Overlap(window) = &test.experiment else { panic!("{name} has no fillers") };
        judge_structure(test, window, &filled(test, knees), witnesses, &others)
    }

    fn witness(holds: bool) -> WitnessResult {
        WitnessResult { name: "no-operations".into(), holds, text: String::new() }
    }

    #[test]
    fn two_fillers_that_agree_prove_a_size_with_the_chains_entries() {
        let found = judged("stores_in_flight", &[Ok(112), Ok(111), Ok(140)], &[witness(true)]);
        assert_eq!((found.kind, found.limited_by), (VerdictKind::Found, None));
        assert_eq!(found.size, Some(Interval { value: 112.0, low: 111.0, high: 112.0 }));
        let rob = judged("rob", &[Ok(510), Ok(510)], &[]);
        assert_eq!(rob.size.map(|size| size.value), Some(512.0));
    }

    #[test]
    fn a_knee_at_another_structures_end_is_limited_by_it() {
        // Loads to integer registers end with those registers, and a load to a vector register
        // alone proves nothing.
        let found = judged("loads_in_flight", &[Ok(249), Ok(400), Ok(251)], &[]);
        assert_eq!((found.kind, found.size), (VerdictKind::Unclear, None));
        let found = judged("loads_in_flight", &[Ok(249), Ok(498), Ok(251)], &[]);
        assert_eq!((found.kind, found.limited_by), (VerdictKind::Limited, Some("rob")));
    }

    #[test]
    fn packed_fillers_alone_prove_no_size_and_end_at_a_multiple() {
        let rob = |knees: [usize; 4]| judged("rob", &knees.map(Ok), &[]);
        let size = |verdict: TestVerdict| verdict.size.map(|size| size.value);
        // Zeros, a mixture, and two kinds of no-operations.
        assert_eq!(size(rob([510, 510, 510, 510])), Some(512.0));
        assert_eq!(size(rob([318, 318, 1272, 1272])), Some(320.0));
        assert_eq!(size(rob([318, 318, 636, 318])), Some(320.0));
        for hidden in [[318, 410, 1272, 1272], [400, 400, 510, 510], [400, 400, 400, 510]] {
            let verdict = rob(hidden);
            assert_eq!((verdict.kind, verdict.size), (VerdictKind::Unclear, None), "{hidden:?}");
        }
    }

    #[test]
    fn fillers_that_pass_a_structures_end_are_not_limited_by_it() {
        let found = judged("integer_scheduler", &[Ok(290), Ok(290), Err(NoKnee::AlwaysOverlaps)], &[]);
        assert_eq!((found.kind, found.limited_by, found.size), (VerdictKind::Unclear, None, None));
        assert!(found.why.contains("past where int_registers ends"), "{}", found.why);
        // Flags are in integer registers on some cores only.
        assert_eq!(judged("flags", &[Ok(252), Ok(252)], &[]).limited_by, Some("int_registers"));
        for own in [150, 290] {
            assert_eq!(judged("flags", &[Ok(own), Ok(own)], &[]).size.map(|size| size.value), Some(own as f64));
        }
    }

    #[test]
    fn a_competing_structure_of_unknown_size_leaves_no_number() {
        let branches = test("branches_in_flight");
        let Experiment::Overlap(window) = &branches.experiment else { panic!("it has fillers") };
        let judged = |knee: usize, rob: StructureEnd| {
            judge_structure(branches, window, &filled(branches, &[Ok(knee), Ok(knee)]), &[], &|_| Some(rob))
        };
        // The reorder buffer of a Zen 4 has 320 entries; its two fillers ended at 307 and 345.
        let found = judged(314, StructureEnd::AtLeast(307));
        assert_eq!((found.kind, found.size, found.limited_by), (VerdictKind::Unclear, None, None));
        assert!(found.why.contains("rob may end there"), "{}", found.why);
        assert_eq!(judged(304, StructureEnd::AtLeast(307)).kind, VerdictKind::Unclear);
        assert_eq!(judged(118, StructureEnd::AtLeast(307)).size.map(|size| size.value), Some(118.0));
        assert_eq!(judged(314, StructureEnd::At(315)).limited_by, Some("rob"));
    }

    #[test]
    fn a_filler_that_ends_before_a_stopped_one_proves_no_size() {
        // Loads on a Zen 4 with 249 integer registers: comparisons with memory end at half of the
        // flags.
        let loads = |knees: [usize; 3]| judged("loads_in_flight", &knees.map(Ok), &[]);
        let found = loads([249, 498, 117]);
        assert_eq!((found.kind, found.limited_by, found.size), (VerdictKind::Limited, Some("rob"), None));
        assert_eq!(loads([249, 300, 117]).kind, VerdictKind::Unclear);
    }

    #[test]
    fn a_failed_witness_makes_the_verdict_unclear() {
        let found = judged("stores_in_flight", &[Ok(112), Ok(112), Ok(112)], &[witness(true), witness(false)]);
        assert_eq!((found.kind, found.size), (VerdictKind::Unclear, None));
    }

    #[test]
    fn fillers_that_differ_or_have_no_knee_prove_no_number() {
        for (knees, kind) in [
            ([Ok(112), Ok(90), Ok(140)], VerdictKind::Unclear),
            (
                [Err(NoKnee::AlwaysOverlaps), Err(NoKnee::AlwaysOverlaps), Err(NoKnee::AlwaysOverlaps)],
                VerdictKind::None,
            ),
            (
                [Err(NoKnee::NoSingleFall), Err(NoKnee::NeverOverlaps), Err(NoKnee::AlwaysOverlaps)],
                VerdictKind::Unclear,
            ),
        ] {
            let found = judged("stores_in_flight", &knees, &[]);
            assert_eq!((found.kind, found.size), (kind, None), "{knees:?}");
        }
        assert_eq!(judged("mask_registers", &[], &[]).kind, VerdictKind::None);
    }
}
