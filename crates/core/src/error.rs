//! The three kinds of failure of the library, each with a cause and a remedy.
//!
//! - [`Unavailable`]: this machine lacks something that was requested.
//! - [`RunError`]: the measured code or the harness failed.
//! - [`BadSnippet`]: the text is not assembly.

mod fault_cause;

pub use fault_cause::{FaultCause, system_remedy};

use cyclescope_platform::error_code;
use fault_cause::{REFUSED_CALL, WORKER_LOST, exception_remedy, fault_remedy};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Mutex;

/// Something requested does not exist on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unavailable {
    /// The missing clock, counter, executor or CPU feature.
    pub what: String,
    /// Why it is not available here.
    pub why: String,
    /// What the user can do about it; empty if nothing helps on this machine.
    pub remedy: String,
}

/// The measured code failed, or the harness did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunError {
    /// The measured code raised a fault.
    Fault {
        /// Signal name, such as `SIGSEGV`.
        #[serde(deserialize_with = "constant")]
        signal: StaticText,
        /// The accessed address. If the processor does not report it (`SIGILL`, `SIGFPE`, general
        /// protection and alignment checks), the address of the instruction.
        address: u64,
        /// The faulting instruction as text with its offset in the snippet, if known.
        instruction: Option<String>,
        /// Cause, derived from the exception and the instruction.
        #[serde(default)]
        cause: FaultCause,
    },
    /// The measured code raised an exception in ring 0.
    Exception {
        /// Exception vector (Intel SDM vol. 3A, table 6-1).
        vector: u8,
        /// Mnemonic and meaning.
        name: String,
        /// Error code that the processor pushed; 0 if it pushes none.
        error_code: u64,
        /// The accessed address (CR2) for a page fault, else the address of the instruction.
        address: u64,
        /// The instruction as text with its offset in the snippet, if known.
        instruction: Option<String>,
    },
    /// The measured code ran past its deadline.
    Hung {
        /// The deadline in milliseconds.
        deadline_ms: u64,
    },
    /// Code in ring 0 did not complete its rounds in time, although it may be finite.
    Late {
        /// Duration of the attempts in milliseconds.
        limit_ms: u64,
        /// Whether every attempt was interrupted. Otherwise the rounds were too many for the time.
        interrupted: bool,
    },
    /// The measured code wrote outside its own memory areas.
    DirtyCanary {
        /// Name of the damaged fence.
        #[serde(deserialize_with = "constant")]
        fence: StaticText,
    },
    /// The readings can't be true.
    ImplausibleReadings {
        /// What is wrong with them; completes a sentence about them.
        why: String,
    },
    /// The worker ended without a report, for example because it was killed.
    WorkerLost {
        /// How it ended.
        how: String,
    },
    /// The executor rejected the code before it ran, because its effects could not be confined.
    Refused {
        /// Part of the code: `snippet`, `init code` or `following code`.
        #[serde(deserialize_with = "constant")]
        part: StaticText,
        /// Offset in that part, in bytes.
        offset: usize,
        /// The rejected instruction as text.
        instruction: String,
        /// Reason; completes a sentence about the instruction.
        #[serde(deserialize_with = "constant")]
        why: StaticText,
        /// What the user can do about it.
        #[serde(deserialize_with = "constant")]
        remedy: StaticText,
        /// Whether only an indirect branch can reach the instruction.
        hidden: bool,
    },
    /// The measured code failed, and only its first copy found the state that it needs.
    Unsteady {
        /// How it failed.
        error: Box<RunError>,
        /// The state, and how later copies differ from the first one.
        state: String,
        /// What the user can do about it.
        remedy: String,
    },
    /// The batch is invalid: its memory, a layout, or the order of calls.
    BadBatch(BadBatch),
    /// The batch needs a feature that the executor lacks on this machine.
    Unavailable(Unavailable),
    /// The machine was too busy to measure what all else depends on, also in repeats.
    TooBusy {
        /// What could not be measured.
        what: String,
    },
    /// Recorded readings do not match the request.
    Replay {
        /// How they differ.
        how: String,
    },
    /// A system call of the harness failed.
    System {
        /// Action that failed, such as `reading`.
        #[serde(deserialize_with = "constant")]
        doing: StaticText,
        /// The operating system's error number.
        errno: i32,
    },
    /// The harness failed without a failing system call.
    Machinery {
        /// Action that failed.
        #[serde(deserialize_with = "constant")]
        doing: StaticText,
        /// Why it could not be done.
        why: String,
        /// What the user can do about it; empty if nothing is known to help.
        #[serde(deserialize_with = "constant")]
        remedy: StaticText,
    },
}

