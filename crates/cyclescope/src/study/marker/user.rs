//! Markers in user mode: compiled functions, copied and patched in this process, run by its worker.

use super::anatomy::{Anatomy, anatomy, names};
use super::bench::{Bench, Subject, Visit, call};
use super::compiled::{Compiled, probe as probe_code};
use super::copies::Copies;
use super::instance::Misfit;
use super::listener;
use super::source::context;
use super::source::design::Enabling;
use super::state::{Probe, State, counting, states};
use crate::clock::{Clock, Promises, Step};
use crate::context::Element;
use crate::error::RunError;
use crate::executor::user::{User, UserOptions};
use crate::executor::{Batch, Call, DELAY, Executor, Layout, Place, Sample};
use crate::placement;
use crate::program::{Program, Recipe};
use crate::random::Random;
use crate::ruler::{Ruler, sentinel_loops};
use crate::samples::LayoutSamples;
use crate::unit::Unit;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Rounds of a visit that count, and those before them. What predictors have learnt stays for a whole visit, so that more
/// rounds tell nothing new; without the round before, costs in a loop of memcpy were half a cycle off.
const ROUNDS: u32 = 1;
const WARM_UP: u32 = 1;
/// Batches take some milliseconds, and their lock may have to be waited for.
const DEADLINE: Duration = Duration::from_secs(20);
/// How many placements there are, and how far apart in a cache line.
const PLACEMENTS: usize = 16;
const APART: usize = 4;

/// The user-mode bench.
pub struct UserBench {
    options: UserOptions,
    /// A worker for each world of listeners.
    executors: BTreeMap<u32, User>,
    clock: &'static Clock,
    step: f64,
    ruler: Vec<Program>,
    designs: Vec<Compiled>,
    subjects: Vec<Subject>,
    /// Of each subject, at each placement: the loop without the marker and the one with it.
    entries: Vec<Vec<[u64; 2]>>,
    /// What each subject's marker is switched by.
    switches: Vec<Switches>,
    /// The entries of each probe's copies, one for each placement.
    probes: HashMap<Probe, Vec<u64>>,
    offsets: Vec<usize>,
    /// Where each placement's data lie.
    data: Vec<[i32; 5]>,
    random: Random,
}

/// What a program does before its loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Setting {
    /// Stores a value of so many bytes.
    Store { address: u64, value: u64, bytes: usize },
    /// Calls a function with a number.
    Call { function: u64, number: u32 },
}

/// The addresses of what switches a marker.
#[derive(Debug, Clone, Copy)]
struct Switches {
    enabled: Option<u64>,
    probe: Option<u64>,
    library: Option<u64>,
}

/// A subject that can't be measured, and why.
pub type Skipped = (Subject, Misfit);

