//! Surveys of planted cores of which something disturbs some mixes.

use crate::class_survey::{CandidateForm, survey_classes};
use crate::forms_survey::{SurveyedForm, survey_forms};
use crate::mix_source::MixSource;
use crate::planted_core::{Assignment, PlantedCore};
use crate::ports_row::{PortsVerdict, RowStart};
use crate::survey_tests::{PlantedMap, list_real_maps, planted_form};
use cyclescope_instr::mixes::mix::Mix;
use cyclescope_instr::mixes::mix_timer::{MixOutcome, MixTime};
use cyclescope_measure::study::StopReason;
use std::collections::HashMap;

/// A map like that of Golden Cove.
fn golden_cove() -> PlantedMap {
    list_real_maps().into_iter().find(|map| map.name == "golden cove").expect("a map of this name")
}

/// A core on which each mix of several forms with the first one takes half as long again, the first time. It keeps
/// its times until they are asked for anew.
struct SlowAtFirst {
    core: PlantedCore,
    known: HashMap<Mix, MixOutcome>,
}

impl MixSource for SlowAtFirst {
    fn time_mixes(&mut self, mixes: &[Mix]) -> Result<Vec<MixOutcome>, StopReason> {
        for (mix, mut outcome) in mixes.iter().zip(self.core.time_mixes(mixes)?) {
            if mix.parts.len() > 1 && mix.parts.iter().any(|part| part.form == 0) {
                slow_down(&mut outcome, 1.5);
            }
            self.known.entry(mix.clone()).or_insert(outcome);
        }
        Ok(mixes.iter().map(|mix| self.known[mix].clone()).collect())
    }

    fn time_again(&mut self, mixes: &[Mix]) -> Result<Vec<MixOutcome>, StopReason> {
        self.core.time_mixes(mixes)
    }
}

fn slow_down(outcome: &mut MixOutcome, factor: f64) {
    if let MixOutcome::Timed(time) = outcome {
        let MixTime { cycles, low, high, worst, .. } = *time;
        let [cycles, low, high, worst] = [cycles, low, high, worst].map(|cycles| factor * cycles);
        *time = MixTime { cycles, low, high, worst, ..*time };
    }
}

/// A core that runs these two µops together a quarter slower than their ports allow.
struct BadPair {
    core: PlantedCore,
    uops: [u32; 2],
}

impl MixSource for BadPair {
    fn time_mixes(&mut self, mixes: &[Mix]) -> Result<Vec<MixOutcome>, StopReason> {
        let mut outcomes = self.core.time_mixes(mixes)?;
        for (mix, outcome) in mixes.iter().zip(&mut outcomes) {
            let has = |uop: &u32| mix.parts.iter().any(|part| self.core.forms[part.form].contains(uop));
            if self.uops.iter().all(has) {
                slow_down(outcome, 1.25);
            }
        }
        Ok(outcomes)
    }
}

#[test]
fn twins_explain_a_form_that_the_core_assigns_badly() {
    let map = golden_cove();
    let [add, multiply, load] = [0, 2, 6].map(|class| map.classes[class]);
    let forms: Vec<Vec<u32>> = map.classes.iter().map(|set| vec![*set]).chain([vec![multiply, load]]).collect();
    let surveyed: Vec<SurveyedForm> =
        forms.iter().enumerate().map(|(place, uops)| planted_form(place, uops.len(), 'A')).collect();
    let core = PlantedCore::new(map.width, forms, Assignment::Best, 0.004, 1);
    let mut source = BadPair { core, uops: [add, multiply] };
    let found = survey_forms(&mut source, &surveyed, map.width as f64).unwrap();
    let ports = |class: usize| {
        let class = found.findings.classes.iter().position(|known| known.members.contains(&class));
        found.labels.list_ports(class.expect("each has a class"))
    };
    let fit = found.fits[map.classes.len()].as_ref().unwrap();
    let mut truth = vec![ports(2), ports(6)];
    truth.sort_unstable();
    let mut told = fit.solutions.concat();
    told.sort_unstable();
    assert_eq!((told, fit.solutions.len()), (truth, 1), "{fit:?}");
    assert!(fit.twins > 0, "{fit:?}");
}

/// A core on which two forms are slow together, for no reason that a twin has. Mixes of three forms are slow too, the
/// first time. It keeps its times until they are asked for anew.
struct SlowTriples {
    core: PlantedCore,
    slow: [usize; 2],
    known: HashMap<Mix, MixOutcome>,
}

impl SlowTriples {
    fn time_mix(&mut self, mix: &Mix) -> Result<MixOutcome, StopReason> {
        let mut outcome = self.core.time_mixes(std::slice::from_ref(mix))?.remove(0);
        let has = |form: &usize| mix.parts.iter().any(|part| part.form == *form);
        if self.slow.iter().all(has) || mix.parts.len() > 2 && !self.known.contains_key(mix) {
            slow_down(&mut outcome, 1.25);
        }
        self.known.entry(mix.clone()).or_insert(outcome.clone());
        Ok(outcome)
    }
}

impl MixSource for SlowTriples {
    fn time_mixes(&mut self, mixes: &[Mix]) -> Result<Vec<MixOutcome>, StopReason> {
        let known = |source: &mut SlowTriples, mix| match source.known.get(mix) {
            Some(outcome) => Ok(outcome.clone()),
            None => source.time_mix(mix),
        };
        mixes.iter().map(|mix| known(self, mix)).collect()
    }