/// An invalid part of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadBatch {
    /// Part of the batch: `area 2`, `layout 0` or `place 1`, each counted from 0.
    pub part: String,
    /// What is wrong with it.
    pub what: String,
    /// What was expected.
    pub expected: String,
}

/// Text that lives as long as the program. The alias keeps serde from borrowing it from the input.
pub type StaticText = &'static str;

/// Deserializes a text that lives as long as the program.
pub fn constant<'de, D: Deserializer<'de>>(deserializer: D) -> Result<StaticText, D::Error> {
    Ok(intern_text(&String::deserialize(deserializer)?))
}

/// Returns a copy of the text that lives as long as the program; equal texts share one copy. For
/// names read from a file, which are few.
pub fn intern_text(text: &str) -> &'static str {
    static INTERNED: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut interned = INTERNED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(interned) = interned.get(text) {
        return interned;
    }
    let text: &'static str = Box::leak(text.to_string().into_boxed_str());
    interned.insert(text);
    text
}

/// A snippet that cannot be assembled, with the position of the error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadSnippet {
    /// Line in the snippet, from 1.
    pub line: u32,
    /// Column in that line in characters, from 1.
    pub column: u32,
    /// What is wrong there.
    pub message: String,
    /// Suggestion, if any.
    pub expected: Option<String>,
}

/// Any of the three kinds of failure; returned by functions that assemble, open and measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// Something requested does not exist on this machine.
    Unavailable(Unavailable),
    /// The measured code failed, or the harness did.
    Run(RunError),
    /// The text is not assembly.
    BadSnippet(BadSnippet),
}

impl RunError {
    /// Creates a failure of the harness that no system call reported.
    pub fn from_harness(doing: &'static str, why: impl Into<String>, remedy: &'static str) -> RunError {
        RunError::Machinery { doing, why: why.into(), remedy }
    }

    /// Converts an I/O error; keeps the error number if a system call reported one.
    pub fn from_io(doing: &'static str, error: &std::io::Error) -> RunError {
        match error.raw_os_error() {
            Some(errno) => RunError::System { doing, errno },
            None => RunError::from_harness(doing, error.to_string(), ""),
        }
    }

    /// Converts a failed system call. A call that is blocked counts as an unavailable feature.
    pub fn from_system_call(doing: &'static str, call: &str, errno: i32) -> RunError {
        match errno {
            error_code::EPERM | error_code::EACCES | error_code::ENOSYS => RunError::Unavailable(Unavailable {
                what: format!("the system call {call}"),
                why: format!("{doing} failed: {}", std::io::Error::from_raw_os_error(errno)),
                remedy: REFUSED_CALL.to_string(),
            }),
            _ => RunError::System { doing, errno },
        }
    }

    /// Whether the failure is independent of the measured code, so that other code would fail too.
    pub fn is_harness_failure(&self) -> bool {
        matches!(
            self,
            RunError::System { .. }
                | RunError::Machinery { .. }
                | RunError::BadBatch(_)
                | RunError::Replay { .. }
                | RunError::TooBusy { .. }
                | RunError::Unavailable(_)
        )
    }

    /// What the user can do about it; empty if nothing is known to help.
    pub fn remedy(&self) -> &str {
        match self {
            RunError::Fault { signal, cause, .. } => fault_remedy(signal, *cause),
            RunError::Exception { vector, error_code, .. } => exception_remedy(*vector, *error_code),
            RunError::Hung { .. } => "look for an endless loop; slow code needs a larger time budget",
            RunError::Late { interrupted: true, .. } => {
                "code that sets the interrupt flag must be shorter than the time between two interrupts: see --unroll"
            }
            RunError::Late { .. } => "give it more time (--budget), or take fewer copies (--unroll)",
            RunError::DirtyCanary { .. } => {
                "R14, RDI, RSI, RSP and RBP each point into the middle of 1 MiB that may be written to"
            }
            RunError::ImplausibleReadings { .. } => {
                "the snippet forged them; otherwise the time stamp counter jumped: see `cyclescope doctor`"
            }
            RunError::WorkerLost { .. } => WORKER_LOST,
            RunError::Refused { remedy, .. } => remedy,
            RunError::Unsteady { remedy, .. } => remedy,
            RunError::BadBatch(error) => &error.expected,
            RunError::Unavailable(error) => &error.remedy,
            RunError::TooBusy { .. } => "repeat it on a quiet machine",
            RunError::Replay { .. } => "replay it with the version that wrote it, or measure again",
            RunError::System { errno, .. } => system_remedy(*errno),
            RunError::Machinery { remedy, .. } => remedy,
        }
    }
}