impl UserBench {
    /// Makes copies of all subjects at all placements, and a worker that can run them.
    pub fn new(
        options: &UserOptions,
        (clock, step): (&'static Clock, f64),
        designs: &[Compiled],
        contexts: &[&str],
        seed: u64,
    ) -> Result<(UserBench, Vec<Skipped>), RunError> {
        let mut random = Random::new(seed);
        let offsets: Vec<usize> = (0..PLACEMENTS).map(|placement| placement * APART).collect();
        let mut ruler: Vec<Program> = Ruler::new(clock).programs().into();
        ruler.truncate(RULERS);
        let mut copies = Copies::new(&offsets);
        let (mut subjects, mut entries, mut switches, mut skipped) = (vec![], vec![], vec![], vec![]);
        for compiled in designs {
            copies.reserve(&compiled.codes)?;
            let states = states(compiled.design);
            let of_state = |state: &State, context: &str| {
                compiled.code(context, None).zip(compiled.code(context, Some(state.guard)))
            };
            for (context, state) in
                contexts.iter().flat_map(|context| states.iter().map(move |state| (*context, *state)))
            {
                // What is compiled at run time has not all contexts.
                let Some((base, site)) = of_state(&state, context) else { continue };
                let subject = Subject { design: compiled.design, state, context: context.to_string() };
                let enabling = compiled.design.enabling;
                let copied = copies.of(base, enabling, false).and_then(|base| {
                    let site = copies.of(site, enabling, state.enabled)?;
                    Ok(base.into_iter().zip(site).map(<[u64; 2]>::from).collect())
                });
                match copied {
                    Ok(copied) => {
                        let Compiled { enabled, probe, switch, .. } = *compiled;
                        switches.push(Switches { enabled, probe, library: switch });
                        subjects.push(subject);
                        entries.push(copied);
                    }
                    Err(misfit) => skipped.push((subject, misfit)),
                }
            }
        }
        let probe_codes = Probe::ALL.map(|probe| probe_code(probe.name()));
        copies.reserve(&probe_codes)?;
        let copied = probe_codes.iter().map(|code| {
            let entries = copies.of(code, Enabling::Probe, false);
            entries.expect("probes refer to nothing but the counter")
        });
        let probes = Probe::ALL.into_iter().zip(copied).collect();
        copies.close()?;
        listener::prepare();
        let bench = UserBench {
            executors: BTreeMap::from([(0, User::spawn(options)?)]),
            options: options.clone(),
            clock,
            step,
            ruler,
            designs: designs.to_vec(),
            subjects,
            entries,
            switches,
            probes,
            data: offsets.iter().map(|_| placement::data(&mut random)).collect(),
            offsets,
            random,
        };
        Ok((bench, skipped))
    }

    /// Leaves out the subjects that are not wanted.
    pub fn retain(&mut self, wanted: impl Fn(&Subject) -> bool) {
        let keep: Vec<bool> = self.subjects.iter().map(wanted).collect();
        retain(&mut self.subjects, &keep);
        retain(&mut self.entries, &keep);
        retain(&mut self.switches, &keep);
    }

    /// The executor for a state, made when it is first needed.
    fn executor_for(&mut self, state: &State) -> Result<&mut User, RunError> {
        let world = state.library.map_or(0, |library| library.world);
        if let std::collections::btree_map::Entry::Vacant(vacant) = self.executors.entry(world) {
            vacant.insert(User::spawn(&self.options)?);
        }
        Ok(self.executors.get_mut(&world).expect("it was made just now"))
    }
}

fn retain<T>(all: &mut Vec<T>, keep: &[bool]) {
    let mut keep = keep.iter();
    all.retain(|_| *keep.next().expect("there is one for each"));
}

const RULERS: usize = 5;

/// `mov rdi, r15; mov rsi, rbx; mov r15d, 1; call r12`: the program's counter becomes the function's first argument, and
/// the program's own loop goes around once.
const CALL_LOOP: [u8; 15] = [0x4c, 0x89, 0xff, 0x48, 0x89, 0xde, 0x41, 0xbf, 1, 0, 0, 0, 0x41, 0xff, 0xd4];

/// `mov rax, address; mov rcx, value; mov [rax], (r)cx`
fn store(address: u64, value: u64, bytes: usize, code: &mut Vec<u8>) {
    code.extend([0x48, 0xb8]);
    code.extend(address.to_le_bytes());
    code.extend([0x48, 0xb9]);
    code.extend(value.to_le_bytes());
    code.extend(match bytes {
        1 => &[0x88, 0x08][..],
        2 => &[0x66, 0x89, 0x08],
        4 => &[0x89, 0x08],
        _ => &[0x48, 0x89, 0x08],
    });
}

/// The code that runs before a loop's first reading: RSI, which points into a memory area, goes to RBX; then settings; the
/// loop's entry goes to R12.
fn prelude(entry: u64, settings: &[Setting]) -> Vec<u8> {
    let mut code = vec![0x48, 0x89, 0xf3];
    for setting in settings {
        match setting {
            Setting::Store { address, value, bytes } => store(*address, *value, *bytes, &mut code),
            // mov edi, number; mov rax, function; call rax
            Setting::Call { function, number } => {
                code.push(0xbf);
                code.extend(number.to_le_bytes());
                code.extend([0x48, 0xb8]);
                code.extend(function.to_le_bytes());
                code.extend([0xff, 0xd0]);
            }
        }
    }
    code.extend([0x49, 0xbc]);
    code.extend(entry.to_le_bytes());
    code
}

/// A program that calls a loop as often around as it is told.
fn program(clock: &Clock, entry: u64, settings: &[Setting]) -> Program {
    let init = prelude(entry, settings);
    Recipe { init: &init, snippet: &CALL_LOOP, copies: 1, looped: true, ..Recipe::empty(clock) }.build()
}

/// Not a clock: its second reading is EDX:EAX as the body leaves them. So a number gets out of the worker.
const REGISTERS: Clock = Clock {
    name: "registers",
    also: &[],
    about: "EDX:EAX as they are",
    source: "",
    counts: Unit::Calls,
    promises: Promises {
        leading_done: false,
        body_waits: false,
        body_done: false,
        following_waits: false,
        stores_drained: false,
    },
    start: &[Step::Store],
    end: &[Step::Store],
};

/// A program whose reading is how often the counting probe was called.
fn counting_program(entry: u64, settings: &[Setting]) -> Program {
    let mut init = Vec::new();
    store(listener::hits(), 0, 8, &mut init);
    init.extend(prelude(entry, settings));
    let mut snippet = CALL_LOOP.to_vec();
    // mov rax, hits; mov rax, [rax]; mov rdx, rax; shr rdx, 32
    snippet.extend([0x48, 0xb8]);
    snippet.extend(listener::hits().to_le_bytes());
    snippet.extend([0x48, 0x8b, 0x00, 0x48, 0x89, 0xc2, 0x48, 0xc1, 0xea, 0x20]);
    Recipe { init: &init, snippet: &snippet, copies: 1, looped: true, ..Recipe::empty(&REGISTERS) }.build()
}

/// What one layout's calls are: which of its places, how often around.
fn calls(visit: &Visit, sentinel: u64) -> [Call; call::COUNT] {
    let [few, many] = visit.loops;
    let mut calls = [Call { place: 0, loop_count: visit.ruler_loops }; call::COUNT];
    for (column, call) in calls.iter_mut().enumerate().take(RULERS) {
        call.place = column;
    }
    calls[call::SENTINEL].loop_count = sentinel;
    for (column, place, loop_count) in [
        (call::BASE_FEW, RULERS, few),
        (call::BASE_MANY, RULERS, many),
        (call::SITE_FEW, RULERS + 1, few),
        (call::SITE_MANY, RULERS + 1, many),
    ] {
        calls[column] = Call { place, loop_count };
    }
    calls
}

impl UserBench {
    /// The programs of some visits to a subject, and for each visit where its two are.
    fn programs(&self, subject: usize, visits: &[Visit]) -> (Vec<Program>, Vec<[usize; 2]>) {
        let mut programs = self.ruler.clone();
        let mut known = HashMap::new();
        let state = self.subjects[subject].state;
        let mut pair = |visit: &Visit| {
            let start = programs.len();
            *known.entry(visit.placement).or_insert_with(|| {
                let settings = self.settings(subject, visit.placement, &state);
                for entry in self.entries[subject][visit.placement] {
                    programs.push(program(self.clock, entry, &settings));
                }
                [start, start + 1]
            })
        };
        let pairs = visits.iter().map(&mut pair).collect();
        (programs, pairs)
    }

