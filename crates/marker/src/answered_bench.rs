//! A bench whose answers pass through [`MachineAnswers`]: its cases, the time, call counts, and the
//! durations of every visit. A replay has no bench. The survey draws the same visits from its seed
//! and receives the recorded answers.

use super::anatomy::MarkerAnatomy;
use super::bench::{CaseVisit, MarkerBench, MarkerCase, call};
use super::catalog::MarkerCatalog;
use super::working_set::WorkingSet;
use cyclescope_core::error::{RunError, Unavailable};
use cyclescope_events::{EventCode, EventRefusal};
use cyclescope_exec::{LockState, Sample};
use cyclescope_measure::result::answers::MachineAnswers;
use cyclescope_measure::result::container::ContentDigest;
use cyclescope_measure::ruler::LayoutSamples;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

/// Most placements of a case. Benches have about a dozen.
const PLACEMENTS_MOST: usize = 256;
/// Most cases. All designs in all states and loops are a few hundred.
const CASES_MOST: usize = 1 << 14;
/// Most bytes of a function. Functions have a few hundred.
const BYTES_MOST: usize = 1 << 20;
/// Integers up to this one are exact as floating point numbers.
const EXACT_LIMIT: f64 = 9_007_199_254_740_992.0;
/// Readings are stored in the order of their columns.
const COLUMN_ORDER: [usize; call::COUNT] = [0, 1, 2, 3, 4, 5, 6, 7, 8];

/// Asks a bench, or reads evidence.
pub(crate) struct AnsweredBench<'a> {
    bench: Option<&'a mut dyn MarkerBench>,
    answers: &'a MachineAnswers,
    facts: BenchFacts,
    cases: Vec<MarkerCase>,
}

/// The properties of a bench before any run.
#[derive(Debug, Serialize, Deserialize)]
struct BenchFacts {
    /// Saved evidence uses this name.
    #[serde(rename = "subjects")]
    cases: Vec<CaseFacts>,
    placements: Vec<usize>,
    step: f64,
}

/// A case by its names, with its properties.
#[derive(Debug, Serialize, Deserialize)]
struct CaseFacts {
    design: String,
    state: String,
    context: String,
    compiler: String,
    line_offset: usize,
    most_loops: u64,
    #[serde(default)]
    working_set: Option<WorkingSet>,
}

impl BenchFacts {
    fn from_bench(bench: &dyn MarkerBench) -> BenchFacts {
        let facts = |(number, case): (usize, &MarkerCase)| CaseFacts {
            design: case.design.name.to_string(),
            state: case.state.name.to_string(),
            context: case.context.clone(),
            compiler: bench.compiler_name(number).to_string(),
            line_offset: bench.line_offset(number),
            most_loops: bench.most_loops(number),
            working_set: bench.working_set(number),
        };
        BenchFacts {
            cases: bench.cases().iter().enumerate().map(facts).collect(),
            placements: bench.placement_offsets().to_vec(),
            step: bench.clock_step(),
        }
    }

    /// Whether all numbers are in range. A file may contain any.
    fn are_sound(&self) -> bool {
        self.cases.len() <= CASES_MOST
            && self.placements.len() <= PLACEMENTS_MOST
            && (self.cases.is_empty() || !self.placements.is_empty())
            && self.placements.iter().all(|offset| *offset <= BYTES_MOST)
            && (self.step > 0.0 && self.step < 1e9)
            && self.cases.iter().all(|case| case.line_offset <= BYTES_MOST)
    }
}

impl CaseFacts {
    fn find_case(&self, catalog: &MarkerCatalog) -> Option<MarkerCase> {
        let design = catalog.designs.iter().find(|design| design.name == self.design)?;
        let state = (catalog.states)(design).into_iter().find(|state| state.name == self.state)?;
        Some(MarkerCase { design, state, context: self.context.clone() })
    }
}

/// The error if the machine is asked during a replay.
fn no_bench_error() -> RunError {
    RunError::Replay { how: "no marker is run".to_string() }
}

impl<'a> AnsweredBench<'a> {
    /// A bench with markers of a catalog; `None` in a replay.
    pub(crate) fn new(
        bench: Option<&'a mut dyn MarkerBench>,
        answers: &'a MachineAnswers,
        catalog: &MarkerCatalog,
    ) -> Result<AnsweredBench<'a>, RunError> {
        let facts: BenchFacts =
            answers.ask_machine(|| bench.as_deref().map(BenchFacts::from_bench).ok_or_else(no_bench_error))?;
        if !facts.are_sound() {
            return Err(answers.damage_error("a number of the bench is out of range"));
        }
        let cases: Option<Vec<MarkerCase>> = facts.cases.iter().map(|case| case.find_case(catalog)).collect();
        let cases = cases.ok_or_else(|| answers.damage_error("a subject has an unknown design or state"))?;
        Ok(AnsweredBench { bench, answers, facts, cases })
    }

    fn require_bench(&self) -> Result<&dyn MarkerBench, RunError> {
        self.bench.as_deref().ok_or_else(no_bench_error)
    }
}

