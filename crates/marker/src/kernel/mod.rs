//! Markers in ring 0: sites in the module's own code, switched and run by it.
//!
//! A case's loop is compared with the design `none` at the same placement. The module determines
//! the states. A design has those whose guard it has a code for and whose probe it supports.
//! Interrupts are off for a whole visit, unless a guard disables and enables them around each call.
//!
//! Limits:
//!
//! - There are only the module's two loops ([`find_context`]).
//! - The module's rounds are bounded (`MAX_ROUND_ITERATIONS`), and so are the loops
//!   ([`MarkerBench::most_loops`]).
//! - The A/A row compares a function with itself, not with a copy.
//! - A disabled tracepoint has no probe. The bytes of its site prove that it calls nothing, not the
//!   count.

pub(crate) mod design;
mod inventory;
mod kernel_symbols;
mod marker_device;
mod module_function;
#[cfg(test)]
mod tests;

pub(crate) use marker_device::MarkerDevice;

use super::anatomy::{MarkerAnatomy, compare_functions};
use super::bench::{CaseVisit, MarkerBench, MarkerCase, call};
use super::state::MarkerState;
use cyclescope_core::error::{RunError, Unavailable};
use cyclescope_core::random::Random;
use cyclescope_events::{EventCode, EventRefusal};
use cyclescope_exec::DEFAULT_DELAY;
use cyclescope_exec::kernel::markers::{
    self, KernelMarkerRounds, KernelMarkers, KernelRuler, MAX_ROUND_CALLS, MAX_ROUND_ITERATIONS, MarkerFunction,
    MarkerTarget, MarkerTargetCall, MarkerWorkload, ProbeGuard,
};
use cyclescope_measure::ruler::LayoutSamples;
use cyclescope_measure::ruler::sentinel_loops;
use inventory::{
    CodeIndex, ModuleDesign, ignore_unswitchable, inspect_design, list_designs, strange_module_error, to_module_probe,
};
use kernel_symbols::KernelSymbols;
use module_function::ModuleFunction;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// The timing method for the module's markers.
pub const CLOCK: &str = "lfence-rdtsc-lfence";

/// Runs of a visit's calls: first an untimed one, then a timed one, in the same order.
const TURNS: usize = 2;
/// Time limit of a run. It takes some milliseconds, and may have to wait for another one.
const DEADLINE: Duration = Duration::from_secs(20);
/// The rulers' share of the work of a visit.
const RULERS_SHARE: u32 = 4;
/// Number of loops in a visit whose length depends on the case's marker and context.
const TIMED_LOOPS: u32 = 4;

/// The module's loop for a context's name.
pub fn find_context(name: &str) -> Result<MarkerWorkload, Unavailable> {
    CONTEXTS.iter().find(|(known, _)| *known == name).map(|(_, around)| *around).ok_or_else(|| Unavailable {
        what: format!("context {name} in ring 0"),
        why: "the module only has the loops empty and memcpy".to_string(),
        remedy: "measure it in user mode".to_string(),
    })
}

/// The module's loops by context name.
pub const CONTEXTS: [(&str, MarkerWorkload); 2] =
    [("empty", MarkerWorkload::Nothing), ("memcpy", MarkerWorkload::Memcpy)];

/// The bench in ring 0. Dropping it switches its markers off.
pub struct KernelBench<D: MarkerDevice = KernelMarkers> {
    device: D,
    step: f64,
    compiler: String,
    offsets: Vec<usize>,
    cases: Vec<MarkerCase>,
    /// Code indices by case and placement: the loop without the marker and with it.
    pairs: Vec<Vec<[usize; 2]>>,
    bytes: Vec<ModuleFunction>,
    symbols: KernelSymbols,
    /// The probe at each design's sites, where known; `None` if they are off.
    behind: HashMap<markers::DesignNumber, Option<markers::KernelProbe>>,
    random: Random,
}

