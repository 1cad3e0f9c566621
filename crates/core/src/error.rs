//! The library's three kinds of failure, each with a cause and a remedy.

mod fault_cause;

pub use fault_cause::FaultCause;

use fault_cause::{REFUSED_CALL, WORKER_LOST, exception_remedy, fault_remedy, system_remedy};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Mutex;

/// Something that was asked for does not exist on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unavailable {
    /// The missing clock, counter, executor or CPU feature.
    pub what: String,
    /// Why it is not available here.
    pub why: String,
    /// What the user can do about it; empty when nothing can be done on this machine.
    pub remedy: String,
}

/// The measured code did not end normally, or the harness failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunError {
    /// The measured code raised a fault.
    Fault {
        /// The signal by its usual name, such as `SIGSEGV`.
        #[serde(deserialize_with = "constant")]
        signal: StaticText,
        /// The address that was accessed; that of the instruction where the processor does not report it
        /// (`SIGILL`, `SIGFPE`, general protection and alignment checks).
        address: u64,
        /// The instruction that faulted, as text with its offset in the snippet, where it can be named.
        instruction: Option<String>,
        /// Why, as far as exception and instruction show it.
        #[serde(default)]
        cause: FaultCause,
    },
    /// The measured code raised an exception in ring 0.
    Exception {
        /// Its number (Intel SDM vol. 3A, table 6-1).
        vector: u8,
        /// Its mnemonic and meaning.
        name: String,
        /// The error code that the processor pushed; 0 where it pushes none.
        error_code: u64,
        /// With a page fault the address that was accessed (CR2), else that of the instruction.
        address: u64,
        /// The instruction, as text with its offset in the snippet, where it can be named.
        instruction: Option<String>,
    },
    /// The measured code did not end before its deadline.
    Hung {
        /// The deadline in milliseconds.
        deadline_ms: u64,
    },
    /// Code in ring 0 did not complete its rounds, although it may be finite.
    Late {
        /// Duration of the attempts in milliseconds.
        limit_ms: u64,
        /// Whether every attempt was interrupted; else there were too many rounds for the time.
        interrupted: bool,
    },
    /// The measured code wrote outside its own memory areas.
    DirtyCanary {
        /// Which fence was found damaged.
        #[serde(deserialize_with = "constant")]
        fence: StaticText,
    },
    /// The worker ended without a report, for example killed from outside.
    WorkerLost {
        /// How it ended.
        how: String,
    },
    /// The executor refused the code, which has not run: its effects could not be confined.
    Refused {
        /// Piece of the code: `snippet`, `init code` or `following code`.
        #[serde(deserialize_with = "constant")]
        part: StaticText,
        /// Offset in that piece, in bytes.
        offset: usize,
        /// The instruction there, as text.
        instruction: String,
        /// Why, as the end of a sentence about the instruction.
        #[serde(deserialize_with = "constant")]
        why: StaticText,
        /// What the user can do about it.
        #[serde(deserialize_with = "constant")]
        remedy: StaticText,
        /// Whether only an indirect branch may lead there.
        hidden: bool,
    },
    /// The batch is invalid: its memory, a layout, or the order of calls is wrong.
    BadBatch(BadBatch),
    /// The executor does not offer a feature that the batch needs on this machine.
    Unavailable(Unavailable),
    /// Recorded readings do not match the request.
    Replay {
        /// Why.
        how: String,
    },
    /// A system call of the harness failed.
    System {
        /// What was being done.
        #[serde(deserialize_with = "constant")]
        doing: StaticText,
        /// The operating system's error number.
        errno: i32,
    },
    /// The harness failed, although no system call did.
    Machinery {
        /// What was being done.
        #[serde(deserialize_with = "constant")]
        doing: StaticText,
        /// Why it could not be done.
        why: String,
        /// What the user can do about it; empty where nothing is known to help.
        #[serde(deserialize_with = "constant")]
        remedy: StaticText,
    },
}

/// An invalid part of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadBatch {
    /// Part of the batch: `area 2`, `layout 0`, `place 1`; each is counted from 0.
    pub part: String,
    /// What is wrong with it.
    pub what: String,
    /// What was expected.
    pub expected: String,
}

/// A text that lives as long as the program. By this name serde does not take it for one that lives in what it reads.
pub type StaticText = &'static str;

/// Reads a text that lives as long as the program.
pub fn constant<'de, D: Deserializer<'de>>(deserializer: D) -> Result<StaticText, D::Error> {
    Ok(intern_text(&String::deserialize(deserializer)?))
}

/// A text that lives as long as the program, one for all that are equal: for names read back from a file, of which
/// there are few.
pub fn intern_text(text: &str) -> &'static str {
    static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut known = KNOWN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(known) = known.get(text) {
        return known;
    }
    let text: &'static str = Box::leak(text.to_string().into_boxed_str());
    known.insert(text);
    text
}

