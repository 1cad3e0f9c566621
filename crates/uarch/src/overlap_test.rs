//! Runs one test: the knees of its fillers, the experiments that check a size, and the verdict.

use super::conditions::RETRY_ONCE;
use super::knee::{KneeEdges, NoKnee};
use super::knee_search::{KneeCurve, MIN_COUNT, ProbedKnee, search_knee};
use super::overlap::{MeasureOverlaps, OverlapProbe};
use super::record::{FillerRecord, UarchRecord};
use super::spec::{Experiment, FillerSpec, FirstChain, OverlapSpec, SQRTSD, TestSpec};
use super::verdict::{
    FillerKnee, FillerResult, StructureEnd, TestVerdict, VerdictKind, WitnessResult, classify_fillers,
    find_agreeing_group, is_same_knee, judge_structure, occupied_structures,
};
use super::window::reorder_buffer::NOP;
use cyclescope_core::error::RunError;
use cyclescope_core::unit::Unit;
use std::collections::BTreeMap;

/// Fillers of the witness before the counted ones.
const WITNESS_OCCUPIED: usize = 16;
/// How far beyond a knee no-operations must still overlap, as a share of the knee.
const CONTROL_MARGIN_SHARE: f64 = 0.1;
/// The number of fillers to add to that share.
const CONTROL_MARGIN: usize = 8;

/// The least overlap of a usable first chain across few fillers.
const OVERLAP_LEAST: f64 = 0.5;

/// Runs the tests of a core in order.
pub(super) struct OverlapTester<'a> {
    core: &'a mut dyn MeasureOverlaps,
    knees: &'a mut StructureEnds,
}

/// Where the structures of tests are full.
///
/// What another thread holds changes, so an end is measured again when another result depends on
/// it.
#[derive(Debug, Clone, Default)]
pub(super) struct StructureEnds {
    known: BTreeMap<&'static str, KnownEnd>,
}

/// Where a structure is full, and the experiment that shows it; resumed ends have none.
#[derive(Debug, Clone, Copy)]
struct KnownEnd {
    end: StructureEnd,
    probed: Option<ProbedKnee>,
}

impl StructureEnds {
    pub(super) fn new() -> StructureEnds {
        StructureEnds::default()
    }

    /// Where the structure of a test is full, as far as known.
    pub(super) fn get(&self, test: &str) -> Option<StructureEnd> {
        self.known.get(test).map(|known| known.end)
    }

    /// Measures the end of a test's structure again, and keeps the new one. Returns whether it is
    /// still there.
    pub(super) fn recheck(&mut self, core: &mut dyn MeasureOverlaps, test: &str) -> Result<bool, RunError> {
        let Some(known) = self.known.get_mut(test) else { return Ok(true) };
        let (StructureEnd::At(_), Some(probed)) = (known.end, &mut known.probed) else { return Ok(true) };
        let found = probed.recheck(|probe, counts| core.measure_overlaps(probe, counts))?;
        let stays = found.is_some_and(|knee| is_same_knee(knee, probed.knee));
        if let Some(knee) = found.filter(|_| !stays) {
            probed.knee = knee;
            known.end = StructureEnd::At(knee.high);
        }
        Ok(stays)
    }
}

impl FromIterator<(&'static str, StructureEnd)> for StructureEnds {
    fn from_iter<T: IntoIterator<Item = (&'static str, StructureEnd)>>(ends: T) -> StructureEnds {
        let known = ends.into_iter().map(|(test, end)| (test, KnownEnd { end, probed: None }));
        StructureEnds { known: known.collect() }
    }
}

/// Records where the structure of a test is full: at the knee of agreeing fillers if the verdict is
/// `found`, or else somewhere beyond the first of the knees. `probed` measures the end again.
pub(super) fn record_structure_end(
    knees: &mut StructureEnds,
    test: &'static TestSpec,
    filled: &[FillerResult],
    kind: VerdictKind,
    probed: Option<ProbedKnee>,
) {
    let Experiment::Overlap(window) = &test.experiment else { return };
    if filled.is_empty() {
        return;
    }
    let agreed = agreeing_fillers(knees, filled).iter().map(|named| named.knee.high).min();
    let end = match agreed.filter(|_| kind == VerdictKind::Found) {
        Some(least) => StructureEnd::At(least),
        None => {
            StructureEnd::AtLeast(filled.iter().filter_map(|filled| filled.min_room(window)).min().unwrap_or_default())
        }
    };
    knees.known.insert(test.name, KnownEnd { end, probed });
}

