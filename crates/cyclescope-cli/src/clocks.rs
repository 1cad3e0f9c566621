//! `--clock list`: every timing method, what it orders and whether it works here.

use crate::args::Common;
use crate::failure::Failure;
use crate::output::{Output, WIDTH, wrapped};
use cyclescope::clock::{self, Clock, Side};
use cyclescope::error::Unavailable;
use cyclescope::record::exit;
use iced_x86::Register;
use serde::Serialize;

#[derive(Serialize)]
struct ClockRecord {
    clock: &'static str,
    also: &'static [&'static str],
    about: &'static str,
    source: &'static str,
    counts: cyclescope::unit::Unit,
    promises: clock::Promises,
    needs: Vec<String>,
    /// Registers that the start changes, by their names of 64 bits and of 32.
    clobbers: Vec<String>,
    clobbers_32: Vec<String>,
    /// Those that the end changes.
    end_clobbers: Vec<String>,
    end_clobbers_32: Vec<String>,
    default: bool,
    available: bool,
    why_not: Option<String>,
    remedy: Option<String>,
}

impl ClockRecord {
    fn new(clock: &'static Clock, works: Result<(), Unavailable>, default: Option<&Clock>) -> ClockRecord {
        let refusal = works.err();
        let names = |side, of: fn(Register) -> Register| -> Vec<String> {
            let registers = clock.clobbers_of(side).into_iter();
            registers.map(|register| format!("{:?}", of(register)).to_lowercase()).collect()
        };
        let [(clobbers, clobbers_32), (end_clobbers, end_clobbers_32)] =
            Side::BOTH.map(|side| (names(side, |full| full), names(side, |full| full.full_register32())));
        ClockRecord {
            clock: clock.name,
            also: clock.also,
            about: clock.about,
            source: clock.source,
            counts: clock.counts,
            promises: clock.promises,
            needs: clock.features().into_iter().map(cyclescope::machine::features::name).collect(),
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

    /// Which registers each side changes, by their names of 64 bits and of 32.
    fn changes(&self) -> String {
        let both = |full: &[String], half: &[String]| format!("{} ({})", full.join(" "), half.join(" "));
        let start = both(&self.clobbers, &self.clobbers_32);
        match self.clobbers == self.end_clobbers {
            true => format!("changes {start}"),
            false => {
                format!("changes {start}; at its end {}", both(&self.end_clobbers, &self.end_clobbers_32))
            }
        }
    }

    /// The five promises as letters, a dash for each that is not made.
    fn orders(&self) -> String {
        let promises = &self.promises;
        [
            ('l', promises.leading_done),
            ('b', promises.body_waits),
            ('e', promises.body_done),
            ('f', promises.following_waits),
            ('s', promises.stores_drained),
        ]
        .map(|(letter, kept)| if kept { letter } else { '-' })
        .iter()
        .collect()
    }
}

/// Lists the timing methods.
pub fn list(common: &Common, output: &mut Output) -> Result<u8, Failure> {
    let machine = crate::run::machine(common)?;
    let capabilities = crate::executor::capabilities(common, &machine);
    let default = capabilities.default_clock(&machine).ok();
    let clocks = capabilities.clocks(&machine).into_iter();
    let records: Vec<_> = clocks.map(|(clock, works)| ClockRecord::new(clock, works, default)).collect();
    if output.is_json() {
        for record in &records {
            output.record("clock", record)?;
        }
        return Ok(exit::DONE);
    }
    let widest = records.iter().map(|record| record.clock.len()).max().unwrap_or(0);
    for record in &records {
        let mark = if record.default { "*" } else { " " };
        let name = format!("{:widest$}", record.clock);
        let name = if record.available { output.bold(&name) } else { output.faint(&name) };
        output.line(format!("{mark} {name}  {}  {}", record.orders(), record.counts.text()))?;
        for line in wrapped(record.about, WIDTH - 4) {
            output.line(format!("    {line}"))?;
        }
        for line in wrapped(&record.changes(), WIDTH - 4) {
            output.line(format!("    {line}"))?;
        }
        if !record.also.is_empty() {
            output.line(format!("    also called {}", record.also.join(", ")))?;
        }
        if let Some(why) = &record.why_not {
            for line in wrapped(&format!("not available here: {why}"), WIDTH - 4) {
                output.line(format!("    {}", output.yellow(&line)))?;
            }
        }
    }
    output.line("")?;
    output.line("* the default here. Orders: l leading code is done, b the body waits for the")?;
    output.line("start, e the body is done at the end, f following code waits, s stores are")?;
    output.line("drained.")?;
    Ok(exit::DONE)
}
