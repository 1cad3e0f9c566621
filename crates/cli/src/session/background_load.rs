//! Background load: code that runs on other CPUs during a measurement, and the share of the time it
//! ran.

use crate::args::CommonArgs;
use crate::input::call_parameters::HEAP_BYTES;
use crate::input::load_snippet::{LoadCode, read_load_code};
use crate::input::target::{FunctionLibraries, LoadedFunction};
use crate::output::page::{TextPage, print_note};
use crate::output::terminal::escape_controls;
use crate::output::{Failure, Output, print_warning};
use cyclescope::asm::CodeMode;
use cyclescope::context::{AREA_REGISTERS, FloatElement};
use cyclescope::executor::{BackgroundCode, LoadOutcome, LoadPlan, OpenOptions};
use cyclescope::machine::Machine;
use cyclescope::machine::fact::Fact;
use cyclescope::measure::{build_load_ruler, read_load_cost};
use cyclescope::program::memory::{
    AreaFill, AreaPointer, PhysicalFrames, PointerPosition, ProgramMemory, StoreLifetime,
};
use cyclescope::record::Quantity;
use cyclescope::snippet::Snippet;
use cyclescope::unit::Unit;
use serde::Serialize;

/// The kind of its JSON lines.
const LOAD_KIND: &str = "beside";
/// A load that ran for a smaller share of the time causes a warning.
const FULL_SHARE: f64 = 0.9;

/// The confidence level of a load's interval.
const CONFIDENCE: f64 = 0.95;

/// The background load of a measurement, and its CPUs.
#[derive(Default)]
pub struct BackgroundLoad {
    planned: PlannedLoads,
    /// The libraries of its functions, not yet loaded.
    libraries: FunctionLibraries,
}

/// Background load whose functions are loaded elsewhere.
#[derive(Default)]
pub struct PlannedLoads {
    all: Vec<PlannedLoad>,
    /// The latency of the ruler's `imul` in core cycles, if known.
    imul_latency: Option<f64>,
}

/// Code of background load, and its memory if it shares some.
struct PlannedLoad {
    code: LoadCode,
    memory: Option<ProgramMemory>,
    record: LoadRecord,
}

/// Background load that is running.
pub struct RunningLoads {
    all: Vec<(LoadRecord, BackgroundCode)>,
    imul_latency: Option<f64>,
}

/// One snippet of background load.
#[derive(Debug, Serialize)]
pub struct LoadRecord {
    /// The snippet's text.
    snippet: String,
    /// The mode that it runs in.
    #[serde(rename = "bits", skip_serializing_if = "CodeMode::is_default")]
    mode: CodeMode,
    /// The CPU that it runs on.
    cpu: u32,
    /// Whether the kernel reports this CPU as a sibling of the measured one; null if it reports
    /// nothing.
    sibling: Option<bool>,
    /// The share of the time that it ran.
    share: Option<f64>,
    /// The usual time of a copy in TSC ticks.
    ticks: Option<f64>,
    /// The same in core cycles of its own CPU, by a ruler there.
    cost: Option<Quantity>,
    /// Whether it shares memory with the measured code.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    shared: bool,
}

/// Number of the memory that measured code and background load share.
const SHARED_NUMBER: u64 = 0x6265_7369_6465;

/// The standard memory of a snippet, in which R14 points to the start of the first area, and all
/// programs of this command share that area.
pub fn shared_memory(snippet: &Snippet, machine: &Machine) -> ProgramMemory {
    let outline = snippet.outline(machine.features.has(iced_x86::CpuidFeature::AVX));
    let mut memory = ProgramMemory::standard(outline.world.element, true);
    let first = &mut memory.areas[0];
    first.frames = PhysicalFrames::Common(SHARED_NUMBER);
    first.lifetime = StoreLifetime::Kept;
    first.fill = AreaFill::Pattern(FloatElement::default());
    first.pointer = Some(AreaPointer { register: AREA_REGISTERS[0] as u8, at: PointerPosition::Start });
    memory
}

