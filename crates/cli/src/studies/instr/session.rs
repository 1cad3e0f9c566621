//! The session of a survey: what the options say, and what a file that is resumed says.

use super::choose::identity;
use crate::args::{Common, InstrArgs};
use crate::output::Failure;
use crate::session::result_file::foreign;
use crate::session::resume::{Resumed, Settings};
use cyclescope::measure::Plan;
use cyclescope::study::instr::Kept;
use cyclescope::study::instr::experiments::effort::Effort;
use cyclescope::study::instr::forms::wanted::WantedForm;
use cyclescope::study::instr::rows::table::Table;
use cyclescope::study::instr::session::{GaugeRecord, InstrSession};
use std::path::Path;

/// The session of some options.
pub fn session(
    common: &Common,
    args: &InstrArgs,
    forms: &[WantedForm],
    plan: &Plan,
    effort: Effort,
    cpu: u32,
) -> InstrSession {
    InstrSession {
        version: env!("CARGO_PKG_VERSION").to_string(),
        seed: plan.seed,
        quick: common.quick,
        effort,
        confidence: plan.confidence,
        clock: plan.clock.name.to_string(),
        executor: common.offer().name.to_string(),
        cpu,
        filters: args.filters.clone(),
        mnemonic: args.mnemonic.clone(),
        isa: args.isa.clone(),
        all: args.all,
        // The list is read again when the survey is resumed, perhaps from elsewhere.
        from: args.from.as_ref().map(|path| std::path::absolute(path).unwrap_or(path.clone())),
        forms: forms.len(),
        identity: identity(forms),
    }
}

/// Reads the whole lines of a file to resume: none but those that the survey takes from it where the first is incomplete.
pub fn resumed(path: &Path, content: &[u8]) -> Result<(Option<Resumed<InstrSession>>, Kept), Failure> {
    if content.is_empty() {
        return Ok((None, Kept::default()));
    }
    let name = path.display().to_string();
    let Table { machine, rows, .. } = Table::read(content).map_err(|error| Failure::file(&name, error))?;
    let machine = machine.ok_or_else(|| foreign(path, super::NAME))?;
    let resumed = Resumed::new(path, super::NAME, machine)?;
    let gauge: GaugeRecord = serde_json::from_value(resumed.head["gauge"].clone()).map_err(|error| {
        let text = format!("the file's first line does not have the cost of the links: {error}");
        Failure::usage(text, Some("begin a new file with --out"))
    })?;
    let kept = Kept { head: Some((resumed.head.clone(), gauge)), rows, parts: Vec::new() };
    Ok((Some(resumed), kept))
}

/// The options with what was not given taken from a session.
pub fn adopt(
    session: &InstrSession,
    common: &Common,
    args: &InstrArgs,
    path: &Path,
) -> Result<(Common, InstrArgs), Failure> {
    let InstrSession { seed, quick, cpu, clock, executor, .. } = session;
    let kept = Settings { executor, clock, seed: *seed, quick: *quick, cpu: *cpu };
    let (common, mut args) = (kept.adopted(common, path)?, args.clone());
    if args.filters.is_empty() && args.mnemonic.is_empty() && !args.all && args.from.is_none() {
        (args.filters, args.mnemonic) = (session.filters.clone(), session.mnemonic.clone());
        (args.all, args.from) = (session.all, session.from.clone());
        if args.isa.is_empty() {
            args.isa = session.isa.clone();
        }
    }
    Ok((common, args))
}
