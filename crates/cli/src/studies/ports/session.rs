//! The session of a result file, and what the file already has.

use crate::args::{CommonArgs, PortsArgs};
use crate::output::Failure;
use crate::session::resume::{ResumedFile, ResumedSettings, split_json_lines};
use cyclescope::study::GenericSession;
use cyclescope::study::ports::ports_row::PortsRow;
use cyclescope::study::ports::{CLASSES_KIND, NAME, ResumedPorts};
use std::path::Path;

/// The first line of a file to resume, its rows, and the bytes of its first line.
type ResumedContent = (Option<ResumedFile<GenericSession>>, ResumedPorts, u64);

/// Reads the complete lines of a file to resume; none if the first line is incomplete.
pub fn read_resumed(path: &Path, content: &[u8]) -> Result<ResumedContent, Failure> {
    if content.is_empty() {
        return Ok((None, ResumedPorts::default(), 0));
    }
    let ((head, bytes), lines) = split_json_lines(path, NAME, content)?;
    let resumed = ResumedFile::new(path, NAME, head)?;
    let mut kept = ResumedPorts { head: Some(resumed.head.clone()), ..ResumedPorts::default() };
    for (line, _) in lines {
        if line["kind"] == NAME {
            kept.rows.extend(serde_json::from_value::<PortsRow>(line));
        } else if line["kind"] == CLASSES_KIND {
            kept.classes = serde_json::from_value(line).ok();
        }
    }
    Ok((Some(resumed), kept, bytes))
}

/// Fills options that weren't given with those of a session.
pub fn adopt_options(
    session: &GenericSession,
    common: &CommonArgs,
    args: &PortsArgs,
    path: &Path,
) -> Result<(CommonArgs, PortsArgs), Failure> {
    let GenericSession { seed, quick, cpu, clock, executor, subjects, .. } = session;
    let kept = ResumedSettings { executor, clock, seed: *seed, quick: *quick, cpu: *cpu };
    let mut args = args.clone();
    if args.filters.is_empty() {
        args.filters.clone_from(subjects);
    }
    Ok((kept.adopt_options(common, path)?, args))
}

/// The failure for a file that does not say what it measures.
pub fn refuse_headless(path: &Path) -> Failure {
    let text = format!("{} has no complete first line, so it names no forms", path.display());
    Failure::usage(text, Some("name the forms again, or start a new file with --out"))
}
