//! `--clock list` and `cyclescope clock`: lists the timing methods, what they order and whether
//! they work here, and prints their source code.

use crate::args::{ClockArgs, CommonArgs, find_clock};
use crate::output::{Failure, Output, WIDTH, wrap_text};
use cyclescope::asm::CodeMode;
use cyclescope::clock::source::{SourceLanguage, render_source};
use cyclescope::clock::{self, Clock, ClockSide};
use cyclescope::error::Unavailable;
use cyclescope::record::exit;
use iced_x86::Register;
use serde::Serialize;

#[derive(Serialize)]
struct ClockRecord {
    clock: &'static str,
    also: &'static [&'static str],
    /// The mode of programs that use it; absent for 64-bit mode.
    #[serde(skip_serializing_if = "CodeMode::is_default")]
    bits: CodeMode,
    about: &'static str,
    source: &'static str,
    counts: cyclescope::unit::Unit,
    promises: clock::OrderingPromises,
    needs: Vec<String>,
    /// Registers that the start changes, by their 64-bit and 32-bit names.
    clobbers: Vec<String>,
    clobbers_32: Vec<String>,
    /// Registers that the end changes.
    end_clobbers: Vec<String>,
    end_clobbers_32: Vec<String>,
    default: bool,
    available: bool,
    why_not: Option<String>,
    remedy: Option<String>,
}

impl ClockRecord {
    fn new(
        clock: &'static Clock,
        bits: CodeMode,
        works: Result<(), Unavailable>,
        default: Option<&Clock>,
    ) -> ClockRecord {
        let refusal = works.err();
        let names = |side, of: fn(Register) -> Register| -> Vec<String> {
            let registers = clock.side_clobbers(side).into_iter();
            // 32-bit code has the first eight.
            let registers = registers.filter(|register| bits.is_default() || register.number() < 8);
            registers.map(|register| format!("{:?}", of(register)).to_lowercase()).collect()
        };
        let [(clobbers, clobbers_32), (end_clobbers, end_clobbers_32)] =
            ClockSide::BOTH.map(|side| (names(side, |full| full), names(side, |full| full.full_register32())));
        ClockRecord {
            clock: clock.name,
            also: clock.also,
            bits,
            about: clock.about,
            source: clock.source,
            counts: clock.counts,
            promises: clock.promises,
            needs: clock.required_features().into_iter().map(cyclescope::machine::features::feature_name).collect(),
            clobbers,
            clobbers_32,
            end_clobbers,
            end_clobbers_32,
            default: default.is_some_and(|default| default.name == clock.name),
            available: refusal.is_none(),
            why_not: refusal.as_ref().map(|error| error.why.clone()),
            remedy: refusal.map(|error| error.remedy).filter(|remedy| !remedy.is_empty()),
        }
    }

    /// Describes the registers that each side changes, by the names that the mode has.
    fn describe_clobbers(&self) -> String {
        let both = |full: &[String], half: &[String]| match self.bits {
            CodeMode::Bits64 => format!("{} ({})", full.join(" "), half.join(" ")),
            CodeMode::Bits32 => half.join(" "),
        };
        let start = both(&self.clobbers, &self.clobbers_32);
        match self.clobbers == self.end_clobbers {
            true => format!("changes {start}"),
            false => {
                format!("changes {start}; at its end {}", both(&self.end_clobbers, &self.end_clobbers_32))
            }
        }
    }

    /// The five ordering promises as letters, with a dash for each that is missing.
    fn promise_letters(&self) -> String {
        self.promises.list_promises().map(|(letter, _, kept)| if kept { letter } else { '-' }).iter().collect()
    }
}

/// A method's source code.
#[derive(Serialize)]
struct SourceRecord {
    clock: &'static str,
    language: &'static str,
    #[serde(skip_serializing_if = "CodeMode::is_default")]
    bits: CodeMode,
    text: String,
}

/// Runs `cyclescope clock` and returns the exit code.
pub fn run_clock(common: &CommonArgs, args: &ClockArgs, output: &mut Output) -> Result<u8, Failure> {
    if let Some(name) = common.first_measuring_option().filter(|name| args.emit.is_some() || *name == "--clock") {
        let text = format!("{name} has no effect, because clock measures nothing");
        return Err(Failure::usage(text, Some("leave it out")));
    }
    let named = args.name.as_deref().map(find_clock).transpose()?;
    match (named, args.emit) {
        (Some(clock), Some(language)) => print_source(clock, language, args.code_mode.mode(), output),
        (named, _) => print_clock_list(common, named, args.code_mode.mode(), output),
    }
}

/// Prints a method's source code and nothing else.
fn print_source(
    clock: &'static Clock,
    language: &'static SourceLanguage,
    bits: CodeMode,
    output: &mut Output,
) -> Result<u8, Failure> {
    let text = render_source(clock, language, bits).map_err(|error| Failure::usage(error.why, Some(&error.remedy)))?;
    if output.is_json() {
        let record = SourceRecord { clock: clock.name, language: language.name, bits, text };
        output.write_record("clock.source", &record)?;
    } else {
        output.write_line(text.trim_end())?;
    }
    Ok(exit::DONE)
}

/// Lists the timing methods.
pub fn list_clocks(common: &CommonArgs, output: &mut Output) -> Result<u8, Failure> {
    print_clock_list(common, None, CodeMode::default(), output)
}

/// Lists one timing method, or all.
fn print_clock_list(
    common: &CommonArgs,
    only: Option<&Clock>,
    mode: CodeMode,
    output: &mut Output,
) -> Result<u8, Failure> {
    let machine = common.detect_machine()?;
    let capabilities = common.capabilities(&machine);
    let default = capabilities.default_clock(&machine).ok();
    let clocks = capabilities.check_clocks(mode, &machine).into_iter();
    let clocks = clocks.filter(|(clock, _)| only.is_none_or(|only| only.name == clock.name));
    let records: Vec<_> = clocks.map(|(clock, works)| ClockRecord::new(clock, mode, works, default)).collect();
    if output.is_json() {
        for record in &records {
            output.write_record("clock", record)?;
        }
        return Ok(exit::DONE);
    }
    let widest = records.iter().map(|record| record.clock.len()).max().unwrap_or(0);
    for record in &records {
        let mark = if record.default { "*" } else { " " };
        let name = format!("{:widest$}", record.clock);
        let name = if record.available { output.bold(&name) } else { output.faint(&name) };
        output.write_line(format!("{mark} {name}  {}  {}", record.promise_letters(), record.counts.text()))?;
        for line in wrap_text(record.about, WIDTH - 4) {
            output.write_line(format!("    {line}"))?;
        }
        for line in wrap_text(&record.describe_clobbers(), WIDTH - 4) {
            output.write_line(format!("    {line}"))?;
        }
        if !record.also.is_empty() {
            output.write_line(format!("    also called {}", record.also.join(", ")))?;
        }
        if let Some(why) = &record.why_not {
            for line in wrap_text(&format!("not available here: {why}"), WIDTH - 4) {
                output.write_line(format!("    {}", output.yellow(&line)))?;
            }
        }
    }
    output.write_line("")?;
    let legend: Vec<String> = match records.first() {
        Some(record) => {
            record.promises.list_promises().iter().map(|(letter, text, _)| format!("{letter} {text}")).collect()
        }
        None => Vec::new(),
    };
    for line in wrap_text(&format!("* marks the default here. Orders: {}.", legend.join(", ")), WIDTH) {
        output.write_line(line)?;
    }
    Ok(exit::DONE)
}