    /// What a program does before a subject's loop, so that its marker is in a state.
    fn settings(&self, subject: usize, placement: usize, state: &State) -> Vec<Setting> {
        let Switches { enabled, probe, library } = self.switches[subject];
        let mut settings = Vec::new();
        if let (Enabling::Variable(bytes), Some(address)) = (self.subjects[subject].design.enabling, enabled)
        {
            settings.push(Setting::Store { address, value: state.enabled.into(), bytes });
        }
        if let (Some(address), Some(probe)) = (probe, state.probe) {
            settings.push(Setting::Store { address, value: self.probes[&probe][placement], bytes: 8 });
        }
        if let (Some(function), Some(library)) = (library, state.library) {
            settings.push(Setting::Call { function, number: library.number });
        }
        settings
    }

    fn compiled(&self, subject: usize) -> &Compiled {
        let Subject { design, context, .. } = &self.subjects[subject];
        let of = |one: &&Compiled| one.design == *design && one.code(context, None).is_some();
        self.designs.iter().find(of).expect("subjects are made from the designs")
    }

    fn touches_memory(&self, subject: usize) -> bool {
        let name = &self.subjects[subject].context;
        context::ALL.iter().find(|one| one.name == name).is_none_or(|one| one.touches_memory)
    }
}

impl Bench for UserBench {
    fn subjects(&self) -> &[Subject] {
        &self.subjects
    }

