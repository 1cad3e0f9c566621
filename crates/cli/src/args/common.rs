//! Options that every command accepts, and the choices they make.

use super::serialized;
use crate::output::Failure;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use cyclescope::clock::{self, Clock};
use cyclescope::executor::{self, Capabilities, ExecutorOffer};
use cyclescope::machine::Machine;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// Options that every command accepts.
#[derive(Debug, Clone, Args, serde::Serialize)]
#[command(next_help_heading = "Options of every command")]
pub struct CommonArgs {
    /// Print one JSON object per line on stdout, and nothing else
    #[arg(long, global = true)]
    #[serde(skip)]
    pub json: bool,
    /// Where the measured code runs [default: user]
    #[arg(long, global = true, value_parser = offer_parser(), value_name = "WHERE")]
    #[serde(serialize_with = "serialized::executor")]
    pub executor: Option<&'static ExecutorOffer>,
    /// Timing method; `list` shows all. `evaluate` accepts several, separated by commas [default:
    /// chosen for this machine; evaluate: all]
    #[arg(long, global = true, value_name = "NAME", value_delimiter = ',')]
    pub clock: Vec<String>,
    /// Number of the CPU to measure on [default: the last allowed one]
    #[arg(long, global = true, value_name = "N")]
    pub cpu: Option<u32>,
    /// Seed of all random choices, an integer [default: from the time]
    #[arg(long, global = true, value_name = "N")]
    pub seed: Option<u64>,
    /// Measure faster and less precisely: fewer layouts and rounds, a short budget
    #[arg(long, global = true)]
    pub quick: bool,
    /// Write code, raw samples and the machine's facts to this new directory
    #[arg(long, global = true, value_name = "DIR")]
    #[serde(skip)]
    pub evidence: Option<PathBuf>,
    /// Run this assembly in a loop on another CPU as background load; repeat for several CPUs. Or
    /// name the code as for run, as in 'run --file load.s'
    #[arg(long, global = true, value_name = "SNIPPET", allow_hyphen_values = true, value_parser = parse_snippet)]
    pub beside: Vec<String>,
    /// CPUs for --beside, in the order of the snippets [default: the sibling on the same core if
    /// the kernel names one, then the nearest CPUs]
    #[arg(long, global = true, value_name = "N")]
    pub beside_cpu: Vec<u32>,
    /// Share memory between the snippet of run and each --beside: R14 of both points to the start of
    /// the same 1 MiB
    #[arg(long, global = true, requires = "beside")]
    pub beside_shared: bool,
    /// In kernel mode, run code that may loop forever even if no second CPU can stop it
    #[arg(long, global = true)]
    pub force: bool,
}

impl CommonArgs {
    /// The executor that runs the code: the requested one, or the default.
    pub fn offer(&self) -> &'static ExecutorOffer {
        self.executor.unwrap_or(executor::DEFAULT_OFFER)
    }

    /// Capabilities of the executor that are known before it is opened.
    pub fn capabilities(&self, machine: &Machine) -> Capabilities {
        (self.offer().capabilities)(machine)
    }

    /// Detects the machine's facts for the requested CPU.
    pub fn detect_machine(&self) -> Result<Machine, Failure> {
        Ok(match self.cpu {
            Some(cpu) => Machine::detect_on(cpu)?,
            None => Machine::detect(),
        })
    }

    /// The requested seed, or one from the time. Any seed will do, because the result shows it.
    pub fn chosen_seed(&self) -> u64 {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Every JSON reader keeps 53 bits of an integer.
        self.seed.unwrap_or_else(|| now().as_nanos() as u64 & ((1 << 53) - 1))
    }

    /// The requested timing method, for commands that accept only one.
    pub fn one_clock(&self) -> Result<Option<&'static Clock>, Failure> {
        match self.clock.as_slice() {
            [] => Ok(None),
            [name] => find_clock(name).map(Some),
            _ => {
                let remedy = "name one, or use `cyclescope evaluate`";
                Err(Failure::usage("this command accepts only one --clock", Some(remedy)))
            }
        }
    }

    /// The first given option that affects only measurements.
    pub fn first_measuring_option(&self) -> Option<&'static str> {
        let given = [
            ("--clock", !self.clock.is_empty()),
            ("--cpu", self.cpu.is_some()),
            ("--seed", self.seed.is_some()),
            ("--quick", self.quick),
            ("--evidence", self.evidence.is_some()),
            ("--executor", !self.offer().is_default()),
            ("--force", self.force),
            ("--beside", !self.beside.is_empty()),
            ("--beside-cpu", !self.beside_cpu.is_empty()),
            ("--beside-shared", self.beside_shared),
        ];
        given.iter().find(|(_, given)| *given).map(|(name, _)| *name)
    }
}

/// Accepts the names of the executors.
fn offer_parser() -> impl TypedValueParser<Value = &'static ExecutorOffer> {
    let values = executor::EXECUTOR_OFFERS.iter().map(|offer| PossibleValue::new(offer.name).help(offer.about));
    PossibleValuesParser::new(values)
        .map(|name| ExecutorOffer::find_by_name(&name).expect("only these names are possible"))
}

/// Finds the timing method of this name.
pub fn find_clock(name: &str) -> Result<&'static Clock, Failure> {
    Clock::find_named(name).ok_or_else(|| {
        let names = clock::ALL_CLOCKS.iter().map(|clock| clock.name);
        let nearest = cyclescope::asm::nearest_words(&name.to_lowercase(), names);
        let remedy = match nearest.first() {
            Some(nearest) => format!("did you mean {nearest}? `cyclescope --clock list` shows all"),
            None => "`cyclescope --clock list` shows all".to_string(),
        };
        Failure::usage(format!("unknown timing method `{name}`"), Some(&remedy))
    })
}

/// Rejects text that looks like a long option: no assembly starts that way.
pub(super) fn parse_snippet(text: &str) -> Result<String, String> {
    let option = text.strip_prefix("--").is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()));
    if option { Err("not assembly, and not an option of this command".to_string()) } else { Ok(text.to_string()) }
}
