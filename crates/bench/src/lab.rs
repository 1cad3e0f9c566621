//! What every section needs: the machine, measurements as `cyclescope run` makes them, and a list of demands.

use crate::busy::Busy;
use crate::options::Options;
use cyclescope::asm;
use cyclescope::executor::user::{User, UserOptions, capabilities};
use cyclescope::machine::Machine;
use cyclescope::measure::Plan;
use cyclescope::random::Random;
use cyclescope::run::{Request, Run, run};
use cyclescope::snippet::Snippet;
use std::error::Error;

/// What a section ends with: a failure only where nothing could be measured at all.
pub type Outcome<T = ()> = Result<T, Box<dyn Error>>;

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
pub enum Load {
    /// Nothing of ours runs beside the measurement.
    Idle,
    /// One busy loop is pinned to the same CPU.
    Busy,
}

impl Load {
    /// Both conditions.
    pub const BOTH: [Load; 2] = [Load::Idle, Load::Busy];

    /// The condition's name.
    pub fn name(self) -> &'static str {
        match self {
            Load::Idle => "idle",
            Load::Busy => "loaded",
        }
    }
}

/// The machine and what was found on it.
pub struct Lab {
    /// What was asked for.
    pub options: Options,
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
    pub fn new(options: Options) -> Outcome<Lab> {
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
    pub fn snippet(&self, code: &str, init: &str) -> Outcome<Option<Snippet>> {
        let (listing, before) = (asm::parse(code)?, asm::parse(init)?);
        let mut instructions = listing.instructions().iter().chain(before.instructions());
        let runs = instructions.all(|one| self.machine.features.require(asm::features(one)).is_ok());
        Ok(runs.then(|| Snippet::new(listing.bytes().to_vec(), before.bytes().to_vec(), code)))
    }

    /// An executor as `run` makes it.
    pub fn executor(&self) -> Outcome<User> {
        let options = UserOptions { cpu: self.cpu, ..UserOptions::default() };
        Ok(User::spawn_on(self.machine.clone(), &options)?)
    }

    /// A plan with a seed of its own.
    pub fn plan(&mut self, request: &Request) -> Outcome<Plan> {
        let seed = self.seed();
        Ok(Request { seed, ..request.clone() }.plan(&capabilities(&self.machine), &self.machine)?)
    }

    /// The next seed.
    pub fn seed(&mut self) -> u64 {
        self.random.bits() >> 11
    }

    /// One whole measurement as `cyclescope run` makes it, a worker of its own included.
    pub fn measure(&mut self, snippet: &Snippet, request: &Request) -> Outcome<Run> {
        let plan = self.plan(request)?;
        let mut executor = self.executor()?;
        Ok(run(&mut executor, snippet, &plan, request.asked())?)
    }

    /// Brings a condition about, for as long as the answer lives.
    pub fn load(&self, load: Load) -> Outcome<Option<Busy>> {
        Ok(match load {
            Load::Idle => None,
            Load::Busy => Some(Busy::start(self.cpu)?),
        })
    }

    /// Notes whether a demand is met.
    pub fn demand(&mut self, text: &str, met: Option<bool>, figure: String) {
        self.demands.push(Demand { text: text.to_string(), met, figure });
    }
}
