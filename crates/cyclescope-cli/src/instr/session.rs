//! What two parts of one survey must have in common, as the first line of a result file has it.

use super::choose::identity;
use crate::args::{Common, InstrArgs};
use crate::failure::Failure;
use cyclescope::executor::Offer;
use cyclescope::machine::Machine;
use cyclescope::study::instr::experiments::effort::Effort;
use cyclescope::study::instr::experiments::gauge::{Cost, Gauge};
use cyclescope::study::instr::forms::subject::Subject;
use cyclescope::study::instr::rows::explanation::LinkCost;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// The part of the first line that is about the survey.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// The version of the program.
    pub version: String,
    /// The seed.
    pub seed: u64,
    /// Whether --quick was given.
    pub quick: bool,
    /// What that means.
    pub effort: Effort,
    /// Level of the intervals.
    pub confidence: f64,
    /// The timing method.
    pub clock: String,
    /// Where the code runs.
    pub executor: String,
    /// The CPU to measure on.
    pub cpu: u32,
    /// The selection: globs, mnemonics, CPUID features, all, and a list.
    pub filters: Vec<String>,
    pub mnemonic: Vec<String>,
    pub isa: Vec<String>,
    pub all: bool,
    pub from: Option<PathBuf>,
    /// How many forms that makes.
    pub forms: usize,
    /// A number that another selection, list or version hardly has.
    pub identity: String,
}

/// The first line of a result file.
#[derive(Debug, Serialize)]
pub struct MachineLine<'a> {
    /// Facts of the machine.
    #[serde(flatten)]
    pub machine: &'a Machine,
    /// What is measured, and how.
    pub survey: &'a Session,
    /// What links in chains cost.
    pub gauge: GaugeRecord,
}

/// What was measured before all forms.
#[derive(Debug, Serialize, Deserialize)]
pub struct GaugeRecord {
    /// Core cycles of a NOP.
    pub nop: Option<f64>,
    /// What links cost.
    pub links: Vec<LinkCost>,
}

impl GaugeRecord {
    /// As a result file's first line has it.
    pub fn of(machine: &Value) -> Result<GaugeRecord, Failure> {
        serde_json::from_value(machine["gauge"].clone()).map_err(|error| {
            let text = format!("the file's first line does not have the cost of the links: {error}");
            Failure::usage(text, Some("begin a new file with --out"))
        })
    }

    /// Makes a gauge the same: the rows of one file follow one convention.
    pub fn adopt_by(&self, gauge: &mut Gauge) {
        for LinkCost { name, cycles, certain } in &self.links {
            if let Some(cycles) = *cycles {
                gauge.adopt(name, Cost { cycles, certain: *certain });
            }
        }
    }

    /// As the gauge has it.
    pub fn new(gauge: &Gauge) -> GaugeRecord {
        let finite = |cycles: f64| cycles.is_finite().then_some(cycles);
        let links = gauge.costs().map(|(name, cost)| LinkCost {
            name: name.to_string(),
            cycles: finite(cost.cycles),
            certain: cost.certain,
        });
        GaugeRecord { nop: finite(gauge.slot()), links: links.collect() }
    }
}

impl Session {
    /// The session of a result file's first line.
    pub fn of(machine: &Value) -> Option<Session> {
        serde_json::from_value(machine.get("survey")?.clone()).ok()
    }

    /// A session that begins.
    pub fn new(
        args: &InstrArgs,
        subjects: &[Subject],
        (effort, confidence): (Effort, f64),
        (clock, cpu, seed): (&str, u32, u64),
        common: &Common,
    ) -> Session {
        Session {
            version: env!("CARGO_PKG_VERSION").to_string(),
            seed,
            quick: common.quick,
            effort,
            confidence,
            clock: clock.to_string(),
            executor: common.offer().name.to_string(),
            cpu,
            filters: args.filters.clone(),
            mnemonic: args.mnemonic.clone(),
            isa: args.isa.clone(),
            all: args.all,
            // The list is read again when the survey is resumed, perhaps from elsewhere.
            from: args.from.as_ref().map(|path| std::path::absolute(path).unwrap_or(path.clone())),
            forms: subjects.len(),
            identity: identity(subjects),
        }
    }

    /// The options with what was not given taken from this session. What was given must be the same.
    pub fn adopt(&self, common: &Common, args: &InstrArgs) -> (Common, InstrArgs) {
        let (mut common, mut args) = (common.clone(), args.clone());
        common.seed = common.seed.or(Some(self.seed));
        common.quick |= self.quick;
        common.executor = common.executor.or(Offer::named(&self.executor));
        common.cpu = common.cpu.or(Some(self.cpu));
        if common.clock.is_empty() {
            common.clock = vec![self.clock.clone()];
        }
        if args.filters.is_empty() && args.mnemonic.is_empty() && !args.all && args.from.is_none() {
            (args.filters, args.mnemonic) = (self.filters.clone(), self.mnemonic.clone());
            (args.all, args.from) = (self.all, self.from.clone());
            if args.isa.is_empty() {
                args.isa = self.isa.clone();
            }
        }
        (common, args)
    }

    /// Fails where this session of a file does not match the request and this machine.
    pub fn require(&self, now: &Session, kept: &Value, machine: &Machine, path: &str) -> Result<(), Failure> {
        let (old, new) = (fields(self), fields(now));
        let mut differ: Vec<String> = Vec::new();
        for (name, old) in
            old.iter().filter(|(name, _)| name.as_str() != "identity" && name.as_str() != "forms")
        {
            let new = new.get(name).unwrap_or(&Value::Null);
            if old != new {
                differ.push(format!("{name} was {old} and is {new}"));
            }
        }
        let cpu = serde_json::to_value(&machine.cpu).expect("facts are plain data");
        for name in ["brand", "family", "model", "stepping", "microcode"] {
            let (old, new) = (known(&kept["cpu"][name]), known(&cpu[name]));
            if old != new {
                differ.push(format!("the processor's {name} was {old} and is {new}"));
            }
        }
        if differ.is_empty() && self.identity != now.identity {
            differ.push(format!(
                "it has {} forms, which differ from the {} selected now",
                self.forms, now.forms
            ));
        }
        if differ.is_empty() {
            return Ok(());
        }
        let remedy = "resume with `cyclescope instr --resume FILE` alone, on the same machine and with the same \
                      version; or name a new file with --out";
        Err(Failure::usage(format!("{path} can't be resumed: {}", differ.join("; ")), Some(remedy)))
    }
}

fn fields(session: &Session) -> serde_json::Map<String, Value> {
    match serde_json::to_value(session) {
        Ok(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    }
}

/// The value of a fact that may be wrapped with its reason.
fn known(fact: &Value) -> &Value {
    fact.get("value").unwrap_or(fact)
}
