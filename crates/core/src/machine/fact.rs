//! Facts about the machine that may be unknown, with the reason; and the small files they come
//! from.
//!
//! Containers hide `/sys` or `/proc`, hypervisors hide CPUID leaves, and kernels restrict their
//! log. So a missing source is an ordinary answer here, never an error.

use cyclescope_platform::kernel::{FACTS_ROOT, MISSING_FACTS};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value, or the reason why this machine does not report it.
///
/// In JSON: `{"value": …}`, or `{"value": null, "why": "…"}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact<T> {
    /// The value.
    Known(T),
    /// Why it is unknown.
    Unknown(String),
}

impl<T> Fact<T> {
    /// An unknown value with its reason.
    pub fn unknown(why: impl Into<String>) -> Fact<T> {
        Fact::Unknown(why.into())
    }

    /// The value, if it is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Fact::Known(value) => Some(value),
            Fact::Unknown(_) => None,
        }
    }

    /// Why the value is unknown; `None` when it is known.
    pub fn why(&self) -> Option<&str> {
        match self {
            Fact::Known(_) => None,
            Fact::Unknown(why) => Some(why),
        }
    }

    /// Converts the value.
    pub fn map<U>(self, into: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Fact::Known(value) => Fact::Known(into(value)),
            Fact::Unknown(why) => Fact::Unknown(why),
        }
    }

    /// Derives a fact from the value, which may itself be unknown.
    pub fn and_then<U>(self, into: impl FnOnce(T) -> Fact<U>) -> Fact<U> {
        match self {
            Fact::Known(value) => into(value),
            Fact::Unknown(why) => Fact::Unknown(why),
        }
    }

    /// Returns itself if known, else the other source's answer.
    pub fn or_else(self, other: impl FnOnce() -> Fact<T>) -> Fact<T> {
        match self {
            Fact::Known(value) => Fact::Known(value),
            Fact::Unknown(_) => other(),
        }
    }
}

impl<T> From<Result<T, String>> for Fact<T> {
    fn from(result: Result<T, String>) -> Fact<T> {
        match result {
            Ok(value) => Fact::Known(value),
            Err(why) => Fact::Unknown(why),
        }
    }
}

impl<T: Serialize> Serialize for Fact<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Fact", 2)?;
        match self {
            Fact::Known(value) => {
                object.serialize_field("value", value)?;
                object.skip_field("why")?;
            }
            Fact::Unknown(why) => {
                object.serialize_field("value", &None::<()>)?;
                object.serialize_field("why", why)?;
            }
        }
        object.end()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Fact<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fact<T>, D::Error> {
        #[derive(Deserialize)]
        struct FactParts<T> {
            value: Option<T>,
            #[serde(default)]
            why: String,
        }
        let FactParts { value, why } = FactParts::deserialize(deserializer)?;
        Ok(value.map_or(Fact::Unknown(why), Fact::Known))
    }
}

/// Source of `/proc` and `/sys`: the running system, or a folder that stands in for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemFiles {
    root: PathBuf,
}

impl SystemFiles {
    /// The running system's own files.
    pub fn system() -> SystemFiles {
        SystemFiles { root: PathBuf::from(FACTS_ROOT) }
    }

    /// Files below `root` instead of `/`: a recorded or simulated machine.
    pub fn rooted_at(root: impl Into<PathBuf>) -> SystemFiles {
        SystemFiles { root: root.into() }
    }

    /// Location of `path`, which is absolute, such as `/proc/stat`.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Reads the whole text of a small file, without trailing white space.
    pub fn read_text(&self, path: &str) -> Fact<String> {
        Fact::from(
            std::fs::read(self.path(path))
                .map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_string())
                .map_err(|error| explain_read_error(path, &error)),
        )
    }

    /// Reads the number that is the only content of a file.
    pub fn read_number<T: std::str::FromStr>(&self, path: &str) -> Fact<T> {
        self.read_text(path).and_then(|text| {
            Fact::from(text.trim().parse().map_err(|_| format!("{path} contains {text:?}, not a number")))
        })
    }

    /// Reads the text of a file up to its first empty line.
    ///
    /// `/proc/cpuinfo` interrupts each CPU whose record is read, so no further record is read.
    pub fn read_first_record(&self, path: &str) -> Fact<String> {
        Fact::from(read_record(&self.path(path)).map_err(|error| explain_read_error(path, &error)))
    }
}

fn read_record(path: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let mut bytes = Vec::new();
    let mut chunk = [0u8; 4096];
    loop {
        let count = file.read(&mut chunk)?;
        bytes.extend_from_slice(&chunk[..count]);
        let end = bytes.windows(2).position(|pair| pair == b"\n\n");
        if count == 0 || end.is_some() {
            bytes.truncate(end.unwrap_or(bytes.len()));
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}

/// Why a fact is missing: because of the system, or for this reason.
pub(super) fn explain_missing(reason: String) -> String {
    MISSING_FACTS.map_or(reason, str::to_string)
}

fn explain_read_error(path: &str, error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => explain_missing(format!("{path} does not exist")),
        ErrorKind::PermissionDenied => format!("{path} may not be read"),
        _ => format!("{path} can't be read: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_serializes_as_a_value_or_a_reason() {
        let known: Fact<u32> = Fact::Known(3);
        let unknown: Fact<u32> = Fact::unknown("hidden");
        assert_eq!(serde_json::to_string(&known).unwrap(), r#"{"value":3}"#);
        assert_eq!(serde_json::to_string(&unknown).unwrap(), r#"{"value":null,"why":"hidden"}"#);
    }

    #[test]
    fn a_missing_file_gives_a_reason() {
        let files = SystemFiles::rooted_at("/nonexistent");
        assert_eq!(files.read_text("/proc/stat").why(), Some("/proc/stat does not exist"));
        assert!(files.read_number::<u32>("/proc/stat").known().is_none());
        assert!(files.read_first_record("/proc/cpuinfo").known().is_none());
    }
}
