//! Markers in user mode: compiled functions, copied and patched in this process, run by its worker.

use super::anatomy::{MarkerAnatomy, compare_functions, name_addresses};
use super::bench::{CaseVisit, MarkerBench, MarkerCase};
use super::compiled_design::{CompiledDesign, PatchSite, ProbeSet};
use super::copy_region::CopyMisfit;
use super::copy_region::CopyRegion;
use super::function_copies::{CopyVariant, FunctionCopies};
use super::marker_programs::{MarkerSetting, RULERS, build_counting_program, build_program, layout_calls};
use super::source::context::{self, MemoryFootprint};
use super::source::design::Enabling;
use super::state::{MarkerState, counting_state, list_states};
use super::uprobe::Uprobe;
use super::working_set::{WorkingSet, loop_memory};
use crate::ProbeKind;
use cyclescope_code::clock::Clock;
use cyclescope_code::program::Program;
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_core::error::{RunError, Unavailable};
use cyclescope_core::machine::cache::Cache;
use cyclescope_core::random::Random;
use cyclescope_events::{EventCode, EventRefusal};
use cyclescope_exec::user::{UserExecutor, UserOptions};
use cyclescope_exec::{Executor, LockState, PlacedProgram, ProgramCall, Sample};
use cyclescope_marker_designs::listener;
use cyclescope_measure::placement;
use cyclescope_measure::ruler::{LayoutSamples, RulerPrograms, sentinel_loops};
use cyclescope_measure::schedule::{self, BatchPace, PlannedLayout, Schedule};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::time::Duration;

/// Timed rounds of a visit, and untimed rounds before them. A predictor's state persists for a
/// whole visit, so more rounds give no new information. Without the untimed round, costs in a loop
/// of memcpy were off by half a cycle.
const ROUNDS: u32 = 1;
const WARM_UP: u32 = 1;
/// Number of placements, and their spacing in a cache line.
const PLACEMENTS: usize = 16;
const PLACEMENT_SPACING: usize = 4;

/// The user-mode bench.
pub struct UserBench {
    options: UserOptions,
    /// One worker for each listener world.
    executors: BTreeMap<u32, UserExecutor>,
    clock: &'static Clock,
    step: f64,
    ruler: Vec<Program>,
    designs: Vec<CompiledDesign>,
    probe_set: ProbeSet,
    cases: Vec<MarkerCase>,
    /// Entry points by case and placement: the loop without the marker and with it.
    entries: Vec<Vec<[u64; 2]>>,
    /// The switches of each case's marker.
    switches: Vec<SwitchAddresses>,
    /// The entry points of each probe's copies, one per placement.
    probes: HashMap<ProbeKind, Vec<u64>>,
    /// The memory of all copies.
    regions: Vec<CopyRegion>,
    /// Offsets of each case's sites from the entry of its function. A compiler may duplicate a
    /// site.
    places: Vec<Vec<i64>>,
    /// Breakpoints by address of the site, with the process that contains them.
    tracers: HashMap<u64, (i32, Uprobe)>,
    offsets: Vec<usize>,
    /// Addresses of the data at each placement.
    data: Vec<Vec<i32>>,
    /// Caches of the CPU.
    caches: Vec<Cache>,
    random: Random,
}

/// Addresses that switch a marker.
#[derive(Debug, Clone, Copy)]
struct SwitchAddresses {
    enabled: Option<u64>,
    probe: Option<u64>,
    library: Option<u64>,
}

/// A case that cannot be measured, and the reason.
pub type SkippedCase = (MarkerCase, CopyMisfit);

