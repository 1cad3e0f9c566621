//! Surveys of a made-up machine, whose markers' costs are known.

use super::*;
use crate::executor::Sample;
use crate::ruler::LayoutSamples;
use crate::ruler::{ADD_LINKS, ADD_SPAN, IMUL_LINKS, IMUL_SPAN, sentinel_adds, sentinel_loops};
use crate::study::marker::anatomy::Anatomy;
use crate::study::marker::bench::Subject;
use crate::study::marker::bench::call;
use crate::study::marker::ledger::aim;
use crate::study::marker::source::design;
use crate::study::marker::state::{State, states};

const IMUL: f64 = 3.0;

/// A machine with markers.
struct Fake {
    subjects: Vec<Subject>,
    offsets: Vec<usize>,
    random: Random,
    /// Core cycles of once around at a placement: without the marker, and with it.
    loops: fn(&Subject, usize) -> [f64; 2],
    /// What a visit adds to the marker's cost, by chance.
    luck: fn(&mut Random) -> f64,
    /// The chance that a call is interrupted.
    interrupts: f64,
    /// Ticks of the clock's step.
    step: f64,
    /// Whether probes are called by markers that are dormant.
    broken: bool,
}

impl Fake {
    fn new(loops: fn(&Subject, usize) -> [f64; 2]) -> Fake {
        let subject = |design: &'static design::Design, state: State, context: &str| Subject {
            design,
            state,
            context: context.to_string(),
        };
        let flag = design::ALL.iter().find(|design| design.name == "flag").unwrap();
        let subjects = ["empty", "memcpy"]
            .iter()
            .flat_map(|context| states(flag).into_iter().map(|state| subject(flag, state, context)));
        Fake {
            subjects: subjects.collect(),
            offsets: (0..16).map(|placement| 4 * placement).collect(),
            random: Random::new(1),
            loops,
            luck: |_| 0.0,
            interrupts: 0.0,
            step: 1.0,
            broken: false,
        }
    }

    /// A reading of so many core cycles: ticks of a clock that runs at 0.7 of the core's rate, which wanders.
    fn sample(&mut self, rate: f64, cycles: f64) -> Sample {
        let interrupted = if self.random.happens(self.interrupts) { 20_000.0 } else { 0.0 };
        let start = self.random.unit() * 1e6;
        let end = start + (cycles + 40.0 + interrupted) * rate;
        let stepped = |at: f64| ((at / self.step).floor() * self.step) as u64;
        Sample { start: stepped(start), end: stepped(end) }
    }
}

impl Bench for Fake {
    fn subjects(&self) -> &[Subject] {
        &self.subjects
    }

    fn anatomy(&self, _: usize) -> Result<Anatomy, RunError> {
        unreachable!("surveys don't ask")
    }

    fn compiler(&self, _: usize) -> &str {
        "none"
    }

    fn placements(&self) -> &[usize] {
        &self.offsets
    }

    fn step(&self) -> f64 {
        self.step
    }

    fn run(&mut self, subject: usize, visits: &[Visit]) -> Result<Vec<LayoutSamples>, RunError> {
        let order: Vec<usize> = (0..call::COUNT).collect();
        let run = |visit: &Visit| {
            let [base, site] = (self.loops)(&self.subjects[subject], visit.placement);
            let site = site + (self.luck)(&mut self.random);
            let rate = 0.7 + 0.02 * self.random.unit();
            let [few, many] = visit.loops.map(|loops| loops as f64);
            let ruler = visit.ruler_loops as f64;
            let chain = |links: f64, latency: f64| links * latency * ruler;
            let short = ADD_LINKS[0] as f64;
            let imul = IMUL_LINKS[0] as f64;
            let cycles = [
                chain(imul, IMUL),
                chain(imul + IMUL_SPAN, IMUL),
                chain(short, 1.0),
                chain(short + ADD_SPAN, 1.0),
                sentinel_adds(sentinel_loops(self.step)) / 4.0,
                base * few,
                base * many,
                site * few,
                site * many,
            ];
            let samples: Vec<Sample> = cycles.iter().map(|cycles| self.sample(rate, *cycles)).collect();
            LayoutSamples::new(&samples, &order)
        };
        Ok(visits.iter().map(run).collect())
    }

    fn hits(&mut self, subject: usize, _: usize, loops: u64) -> Result<Option<u64>, RunError> {
        let enabled = self.subjects[subject].state.enabled;
        Ok(Some(if enabled || self.broken { loops } else { 0 }))
    }
}

/// What states cost: a cycle for each step of theirs, and at some placements half a cycle more.
fn stairs(subject: &Subject, placement: usize) -> [f64; 2] {
    let base = if subject.context == "empty" { 1.0 } else { 75.0 };
    let states = states(subject.design);
    let index = states.iter().position(|state| state.name == subject.state.name).unwrap();
    [base, base + index as f64 + if placement % 4 == 3 { 0.5 } else { 0.0 }]
}

