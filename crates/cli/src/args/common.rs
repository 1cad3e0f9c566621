//! The options of every command, and what they choose.

use super::serialized;
use crate::output::Failure;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use cyclescope::clock::{self, Clock};
use cyclescope::executor::{self, Capabilities, ExecutorOffer};
use cyclescope::machine::Machine;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// Options that every command takes.
#[derive(Debug, Clone, Args, serde::Serialize)]
#[command(next_help_heading = "Options of every command")]
pub struct CommonArgs {
    /// Print one JSON object a line and nothing else on stdout
    #[arg(long, global = true)]
    #[serde(skip)]
    pub json: bool,
    /// Where the code runs [default: user]
    #[arg(long, global = true, value_parser = offer_parser(), value_name = "WHERE")]
    #[serde(serialize_with = "serialized::executor")]
    pub executor: Option<&'static ExecutorOffer>,
    /// Timing method; `list` shows them all; `evaluate` takes several, separated by commas [default: chosen for this
    /// machine; with evaluate all]
    #[arg(long, global = true, value_name = "NAME", value_delimiter = ',')]
    pub clock: Vec<String>,
    /// CPU to measure on [default: the last allowed one]
    #[arg(long, global = true, value_name = "N")]
    pub cpu: Option<u32>,
    /// Seed of all random choices [default: from the time]
    #[arg(long, global = true, value_name = "N")]
    pub seed: Option<u64>,
    /// Fewer layouts and rounds, and a short budget
    #[arg(long, global = true)]
    pub quick: bool,
    /// Write code, raw samples and the machine's facts to a new directory
    #[arg(long, global = true, value_name = "DIR")]
    #[serde(skip)]
    pub evidence: Option<PathBuf>,
    /// Measure while this assembly runs round and round on another CPU; once for each CPU that is to be busy
    #[arg(long, global = true, value_name = "SNIPPET", allow_hyphen_values = true, value_parser = parse_snippet)]
    pub beside: Vec<String>,
    /// The CPU of --beside, in the order of the snippets [default: that which shares the core, as far as the kernel says, then the nearest]
    #[arg(long, global = true, value_name = "N")]
    pub beside_cpu: Vec<u32>,
    /// In kernel mode: run code that may loop forever even where no second CPU can end it
    #[arg(long, global = true)]
    pub force: bool,
}

impl CommonArgs {
    /// The executor that runs the code.
    pub fn offer(&self) -> &'static ExecutorOffer {
        self.executor.unwrap_or(executor::DEFAULT_OFFER)
    }

    /// Capabilities of the executor, as far as they are known before it is opened.
    pub fn capabilities(&self, machine: &Machine) -> Capabilities {
        (self.offer().capabilities)(machine)
    }

    /// The machine's facts, for the CPU that was asked for.
    pub fn detect_machine(&self) -> Result<Machine, Failure> {
        Ok(match self.cpu {
            Some(cpu) => Machine::detect_on(cpu)?,
            None => Machine::detect(),
        })
    }

    /// The seed that was given, or one from the time; any is good, as long as the result shows it.
    pub fn chosen_seed(&self) -> u64 {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // 53 bits survive every JSON reader.
        self.seed.unwrap_or_else(|| now().as_nanos() as u64 & ((1 << 53) - 1))
    }

    /// The timing method that was asked for, where only one can be.
    pub fn one_clock(&self) -> Result<Option<&'static Clock>, Failure> {
        match self.clock.as_slice() {
            [] => Ok(None),
            [name] => find_clock(name).map(Some),
            _ => {
                let remedy = "`cyclescope evaluate` takes several";
                Err(Failure::usage("this command takes one clock", Some(remedy)))
            }
        }
    }

    /// The first option that was given and that only a measurement makes use of.
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
        ];
        given.iter().find(|(_, given)| *given).map(|(name, _)| *name)
    }
}

/// The executors that can be asked for, by their names.
fn offer_parser() -> impl TypedValueParser<Value = &'static ExecutorOffer> {
    let values = executor::EXECUTOR_OFFERS.iter().map(|offer| PossibleValue::new(offer.name).help(offer.about));
    PossibleValuesParser::new(values)
        .map(|name| ExecutorOffer::find_by_name(&name).expect("only these names are possible"))
}

/// The timing method of this name.
pub fn find_clock(name: &str) -> Result<&'static Clock, Failure> {
    Clock::find_named(name).ok_or_else(|| {
        let names = clock::ALL_CLOCKS.iter().map(|clock| clock.name);
        let nearest = cyclescope::asm::nearest_words(&name.to_lowercase(), names);
        let remedy = match nearest.first() {
            Some(nearest) => format!("did you mean {nearest}? `cyclescope --clock list` shows all"),
            None => "`cyclescope --clock list` shows all".to_string(),
        };
        Failure::usage(format!("there is no clock {name}"), Some(&remedy))
    })
}

/// A snippet. No assembly starts like an option that does not exist.
pub(super) fn parse_snippet(text: &str) -> Result<String, String> {
    let option = text.strip_prefix("--").is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()));
    if option { Err("it is neither assembly nor an option of this command".to_string()) } else { Ok(text.to_string()) }
}