impl UserBench {
    /// Copies all cases to all placements, and starts a worker for them. All code has the mode of the
    /// probes. Working sets are sized to exceed the CPU's caches.
    pub fn new(
        options: &UserOptions,
        clock: &'static Clock,
        step: f64,
        (designs, probe_set): (&[CompiledDesign], ProbeSet),
        contexts: &[&str],
        caches: &[Cache],
        seed: u64,
    ) -> Result<(UserBench, Vec<SkippedCase>), RunError> {
        let mut random = Random::new(seed);
        let offsets: Vec<usize> = (0..PLACEMENTS).map(|placement| placement * PLACEMENT_SPACING).collect();
        let mut ruler: Vec<Program> = RulerPrograms::for_mode(clock, probe_set.mode).into_programs().into();
        ruler.truncate(RULERS);
        let mut copies = FunctionCopies::new(&offsets);
        let (mut cases, mut entries, mut switches, mut skipped) = (vec![], vec![], vec![], vec![]);
        // Offsets of each case's sites from its function's entry.
        let mut places = vec![];
        for compiled in designs {
            copies.reserve_region(&compiled.codes)?;
            let states = list_states(compiled.design);
            let of_state = |state: &MarkerState, context: &str| {
                compiled.find_function(context, None).zip(compiled.find_function(context, Some(state.guard)))
            };
            for (context, state) in
                contexts.iter().flat_map(|context| states.iter().map(move |state| (*context, *state)))
            {
                // Code compiled at run time does not have all contexts.
                let Some((base, site)) = of_state(&state, context) else { continue };
                let case = MarkerCase { design: compiled.design, state, context: context.to_string() };
                let enabling = compiled.design.enabling;
                let copied = copies.copy_function(base, enabling, CopyVariant::DORMANT).and_then(|base| {
                    let variant = CopyVariant { enabled: state.enabled, traced: state.traced };
                    let site = copies.copy_function(site, enabling, variant)?;
                    Ok(base.into_iter().zip(site).map(<[u64; 2]>::from).collect())
                });
                match copied {
                    Ok(copied) => {
                        let CompiledDesign { enabled, probe, switch, .. } = *compiled;
                        switches.push(SwitchAddresses { enabled, probe, library: switch });
                        cases.push(case);
                        entries.push(copied);
                        let behind = |one: &PatchSite| one.place as i64 - site.entry as i64;
                        places.push(site.sites.iter().map(behind).collect());
                    }
                    Err(misfit) => skipped.push((case, misfit)),
                }
            }
        }
        let probe_codes = ProbeKind::ALL.map(|probe| probe_set.find(probe).clone());
        copies.reserve_region(&probe_codes)?;
        let copied = probe_codes.iter().map(|code| {
            let entries = copies.copy_function(code, Enabling::Probe, CopyVariant::DORMANT);
            entries.expect("probes only refer to the counter")
        });
        let probes = ProbeKind::ALL.into_iter().zip(copied).collect();
        let regions = copies.into_regions()?;
        listener::prepare_listeners();
        // Probes are functions of this process, and loops are copied from it.
        let options = UserOptions { functions: true, ..options.clone() };
        let mut bench = UserBench {
            regions,
            places,
            tracers: HashMap::new(),
            executors: BTreeMap::from([(0, UserExecutor::spawn(&options)?)]),
            options,
            clock,
            step,
            ruler,
            designs: designs.to_vec(),
            probe_set,
            cases,
            entries,
            switches,
            probes,
            data: offsets.iter().map(|_| placement::displace_standard_data(&mut random)).collect(),
            offsets,
            caches: caches.to_vec(),
            random,
        };
        for case in (0..bench.cases.len()).rev() {
            if let Err(why) = bench.try_tracer(case) {
                skipped.push((bench.leave_out(case), CopyMisfit::Untraced { why }));
            }
        }
        Ok((bench, skipped))
    }

    /// Removes a case.
    fn leave_out(&mut self, case: usize) -> MarkerCase {
        self.entries.remove(case);
        self.switches.remove(case);
        self.places.remove(case);
        self.cases.remove(case)
    }