/// A snippet that can't be turned into machine code, with the place of the error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadSnippet {
    /// Line in the snippet's text, from 1.
    pub line: u32,
    /// Column in that line, in characters, from 1.
    pub column: u32,
    /// What is wrong there.
    pub message: String,
    /// Suggestion, if there is one.
    pub expected: Option<String>,
}

/// Any of the three kinds of failure, for functions that assemble, open and measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// Something that was asked for does not exist on this machine.
    Unavailable(Unavailable),
    /// The measured code did not end normally, or the harness failed.
    Run(RunError),
    /// The text is not assembly.
    BadSnippet(BadSnippet),
}

impl RunError {
    /// A failure of the harness that no system call reported.
    pub fn from_harness(doing: &'static str, why: impl Into<String>, remedy: &'static str) -> RunError {
        RunError::Machinery { doing, why: why.into(), remedy }
    }

    /// A failure of input or output: by its error number where a system call reported it.
    pub fn from_io(doing: &'static str, error: &std::io::Error) -> RunError {
        match error.raw_os_error() {
            Some(errno) => RunError::System { doing, errno },
            None => RunError::from_harness(doing, error.to_string(), ""),
        }
    }

    /// A system call that failed. One that is refused is a feature that is not available.
    pub fn from_system_call(doing: &'static str, call: &str, errno: i32) -> RunError {
        match errno {
            libc::EPERM | libc::EACCES | libc::ENOSYS => RunError::Unavailable(Unavailable {
                what: format!("the system call {call}"),
                why: format!("{doing} failed: {}", std::io::Error::from_raw_os_error(errno)),
                remedy: REFUSED_CALL.to_string(),
            }),
            _ => RunError::System { doing, errno },
        }
    }

    /// Whether the failure does not depend on the measured code, so that other code would fail as well.
    pub fn is_harness_failure(&self) -> bool {
        matches!(
            self,
            RunError::System { .. }
                | RunError::Machinery { .. }
                | RunError::BadBatch(_)
                | RunError::Replay { .. }
                | RunError::Unavailable(_)
        )
    }

    /// What the user can do about it; empty where nothing is known to help.
    pub fn remedy(&self) -> &str {
        match self {
            RunError::Fault { signal, cause, .. } => fault_remedy(signal, *cause),
            RunError::Exception { vector, error_code, .. } => exception_remedy(*vector, *error_code),
            RunError::Hung { .. } => "look for a loop without an end; slow code needs a larger time budget",
            RunError::Late { interrupted: true, .. } => {
                "code that sets the interrupt flag has to be shorter than the time between two interrupts: see --unroll"
            }
            RunError::Late { .. } => "give it more time (--budget), or take fewer copies (--unroll)",
            RunError::DirtyCanary { .. } => {
                "R14, RDI, RSI, RSP and RBP each point into the middle of 1 MiB that may be written to"
            }
            RunError::WorkerLost { .. } => WORKER_LOST,
            RunError::Refused { remedy, .. } => remedy,
            RunError::BadBatch(error) => &error.expected,
            RunError::Unavailable(error) => &error.remedy,
            RunError::Replay { .. } => "replay it with the version that wrote it, or measure again",
            RunError::System { errno, .. } => system_remedy(*errno),
            RunError::Machinery { remedy, .. } => remedy,
        }
    }
}

/// Exceptions that come with an error code (Intel SDM vol. 3A, table 6-1).
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
            RunError::WorkerLost { how } => write!(f, "the worker process was lost: {how}"),
            RunError::Refused { part, offset, instruction, why, hidden, .. } => {
                let through = if *hidden { ", where an indirect branch may lead," } else { "" };
                write!(f, "`{instruction}` at byte {offset} of the {part}{through} is refused in ring 0: {why}")
            }
            RunError::BadBatch(error) => error.fmt(f),
            RunError::Unavailable(error) => error.fmt(f),
            RunError::Replay { how } => write!(f, "the evidence does not give the result again: {how}"),
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
    fn only_a_system_call_that_failed_has_an_error_number() {
        let named = RunError::from_io("reading", &io::Error::from_raw_os_error(libc::EIO));
        assert_eq!(named, RunError::System { doing: "reading", errno: libc::EIO });
        let other = RunError::from_io("reading", &io::Error::new(io::ErrorKind::InvalidData, "no number"));
        assert_eq!(other.to_string(), "reading failed: no number");
        assert!(other.is_harness_failure() && named.is_harness_failure());
        assert!(!RunError::Hung { deadline_ms: 1 }.is_harness_failure());
    }
}
