//! Markers in ring 0: sites in the module's own code, switched and run by it.
//!
//! A case's loop is compared with the design `none` at the same placement. Which states there are the module tells:
//! a design has those whose guard it has a code for and whose probe it takes. Interrupts are off for a whole
//! visit, but where a guard turns them off around each call and on behind it.
//!
//! Limits: only the module's two loops ([`context`]); its rounds are bounded (`MOST_WORK`), and so are the loops
//! ([`Bench::most_loops`]); the A/A row compares a function with itself, not with a copy. Of a tracepoint that is off
//! nothing is behind the site, so that it calls nothing is proved by its site's bytes rather than by the count.

mod code;
pub(crate) mod design;
mod device;
mod inventory;
mod symbols;
#[cfg(test)]
mod tests;

pub(crate) use device::Device;

use super::anatomy::{Anatomy, anatomy};
use super::bench::{Bench, MarkerCase, Visit, call};
use super::state::State;
use code::Bytes;
use cyclescope_core::error::{RunError, Unavailable};
use cyclescope_core::random::Random;
use cyclescope_exec::DELAY;
use cyclescope_exec::kernel::markers::{
    self, Around, Call, Code, Guard, MOST_CALLS, MOST_WORK, Markers, Rounds, Ruler, Target,
};
use cyclescope_measure::ruler::LayoutSamples;
use cyclescope_measure::ruler::sentinel_loops;
use inventory::{Found, Places, designs, kind, look, strange, unswitchable};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;
use symbols::Symbols;

/// The timing method that the module reads its markers with.
pub const CLOCK: &str = "lfence-rdtsc-lfence";

/// What a visit runs, and how often: first everything once without counting, in the same order.
const TURNS: usize = 2;
/// A run takes some milliseconds, and may have to wait for another one.
const DEADLINE: Duration = Duration::from_secs(20);
/// The rulers' share of the work of a visit.
const RULERS_SHARE: u32 = 4;
/// The loops of a visit whose length the case's marker and context have a part in.
const LOOPS: u32 = 4;

/// The loop of the module that a context's name means.
pub fn context(name: &str) -> Result<Around, Unavailable> {
    CONTEXTS.iter().find(|(known, _)| *known == name).map(|(_, around)| *around).ok_or_else(|| Unavailable {
        what: format!("context {name} in ring 0"),
        why: "the module has the loops empty and memcpy".to_string(),
        remedy: "measure it in user mode".to_string(),
    })
}

/// The loops of the module by their contexts' names.
pub const CONTEXTS: [(&str, Around); 2] = [("empty", Around::Nothing), ("memcpy", Around::Memcpy)];

/// The bench in ring 0. What it has switched on goes off when it is dropped.
pub struct KernelBench<D: Device = Markers> {
    device: D,
    step: f64,
    compiler: String,
    offsets: Vec<usize>,
    cases: Vec<MarkerCase>,
    /// Of each case, at each placement, by the codes' indexes: the loop without the marker and the one with it.
    pairs: Vec<Vec<[usize; 2]>>,
    bytes: Vec<Bytes>,
    symbols: Symbols,
    /// What is behind each design's sites, where that is known; none where they are off.
    behind: HashMap<markers::Design, Option<markers::Probe>>,
    random: Random,
}

impl<D: Device> KernelBench<D> {
    /// Looks through the module's designs in these loops: what they can be switched to, and what that changes. `step` is
    /// that of readings by [`CLOCK`].
    pub fn new(mut device: D, contexts: &[Around], step: f64, seed: u64) -> Result<Self, RunError> {
        let codes = device.codes().to_vec();
        let mut dormant = Vec::new();
        for design in designs(&codes) {
            device.switch(design, None).or_else(unswitchable)?;
        }
        for code in &codes {
            dormant.push(device.bytes(code)?);
        }
        let mut enabled = dormant.clone();
        let mut found = Vec::new();
        for number in designs(&codes) {
            found.push(look(&mut device, number, &codes, &mut enabled)?);
        }
        let bytes = codes.iter().zip(dormant).zip(&enabled);
        let bytes = bytes.map(|((code, dormant), enabled)| Bytes::new(code.address, dormant, enabled));
        let bytes: Vec<Bytes> = bytes.collect();
        let offsets: BTreeSet<u32> = codes.iter().map(|code| code.placement).collect();
        let mut bench = KernelBench {
            symbols: names(&bytes),
            bytes,
            step,
            compiler: compiler(),
            offsets: offsets.iter().map(|offset| *offset as usize).collect(),
            cases: Vec::new(),
            pairs: Vec::new(),
            behind: found.iter().map(|one| (one.number, None)).collect(),
            random: Random::new(seed),
            device,
        };
        let places = Places::new(&codes);
        for one in &found {
            for around in contexts {
                bench.add(one, *around, &places)?;
            }
        }
        Ok(bench)
    }