    /// Attaches a case's tracer, if it has one, to the first worker: an error if that is impossible.
    fn try_tracer(&mut self, case: usize) -> Result<(), Unavailable> {
        match self.executors[&0].worker_pid() {
            Some(worker) if self.cases[case].state.traced => self.attach_tracer(case, worker),
            _ => Ok(()),
        }
    }

    /// Attaches a case's tracer, if it has one, to the worker that will run the schedule. Loops with
    /// another memory have another worker.
    fn prepare_traced(&mut self, case: usize, schedule: &Schedule) -> Result<(), RunError> {
        let state = self.cases[case].state;
        if !state.traced {
            return Ok(());
        }
        let worker = self.executor_for(&state)?.prepare(schedule.batch())?;
        self.attach_tracer(case, worker).map_err(tracer_lost_error)
    }

    /// Attaches a case's tracer to a worker, at all placements.
    fn attach_tracer(&mut self, case: usize, worker: i32) -> Result<(), Unavailable> {
        let placements = 0..self.offsets.len();
        let addresses: Vec<u64> = placements.flat_map(|placement| self.site_addresses(case, placement)).collect();
        for address in addresses {
            if self.tracers.get(&address).is_some_and(|(traced, _)| *traced == worker) {
                continue;
            }
            let place = self.regions.iter().find_map(|region| region.locate_in_file(address));
            let (file, offset) = place.expect("copies are in one of the regions");
            self.tracers.insert(address, (worker, Uprobe::attach(worker, file, offset)?));
        }
        Ok(())
    }

    /// The addresses of a case's sites at a placement.
    fn site_addresses(&self, case: usize, placement: usize) -> Vec<u64> {
        let [_, entry] = self.entries[case][placement];
        self.places[case].iter().map(|behind| entry.wrapping_add_signed(*behind)).collect()
    }

    /// Fails if a traced case has just run in a worker without its tracer.
    fn require_traced(&self, case: usize) -> Result<(), RunError> {
        let worker = self.executors[&0].worker_pid();
        let placements = 0..self.offsets.len();
        let mut sites = placements.flat_map(|placement| self.site_addresses(case, placement));
        let traced = |address| self.tracers.get(&address).is_some_and(|(traced, _)| Some(*traced) == worker);
        if !self.cases[case].state.traced || sites.all(traced) {
            return Ok(());
        }
        Err(RunError::WorkerLost { how: "and with it the tracer's breakpoints".to_string() })
    }

    /// Counts the traps at a case's breakpoint in this number of iterations.
    fn count_traps(&mut self, case: usize, placement: usize, loops: u64) -> Result<u64, RunError> {
        let failed = |error: io::Error| RunError::from_io("reading a uprobe's count", &error);
        let counted = |bench: &UserBench| {
            let sites = bench.site_addresses(case, placement).into_iter();
            let probes = sites.filter_map(|site| bench.tracers.get(&site));
            probes.map(|(_, uprobe)| uprobe.read_count().map_err(failed)).sum::<Result<u64, RunError>>()
        };
        let state = self.cases[case].state;
        let [_, site] = self.entries[case][placement];
        let program =
            build_program(self.clock, self.probe_set.mode, site, &self.case_settings(case, placement, &state));
        let once = self.single_call(program, case, placement, loops);
        self.prepare_traced(case, &once)?;
        let before = counted(self)?;
        once.run(self.executor_for(&state)?)?;
        self.require_traced(case)?;
        Ok(counted(self)? - before)
    }

    /// A schedule with one call at a placement.
    fn single_call(&self, program: Program, case: usize, placement: usize, loops: u64) -> Schedule {
        let (memory, data) = self.case_memory(case, placement);
        let (code, calls) =
            (vec![PlacedProgram { program: 0, offset: 0 }], vec![ProgramCall { place: 0, loop_count: loops }]);
        let pace = BatchPace { warm_up: 0, memory, delay: 1, ..BatchPace::default() };
        Schedule::with_layouts(
            vec![program],
            pace,
            [PlannedLayout::with_calls_in_order(code, calls, 1).with_data(data)],
        )
    }