/// Exceptions that push an error code (Intel SDM vol. 3A, table 6-1).
const PUSHES_ERROR_CODE: [u8; 8] = [8, 10, 11, 12, 13, 14, 17, 21];

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not available here: {}", self.what, self.why)
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Fault { signal, address, instruction, .. } => {
                write!(f, "the snippet raised {signal} at address {address:#x}")?;
                match instruction {
                    Some(text) => write!(f, ": {text}"),
                    None => Ok(()),
                }
            }
            RunError::Exception { vector, name, error_code, address, instruction } => {
                write!(f, "the snippet raised {name}")?;
                if PUSHES_ERROR_CODE.contains(vector) {
                    write!(f, ", error code {error_code:#x},")?;
                }
                write!(f, " at address {address:#x}")?;
                match instruction {
                    Some(text) => write!(f, ": {text}"),
                    None => Ok(()),
                }
            }
            RunError::Hung { deadline_ms } => {
                write!(f, "the snippet did not end within {deadline_ms} ms")
            }
            RunError::Late { limit_ms, interrupted: true } => {
                write!(f, "each round of calls was interrupted, for {limit_ms} ms")
            }
            RunError::Late { limit_ms, .. } => {
                write!(f, "the calls of one batch took more than {limit_ms} ms")
            }
            RunError::DirtyCanary { fence } => {
                write!(f, "the snippet wrote outside its memory areas ({fence} is damaged)")
            }
            RunError::ImplausibleReadings { why } => write!(f, "the readings of the snippet can't be true: {why}"),
            RunError::WorkerLost { how } => write!(f, "the worker process was lost: {how}"),
            RunError::Refused { part, offset, instruction, why, hidden, .. } => {
                let through = if *hidden { ", reachable by an indirect branch," } else { "" };
                write!(f, "`{instruction}` at byte {offset} of the {part}{through} is refused in ring 0: {why}")
            }
            RunError::Unsteady { error, state, .. } => write!(f, "{error}; {state}"),
            RunError::BadBatch(error) => error.fmt(f),
            RunError::Unavailable(error) => error.fmt(f),
            RunError::TooBusy { what } => write!(f, "the machine is too busy to measure {what}"),
            RunError::Replay { how } => write!(f, "the evidence does not reproduce the result: {how}"),
            RunError::System { doing, errno } => {
                let reason = std::io::Error::from_raw_os_error(*errno);
                write!(f, "{doing} failed: {reason}")
            }
            RunError::Machinery { doing, why, .. } => write!(f, "{doing} failed: {why}"),
        }
    }
}

impl fmt::Display for BadBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.part, self.what)
    }
}

impl fmt::Display for BadSnippet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)?;
        match &self.expected {
            Some(expected) => write!(f, "; {expected}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unavailable(error) => error.fmt(f),
            Error::Run(error) => error.fmt(f),
            Error::BadSnippet(error) => error.fmt(f),
        }
    }
}

impl From<Unavailable> for Error {
    fn from(error: Unavailable) -> Error {
        Error::Unavailable(error)
    }
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Error {
        match error {
            RunError::Unavailable(error) => Error::Unavailable(error),
            error => Error::Run(error),
        }
    }
}

impl From<BadSnippet> for Error {
    fn from(error: BadSnippet) -> Error {
        Error::BadSnippet(error)
    }
}

impl std::error::Error for Error {}
impl std::error::Error for Unavailable {}
impl std::error::Error for RunError {}
impl std::error::Error for BadBatch {}
impl std::error::Error for BadSnippet {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn only_failed_system_calls_keep_an_error_number() {
        let named = RunError::from_io("reading", &io::Error::from_raw_os_error(error_code::EIO));
        assert_eq!(named, RunError::System { doing: "reading", errno: error_code::EIO });
        let other = RunError::from_io("reading", &io::Error::new(io::ErrorKind::InvalidData, "no number"));
        assert_eq!(other.to_string(), "reading failed: no number");
        assert!(other.is_harness_failure() && named.is_harness_failure());
        assert!(!RunError::Hung { deadline_ms: 1 }.is_harness_failure());
    }
}