    /// The states of a design in one loop.
    fn add(&mut self, one: &Found, around: Around, places: &Places) -> Result<(), RunError> {
        let name = CONTEXTS.iter().find(|(_, known)| *known == around).expect("each loop has a name").0;
        let base = places.of(design::BASE, Guard::Bare, around, &self.offsets).ok_or_else(strange)?;
        let guards: Vec<Guard> = Guard::ALL
            .into_iter()
            .filter(|guard| places.of(one.design.name, *guard, around, &self.offsets).is_some())
            .collect();
        for state in design::states(one.design, &guards, &one.probes) {
            let guard = guards.iter().find(|guard| design::name(**guard) == state.guard);
            let guard = *guard.ok_or_else(strange)?;
            let site = places.of(one.design.name, guard, around, &self.offsets).ok_or_else(strange)?;
            self.pairs.push(base.iter().zip(site).map(|(base, site)| [*base, site]).collect());
            self.cases.push(MarkerCase { design: one.design, state, context: name.to_string() });
        }
        Ok(())
    }

    /// The module, for what else it tells.
    #[cfg(test)]
    pub(crate) fn device(&self) -> &D {
        &self.device
    }

    /// What a case's marker adds to its function at one placement. Between placements only alignment differs, which
    /// is not the marker's.
    pub fn anatomy_at(&self, case: usize, placement: usize) -> Anatomy {
        let [base, site] = self.pairs[case][placement].map(|code| self.bytes[code].function());
        anatomy(base, site, self.cases[case].design.enabling, &|address| self.symbols.name(address))
    }

    fn code(&self, case: usize, placement: usize, of: usize) -> &Code {
        &self.device.codes()[self.pairs[case][placement][of]]
    }

    /// Puts a probe behind a case's design, or switches it off.
    fn switch(&mut self, case: usize, probe: Option<markers::Probe>) -> Result<(), RunError> {
        let design = self.code(case, 0, SITE).design;
        if self.behind.get(&design) != Some(&probe) {
            // It is not known what is there where this fails.
            self.behind.remove(&design);
            self.device.switch(design, probe)?;
            self.behind.insert(design, probe);
        }
        Ok(())
    }

    /// What a visit's calls are, by their columns.
    fn calls(&self, case: usize, visit: &Visit) -> [Call; call::COUNT] {
        let [base, site] = [BASE, SITE].map(|of| Target::from(self.code(case, visit.placement, of)));
        let [few, many] = visit.loops;
        let ruler = |ruler: Ruler, loops| (Target::from(ruler), loops);
        let mut calls = [(base, few); call::COUNT];
        calls[call::IMUL_SHORT] = ruler(Ruler::ImulShort, visit.ruler_loops);
        calls[call::IMUL_LONG] = ruler(Ruler::ImulLong, visit.ruler_loops);
        calls[call::ADD_SHORT] = ruler(Ruler::AddShort, visit.ruler_loops);
        calls[call::ADD_LONG] = ruler(Ruler::AddLong, visit.ruler_loops);
        calls[call::SENTINEL] = ruler(Ruler::Sentinel, sentinel_loops(self.step));
        calls[call::BASE_MANY] = (base, many);
        calls[call::SITE_FEW] = (site, few);
        calls[call::SITE_MANY] = (site, many);
        // The module refuses what is too much.
        calls.map(|(target, loops)| Call { target, loops: loops.try_into().unwrap_or(u32::MAX) })
    }