    /// The executor for a state, opened on first use.
    fn executor_for(&mut self, state: &MarkerState) -> Result<&mut UserExecutor, RunError> {
        let world = state.library.map_or(0, |library| library.world);
        if let std::collections::btree_map::Entry::Vacant(vacant) = self.executors.entry(world) {
            vacant.insert(UserExecutor::spawn(&self.options)?);
        }
        Ok(self.executors.get_mut(&world).expect("it was made just now"))
    }
}

/// The error if a tracer cannot be attached again.
fn tracer_lost_error(why: Unavailable) -> RunError {
    RunError::WorkerLost { how: format!("and with it {}: {}", why.what, why.why) }
}

impl UserBench {
    /// The programs of some visits to a case, and the indices of the two that each visit needs.
    fn visit_programs(&self, case: usize, visits: &[CaseVisit]) -> (Vec<Program>, Vec<[usize; 2]>) {
        let mut programs = self.ruler.clone();
        let mut known = HashMap::new();
        let state = self.cases[case].state;
        let mut pair = |visit: &CaseVisit| {
            let start = programs.len();
            *known.entry(visit.placement).or_insert_with(|| {
                let settings = self.case_settings(case, visit.placement, &state);
                for entry in self.entries[case][visit.placement] {
                    programs.push(build_program(self.clock, self.probe_set.mode, entry, &settings));
                }
                [start, start + 1]
            })
        };
        let pairs = visits.iter().map(&mut pair).collect();
        (programs, pairs)
    }

    /// The settings that put a case's marker into a state.
    fn case_settings(&self, case: usize, placement: usize, state: &MarkerState) -> Vec<MarkerSetting> {
        let SwitchAddresses { enabled, probe, library } = self.switches[case];
        let mut settings = Vec::new();
        if let (Enabling::Variable(bytes), Some(address)) = (self.cases[case].design.enabling, enabled) {
            settings.push(MarkerSetting::Store { address, value: state.enabled.into(), bytes });
        }
        if let (Some(address), Some(probe)) = (probe, state.probe) {
            let bytes = self.probe_set.mode.bits() as usize / 8;
            settings.push(MarkerSetting::Store { address, value: self.probes[&probe][placement], bytes });
        }
        if let (Some(function), Some(library)) = (library, state.library) {
            settings.push(MarkerSetting::Call { function, number: library.number });
        }
        settings
    }

    /// The layouts of some visits to a case.
    fn plan_visits(&mut self, case: usize, visits: &[CaseVisit]) -> Result<Schedule, RunError> {
        let (programs, pairs) = self.visit_programs(case, visits);
        let (arena, further) = (self.executors[&0].arena_len(), RULERS..programs.len());
        let places = schedule::place_programs(&programs, RULERS, further, arena, None, &mut self.random)?;
        let (memory, _) = self.case_memory(case, 0);
        let moved: Vec<Vec<i32>> = visits.iter().map(|visit| self.case_memory(case, visit.placement).1).collect();
        let stages = visits.iter().zip(&pairs).zip(moved).map(|((visit, pair), moved)| {
            let code = [&places[..RULERS], &pair.map(|program| places[program])].concat();
            let calls = layout_calls(visit, sentinel_loops(self.step)).to_vec();
            PlannedLayout::with_shuffled_calls(code, calls, &mut self.random).with_data(moved)
        });
        let stages: Vec<PlannedLayout> = stages.collect();
        let pace = BatchPace { warm_up: WARM_UP, rounds: ROUNDS, memory, ..BatchPace::default() };
        Ok(Schedule::with_layouts(programs, pace, stages))
    }

    fn compiled_design(&self, case: usize) -> &CompiledDesign {
        let MarkerCase { design, context, .. } = &self.cases[case];
        let has_context =
            |compiled: &&CompiledDesign| compiled.design == *design && compiled.find_function(context, None).is_some();
        self.designs.iter().find(has_context).expect("cases are made from the designs")
    }

