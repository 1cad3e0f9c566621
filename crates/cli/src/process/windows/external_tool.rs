//! Runs compilers and assemblers, and makes sure that they end.

use crate::output::Failure;
use cyclescope::error::Unavailable;
use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time before a tool is ended.
const TIME_MOST: Duration = Duration::from_secs(120);
/// Interval at which its end is looked for.
const INTERVAL: Duration = Duration::from_millis(5);
/// Bytes of a tool's output that are kept.
const KEPT_BYTES: u64 = 16 << 20;

/// Runs a tool without input and returns its standard output. The error holds its messages, or why
/// it couldn't run.
pub fn run_tool(mut command: Command, called: &str, remedy: &str) -> Result<Vec<u8>, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| start_failure(&error, called, remedy))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let failed = |error: io::Error| Failure::from_system(format!("{name} can't be waited for"), &error);
    let until = Instant::now() + TIME_MOST;
    std::thread::scope(|scope| {
        let out = scope.spawn(|| read_stream(stdout));
        let messages = scope.spawn(|| read_stream(stderr));
        let status = loop {
            match child.try_wait().map_err(failed)? {
                Some(status) => break Some(status),
                None if Instant::now() >= until => break None,
                None => std::thread::sleep(INTERVAL),
            }
        };
        if status.is_none() {
            // It may have ended just now.
            let _ = child.kill();
            child.wait().map_err(failed)?;
        }
        // A panic has already been reported.
        let (out, messages) = (out.join().unwrap_or_default(), messages.join().unwrap_or_default());
        match status {
            Some(status) if status.success() => Ok(out),
            Some(status) => match String::from_utf8_lossy(&messages).trim_end() {
                "" => Err(Failure::usage(format!("{name} failed: {status}"), None)),
                messages => Err(Failure::usage(format!("{name} failed:\n{messages}"), None)),
            },
            None => {
                let text = format!("{name} did not end within {} s", TIME_MOST.as_secs());
                Err(Failure::usage(text, Some("check the source for endless recursion or repetition")))
            }
        }
    })
}

/// The first bytes of a stream, which is read to its end.
fn read_stream(stream: Option<impl Read>) -> Vec<u8> {
    let mut kept = Vec::new();
    if let Some(mut stream) = stream {
        // A broken pipe ends the tool's output.
        let _ = stream.by_ref().take(KEPT_BYTES).read_to_end(&mut kept);
        let _ = io::copy(&mut stream, &mut io::sink());
    }
    kept
}

/// The failure for a program that could not be started. `remedy` is that for a missing program.
pub fn start_failure(error: &io::Error, called: &str, remedy: &str) -> Failure {
    let (what, why) = (called.to_string(), error.to_string());
    Failure::from(Unavailable { what, why, remedy: remedy.to_string() })
}
