//! Results as JSON: one object per line, schema `cyclescope/1`.

use crate::RawReadings;
use crate::result::aperf::AperfRecord;
pub use crate::result::call_record::CallRecord;
use crate::result::caveat::{Caveat, fall_short};
use crate::result::counter_record::{CountedEvents, CounterRecord, compare_counted_cycles};
pub use crate::result::mix_record::{
    MixBoundRecord, MixOrderRecord, MixPartPorts, MixPartRecord, MixPortsRecord, MixRecord, PortLoadRecord,
    SLOTS_RESOURCE,
};
pub use crate::result::quantity::Quantity;
use crate::result::variant_comparison::{RankedVariant, VariantComparison};
use cyclescope_code::asm::CodeMode;
use cyclescope_code::program::ColdStart;
use cyclescope_core::error::{BadSnippet, Error, RunError, Unavailable};
use serde::Serialize;

/// The schema that every line names.
pub const SCHEMA: &str = "cyclescope/1";

/// A line: an object with its schema and kind.
#[derive(Debug, Serialize)]
pub struct SchemaLine<'a, T> {
    schema: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    content: &'a T,
}

impl<'a, T: Serialize> SchemaLine<'a, T> {
    /// A line of this kind.
    pub fn new(kind: &'static str, content: &'a T) -> SchemaLine<'a, T> {
        SchemaLine { schema: SCHEMA, kind, content }
    }
}

/// What each call of a function waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SerializedBy {
    /// Its first argument depends on the last call's result, a number or an address in RAX.
    Result,
    /// Its first argument depends on the last call's result, a floating point number in XMM0.
    FloatResult,
    /// An LFENCE precedes it.
    Fence,
}

impl SerializedBy {
    /// What calls wait for in the comparison measurement: a fence if these calls overlap, nothing
    /// otherwise.
    pub fn counterpart_of(these: Option<SerializedBy>) -> Option<SerializedBy> {
        if these.is_none() { Some(SerializedBy::Fence) } else { None }
    }
}

/// The ruler's part of a result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RulerRecord {
    /// Core cycles of one `imul` of the ruler.
    pub imul_latency: f64,
    /// Core cycles of an `add` by the `imul` ruler; 1 if the two agree.
    pub add_link: Quantity,
    /// Independent additions per core cycle: lowest, median and highest over the layouts.
    pub width: [f64; 3],
    /// The core clock in MHz: lowest, mean and highest over the layouts; null if the clock counts
    /// cycles.
    pub core_mhz: Option<[f64; 3]>,
}

/// One of several modes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModeRecord {
    /// Core cycles per copy.
    pub cost: Quantity,
    /// The share of the layouts in this mode.
    pub share: f64,
}

/// The cost with and without training of the branch predictors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrainingRecord {
    /// Most calls before the first round of each layout.
    pub calls: u64,
    /// Core cycles per call without training, after some thousand calls.
    pub untrained: Quantity,
}

/// A loop of a region.
#[derive(Debug, Clone, PartialEq, Serialize, serde::Deserialize)]
pub struct RegionLoop {
    /// Its first instruction, as symbol and offset or as an address.
    pub place: String,
    /// Iterations of one execution of the region.
    pub iterations: u64,
    /// The region's cost divided by the iterations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Quantity>,
}

/// A region of an executable, taken from a run of it.
#[derive(Debug, Clone, PartialEq, Serialize, serde::Deserialize)]
pub struct RegionRecord {
    /// The executable.
    pub program: String,
    /// Its first instruction, as symbol and offset or as an address.
    pub from: String,
    /// The instruction before which it ends.
    pub to: String,
    /// The arguments of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// The arrival at `from`, counted from 1, whose registers and memory were taken.
    pub hit: u64,
    /// Instructions of one execution.
    pub instructions: u64,
    /// Pages of 4 KiB that it touches.
    pub pages: usize,
    /// Bytes that each execution finds restored, because it reads and then overwrites them.
    pub restored_bytes: usize,
    /// Loops that take nearly all of it, the outermost first.
    pub loops: Vec<RegionLoop>,
}