impl<D: MarkerDevice> KernelBench<D> {
    /// Examines the module's designs in these loops: their states, and the bytes that change.
    /// `step` is the step of readings by [`CLOCK`].
    pub fn new(mut device: D, contexts: &[MarkerWorkload], step: f64, seed: u64) -> Result<Self, RunError> {
        let codes = device.codes().to_vec();
        let mut dormant = Vec::new();
        for design in list_designs(&codes) {
            device.switch(design, None).or_else(ignore_unswitchable)?;
        }
        for code in &codes {
            dormant.push(device.bytes(code)?);
        }
        let mut enabled = dormant.clone();
        let mut found = Vec::new();
        for number in list_designs(&codes) {
            found.push(inspect_design(&mut device, number, &codes, &mut enabled)?);
        }
        let bytes = codes.iter().zip(dormant).zip(&enabled);
        let bytes = bytes.map(|((code, dormant), enabled)| ModuleFunction::new(code.address, dormant, enabled));
        let bytes: Vec<ModuleFunction> = bytes.collect();
        let offsets: BTreeSet<u32> = codes.iter().map(|code| code.placement).collect();
        let mut bench = KernelBench {
            symbols: find_symbols(&bytes),
            bytes,
            step,
            compiler: kernel_compiler(),
            offsets: offsets.iter().map(|offset| *offset as usize).collect(),
            cases: Vec::new(),
            pairs: Vec::new(),
            behind: found.iter().map(|one| (one.number, None)).collect(),
            random: Random::new(seed),
            device,
        };
        let places = CodeIndex::new(&codes);
        for one in &found {
            for around in contexts {
                bench.add_cases(one, *around, &places)?;
            }
        }
        Ok(bench)
    }

    /// Adds the states of a design in one loop.
    fn add_cases(&mut self, one: &ModuleDesign, around: MarkerWorkload, places: &CodeIndex) -> Result<(), RunError> {
        let name = CONTEXTS.iter().find(|(_, known)| *known == around).expect("each loop has a name").0;
        let base = places
            .find_codes(design::BASE_DESIGN, ProbeGuard::Bare, around, &self.offsets)
            .ok_or_else(strange_module_error)?;
        let guards: Vec<ProbeGuard> = ProbeGuard::ALL
            .into_iter()
            .filter(|guard| places.find_codes(one.design.name, *guard, around, &self.offsets).is_some())
            .collect();
        for state in design::select_states(one.design, &guards, &one.probes) {
            let guard = guards.iter().find(|guard| design::guard_name(**guard) == state.guard);
            let guard = *guard.ok_or_else(strange_module_error)?;
            let site =
                places.find_codes(one.design.name, guard, around, &self.offsets).ok_or_else(strange_module_error)?;
            self.pairs.push(base.iter().zip(site).map(|(base, site)| [*base, site]).collect());
            self.cases.push(MarkerCase { design: one.design, state, context: name.to_string() });
        }
        Ok(())
    }

    /// The kernel module.
    #[cfg(test)]
    pub(crate) fn device(&self) -> &D {
        &self.device
    }

    /// The code that a case's marker adds to its function at one placement. Placements differ only
    /// in alignment, which is not part of the marker.
    pub fn anatomy_at(&self, case: usize, placement: usize) -> MarkerAnatomy {
        let [base, site] = self.pairs[case][placement].map(|code| self.bytes[code].to_function_code());
        compare_functions(base, site, self.cases[case].design.enabling, &|address| self.symbols.symbol_name(address))
    }

    fn code(&self, case: usize, placement: usize, of: usize) -> &MarkerFunction {
        &self.device.codes()[self.pairs[case][placement][of]]
    }

    /// Installs a probe at the sites of a case's design, or switches them off.
    fn switch_probe(&mut self, case: usize, probe: Option<markers::KernelProbe>) -> Result<(), RunError> {
        let design = self.code(case, 0, SITE_CODE).design;
        if self.behind.get(&design) != Some(&probe) {
            // After a failure, the installed probe is unknown.
            self.behind.remove(&design);
            self.device.switch(design, probe)?;
            self.behind.insert(design, probe);
        }
        Ok(())
    }