    /// Runs visits in one call of the device, as many as it takes, and returns the others.
    fn run_some<'a>(
        &mut self,
        case: usize,
        visits: &'a [Visit],
        found: &mut Vec<LayoutSamples>,
    ) -> Result<&'a [Visit], RunError> {
        let (mut list, mut orders, mut work) = (Vec::new(), Vec::new(), 0);
        for visit in visits {
            let calls = self.calls(case, visit);
            work += TURNS as u64 * calls.iter().map(self::work).sum::<u64>();
            let count = list.len() + TURNS * call::COUNT;
            if !orders.is_empty() && (work > MOST_WORK.into() || count > MOST_CALLS) {
                break;
            }
            let mut order: Vec<usize> = (0..call::COUNT).collect();
            self.random.shuffle(&mut order);
            for _ in 0..TURNS {
                list.extend(order.iter().map(|column| calls[*column]));
            }
            orders.push(order);
        }
        let timed = self.device.run(&rounds(list, self.random.bits()))?;
        let each = timed.samples.chunks_exact(TURNS * call::COUNT);
        let last = |samples: &'_ [_], order: &Vec<usize>| {
            LayoutSamples::new(&samples[(TURNS - 1) * call::COUNT..], order)
        };
        found.extend(each.zip(&orders).map(|(samples, order)| last(samples, order)));
        Ok(&visits[orders.len()..])
    }
}

/// The bytes of a line of the cache.
const LINE: u64 = 64;

/// Which of a case's two codes.
const BASE: usize = 0;
const SITE: usize = 1;

fn work(call: &Call) -> u64 {
    u64::from(call.loops) * u64::from(call.target.weight())
}

fn rounds(calls: Vec<Call>, seed: u64) -> Rounds {
    Rounds { calls, warm_up: 0, rounds: 1, delay: DELAY, seed, deadline: DEADLINE }
}

/// The probe that a state needs behind its design's sites.
fn probe(state: &State) -> Option<markers::Probe> {
    state.probe.filter(|_| state.enabled).map(kind)
}

/// The compiler of the running kernel, into which the module is loaded: its markers are in no other machine.
fn compiler() -> String {
    let version = std::fs::read_to_string("/proc/version").unwrap_or_default();
    code::compiler(&version).unwrap_or_else(|| "the kernel's".to_string())
}

/// Names of what the codes refer to; none where the kernel does not tell.
fn names(codes: &[Bytes]) -> Symbols {
    let addresses: BTreeSet<u64> =
        codes.iter().flat_map(|code| symbols::references(code.address, &code.dormant)).collect();
    match std::fs::File::open(symbols::LIST) {
        Ok(list) => Symbols::find(&addresses, std::io::BufReader::new(list)),
        Err(_) => Symbols::default(),
    }
}

impl<D: Device> Bench for KernelBench<D> {
    fn cases(&self) -> &[MarkerCase] {
        &self.cases
    }

    /// At the first placement, where the loop begins with a line of the cache and all NOPs before it only align.
    fn anatomy(&self, case: usize) -> Result<Anatomy, RunError> {
        Ok(self.anatomy_at(case, 0))
    }

    fn line_offset(&self, case: usize) -> usize {
        (self.code(case, 0, SITE).address % LINE) as usize
    }

    fn compiler(&self, _case: usize) -> &str {
        &self.compiler
    }

    fn placements(&self) -> &[usize] {
        &self.offsets
    }

    fn step(&self) -> f64 {
        self.step
    }

    /// As many as a visit's share of the module's bound allows: all four loops, each run twice.
    fn most_loops(&self, case: usize) -> u64 {
        let weight = Target::from(self.code(case, 0, SITE)).weight();
        let each = MOST_WORK / TURNS as u32;
        u64::from((each - each / RULERS_SHARE) / (LOOPS * weight))
    }

    fn run(&mut self, case: usize, visits: &[Visit]) -> Result<Vec<LayoutSamples>, RunError> {
        self.switch(case, probe(&self.cases[case].state))?;
        let mut found = Vec::with_capacity(visits.len());
        let mut left = visits;
        while !left.is_empty() {
            left = self.run_some(case, left, &mut found)?;
        }
        Ok(found)
    }

    fn hits(&mut self, case: usize, placement: usize, loops: u64) -> Result<Option<u64>, RunError> {
        let MarkerCase { state, .. } = self.cases[case];
        if state.probe.is_none() {
            return Ok(None);
        }
        // The probe that counts stays behind a marker that goes off.
        self.switch(case, Some(markers::Probe::Counting))?;
        if !state.enabled {
            self.switch(case, None)?;
        }
        let target = Target::from(self.code(case, placement, SITE));
        let most = u64::from(MOST_WORK / target.weight());
        let (mut hits, mut left) = (0, loops);
        while left > 0 {
            let loops = left.min(most);
            let call = Call { target, loops: loops as u32 };
            hits += self.device.run(&rounds(vec![call], 1))?.hits;
            left -= loops;
        }
        Ok(Some(hits))
    }

    fn now(&self) -> Result<Duration, RunError> {
        Ok(self.device.now())
    }
}