impl MarkerBench for AnsweredBench<'_> {
    fn cases(&self) -> &[MarkerCase] {
        &self.cases
    }

    fn anatomy(&self, case: usize) -> Result<MarkerAnatomy, RunError> {
        let anatomy: MarkerAnatomy = self.answers.ask_machine(|| self.require_bench()?.anatomy(case))?;
        let mut lines = anatomy.assembly.iter().chain(&anatomy.base_assembly);
        match lines.all(|line| line.len() > 0 && line.offset <= BYTES_MOST) {
            true => Ok(anatomy),
            false => Err(self.answers.damage_error("an instruction lies outside its function")),
        }
    }

    fn line_offset(&self, case: usize) -> usize {
        self.facts.cases[case].line_offset
    }

    fn working_set(&self, case: usize) -> Option<WorkingSet> {
        self.facts.cases[case].working_set
    }

    fn compiler_name(&self, case: usize) -> &str {
        &self.facts.cases[case].compiler
    }

    fn placement_offsets(&self) -> &[usize] {
        &self.facts.placements
    }

    fn clock_step(&self) -> f64 {
        self.facts.step
    }

    fn most_loops(&self, case: usize) -> u64 {
        self.facts.cases[case].most_loops
    }

    fn lock_state(&self) -> Option<&LockState> {
        self.bench.as_deref().and_then(MarkerBench::lock_state)
    }

    fn now(&self) -> Result<Duration, RunError> {
        self.answers.ask_machine(|| self.require_bench()?.now())
    }

    fn run_visits(&mut self, case: usize, visits: &[CaseVisit]) -> Result<Vec<LayoutSamples>, RunError> {
        let request = json!({ "subject": case, "visits": digest_visits(visits) });
        let bench = self.bench.as_deref_mut();
        let readings = self.answers.take_readings(request, visits.len() * call::COUNT, || {
            let found = bench.ok_or_else(no_bench_error)?.run_visits(case, visits)?;
            Ok(found.iter().flat_map(readings_of_visit).collect())
        })?;
        let visit = |readings: &[Sample]| LayoutSamples::new(readings, &COLUMN_ORDER);
        Ok(readings.chunks_exact(call::COUNT).map(visit).collect())
    }

    fn count_fitting(&self, codes: &[EventCode]) -> Result<usize, EventRefusal> {
        match self.bench.as_deref() {
            Some(bench) => bench.count_fitting(codes),
            // A replay has the answers of the plan of events.
            None => Err(EventRefusal::from_mode("replay")),
        }
    }

    fn count_visits(
        &mut self,
        case: usize,
        visits: &[CaseVisit],
        codes: &[EventCode],
    ) -> Result<Vec<Vec<Vec<f64>>>, RunError> {
        let bench = self.bench.as_deref_mut();
        // Counters that are lost are an answer too.
        type Counted = Result<Vec<Vec<Vec<f64>>>, String>;
        let counted: Counted =
            self.answers.ask_machine(|| match bench.ok_or_else(no_bench_error)?.count_visits(case, visits, codes) {
                Err(RunError::Unavailable(lost)) => Ok::<Counted, RunError>(Err(lost.why)),
                counted => Ok(Ok(counted?)),
            })?;
        let counted = counted.map_err(|why| {
            let remedy = "end the other user of the counters".to_string();
            RunError::Unavailable(Unavailable { what: "the events".to_string(), why, remedy })
        })?;
        let is_complete =
            |event: &Vec<Vec<f64>>| event.len() == visits.len() && event.iter().all(|visit| visit.len() == call::COUNT);
        match counted.len() == codes.len() && counted.iter().all(is_complete) {
            true => Ok(counted),
            false => Err(self.answers.damage_error("counts of a marker are missing")),
        }
    }

    fn count_hits(&mut self, case: usize, placement: usize, loops: u64) -> Result<Option<u64>, RunError> {
        let bench = self.bench.as_deref_mut();
        self.answers.ask_machine(|| bench.ok_or_else(no_bench_error)?.count_hits(case, placement, loops))
    }
}

/// Identifies a list of visits.
fn digest_visits(visits: &[CaseVisit]) -> String {
    let mut digest = ContentDigest::default();
    for CaseVisit { placement, loops: [few, many], ruler_loops } in visits {
        for number in [*placement as u64, *few, *many, *ruler_loops] {
            digest.add_bytes(&number.to_le_bytes());
        }
    }
    digest.to_hex()
}

/// The durations of a visit as readings. Each begins at the end of the previous one.
fn readings_of_visit(visit: &LayoutSamples) -> Vec<Sample> {
    let mut start = 0;
    let round = visit.rounds().next().unwrap_or_default();
    let sample = |duration: &f64| {
        let sample = match *duration {
            duration if duration < EXACT_LIMIT => Sample { start, end: start + duration as u64 },
            // A clock that stepped back, see [`LayoutSamples::new`].
            _ => Sample { start: start + 1, end: start },
        };
        start = sample.end;
        sample
    };
    round.iter().map(sample).collect()
}