    /// The calls of a visit, by column.
    fn visit_calls(&self, case: usize, visit: &CaseVisit) -> [MarkerTargetCall; call::COUNT] {
        let [base, site] = [BASE_CODE, SITE_CODE].map(|of| MarkerTarget::from(self.code(case, visit.placement, of)));
        let [few, many] = visit.loops;
        let ruler = |ruler: KernelRuler, loops| (MarkerTarget::from(ruler), loops);
        let mut calls = [(base, few); call::COUNT];
        calls[call::IMUL_SHORT] = ruler(KernelRuler::ImulShort, visit.ruler_loops);
        calls[call::IMUL_LONG] = ruler(KernelRuler::ImulLong, visit.ruler_loops);
        calls[call::ADD_SHORT] = ruler(KernelRuler::AddShort, visit.ruler_loops);
        calls[call::ADD_LONG] = ruler(KernelRuler::AddLong, visit.ruler_loops);
        calls[call::SENTINEL] = ruler(KernelRuler::Sentinel, sentinel_loops(self.step));
        calls[call::BASE_MANY] = (base, many);
        calls[call::SITE_FEW] = (site, few);
        calls[call::SITE_MANY] = (site, many);
        // The module rejects too large a count.
        calls.map(|(target, loops)| MarkerTargetCall { target, loops: loops.try_into().unwrap_or(u32::MAX) })
    }

    /// Runs as many visits as fit into one call of the device. Returns the remaining ones.
    fn run_batch<'a>(
        &mut self,
        case: usize,
        visits: &'a [CaseVisit],
        found: &mut Vec<LayoutSamples>,
    ) -> Result<&'a [CaseVisit], RunError> {
        let (mut list, mut orders, mut work) = (Vec::new(), Vec::new(), 0);
        for visit in visits {
            let calls = self.visit_calls(case, visit);
            work += TURNS as u64 * calls.iter().map(self::call_work).sum::<u64>();
            let count = list.len() + TURNS * call::COUNT;
            if !orders.is_empty() && (work > MAX_ROUND_ITERATIONS.into() || count > MAX_ROUND_CALLS) {
                break;
            }
            let mut order: Vec<usize> = (0..call::COUNT).collect();
            self.random.shuffle(&mut order);
            for _ in 0..TURNS {
                list.extend(order.iter().map(|column| calls[*column]));
            }
            orders.push(order);
        }
        let timed = self.device.run(&single_round(list, self.random.next_bits()))?;
        let each = timed.samples.chunks_exact(TURNS * call::COUNT);
        let last =
            |samples: &'_ [_], order: &Vec<usize>| LayoutSamples::new(&samples[(TURNS - 1) * call::COUNT..], order);
        found.extend(each.zip(&orders).map(|(samples, order)| last(samples, order)));
        Ok(&visits[orders.len()..])
    }
}

/// Bytes in a cache line.
const CACHE_LINE: u64 = 64;

/// Indices of a case's two codes.
const BASE_CODE: usize = 0;
const SITE_CODE: usize = 1;

fn call_work(call: &MarkerTargetCall) -> u64 {
    u64::from(call.loops) * u64::from(call.target.weight())
}

fn single_round(calls: Vec<MarkerTargetCall>, seed: u64) -> KernelMarkerRounds {
    KernelMarkerRounds { calls, warm_up: 0, rounds: 1, delay: DEFAULT_DELAY, seed, deadline: DEADLINE }
}

/// The probe that a state needs at its design's sites.
fn module_probe(state: &MarkerState) -> Option<markers::KernelProbe> {
    state.probe.filter(|_| state.enabled).map(to_module_probe)
}

