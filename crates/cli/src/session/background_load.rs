//! Background load: code that runs on other CPUs during a measurement, and the share of the time it
//! ran.

use crate::args::CommonArgs;
use crate::input::load_snippet::parse_load_snippet;
use crate::output::page::{TextPage, print_note};
use crate::output::terminal::escape_controls;
use crate::output::{Failure, Output, print_warning};
use cyclescope::context::{AREA_REGISTERS, FloatElement};
use cyclescope::executor::{BackgroundCode, LoadOutcome};
use cyclescope::machine::Machine;
use cyclescope::machine::fact::Fact;
use cyclescope::program::memory::{
    AreaFill, AreaPointer, PhysicalFrames, PointerPosition, ProgramMemory, StoreLifetime,
};
use cyclescope::snippet::Snippet;
use serde::Serialize;

/// The kind of its JSON lines.
const LOAD_KIND: &str = "beside";
/// A load that ran for a smaller share of the time causes a warning.
const FULL_SHARE: f64 = 0.9;

/// The background load of a measurement, and its CPUs.
#[derive(Debug, Default)]
pub struct BackgroundLoad(Vec<PlannedLoad>);

/// A snippet of background load, and its memory if it shares some.
#[derive(Debug)]
struct PlannedLoad {
    snippet: Snippet,
    memory: Option<ProgramMemory>,
    record: LoadRecord,
}

/// Background load that is running.
pub struct RunningLoad(Vec<(LoadRecord, BackgroundCode)>);

/// One snippet of background load.
#[derive(Debug, Serialize)]
pub struct LoadRecord {
    /// The snippet's text.
    snippet: String,
    /// The CPU that it runs on.
    cpu: u32,
    /// Whether the kernel reports this CPU as a sibling of the measured one; null if it reports
    /// nothing.
    sibling: Option<bool>,
    /// The share of the time that it ran.
    share: Option<f64>,
    /// The usual time of a copy in TSC ticks.
    ticks: Option<f64>,
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
    /// Reads the requested load and chooses its CPUs.
    pub fn new(common: &CommonArgs, machine: &Machine) -> Result<BackgroundLoad, Failure> {
        let CommonArgs { beside, beside_cpu, .. } = common;
        let snippets = beside.iter().map(|text| parse_load_snippet(text, machine)).collect::<Result<Vec<_>, _>>()?;
        if snippets.is_empty() {
            return Ok(BackgroundLoad::default());
        }
        let cpus = choose_cpus(snippets.len(), beside_cpu, machine)?;
        let siblings = machine.target.as_ref().and_then(|target| target.siblings.known());
        let planned = snippets.into_iter().zip(cpus).map(|(snippet, cpu)| {
            let sibling = siblings.map(|siblings| siblings.contains(&cpu));
            let shared = common.beside_shared;
            let text = snippet.text().to_string();
            let record = LoadRecord { snippet: text, cpu, sibling, share: None, ticks: None, shared };
            let memory = shared.then(|| shared_memory(&snippet, machine));
            PlannedLoad { snippet, memory, record }
        });
        Ok(BackgroundLoad(planned.collect()))
    }

    /// Starts the load, in the process that measures.
    pub fn start(self) -> Result<RunningLoad, Failure> {
        let start = |PlannedLoad { snippet, memory, record }: PlannedLoad| {
            let started = match memory {
                Some(memory) => BackgroundCode::start_with_memory(&snippet, memory, record.cpu),
                None => BackgroundCode::start(&snippet, record.cpu),
            };
            let companion = started.map_err(|error| record.failure_of_load(error.into()))?;
            Ok::<_, Failure>((record, companion))
        };
        Ok(RunningLoad(self.0.into_iter().map(start).collect::<Result<_, _>>()?))
    }
}

impl RunningLoad {
    /// Stops the load and returns its records.
    pub fn stop(self) -> Result<Vec<LoadRecord>, Failure> {
        let ended = self.0.into_iter().map(|(mut record, companion)| {
            let LoadOutcome { share, ticks } =
                companion.stop().map_err(|error| record.failure_of_load(error.into()))?;
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
        let ticks = self.ticks.map_or(String::new(), |ticks| format!("; {ticks:.3} TSC ticks a copy"));
        let shared = if self.shared { ", in the memory that R14 of both points to" } else { "" };
        format!("`{}`{share} on CPU {}{sibling}{shared}{ticks}", self.snippet, self.cpu)
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
        let text = format!("--beside names {number} snippets, but only {} CPUs are available for them", cpus.len());
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