/// Fillers that agree on the end of the structure.
fn agreeing_fillers(knees: &StructureEnds, filled: &[FillerResult]) -> Vec<FillerKnee> {
    find_agreeing_group(&classify_fillers(filled, &|name| knees.get(name)).own)
}

impl<'a> OverlapTester<'a> {
    pub(super) fn new(core: &'a mut dyn MeasureOverlaps, knees: &'a mut StructureEnds) -> OverlapTester<'a> {
        OverlapTester { core, knees }
    }

    /// Measures a test with the fillers that the CPU can run. Tests of structures that they also
    /// take must come first.
    pub(super) fn run(
        &mut self,
        test: &'static TestSpec,
        window: &'static OverlapSpec,
        fillers: &[&'static FillerSpec],
    ) -> Result<UarchRecord, RunError> {
        let is_unclear = |(record, _): &(UarchRecord, _)| record.verdict == VerdictKind::Unclear;
        let (record, filled) = RETRY_ONCE.retry_while(is_unclear, || self.measure_once(test, window, fillers))?;
        record_structure_end(self.knees, test, &filled, record.verdict, record.probed_knee);
        Ok(record)
    }

    fn measure_once(
        &mut self,
        test: &'static TestSpec,
        window: &'static OverlapSpec,
        fillers: &[&'static FillerSpec],
    ) -> Result<(UarchRecord, Vec<FillerResult>), RunError> {
        let heads = self.choose_first_chains(window, fillers)?;
        let mut found = Vec::new();
        for filler in fillers {
            found.push(self.search_leads(window, heads[0], filler, None)?);
        }
        let filled: Vec<FillerResult> =
            found.iter().map(|(probe, found)| FillerResult::new(probe.filler, found.knee)).collect();
        let moved = self.find_moved_limit(&filled)?;
        let group = agreeing_fillers(self.knees, &filled);
        let ending = group.first().and_then(|first| {
            let (probe, _) = found.iter().find(|(probe, _)| probe.filler.name == first.name)?;
            Some(ProbedKnee { probe: *probe, max_fillers: window.max_fillers, knee: first.knee })
        });
        let witnesses = self.measure_witnesses(window, heads, fillers, &group)?;
        let others = |name: &str| self.knees.get(name);
        let verdict = match moved {
            Some(other) => {
                let why = format!("{other} ended elsewhere before: which of both is full is not known");
                TestVerdict::new(VerdictKind::Unclear, why)
            }
            None => judge_structure(test, window, &filled, &witnesses, &others),
        };
        let fillers = found.into_iter().map(|(probe, found)| FillerRecord::new(probe.filler, found)).collect();
        let record = UarchRecord::new(test, test.name.to_string(), verdict, Unit::Count);
        Ok((UarchRecord { fillers, witnesses, probed_knee: ending, ..record }, filled))
    }

    /// Measures the ends of other structures again that fillers also take. Returns the test of one
    /// that has moved: the fillers may have met its former end.
    fn find_moved_limit(&mut self, filled: &[FillerResult]) -> Result<Option<&'static str>, RunError> {
        let mut moved = None;
        for test in occupied_structures(filled) {
            if !self.knees.recheck(self.core, test)? {
                moved = Some(test);
            }
        }
        Ok(moved)
    }

    /// The first chains of a test that overlap on this core.
    fn choose_first_chains(
        &mut self,
        window: &OverlapSpec,
        fillers: &[&'static FillerSpec],
    ) -> Result<[FirstChain; 2], RunError> {
        let (last, others) = window.first_chains.split_last().expect("a test has first chains");
        let [filler, ..] = fillers else { return Ok(*last) };
        for heads in others {
            let probe = OverlapProbe { first_chain: heads[0], filler, lead_nops: 0, occupied: None };
            if self.core.measure_overlaps(&probe, &[MIN_COUNT])?[0].overlap >= OVERLAP_LEAST {
                return Ok(*heads);
            }
        }
        Ok(*last)
    }

    /// Searches with each number of leading no-operations. The latest knee counts: there the core
    /// holds most.
    fn search_leads(
        &mut self,
        window: &OverlapSpec,
        head: FirstChain,
        filler: &'static FillerSpec,
        occupied: Option<(&'static FillerSpec, usize)>,
    ) -> Result<(OverlapProbe, KneeCurve), RunError> {
        let mut best: Option<(OverlapProbe, KneeCurve)> = None;
        for &lead in window.lead_nops {
            let probe = OverlapProbe { first_chain: head, filler, lead_nops: lead, occupied };
            // Searched once more: a curve that the core itself causes comes again.
            let has_no_shape = |found: &KneeCurve| found.knee == Err(NoKnee::NoSingleFall);
            let search = || search_knee(window.max_fillers, |counts| self.core.measure_overlaps(&probe, counts));
            let found = RETRY_ONCE.retry_while(has_no_shape, search)?;
            let end = |found: &KneeCurve| found.knee.ok().map(|knee| knee.high);
            if best.as_ref().is_none_or(|(_, best)| end(&found) > end(best)) {
                best = Some((probe, found));
            }
        }
        Ok(best.expect("a test has a lead"))
    }

    /// Checks a size by other experiments, with these fillers.
    fn measure_witnesses(
        &mut self,
        window: &'static OverlapSpec,
        [head, another]: [FirstChain; 2],
        fillers: &[&'static FillerSpec],
        group: &[FillerKnee],
    ) -> Result<Vec<WitnessResult>, RunError> {
        let [one, other, ..] = group else { return Ok(Vec::new()) };
        let named =
            |named: &FillerKnee| fillers.iter().find(|filler| filler.name == named.name).expect("it was measured");
        let (knee, filler, other) = (one.knee, named(one), named(other));
        let (_, behind) = self.search_leads(window, another, filler, None)?;
        let (_, occupied) = self.search_leads(window, head, filler, Some((other, WITNESS_OCCUPIED)))?;
        let mut witnesses = vec![
            check_expected_knee("another first chain", knee, behind),
            check_expected_knee("entries that were occupied", knee.minus_fillers(WITNESS_OCCUPIED), occupied),
        ];
        // Skipped if no-operations are fillers of the test.
        if !fillers.iter().any(|filler| filler.name == NOP.name) {
            witnesses.push(self.check_nop_overlap(knee.high)?);
        }
        Ok(witnesses)
    }

    /// Whether no-operations still overlap beyond a knee.
    fn check_nop_overlap(&mut self, knee: usize) -> Result<WitnessResult, RunError> {
        let past = knee + CONTROL_MARGIN.max((CONTROL_MARGIN_SHARE * knee as f64) as usize);
        let probe = OverlapProbe { first_chain: SQRTSD, filler: &NOP, lead_nops: 0, occupied: None };
        let points = self.core.measure_overlaps(&probe, &[1, past])?;
        let [near, far] = [0, 1].map(|place| points[place].overlap);
        let text = format!("an overlap of {far:.2} past {past} of them, {near:.2} past one");
        Ok(WitnessResult { name: "no-operations".into(), holds: far >= near / 2.0, text })
    }
}

/// Whether a knee is at its expected place.
fn check_expected_knee(name: &'static str, expected: KneeEdges, found: KneeCurve) -> WitnessResult {
    match found.knee {
        Ok(knee) => {
            let text = format!("the overlap ends at {} fillers, {} expected", knee.high, expected.high);
            WitnessResult { name: name.into(), holds: is_same_knee(knee, expected), text }
        }
        Err(no) => WitnessResult { name: name.into(), holds: false, text: no.describe().to_string() },
    }
}