/// The compiler of the running kernel and its modules. The module's markers run on no other
/// machine.
fn kernel_compiler() -> String {
    let version = std::fs::read_to_string("/proc/version").unwrap_or_default();
    module_function::parse_compiler(&version).unwrap_or_else(|| "the kernel's".to_string())
}

/// Names for the addresses that the codes refer to; empty if the kernel does not report them.
fn find_symbols(codes: &[ModuleFunction]) -> KernelSymbols {
    let addresses: BTreeSet<u64> =
        codes.iter().flat_map(|code| kernel_symbols::referenced_addresses(code.address, &code.dormant)).collect();
    match std::fs::File::open(kernel_symbols::SYMBOL_LIST) {
        Ok(list) => KernelSymbols::find(&addresses, std::io::BufReader::new(list)),
        Err(_) => KernelSymbols::default(),
    }
}

impl<D: MarkerDevice> MarkerBench for KernelBench<D> {
    fn cases(&self) -> &[MarkerCase] {
        &self.cases
    }

    /// At the first placement, where the loop begins at a cache line and all NOPs before it only
    /// align.
    fn anatomy(&self, case: usize) -> Result<MarkerAnatomy, RunError> {
        Ok(self.anatomy_at(case, 0))
    }

    fn line_offset(&self, case: usize) -> usize {
        (self.code(case, 0, SITE_CODE).address % CACHE_LINE) as usize
    }

    fn compiler_name(&self, _case: usize) -> &str {
        &self.compiler
    }

    fn placement_offsets(&self) -> &[usize] {
        &self.offsets
    }

    fn clock_step(&self) -> f64 {
        self.step
    }

    /// As many as a visit's share of the module's bound allows: all four loops, each run twice.
    fn most_loops(&self, case: usize) -> u64 {
        let weight = MarkerTarget::from(self.code(case, 0, SITE_CODE)).weight();
        let each = MAX_ROUND_ITERATIONS / TURNS as u32;
        u64::from((each - each / RULERS_SHARE) / (TIMED_LOOPS * weight))
    }

    fn run_visits(&mut self, case: usize, visits: &[CaseVisit]) -> Result<Vec<LayoutSamples>, RunError> {
        self.switch_probe(case, module_probe(&self.cases[case].state))?;
        let mut found = Vec::with_capacity(visits.len());
        let mut left = visits;
        while !left.is_empty() {
            left = self.run_batch(case, left, &mut found)?;
        }
        Ok(found)
    }

    fn count_fitting(&self, _codes: &[EventCode]) -> Result<usize, EventRefusal> {
        Err(EventRefusal::from_mode("kernel"))
    }

    fn count_visits(&mut self, _: usize, _: &[CaseVisit], _: &[EventCode]) -> Result<Vec<Vec<Vec<f64>>>, RunError> {
        Err(RunError::Unavailable(EventRefusal::from_mode("kernel").into()))
    }

    fn count_hits(&mut self, case: usize, placement: usize, loops: u64) -> Result<Option<u64>, RunError> {
        let MarkerCase { state, .. } = self.cases[case];
        if state.probe.is_none() {
            return Ok(None);
        }
        // The counting probe stays installed for a marker that is switched off.
        self.switch_probe(case, Some(markers::KernelProbe::Counting))?;
        if !state.enabled {
            self.switch_probe(case, None)?;
        }
        let target = MarkerTarget::from(self.code(case, placement, SITE_CODE));
        let most = u64::from(MAX_ROUND_ITERATIONS / target.weight());
        let (mut hits, mut left) = (0, loops);
        while left > 0 {
            let loops = left.min(most);
            let call = MarkerTargetCall { target, loops: loops as u32 };
            hits += self.device.run(&single_round(vec![call], 1))?.hits;
            left -= loops;
        }
        Ok(Some(hits))
    }

    fn now(&self) -> Result<Duration, RunError> {
        Ok(self.device.now())
    }
}
