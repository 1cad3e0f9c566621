//! The session of a result file: the command that wrote it, and its points.

use super::expand::parsed;
use super::prepared::{Prepared, Ready};
use super::words::{with_choices, without_results};
use crate::args::template::with_first_value;
use crate::args::{Common, PointsArgs, RunArgs};
use crate::input::target::{Libraries, Target};
use crate::output::failure::Failure;
use crate::session::result_file;
use crate::studies::run;
use cyclescope::random::mix;
use cyclescope::snippet::Snippet;
use cyclescope::study::points::{Kept, Session};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

/// The session of these points, whose functions these libraries have.
pub fn session(
    command: Vec<String>,
    seed: u64,
    points: &[Prepared],
    libraries: &Libraries,
) -> Result<Session, Failure> {
    let version = env!("CARGO_PKG_VERSION").to_string();
    Ok(Session { version, command, seed, points: points.len(), identity: identity(points, libraries) })
}

/// A number that other points hardly have: of their commands, their machine code, and the libraries that these name or that are
/// compiled for them, so that a changed header or compiler counts, and a changed comment does not.
fn identity(points: &[Prepared], libraries: &Libraries) -> String {
    let mut number = 0;
    let mut add = |bytes: &[u8]| {
        number = bytes.iter().fold(mix(number, 1), |number, byte| mix(number, u64::from(*byte)));
    };
    let mut called = BTreeSet::new();
    for point in points {
        let Ok(Ready { repro, target, .. }) = &point.ready else {
            add(b"refused");
            continue;
        };
        add(repro.as_bytes());
        match target {
            Target::Snippets(snippets) => snippets.iter().for_each(|snippet: &Snippet| {
                add(snippet.init());
                add(snippet.code());
            }),
            Target::Call(library, calling) => {
                called.insert(*library);
                add(calling.file());
            }
        }
    }
    called.into_iter().flat_map(|library| libraries.contents(library)).for_each(|contents| add(&contents));
    format!("{number:016x}")
}

/// Contents of a file to resume.
#[derive(Default)]
pub struct Resumed {
    /// What the study takes from it.
    pub kept: Kept,
    /// Its session; `None` where its first line is incomplete.
    pub session: Option<Session>,
}

/// Reads the whole lines of a file to resume.
pub fn resumed(path: &Path, content: &[u8]) -> Result<Resumed, Failure> {
    if content.is_empty() {
        return Ok(Resumed::default());
    }
    let foreign = || result_file::foreign(path, run::NAME);
    let mut lines = Vec::new();
    for line in content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        lines.push(serde_json::from_slice::<Value>(line).map_err(|_| foreign())?);
    }
    if lines.is_empty() {
        return Err(foreign());
    }
    let head = lines.remove(0);
    let session = serde_json::from_value(head["points"].clone()).map_err(|_| foreign())?;
    Ok(Resumed { kept: Kept { head: Some(head), lines }, session: Some(session) })
}

/// The options of a session and its words, which have to be those of the command, where that has any but `run` and where
/// results go.
pub fn adopt(
    session: &Session,
    common: &Common,
    args: &RunArgs,
    words: &[OsString],
) -> Result<(Common, RunArgs, Vec<OsString>), Failure> {
    let kept: Vec<OsString> = session.command.iter().map(OsString::from).collect();
    let is_alone = words.iter().skip(1).all(|word| word == "run");
    if !is_alone && args.points.sweep.is_none() && args.points.from.is_none() {
        let remedy = "give --resume alone, or behind the whole command";
        return Err(Failure::usage("--resume reads the command from the file", Some(remedy)));
    }
    let words = match is_alone {
        true => {
            require_sandbox(session, &parsed(with_first_value(kept.clone())?)?)?;
            kept
        }
        false => {
            let (then, _) = parsed(with_first_value(kept)?)?;
            let cpu = common.cpu.or(then.cpu).unwrap_or_default();
            let all = with_choices(words, session.seed, cpu);
            all.into_iter().map(OsString::from).collect()
        }
    };
    let (then, asked) = parsed(with_first_value(words.clone())?)?;
    let PointsArgs { sweep, from, .. } = asked.points;
    let points = PointsArgs { sweep, from, ..args.points.clone() };
    let common = Common { json: common.json, ..then };
    Ok((common, RunArgs { points, ..asked }, without_results(&words)))
}

/// The first option of a command that takes code out of the sandbox, or runs another program on it.
pub fn beyond_sandbox((common, args): &(Common, RunArgs)) -> Option<&'static str> {
    let source = &args.source;
    let given = [
        ("--executor", !common.offer().is_default()),
        ("--c", source.c.is_some()),
        ("--lib", source.lib.is_some()),
        ("--elf", source.elf.is_some()),
        ("--assembler", args.assembler.is_some()),
    ];
    given.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
}

/// Fails where the command of a file would do more than a file alone may decide.
fn require_sandbox(session: &Session, kept: &(Common, RunArgs)) -> Result<(), Failure> {
    let Some(option) = beyond_sandbox(kept) else { return Ok(()) };
    let command = shlex::try_join(session.command.iter().map(String::as_str)).unwrap_or_default();
    let text = format!("the file's command has {option}, whose code runs outside of the sandbox: {command}");
    let remedy = "if you trust it, give the whole command, and --resume FILE behind it";
    Err(Failure::usage(text, Some(remedy)))
}

/// Fails where the session of a file does not match the request and this machine.
pub fn require(kept: &Resumed, now: &Session, machine: &Value, path: &Path) -> Result<(), Failure> {
    let (Some(session), Some(head)) = (&kept.session, &kept.kept.head) else { return Ok(()) };
    let differences = session.differences(now, head, machine);
    if differences.is_empty() {
        return Ok(());
    }
    let remedy = "resume with `cyclescope run --resume FILE` alone, in the same folder, on the same machine and with the same \
                  version; or name a new file with --out";
    let text = format!("{} can't be resumed: {}", path.display(), differences.join("; "));
    Err(Failure::usage(text, Some(remedy)))
}