impl BackgroundLoad {
    /// Reads the requested load and chooses its CPUs. Code of a load that names no mode has `mode`.
    pub fn new(common: &CommonArgs, mode: CodeMode, machine: &Machine) -> Result<BackgroundLoad, Failure> {
        let CommonArgs { beside, beside_cpu, .. } = common;
        let (mut libraries, seed) = (FunctionLibraries::default(), common.chosen_seed());
        let codes = beside.iter().map(|text| read_load_code(text, mode, machine, &mut libraries, seed));
        let codes = codes.collect::<Result<Vec<_>, _>>()?;
        if codes.is_empty() {
            return Ok(BackgroundLoad::default());
        }
        let cpus = choose_cpus(codes.len(), beside_cpu, machine)?;
        let siblings = machine.target.as_ref().and_then(|target| target.siblings.known());
        let planned = codes.into_iter().zip(beside).zip(cpus).map(|((code, text), cpu)| {
            let sibling = siblings.map(|siblings| siblings.contains(&cpu));
            let shared = common.beside_shared;
            let (snippet, memory) = match &code {
                LoadCode::Snippet(snippet) => {
                    (snippet.text().to_string(), shared.then(|| shared_memory(snippet, machine)))
                }
                LoadCode::Call(..) if shared => {
                    let remedy = "leave --beside-shared out, or mark the code with CYCLESCOPE_BODY";
                    return Err(Failure::usage("a function of --beside has memory of its own", Some(remedy)));
                }
                LoadCode::Call(_, calling, _) => (text.clone(), Some(calling.program_memory())),
            };
            let cost = None;
            let mode = code.mode();
            let record = LoadRecord { snippet, mode, cpu, sibling, share: None, ticks: None, cost, shared };
            Ok(PlannedLoad { code, memory, record })
        });
        let all = planned.collect::<Result<_, Failure>>()?;
        let imul_latency = machine.cpu.imul_latency().map(f64::from);
        Ok(BackgroundLoad { planned: PlannedLoads { all, imul_latency }, libraries })
    }

    /// Loads the functions of the load, if it has any, in a separate process, in which `work` then
    /// runs, and returns the exit code.
    pub fn load_and_run(
        self,
        json: bool,
        work: impl FnOnce(PlannedLoads, &[LoadedFunction]) -> Result<u8, Failure>,
    ) -> Result<u8, Failure> {
        let BackgroundLoad { planned, libraries } = self;
        libraries.load_and_run(json, |loaded| work(planned, loaded))
    }
}

impl PlannedLoads {
    /// Starts the load, in the process that measures.
    pub fn start(self, loaded: &[LoadedFunction]) -> Result<RunningLoads, Failure> {
        let start = |PlannedLoad { code, memory, record }: PlannedLoad| {
            let (snippet, options) = match code {
                LoadCode::Snippet(snippet) => (snippet, OpenOptions::default()),
                LoadCode::Call(library, calling, _) => {
                    let function = loaded[library].as_ref().expect("a library without a region has a function");
                    let call = function.build_subject(&calling, 0, calling.serialized).instances.swap_remove(0);
                    let options = OpenOptions { functions: true, heap: Some(HEAP_BYTES), ..OpenOptions::default() };
                    (call, options)
                }
            };
            let plan = LoadPlan { snippet, memory, options, ruler: Some(build_load_ruler) };
            let started = BackgroundCode::start(plan, record.cpu);
            let companion = started.map_err(|error| record.failure_of_load(error.into()))?;
            Ok::<_, Failure>((record, companion))
        };
        let PlannedLoads { all, imul_latency } = self;
        Ok(RunningLoads { all: all.into_iter().map(start).collect::<Result<_, _>>()?, imul_latency })
    }
}

impl RunningLoads {
    /// Stops the load and returns its records.
    pub fn stop(self) -> Result<Vec<LoadRecord>, Failure> {
        let RunningLoads { all, imul_latency } = self;
        let ended = all.into_iter().map(|(mut record, companion)| {
            let outcome = companion.stop().map_err(|error| record.failure_of_load(error.into()))?;
            let cost = read_load_cost(&outcome, imul_latency, CONFIDENCE);
            record.cost = cost.map(|cost| Quantity::new(cost, Unit::CoreCycles));
            let LoadOutcome { share, ticks, .. } = outcome;
            if share < FULL_SHARE {
                let text = escape_controls(&record.snippet);
                print_warning(&format!("background load `{text}` ran only {:.0} % of the time", 100.0 * share));
            }
            (record.share, record.ticks) = (Some(share), ticks);
            Ok(record)
        });
        ended.collect()
    }
}

impl LoadRecord {
    fn failure_of_load(&self, failure: Failure) -> Failure {
        failure.with_subject(&format!("background load `{}` on CPU {}", escape_controls(&self.snippet), self.cpu))
    }

    /// The load in words.
    fn describe_load(&self) -> String {
        let share = self.share.map_or(String::new(), |share| format!(" ran {:.1} % of the time", 100.0 * share));
        let sibling = match self.sibling {
            Some(true) => ", a sibling on the same core according to the kernel",
            Some(false) => ", on another core according to the kernel",
            None => "",
        };
        let cycles = self.cost.as_ref().and_then(|cost| cost.value).map(|cycles| format!("{cycles:.3} core cycles"));
        let ticks = self.ticks.map(|ticks| format!("{ticks:.3} TSC ticks"));
        let times: Vec<String> = [cycles, ticks].into_iter().flatten().collect();
        let time = if times.is_empty() { String::new() } else { format!("; {} a copy", times.join(", ")) };
        let shared = if self.shared { ", in memory that both share" } else { "" };
        let mode = if self.mode.is_default() { "" } else { " in 32-bit code" };
        format!("`{}`{mode}{share} on CPU {}{sibling}{shared}{time}", self.snippet, self.cpu)
    }
}