/// The result of measuring a snippet, kind `run`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunRecord {
    /// Core cycles per copy of the snippet.
    pub cost: Quantity,
    /// TSC ticks per copy; refused if the clock counts something else.
    pub ticks: Quantity,
    /// Time per copy.
    pub time: Quantity,
    /// Confidence level of the intervals.
    pub confidence: f64,
    /// The snippet as text.
    pub snippet: String,
    /// The mode that the code runs in; absent for 64-bit mode.
    #[serde(default, skip_serializing_if = "CodeMode::is_default")]
    pub bits: CodeMode,
    /// The machine code of one copy, in hexadecimal.
    pub bytes: String,
    /// The init code, in hexadecimal.
    pub init: String,
    /// The timing method.
    pub clock: String,
    /// The executor.
    pub executor: String,
    /// u: approximate copies in the shortest body; the others have 2u and 4u.
    pub unroll: usize,
    /// Iterations of the loop around the copies; null without a loop.
    #[serde(rename = "loop")]
    pub loop_count: Option<u64>,
    /// What was cold when the snippet began. If anything was, bodies with one copy and with none
    /// were compared.
    pub cold: ColdStart,
    /// Untimed rounds at the start of each layout.
    pub warm_up: u32,
    /// Layouts in the estimate.
    pub layouts: usize,
    /// Rounds kept, each one sample of every length.
    pub samples: usize,
    /// Rounds not used: disturbed ones, and those of layouts that are left out.
    pub dropped: usize,
    /// Rounds not used because other programs ran during a call for long.
    pub interrupted: usize,
    /// Figures of the ruler.
    pub ruler: Option<RulerRecord>,
    /// Comparison with APERF; null if it was not read.
    pub aperf: Option<AperfRecord>,
    /// The CPU that the measurement ran on.
    pub cpu: u32,
    /// The CPU's model.
    pub cpu_model: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// Clusters of layouts, if there are several.
    pub modes: Vec<ModeRecord>,
    /// Caveats of the result.
    pub caveats: Vec<Caveat>,
    /// Parts of the processor's state that the code changed and the executor restored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// For a function: the subtracted cost of an empty call and of the code that runs before each
    /// call.
    pub empty_call: Option<Quantity>,
    /// The name of the function that runs before each call, or the code before each copy of a
    /// snippet.
    pub setup: Option<String>,
    /// For a snippet: the subtracted cost of the code before each copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup_cost: Option<Quantity>,
    /// The call of a function; `None` for a snippet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallRecord>,
    /// Number of addresses of a function, the first variant's; `None` for a snippet. With one
    /// address, the interval does not cover the effect of other addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub addresses: Option<usize>,
    /// The region of an executable that was measured; `None` for other code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<RegionRecord>,
    /// The mix that was measured, whose cost is that of one repetition in the fastest order; `None` for
    /// other code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mix: Option<MixRecord>,
    /// Effect of training, for a function whose branch predictors learn slowly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trained: Option<TrainingRecord>,
    /// Another variant measured in the same rounds, and its comparison; `None` with several others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versus: Option<VariantComparison>,
    /// All variants measured in the same rounds, the first included; empty if there are fewer than
    /// three and they have no names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<RankedVariant>,
    /// What each call of a function waits for in `cost`; `None` if calls overlap, and for a
    /// snippet.
    pub serialized: Option<SerializedBy>,
    /// Cost of a function call while calls overlap; `None` if not measured.
    pub throughput: Option<Quantity>,
    /// Cost of a function call that waits for the last one; `None` if not measured.
    pub latency: Option<Quantity>,
    /// What each call waits for in `latency`.
    pub latency_by: Option<SerializedBy>,
    /// Counts of events per copy, and ratios, in the order asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<CounterRecord>,
    /// Number of passes that the events were counted in; `None` without events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counter_passes: Option<usize>,
    /// Core cycles per copy by the counter, to compare with `cost`; `None` if it is not readable, or
    /// without `counters`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted_cycles: Option<Quantity>,
    /// Readings of one more layout, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<RawReadings>,
    /// Core cycles per copy in a loop, where instructions come from the cache for decoded ones;
    /// `None` if not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looped: Option<Quantity>,
    /// Core cycles per copy without a loop, where each copy comes from the decoders; `None` if not
    /// measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unrolled: Option<Quantity>,
    /// Why the snippet was not measured in a loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loop_obstacle: Option<String>,
    /// Why it is not known, or not of all code, whether later calls of a function do the same work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchecked: Option<String>,
    /// Seconds that the measurement took.
    pub elapsed_s: f64,
    /// The command that repeats the measurement.
    pub repro: String,
}

