//! Shared by all sections: the machine, measurements as `cyclescope run` makes them, and a list of
//! requirements.

use crate::busy_loop::BusyLoop;
use crate::options::BenchOptions;
use cyclescope::asm::{self, CodeMode};
use cyclescope::executor::user::{UserExecutor, UserOptions, user_capabilities};
use cyclescope::machine::Machine;
use cyclescope::measure::{Plan, resolve_imul_latency};
use cyclescope::random::Random;
use cyclescope::run::{RunOutcome, RunRequest, run_snippet};
use cyclescope::snippet::Snippet;
use cyclescope::study::instr::survey_settings::SurveyTiming;
use std::error::Error;

/// The result of a section. It is an error only if nothing could be measured at all.
pub type SectionResult<T = ()> = Result<T, Box<dyn Error>>;

/// A requirement of the project, and whether it is met here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// The requirement.
    pub text: String,
    /// Whether it is met; `None` if this machine cannot decide it.
    pub met: Option<bool>,
    /// The measured figure.
    pub figure: String,
}

/// Whether a busy loop runs on the measured CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadCondition {
    /// No background load of this program.
    Idle,
    /// One busy loop is pinned to the same CPU.
    Busy,
}

impl LoadCondition {
    /// Both conditions.
    pub const BOTH: [LoadCondition; 2] = [LoadCondition::Idle, LoadCondition::Busy];

    /// The condition's name.
    pub fn name(self) -> &'static str {
        match self {
            LoadCondition::Idle => "idle",
            LoadCondition::Busy => "loaded",
        }
    }
}

/// The machine and the results on it.
pub struct Lab {
    /// The command line's options.
    pub options: BenchOptions,
    /// The machine's facts.
    pub machine: Machine,
    /// The CPU to measure on.
    pub cpu: usize,
    /// The requirements that the sections have examined.
    pub demands: Vec<Demand>,
    random: Random,
}

impl Lab {
    /// Detects the machine.
    pub fn new(options: BenchOptions) -> SectionResult<Lab> {
        let machine = match options.cpu {
            Some(cpu) => Machine::detect_on(cpu)?,
            None => Machine::detect(),
        };
        let cpu = machine.target_cpu() as usize;
        let random = Random::new(options.seed);
        Ok(Lab { options, machine, cpu, demands: Vec::new(), random })
    }

    /// The micro-architecture's name; empty if unknown.
    pub fn microarchitecture(&self) -> &'static str {
        self.machine.cpu.microarchitecture.known().map_or("", |found| found.name)
    }

    /// Assembles a snippet; `None` if this CPU lacks one of its instructions.
    pub fn assemble_snippet(&self, code: &str, init: &str) -> SectionResult<Option<Snippet>> {
        let (listing, before) = (asm::parse_assembly(code)?, asm::parse_assembly(init)?);
        let mut instructions = listing.instructions().iter().chain(before.instructions());
        let runs = instructions.all(|one| self.machine.features.require(asm::required_features(one)).is_ok());
        Ok(runs.then(|| Snippet::new(listing.bytes().to_vec(), before.bytes().to_vec(), code)))
    }

    /// An executor as `run` makes it.
    pub fn spawn_executor(&self) -> SectionResult<UserExecutor> {
        let options = UserOptions { cpu: self.cpu, ..UserOptions::default() };
        Ok(UserExecutor::spawn_on(self.machine.clone(), &options)?)
    }

    /// A plan with its own seed.
    pub fn make_plan(&mut self, request: &RunRequest) -> SectionResult<Plan> {
        let seed = self.next_seed();
        Ok(RunRequest { seed, ..request.clone() }.make_plan(&user_capabilities(&self.machine), &self.machine)?)
    }

    /// The timing of a survey of instructions with a plan.
    pub fn survey_timing<'a>(&self, executor: &mut UserExecutor, plan: &'a Plan) -> SectionResult<SurveyTiming<'a>> {
        let imul_latency = resolve_imul_latency(executor, plan)?;
        let Plan { clock, step, adders, .. } = *plan;
        Ok(SurveyTiming { clock, step, imul_latency, mode: CodeMode::default(), adders })
    }

    /// The next seed.
    pub fn next_seed(&mut self) -> u64 {
        self.random.next_bits() >> 11
    }

    /// One whole measurement as `cyclescope run` makes it, including a new worker.
    pub fn measure(&mut self, snippet: &Snippet, request: &RunRequest) -> SectionResult<RunOutcome> {
        let plan = self.make_plan(request)?;
        let mut executor = self.spawn_executor()?;
        Ok(run_snippet(&mut executor, snippet, &plan, request.required_precision())?)
    }

    /// Establishes a condition for the lifetime of the returned value.
    pub fn start_load(&self, load: LoadCondition) -> SectionResult<Option<BusyLoop>> {
        Ok(match load {
            LoadCondition::Idle => None,
            LoadCondition::Busy => Some(BusyLoop::start(self.cpu)?),
        })
    }

    /// Records whether a requirement is met.
    pub fn record_demand(&mut self, text: &str, met: Option<bool>, figure: String) {
        self.demands.push(Demand { text: text.to_string(), met, figure });
    }
}