    fn footprint(&self, case: usize) -> MemoryFootprint {
        let name = &self.cases[case].context;
        context::ALL.iter().find(|one| one.name == name).map_or(MemoryFootprint::Scratch, |one| one.memory)
    }

    /// The memory of a case's loop, and its addresses at a placement.
    fn case_memory(&self, case: usize, placement: usize) -> (ProgramMemory, Vec<i32>) {
        loop_memory(self.footprint(case), self.working_set(case), &self.data[placement])
    }
}

impl MarkerBench for UserBench {
    fn cases(&self) -> &[MarkerCase] {
        &self.cases
    }

    fn anatomy(&self, case: usize) -> Result<MarkerAnatomy, RunError> {
        let (compiled, MarkerCase { design, state, context }) = (self.compiled_design(case), &self.cases[case]);
        let codes = compiled.find_function(context, None).zip(compiled.find_function(context, Some(state.guard)));
        let (base, site) = codes.expect("each context has all functions");
        Ok(compare_functions(base, site, design.enabling, &name_addresses(compiled)))
    }

    fn working_set(&self, case: usize) -> Option<WorkingSet> {
        match self.footprint(case) {
            MemoryFootprint::Beyond(level) => Some(WorkingSet::beyond_cache(level, &self.caches)),
            _ => None,
        }
    }

    fn compiler_name(&self, case: usize) -> &str {
        &self.compiled_design(case).compiler
    }

    fn placement_offsets(&self) -> &[usize] {
        &self.offsets
    }

    fn clock_step(&self) -> f64 {
        self.step
    }

    fn most_loops(&self, _: usize) -> u64 {
        // The number of loops is a `long`.
        self.probe_set.mode.choose([u64::MAX, i32::MAX as u64])
    }

    fn lock_state(&self) -> Option<&LockState> {
        self.executors[&0].lock_state()
    }

    fn run_visits(&mut self, case: usize, visits: &[CaseVisit]) -> Result<Vec<LayoutSamples>, RunError> {
        let (schedule, state) = (self.plan_visits(case, visits)?, self.cases[case].state);
        self.prepare_traced(case, &schedule)?;
        let samples = schedule.measure(self.executor_for(&state)?)?;
        self.require_traced(case)?;
        Ok(samples)
    }

    fn count_fitting(&self, codes: &[EventCode]) -> Result<usize, EventRefusal> {
        self.executors[&0].count_fitting(codes)
    }

    fn count_visits(
        &mut self,
        case: usize,
        visits: &[CaseVisit],
        codes: &[EventCode],
    ) -> Result<Vec<Vec<Vec<f64>>>, RunError> {
        let (schedule, state) = (self.plan_visits(case, visits)?, self.cases[case].state);
        // A worker that counts is another one, and has its own breakpoints.
        self.prepare_traced(case, &schedule.to_counting(codes))?;
        let counts = schedule.count(self.executor_for(&state)?, codes)?;
        self.require_traced(case)?;
        Ok(counts)
    }

    fn count_hits(&mut self, case: usize, placement: usize, loops: u64) -> Result<Option<u64>, RunError> {
        let MarkerCase { design, state, .. } = &self.cases[case];
        if state.traced {
            return self.count_traps(case, placement, loops).map(Some);
        }
        let Some(state) = counting_state(design, state) else { return Ok(None) };
        let settings = self.case_settings(case, placement, &state);
        let [_, site] = self.entries[case][placement];
        let once = self.single_call(build_counting_program(&self.probe_set, site, &settings), case, placement, loops);
        let samples = once.run(self.executor_for(&state)?)?;
        Ok(samples.first().map(|Sample { end, .. }| *end))
    }

    fn now(&self) -> Result<Duration, RunError> {
        Ok(self.executors[&0].now())
    }
}

#[cfg(test)]
mod tests;
