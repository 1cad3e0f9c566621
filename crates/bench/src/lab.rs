//! What every section needs: the machine, measurements as `cyclescope run` makes them, and a list of demands.

use crate::busy_loop::BusyLoop;
use crate::options::BenchOptions;
use cyclescope::asm;
use cyclescope::executor::user::{UserExecutor, UserOptions, user_capabilities};
use cyclescope::machine::Machine;
use cyclescope::measure::Plan;
use cyclescope::random::Random;
use cyclescope::run::{RunOutcome, RunRequest, run_snippet};
use cyclescope::snippet::Snippet;
use std::error::Error;

/// What a section ends with: a failure only where nothing could be measured at all.
pub type SectionResult<T = ()> = Result<T, Box<dyn Error>>;

/// A demand of the project and whether it is met here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// What is demanded.
    pub text: String,
    /// Whether it is met; `None` where this machine cannot decide it.
    pub met: Option<bool>,
    /// The figure.
    pub figure: String,
}

/// Whether a busy loop runs on the CPU that is measured on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadCondition {
    /// Nothing of ours runs beside the measurement.
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

/// The machine and what was found on it.
pub struct Lab {
    /// What was asked for.
    pub options: BenchOptions,
    /// The machine's facts.
    pub machine: Machine,
    /// The CPU that is measured on.
    pub cpu: usize,
    /// The demands that the sections have examined.
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

    /// The micro-architecture's name; empty where it is unknown.
    pub fn microarchitecture(&self) -> &'static str {
        self.machine.cpu.microarchitecture.known().map_or("", |found| found.name)
    }

    /// Assembles a snippet; none where this CPU lacks an instruction of it.
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

    /// A plan with a seed of its own.
    pub fn make_plan(&mut self, request: &RunRequest) -> SectionResult<Plan> {
        let seed = self.next_seed();
        Ok(RunRequest { seed, ..request.clone() }.make_plan(&user_capabilities(&self.machine), &self.machine)?)
    }

    /// The next seed.
    pub fn next_seed(&mut self) -> u64 {
        self.random.next_bits() >> 11
    }

    /// One whole measurement as `cyclescope run` makes it, a worker of its own included.
    pub fn measure(&mut self, snippet: &Snippet, request: &RunRequest) -> SectionResult<RunOutcome> {
        let plan = self.make_plan(request)?;
        let mut executor = self.spawn_executor()?;
        Ok(run_snippet(&mut executor, snippet, &plan, request.required_precision())?)
    }

    /// Brings a condition about, for as long as the answer lives.
    pub fn start_load(&self, load: LoadCondition) -> SectionResult<Option<BusyLoop>> {
        Ok(match load {
            LoadCondition::Idle => None,
            LoadCondition::Busy => Some(BusyLoop::start(self.cpu)?),
        })
    }

    /// Notes whether a demand is met.
    pub fn record_demand(&mut self, text: &str, met: Option<bool>, figure: String) {
        self.demands.push(Demand { text: text.to_string(), met, figure });
    }
}