fn plan(seed: u64) -> Plan {
    Plan { each: 32..=256, budget: Duration::from_secs(600), ..Plan::new(IMUL, seed) }
}

#[test]
fn costs_and_steps_are_those_of_the_machine() {
    for step in [1.0, 26.0] {
        let mut fake = Fake { step, interrupts: 0.005, ..Fake::new(stairs) };
        let findings = survey(&mut fake, &plan(3), &mut |_| {}).unwrap();
        for finding in &findings {
            let Subject { state, .. } = &finding.subject;
            let [base, _] = stairs(&finding.subject, 0);
            for (placement, found) in finding.placements.iter().enumerate() {
                let found = found.as_ref().unwrap();
                let [_, site] = stairs(&finding.subject, placement);
                let off = found.cost.value - (site - base);
                // Ten thousand intervals or so: some are missed, none by much.
                assert!(off.abs() <= 3.0 * found.cost.half_width(), "{} {placement}: {off}", state.name);
                let aim = aim(&finding.subject, &found.cost);
                assert!(found.cost.half_width() <= aim, "{} {placement}: {found:?}", state.name);
            }
            let [_, site] = stairs(&finding.subject, 0);
            let cost = finding.cost.unwrap();
            assert!((cost.value - (site - base)).abs() < 0.1, "{} {cost:?}", state.name);
            let names: Vec<&str> = states(finding.subject.design).iter().map(|state| state.name).collect();
            let index = |name: &str| names.iter().position(|other| *other == name).unwrap() as f64;
            let over = state.over.map_or(0.0, index);
            let price = finding.step.unwrap();
            assert!((price.value - (index(state.name) - over)).abs() < 0.1, "{} {price:?}", state.name);
        }
    }
}

#[test]
fn intervals_of_placements_hold_the_truth_as_often_as_they_say() {
    // So many visits, or as many as it takes, which most placements find between the least and the most.
    for (each, spread) in [(64..=64, 0.3), (32..=1024, 0.5)] {
        for confidence in [0.5, 0.8, 0.95, 0.99] {
            let luck: fn(&mut Random) -> f64 = match spread {
                0.3 => |random| 2.0 + 0.3 * random.normal(),
                _ => |random| 2.0 + 0.5 * random.normal(),
            };
            let mut fake = Fake { luck, interrupts: 0.01, ..Fake::new(stairs) };
            let (mut held, mut all) = (0, 0);
            for seed in 0..4 {
                let plan = Plan { each: each.clone(), confidence, ..plan(seed) };
                for finding in survey(&mut fake, &plan, &mut |_| {}).unwrap() {
                    for (placement, found) in finding.placements.iter().enumerate() {
                        let [base, site] = stairs(&finding.subject, placement);
                        held += usize::from(found.as_ref().unwrap().cost.contains(site + 2.0 - base));
                        all += 1;
                    }
                }
            }
            let share = held as f64 / all as f64;
            println!("{each:?}: {share:.3} for {confidence}");
            assert!((share - confidence).abs() < 0.05, "{share} for {confidence}, {each:?}");
        }
    }
}

#[test]
fn the_largest_mode_counts_and_the_others_are_told() {
    let luck = |random: &mut Random| {
        let missed = if random.happens(0.25) { 14.0 } else { 0.0 };
        missed + 0.05 * random.normal()
    };
    let mut fake = Fake { luck, ..Fake::new(stairs) };
    let findings = survey(&mut fake, &plan(5), &mut |_| {}).unwrap();
    let (mut told, mut all) = (0, 0);
    for finding in &findings {
        for (placement, found) in finding.placements.iter().enumerate() {
            let found = found.as_ref().unwrap();
            let [base, site] = stairs(&finding.subject, placement);
            assert!((found.cost.value - (site - base)).abs() < 0.2, "{found:?}");
            if let [small, large] = &found.modes[..] {
                assert!(small.share > 0.5 && large.cost.value > 13.0, "{found:?}");
                told += 1;
            }
            all += 1;
        }
    }
    // Of 32 visits, two or fewer are in the smaller mode once in two hundred placements.
    assert!(told > all * 9 / 10, "{told} of {all}");
}

#[test]
fn what_no_number_of_visits_would_tell_is_left_alone() {
    // The half width that is asked for would take some thousand visits.
    let luck = |random: &mut Random| 6.0 * random.unit();
    let mut fake = Fake { luck, ..Fake::new(stairs) };
    let findings = survey(&mut fake, &plan(5), &mut |_| {}).unwrap();
    for found in findings[0].placements.iter().flatten() {
        assert_eq!(found.visits, 32, "{found:?}");
        assert!(found.cost.half_width() > 0.3, "{found:?}");
    }
}

