//! The session of a survey: what the options say, and what a file that is resumed says.

use super::choose::identity;
use crate::args::{Common, InstrArgs};
use crate::output::failure::Failure;
use crate::session::result_file;
use crate::session::resume::{self, Settings};
use cyclescope::measure::Plan;
use cyclescope::study::instr::Kept;
use cyclescope::study::instr::experiments::effort::Effort;
use cyclescope::study::instr::forms::wanted::WantedForm;
use cyclescope::study::instr::rows::table::Table;
use cyclescope::study::instr::session::{GaugeRecord, Session};
use serde_json::Value;
use std::path::Path;

/// The session of some options.
pub fn session(
    common: &Common,
    args: &InstrArgs,
    forms: &[WantedForm],
    plan: &Plan,
    effort: Effort,
    cpu: u32,
) -> Session {
    Session {
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

/// Contents of a file to resume.
pub struct Resumed {
    /// What the survey takes from it.
    pub kept: Kept,
    /// Its session; `None` where its first line is incomplete.
    pub session: Option<Session>,
}

/// Reads the whole lines of a file to resume.
pub fn resumed(path: &Path, content: &[u8]) -> Result<Resumed, Failure> {
    if content.is_empty() {
        return Ok(Resumed { kept: Kept::default(), session: None });
    }
    let name = path.display().to_string();
    let Table { machine, rows, .. } = Table::read(content).map_err(|error| Failure::file(&name, error))?;
    let foreign = || result_file::foreign(path, super::NAME);
    let machine = machine.ok_or_else(foreign)?;
    let session: Session = serde_json::from_value(machine["survey"].clone()).map_err(|_| foreign())?;
    let gauge: GaugeRecord = serde_json::from_value(machine["gauge"].clone()).map_err(|error| {
        let text = format!("the file's first line does not have the cost of the links: {error}");
        Failure::usage(text, Some("begin a new file with --out"))
    })?;
    let kept = Kept { head: Some((machine, gauge)), rows, parts: Vec::new() };
    Ok(Resumed { kept, session: Some(session) })
}

/// The options with what was not given taken from a session.
pub fn adopt(
    session: &Session,
    common: &Common,
    args: &InstrArgs,
    path: &Path,
) -> Result<(Common, InstrArgs), Failure> {
    let Session { seed, quick, cpu, clock, executor, .. } = session;
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

/// Fails where the session of a file does not match the request and this machine.
pub fn require(kept: &Resumed, now: &Session, machine: &Value, path: &Path) -> Result<(), Failure> {
    let (Some(session), Some((head, _))) = (&kept.session, &kept.kept.head) else { return Ok(()) };
    resume::require(&session.differences(now, head, machine), super::NAME, path)
}