    fn anatomy(&self, subject: usize) -> Result<Anatomy, RunError> {
        let (compiled, Subject { design, state, context }) =
            (self.compiled(subject), &self.subjects[subject]);
        let codes = compiled.code(context, None).zip(compiled.code(context, Some(state.guard)));
        let (base, site) = codes.expect("each context has all functions");
        Ok(anatomy(base, site, design.enabling, &names(compiled)))
    }

    fn compiler(&self, subject: usize) -> &str {
        &self.compiled(subject).compiler
    }

    fn placements(&self) -> &[usize] {
        &self.offsets
    }

    fn step(&self) -> f64 {
        self.step
    }

    fn executor(&self) -> Option<&dyn Executor> {
        Some(&self.executors[&0])
    }

    fn run(&mut self, subject: usize, visits: &[Visit]) -> Result<Vec<LayoutSamples>, RunError> {
        let (programs, pairs) = self.programs(subject, visits);
        let (rulers, end) = placement::fixed(&programs[..RULERS]);
        let numbers: Vec<usize> = (RULERS..programs.len()).collect();
        let arena = self.executors[&0].arena_len();
        let places = placement::random(&programs, &numbers, end, arena, None, &mut self.random)
            .expect("the arena holds some short programs");
        let mut orders = Vec::new();
        let layouts = visits.iter().zip(&pairs).map(|(visit, pair)| {
            let rulers = rulers.iter().enumerate().map(|(program, &offset)| Place { program, offset });
            let code = rulers.chain(pair.map(|program| places[program - RULERS])).collect();
            let calls = calls(visit, sentinel_loops(self.step));
            let mut order: Vec<usize> = (0..call::COUNT).collect();
            self.random.shuffle(&mut order);
            let round = order.iter().map(|column| calls[*column]).collect();
            orders.push(order);
            Layout { code, round, data: self.data[visit.placement], seed: self.random.bits() }
        });
        let batch = Batch {
            layouts: layouts.collect(),
            programs,
            warm_up: WARM_UP,
            rounds: ROUNDS,
            element: Element::default(),
            touches_memory: self.touches_memory(subject),
            delay: DELAY,
            deadline: DEADLINE,
        };
        let state = self.subjects[subject].state;
        let samples = self.executor_for(&state)?.run(&batch)?;
        let each = samples.chunks_exact(ROUNDS as usize * call::COUNT);
        Ok(each.zip(&orders).map(|(samples, order)| LayoutSamples::new(samples, order)).collect())
    }

    fn hits(&mut self, subject: usize, placement: usize, loops: u64) -> Result<Option<u64>, RunError> {
        let Subject { design, state, .. } = &self.subjects[subject];
        let Some(state) = counting(design, state) else { return Ok(None) };
        let settings = self.settings(subject, placement, &state);
        let [_, site] = self.entries[subject][placement];
        let batch = Batch {
            programs: vec![counting_program(site, &settings)],
            warm_up: 0,
            rounds: 1,
            layouts: vec![Layout {
                code: vec![Place { program: 0, offset: 0 }],
                round: vec![Call { place: 0, loop_count: loops }],
                data: self.data[placement],
                seed: 1,
            }],
            element: Element::default(),
            touches_memory: true,
            delay: 1,
            deadline: DEADLINE,
        };
        let samples = self.executor_for(&state)?.run(&batch)?;
        Ok(samples.first().map(|Sample { end, .. }| *end))
    }
}