#[test]
fn a_budget_ends_the_search_for_more_but_no_placement_goes_without() {
    let luck = |random: &mut Random| 1.4 * random.unit();
    let mut fake = Fake { luck, ..Fake::new(stairs) };
    let plan = Plan { budget: Duration::ZERO, ..plan(5) };
    let mut done = 0.0;
    let findings = survey(&mut fake, &plan, &mut |event| {
        if let Event::Progress(progress) = event {
            done = progress.done;
        }
    })
    .unwrap();
    assert_eq!(done, 1.0);
    assert!(findings.iter().all(|finding| finding.placements.iter().flatten().count() == 16));
    assert!(
        findings
            .iter()
            .flat_map(|finding| finding.placements.iter().flatten())
            .all(|found| found.visits >= 32)
    );
}

#[test]
fn calls_are_counted_in_every_state() {
    let counted = |broken: bool| {
        let findings = prove(&mut Fake { broken, ..Fake::new(stairs) }, &plan(1)).unwrap();
        assert!(findings.iter().all(|finding| finding.cost.is_none() && finding.visits == 0));
        findings.iter().map(|finding| (finding.subject.state.enabled, finding.hits)).collect::<Vec<_>>()
    };
    for (enabled, hits) in counted(false) {
        assert_eq!(hits, Some(if enabled { PROOF_LOOPS } else { 0 }));
    }
    assert!(counted(true).contains(&(false, Some(PROOF_LOOPS))));
}

#[test]
fn visits_beside_a_busy_sibling_are_left_out() {
    fn reading(width: f64) -> Reading {
        let (add_link, width_error) = (1.0, 0.02);
        Reading { base: 1.0, site: 3.0, rate: 0.7, add_link, width, width_error, span: 300.0, step: 0.01 }
    }
    let mut fake = Fake::new(stairs);
    let plan = plan(1);
    let mut survey = Survey::new(&mut fake, &plan);
    for index in 0..20 {
        survey.ledger.note(0, 0, Some(reading(if index < 5 { 2.0 } else { 4.0 })));
    }
    let findings = survey.ledger.findings(0.95);
    assert_eq!((findings[0].visits, findings[0].shared), (15, 5));
}

#[test]
fn evidence_gives_the_same_findings_again() {
    use crate::result::container::{Container, Manifest, Origin, Writer};
    use crate::study::marker::evidence::{MarkerFacts, STUDY, keep};
    use crate::study::marker::record::{CodeRecord, MarkerRecord, Surroundings};
    let directory = std::env::temp_dir().join(format!("cyclescope-marker-{}", std::process::id()));
    let mut fake = Fake { interrupts: 0.01, luck: |random| 0.2 * random.normal(), ..Fake::new(stairs) };
    let plan = Plan { each: 32..=32, ..plan(8) };
    let machine = serde_json::Value::Null;
    let origin = Origin { study: STUDY.to_string(), repro: String::new(), machine };
    let mut writer = Writer::create(&directory, origin).unwrap();
    let findings = survey(&mut fake, &plan, &mut |event| {
        if let Event::Visited { subject, visit, samples } = event {
            keep(&mut writer, subject, visit, samples).unwrap();
        }
    })
    .unwrap();
    let around = Surroundings {
        executor: "user",
        clock: "rdtscp",
        confidence: plan.confidence,
        cpu: 0,
        cpu_model: String::new(),
        seed: 8,
        repro: String::new(),
        emulated: false,
    };
    let code = CodeRecord {
        likely_bytes: 0,
        unlikely_bytes: 0,
        function_likely_bytes: 0,
        function_unlikely_bytes: 0,
        cache_lines: crate::study::marker::anatomy::CacheLines { base: 1, likely: 1, both: 1 },
        assembly: Vec::new(),
        base_assembly: Vec::new(),
    };
    let record = |finding| MarkerRecord::new(finding, &fake.offsets, code.clone(), "gcc", &around);
    let records: Vec<MarkerRecord> = findings.iter().map(record).collect();
    let facts = (plan.confidence, plan.imul_latency, fake.step);
    let facts = MarkerFacts::new(facts, fake.offsets.len(), &records);
    writer.set_facts(&facts).unwrap();
    writer.finish().unwrap();
    let container = Container::open(&directory).unwrap();
    let facts: MarkerFacts = container.facts().unwrap();
    assert_eq!(facts.replay(&container).unwrap(), findings);
    // Numbers that no survey has are errors.
    for (field, value) in [("step", 0.0), ("confidence", 2.0), ("imul_latency", -1.0), ("placements", 1e9)] {
        let mut manifest = Manifest::read(&directory).unwrap();
        manifest.facts[field] = if field == "placements" { (value as u64).into() } else { value.into() };
        manifest.write(&directory).unwrap();
        let container = Container::open(&directory).unwrap();
        assert!(container.facts::<MarkerFacts>().unwrap().replay(&container).is_err(), "{field}");
        let mut manifest = container.manifest;
        manifest.facts = serde_json::to_value(&facts).unwrap();
        manifest.write(&directory).unwrap();
    }
    std::fs::remove_dir_all(&directory).unwrap();
}