/// Chooses a CPU for each of `number` snippets: first the named ones, then those nearest to the
/// measured CPU.
fn choose_cpus(number: usize, named: &[u32], machine: &Machine) -> Result<Vec<u32>, Failure> {
    let measured = machine.target_cpu();
    let mut cpus: Vec<u32> = Vec::new();
    for cpu in named {
        if *cpu == measured || cpus.contains(cpu) {
            let text =
                format!("CPU {cpu} can't run this snippet: it is the measured CPU {measured} or already has a load");
            return Err(Failure::usage(text, Some("name another CPU with --beside-cpu or --cpu")));
        }
        cpus.push(*cpu);
    }
    if cpus.len() >= number {
        return Ok(cpus);
    }
    let near = match machine.other_cpus(usize::MAX) {
        Fact::Known((near, _)) => near,
        Fact::Unknown(why) => {
            let remedy = "name a CPU for each snippet with --beside-cpu";
            return Err(Failure::usage(format!("can't find the CPUs that this process may use: {why}"), Some(remedy)));
        }
    };
    let free: Vec<u32> = near.into_iter().filter(|cpu| !cpus.contains(cpu)).collect();
    cpus.extend(free);
    if cpus.len() < number {
        let available = match cpus.len() {
            1 => "1 CPU is available for them".to_string(),
            several => format!("{several} CPUs are available for them"),
        };
        let text = format!("--beside names {number} snippets, but only {available}");
        return Err(Failure::usage(text, Some("name fewer, or allow the process more CPUs, for example with taskset")));
    }
    cpus.truncate(number);
    Ok(cpus)
}

/// Prints the background load.
pub fn print_loads(records: &[LoadRecord], output: &mut Output) -> Result<(), Failure> {
    for record in records {
        match output.is_json() {
            true => output.write_record(LOAD_KIND, record)?,
            false => {
                output.write_line("")?;
                print_note(
                    &mut TextPage::new(output),
                    &format!("Background load: {}.", escape_controls(&record.describe_load())),
                )?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This machine with these CPUs, of which CPU 2 is measured and CPU 7 is its sibling.
    fn machine(allowed: &[u32]) -> Machine {
        let mut machine = Machine::detect();
        machine.topology.allowed = Fact::Known(allowed.to_vec());
        if let Some(target) = &mut machine.target {
            (target.cpu, target.siblings) = (2, Fact::Known(vec![7]));
        }
        machine
    }

    #[test]
    fn each_load_has_a_cpu_of_its_own_where_the_machine_has_enough() {
        let many = machine(&[0, 1, 2, 3, 7]);
        for (number, named, expected) in [
            (1, &[][..], &[7][..]),
            (2, &[], &[7, 1]),
            (2, &[0], &[0, 7]),
            (3, &[3, 7], &[3, 7, 1]),
            (4, &[], &[7, 1, 3, 0]),
        ] {
            assert_eq!(choose_cpus(number, named, &many).expect("CPUs"), expected, "{number} {named:?}");
        }
        let why = |number, named: &[u32], machine: &Machine| {
            choose_cpus(number, named, machine).expect_err("too few CPUs").text().to_string()
        };
        assert!(why(5, &[], &many).contains("names 5 snippets, but only 4 CPUs are available"));
        assert!(why(2, &[], &machine(&[2, 7])).contains("names 2 snippets, but only 1 CPU is available"));
        assert!(why(1, &[2], &many).contains("CPU 2 can't run this snippet"));
        assert!(why(2, &[3, 3], &many).contains("CPU 3 can't run this snippet"));
    }

    /// Two loads of three threads, on a machine that may have one CPU only.
    #[test]
    fn several_loads_run_and_each_has_its_own_result() {
        let machine = Machine::detect();
        if (cyclescope::executor::DEFAULT_OFFER.check)(&machine).is_err() {
            return;
        }
        let cpu = machine.target_cpu();
        let load = |text: &str| PlannedLoad {
            code: LoadCode::Snippet(Snippet::parse(text).expect("assembly")),
            memory: None,
            record: LoadRecord {
                snippet: text.to_string(),
                mode: CodeMode::Bits64,
                cpu,
                sibling: None,
                share: None,
                ticks: None,
                cost: None,
                shared: false,
            },
        };
        let all = ["imul rbx, rbx", "add rbx, rbx"].map(load).into();
        let imul_latency = machine.cpu.imul_latency().map(f64::from);
        let running = PlannedLoads { all, imul_latency }.start(&[]).expect("both start");
        let records = running.stop().expect("both end");
        assert_eq!(records.len(), 2);
        for (record, text) in records.iter().zip(["imul rbx, rbx", "add rbx, rbx"]) {
            assert_eq!(record.snippet, text);
            assert!(record.share.is_some_and(|share| (0.0..=1.0).contains(&share)), "{record:?}");
        }
    }
}