    fn time_again(&mut self, mixes: &[Mix]) -> Result<Vec<MixOutcome>, StopReason> {
        mixes.iter().map(|mix| self.time_mix(mix)).collect()
    }
}

#[test]
fn a_twin_that_something_disturbed_once_explains_nothing() {
    let map = golden_cove();
    let forms: Vec<Vec<u32>> =
        map.classes.iter().map(|set| vec![*set]).chain([vec![map.classes[2], map.classes[6]]]).collect();
    let surveyed: Vec<SurveyedForm> =
        forms.iter().enumerate().map(|(place, uops)| planted_form(place, uops.len(), 'A')).collect();
    let last = map.classes.len();
    let core = PlantedCore::new(map.width, forms, Assignment::Best, 0.004, 1);
    let mut source = SlowTriples { core, slow: [0, last], known: HashMap::new() };
    let found = survey_forms(&mut source, &surveyed, map.width as f64).unwrap();
    let fit = found.fits[last].as_ref().unwrap();
    assert!(fit.solutions.is_empty(), "{fit:?}");
}

/// A core that gives no time for mixes of both of these forms.
struct RefusedPair {
    core: PlantedCore,
    forms: [usize; 2],
}

impl MixSource for RefusedPair {
    fn time_mixes(&mut self, mixes: &[Mix]) -> Result<Vec<MixOutcome>, StopReason> {
        let mut outcomes = self.core.time_mixes(mixes)?;
        for (mix, outcome) in mixes.iter().zip(&mut outcomes) {
            if self.forms.iter().all(|form| mix.parts.iter().any(|part| part.form == *form)) {
                *outcome = MixOutcome::Refused("the sibling was busy".to_string());
            }
        }
        Ok(outcomes)
    }
}

#[test]
fn an_answer_without_a_mix_beside_each_class_is_not_exact() {
    let map = golden_cove();
    let [multiply, load] = [2, 6].map(|class| map.classes[class]);
    let last = map.classes.len();
    let forms: Vec<Vec<u32>> = map.classes.iter().map(|set| vec![*set]).chain([vec![multiply, multiply]]).collect();
    let surveyed: Vec<SurveyedForm> =
        forms.iter().enumerate().map(|(place, uops)| planted_form(place, uops.len(), 'A')).collect();
    let names: Vec<String> = surveyed.iter().map(|form| form.name.clone()).collect();
    let verdict = |refused: usize| {
        let core = PlantedCore::new(map.width, forms.clone(), Assignment::Best, 0.004, 1);
        let mut source = RefusedPair { core, forms: [last, refused] };
        let found = survey_forms(&mut source, &surveyed, map.width as f64).unwrap();
        found.build_row(last, &surveyed[last], &names, RowStart::named(&names[last])).verdict
    };
    let loads = map.classes.iter().position(|class| *class == load).unwrap();
    assert_eq!([verdict(loads), verdict(usize::MAX)], [PortsVerdict::Several, PortsVerdict::Exact]);
}

/// A core on which a form alone takes a third longer, the first time.
struct SlowAlone {
    core: PlantedCore,
    form: usize,
    known: bool,
}

impl MixSource for SlowAlone {
    fn time_mixes(&mut self, mixes: &[Mix]) -> Result<Vec<MixOutcome>, StopReason> {
        let mut outcomes = self.core.time_mixes(mixes)?;
        for (mix, outcome) in mixes.iter().zip(&mut outcomes) {
            if mix.parts.len() == 1 && mix.parts[0].form == self.form && !std::mem::replace(&mut self.known, true) {
                slow_down(outcome, 1.33);
            }
        }
        Ok(outcomes)
    }
}

#[test]
fn a_form_that_something_disturbed_once_alone_has_its_ports() {
    let map = golden_cove();
    let several = vec![map.classes[0], map.classes[6]];
    let forms: Vec<Vec<u32>> = map.classes.iter().map(|set| vec![*set]).chain([several]).collect();
    let surveyed: Vec<SurveyedForm> =
        forms.iter().enumerate().map(|(place, uops)| planted_form(place, uops.len(), 'A')).collect();
    let last = forms.len() - 1;
    let core = PlantedCore::new(map.width, forms, Assignment::Best, 0.004, 1);
    let mut source = SlowAlone { core, form: last, known: false };
    let found = survey_forms(&mut source, &surveyed, map.width as f64).unwrap();
    let fit = found.fits[last].as_ref().unwrap();
    assert!(source.known && fit.solutions.len() == 1, "{fit:?}");
}

#[test]
fn mixes_that_something_disturbed_once_leave_no_class_open() {
    let map = golden_cove();
    let forms: Vec<Vec<u32>> = map.classes.iter().map(|set| vec![*set]).collect();
    let candidates: Vec<CandidateForm> =
        forms.iter().enumerate().map(|(form, uops)| CandidateForm { form, ports: uops[0].count_ones() }).collect();
    let core = PlantedCore::new(map.width, forms, Assignment::Best, 0.004, 1);
    let mut source = SlowAtFirst { core, known: HashMap::new() };
    let findings = survey_classes(&mut source, &candidates, map.width as f64).unwrap();
    let is_exact: Vec<bool> = (0..findings.classes.len()).map(|class| findings.is_exact(class)).collect();
    assert!(is_exact.iter().all(|exact| *exact), "{is_exact:?} {:?}", findings.components);
}