impl RunRecord {
    /// Clamps the costs of a function: no function costs less than an empty one.
    pub fn clamp_costs_to_zero(&mut self) {
        let modes = self.modes.iter_mut().map(|mode| &mut mode.cost);
        for quantity in [&mut self.cost, &mut self.ticks, &mut self.time].into_iter().chain(modes) {
            *quantity = quantity.at_least_zero();
        }
    }

    /// Assigns the events that a copy of each variant causes, and compares the first one's core
    /// cycles with its cost.
    pub fn assign_counts(&mut self, counted: Vec<CountedEvents>) {
        let others = self.versus.iter_mut().map(|versus| &mut versus.counters);
        for (own, counted) in others.zip(counted.iter().skip(1)) {
            own.clone_from(&counted.counters);
        }
        for (variant, counted) in self.variants.iter_mut().zip(&counted) {
            variant.counters.clone_from(&counted.counters);
        }
        let Some(CountedEvents { counters, passes, cycles }) = counted.into_iter().next() else { return };
        self.caveats.extend(cycles.as_ref().and_then(|cycles| compare_counted_cycles(cycles, &self.cost)));
        self.counters = counters;
        self.counter_passes = Some(passes);
        self.counted_cycles = cycles;
    }

    /// Assigns the cost of a function call to throughput or latency, and the cost of the comparison
    /// calls to the other.
    pub fn assign_call_costs(&mut self, counterpart: Option<Quantity>) {
        let cost = Some(self.cost);
        let by = if self.serialized.is_none() { SerializedBy::counterpart_of(None) } else { self.serialized };
        (self.throughput, self.latency) =
            if self.serialized.is_none() { (cost, counterpart) } else { (counterpart, cost) };
        self.latency_by = by.filter(|_| self.latency.is_some());
    }

    /// Assigns the cost of a region to its loops.
    pub fn assign_region(&mut self, region: Option<&RegionRecord>) {
        let Some(region) = region else { return };
        let mut region = region.clone();
        for found in &mut region.loops {
            found.cost = Some(self.cost.divide(found.iterations as f64));
        }
        self.addresses = None;
        self.region = Some(region);
    }

    /// Assigns the cost to the looped or the unrolled figure, and the other cost to the other one.
    pub fn assign_loop_figures(&mut self, is_looped: bool, other: Option<Quantity>) {
        let cost = Some(self.cost);
        (self.looped, self.unrolled) = if is_looped { (cost, other) } else { (other, cost) };
    }

    /// Whether the result falls short of the request.
    pub fn falls_short(&self) -> bool {
        let lacks_ports = self.mix.as_ref().is_some_and(MixRecord::lacks_ports);
        self.cost.value.is_none() || self.cost.low.is_none() || lacks_ports || fall_short(&self.caveats)
    }
}

/// A failure, kind `error`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ErrorRecord {
    /// The kind of failure: `usage`, `bad_snippet`, `unavailable`, `fault`, `hang`, `late`,
    /// `dirty_canary`, `implausible`, `worker_lost`, `refused`, `program`, `internal`.
    pub code: &'static str,
    /// The exit code.
    pub exit: u8,
    /// Description of the failure.
    pub text: String,
    /// Remedy.
    pub remedy: Option<String>,
    /// The signal's name.
    pub signal: Option<&'static str>,
    /// The number of an exception in ring 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vector: Option<u8>,
    /// The error code of an exception in ring 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<u64>,
    /// The address that a fault reports.
    pub address: Option<String>,
    /// The instruction that faulted.
    pub instruction: Option<String>,
    /// Line of a bad snippet, from 1.
    pub line: Option<u32>,
    /// Column of a bad snippet, from 1.
    pub column: Option<u32>,
    /// The snippet's line with a caret below the column.
    pub excerpt: Option<String>,
}

/// Exit codes of the command line.
pub mod exit {
    /// Done.
    pub const DONE: u8 = 0;
    /// Internal or input and output error.
    pub const INTERNAL: u8 = 1;
    /// The compared variants differ, and the user asked to fail then.
    pub const DIFFERENT: u8 = 1;
    /// Bad usage or bad snippet.
    pub const USAGE: u8 = 2;
    /// A requested clock, counter, executor or CPU feature is not available here.
    pub const UNAVAILABLE: u8 = 3;
    /// The snippet faulted or hung.
    pub const FAULT: u8 = 4;
    /// Measured, but the result falls short: see [`fall_short`](crate::result::caveat::fall_short).
    pub const FELL_SHORT: u8 = 5;
    /// A program is slower than another one, and the user asked to fail then.
    pub const SLOWER: u8 = 6;
}

