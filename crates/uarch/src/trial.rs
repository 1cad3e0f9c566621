//! One test: its fillers' knees, the experiments that a size has to pass, and the verdict.

use super::conditions::ONCE_MORE;
use super::knee::{Knee, No};
use super::overlap::{Overlaps, Probe};
use super::record::{FillerRecord, UarchRecord};
use super::search::{Ending, Found, LEAST, search};
use super::test::chain::{Head, SQRTSD};
use super::test::{Filler, Look, Test, Window};
use super::verdict::{End, Filled, Kind, Named, Witness, agreeing, limits, same, verdict};
use super::window::reorder_buffer::NOP;
use cyclescope_core::error::RunError;
use cyclescope_core::unit::Unit;
use std::collections::BTreeMap;

/// Fillers that are there before those that are counted.
const OCCUPIED: usize = 16;
/// How far past a knee no-operations must still overlap: a share of it, and a number.
const CONTROL_SHARE: f64 = 0.1;
const CONTROL: usize = 8;

/// The least overlap across few fillers of a chain that is of use.
const OVERLAP_LEAST: f64 = 0.5;

/// The tests of a core, one after another.
pub(super) struct Trials<'a> {
    core: &'a mut dyn Overlaps,
    knees: &'a mut Knees,
}

/// Where the structures of tests end.
pub(super) type Knees = BTreeMap<&'static str, End>;

/// Takes where the structure of a test ends: where its fillers agree and the verdict is that this is a size, and else somewhere past
/// the first of their knees.
pub(super) fn learn(knees: &mut Knees, test: &'static Test, filled: &[Filled], kind: Kind) {
    let Look::Overlap(window) = &test.look else { return };
    if filled.is_empty() {
        return;
    }
    let agreed = group(knees, filled).iter().map(|named| named.knee.high).min();
    let end = match agreed.filter(|_| kind == Kind::Found) {
        Some(least) => End::At(least),
        None => End::From(filled.iter().filter_map(|filled| filled.least(window)).min().unwrap_or_default()),
    };
    knees.insert(test.name, end);
}

/// Fillers that agree in where the structure ends.
fn group(knees: &Knees, filled: &[Filled]) -> Vec<Named> {
    agreeing(&limits(filled, &|name| knees.get(name).copied()).own)
}