impl From<&Error> for ErrorRecord {
    fn from(error: &Error) -> ErrorRecord {
        match error {
            Error::Unavailable(error) => error.into(),
            Error::Run(error) => error.into(),
            Error::BadSnippet(error) => error.into(),
        }
    }
}

impl From<&Unavailable> for ErrorRecord {
    fn from(error: &Unavailable) -> ErrorRecord {
        ErrorRecord {
            code: "unavailable",
            exit: exit::UNAVAILABLE,
            text: error.to_string(),
            remedy: Some(error.remedy.clone()).filter(|remedy| !remedy.is_empty()),
            ..ErrorRecord::default()
        }
    }
}

impl From<&BadSnippet> for ErrorRecord {
    fn from(error: &BadSnippet) -> ErrorRecord {
        ErrorRecord {
            code: "bad_snippet",
            exit: exit::USAGE,
            text: error.message.clone(),
            remedy: error.expected.clone(),
            line: Some(error.line),
            column: Some(error.column),
            ..ErrorRecord::default()
        }
    }
}

impl From<&RunError> for ErrorRecord {
    fn from(error: &RunError) -> ErrorRecord {
        let record = ErrorRecord {
            text: error.to_string(),
            exit: exit::FAULT,
            remedy: Some(error.remedy().to_string()).filter(|remedy| !remedy.is_empty()),
            ..ErrorRecord::default()
        };
        match error {
            RunError::Fault { signal, address, instruction, .. } => ErrorRecord {
                code: "fault",
                signal: Some(signal),
                address: Some(format!("{address:#x}")),
                instruction: instruction.clone(),
                ..record
            },
            RunError::Exception { vector, error_code, address, instruction, .. } => ErrorRecord {
                code: "fault",
                vector: Some(*vector),
                error_code: Some(*error_code),
                address: Some(format!("{address:#x}")),
                instruction: instruction.clone(),
                ..record
            },
            RunError::Hung { .. } => ErrorRecord { code: "hang", ..record },
            RunError::Late { .. } => ErrorRecord { code: "late", ..record },
            RunError::DirtyCanary { .. } => ErrorRecord { code: "dirty_canary", ..record },
            RunError::ImplausibleReadings { .. } => ErrorRecord { code: "implausible", ..record },
            RunError::WorkerLost { .. } => ErrorRecord { code: "worker_lost", ..record },
            RunError::Refused { instruction, .. } => {
                ErrorRecord { code: "refused", exit: exit::USAGE, instruction: Some(instruction.clone()), ..record }
            }
            RunError::Unsteady { error, .. } => {
                let ErrorRecord { text, remedy, .. } = record;
                ErrorRecord { text, remedy, ..ErrorRecord::from(&**error) }
            }
            RunError::Unavailable(error) => ErrorRecord::from(error),
            RunError::TooBusy { .. } => ErrorRecord { code: "too_busy", exit: exit::FELL_SHORT, ..record },
            RunError::BadBatch(_) | RunError::Replay { .. } | RunError::System { .. } | RunError::Machinery { .. } => {
                ErrorRecord { code: "internal", exit: exit::INTERNAL, ..record }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_after_the_first_copy_keeps_its_kind_and_has_its_own_remedy() {
        let error = Box::new(RunError::Hung { deadline_ms: 5 });
        let unsteady = RunError::Unsteady { error, state: "RCX is 0".to_string(), remedy: "set it".to_string() };
        let ErrorRecord { code, exit, text, remedy, .. } = ErrorRecord::from(&unsteady);
        assert_eq!((code, exit, remedy.as_deref()), ("hang", exit::FAULT, Some("set it")));
        assert_eq!(text, "the snippet did not end within 5 ms; RCX is 0");
    }

    #[test]
    fn a_line_names_its_schema_and_kind() {
        let error = ErrorRecord { code: "usage", exit: exit::USAGE, ..ErrorRecord::default() };
        let json = serde_json::to_string(&SchemaLine::new("error", &error)).unwrap();
        assert!(json.starts_with(r#"{"schema":"cyclescope/1","kind":"error","code":"usage","exit":2,"#));
    }
}