impl<'a> Trials<'a> {
    pub(super) fn new(core: &'a mut dyn Overlaps, knees: &'a mut Knees) -> Trials<'a> {
        Trials { core, knees }
    }

    /// Measures a test with those of its fillers that the CPU can run. Tests of structures that they take come first.
    pub(super) fn run(
        &mut self,
        test: &'static Test,
        window: &'static Window,
        fillers: &[&'static Filler],
    ) -> Result<UarchRecord, RunError> {
        let is_unclear = |(record, _): &(UarchRecord, _)| record.verdict == Kind::Unclear;
        let (record, filled) = ONCE_MORE.retry_while(is_unclear, || self.once(test, window, fillers))?;
        learn(self.knees, test, &filled, record.verdict);
        Ok(record)
    }

    fn once(
        &mut self,
        test: &'static Test,
        window: &'static Window,
        fillers: &[&'static Filler],
    ) -> Result<(UarchRecord, Vec<Filled>), RunError> {
        let heads = self.heads(window, fillers)?;
        let mut found = Vec::new();
        for filler in fillers {
            found.push(self.search(window, heads[0], filler, None)?);
        }
        let filled: Vec<Filled> =
            found.iter().map(|(probe, found)| Filled::new(probe.filler, found.knee)).collect();
        let group = group(self.knees, &filled);
        let ending = group.first().and_then(|first| {
            let (probe, _) = found.iter().find(|(probe, _)| probe.filler.name == first.name)?;
            Some(Ending { probe: *probe, most: window.most, knee: first.knee })
        });
        let witnesses = self.witnesses(window, heads, fillers, &group)?;
        let others = |name: &str| self.knees.get(name).copied();
        let verdict = verdict(test, window, &filled, &witnesses, &others);
        let fillers =
            found.into_iter().map(|(probe, found)| FillerRecord::new(probe.filler, found)).collect();
        let record = UarchRecord::new(test, test.name.to_string(), verdict, Unit::Count);
        Ok((UarchRecord { fillers, witnesses, ending, ..record }, filled))
    }

    /// The first chains of a test that this core can have overlap with others.
    fn heads(&mut self, window: &Window, fillers: &[&'static Filler]) -> Result<[Head; 2], RunError> {
        let (last, others) = window.heads.split_last().expect("a test has first chains");
        let [filler, ..] = fillers else { return Ok(*last) };
        for heads in others {
            let probe = Probe { head: heads[0], filler, lead: 0, occupied: None };
            if self.core.at(&probe, &[LEAST])?[0].overlap >= OVERLAP_LEAST {
                return Ok(*heads);
            }
        }
        Ok(*last)
    }

    /// Searches with each of the test's leads; the latest knee is the one at which the core holds most.
    fn search(
        &mut self,
        window: &Window,
        head: Head,
        filler: &'static Filler,
        occupied: Option<(&'static Filler, usize)>,
    ) -> Result<(Probe, Found), RunError> {
        let mut best: Option<(Probe, Found)> = None;
        for &lead in window.leads {
            let probe = Probe { head, filler, lead, occupied };
            // A core does the same again.
            let has_no_shape = |found: &Found| found.knee == Err(No::Shape);
            let search = || search(window.most, |counts| self.core.at(&probe, counts));
            let found = ONCE_MORE.retry_while(has_no_shape, search)?;
            let end = |found: &Found| found.knee.ok().map(|knee| knee.high);
            if best.as_ref().is_none_or(|(_, best)| end(&found) > end(best)) {
                best = Some((probe, found));
            }
        }
        Ok(best.expect("a test has a lead"))
    }

    /// Experiments beside the fillers' curves, of a size for which these fillers speak.
    fn witnesses(
        &mut self,
        window: &'static Window,
        [head, another]: [Head; 2],
        fillers: &[&'static Filler],
        group: &[Named],
    ) -> Result<Vec<Witness>, RunError> {
        let [one, other, ..] = group else { return Ok(Vec::new()) };
        let named =
            |named: &Named| fillers.iter().find(|filler| filler.name == named.name).expect("it was measured");
        let (knee, filler, other) = (one.knee, named(one), named(other));
        let (_, behind) = self.search(window, another, filler, None)?;
        let (_, occupied) = self.search(window, head, filler, Some((other, OCCUPIED)))?;
        let mut witnesses = vec![
            told("another first chain", knee, behind),
            told("entries that were occupied", knee.less(OCCUPIED), occupied),
        ];
        // Where they are not what is tested themselves.
        if !fillers.iter().any(|filler| filler.name == NOP.name) {
            witnesses.push(self.control(knee.high)?);
        }
        Ok(witnesses)
    }

    /// Whether no-operations still overlap past a knee.
    fn control(&mut self, knee: usize) -> Result<Witness, RunError> {
        let past = knee + CONTROL.max((CONTROL_SHARE * knee as f64) as usize);
        let probe = Probe { head: SQRTSD, filler: &NOP, lead: 0, occupied: None };
        let points = self.core.at(&probe, &[1, past])?;
        let [near, far] = [0, 1].map(|place| points[place].overlap);
        let text = format!("an overlap of {far:.2} past {past} of them, {near:.2} past one");
        Ok(Witness { name: "no-operations", holds: far >= near / 2.0, text })
    }
}

/// Whether a knee is where it is to be.
fn told(name: &'static str, expected: Knee, found: Found) -> Witness {
    match found.knee {
        Ok(knee) => {
            let text = format!("the overlap ends at {} fillers, {} expected", knee.high, expected.high);
            Witness { name, holds: same(knee, expected), text }
        }
        Err(no) => Witness { name, holds: false, text: no.text().to_string() },
    }
}
