//! What the parts of one result file have in common, as its first line has it.

use cyclescope_measure::study::other_processor;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The part of the first line that is about the points.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The version of the program.
    pub version: String,
    /// The words of the command that measures all points, with its seed and its CPU.
    pub command: Vec<String>,
    /// The seed of everything that is random.
    pub seed: u64,
    /// How many points there are.
    pub points: usize,
    /// A number that other points hardly have.
    pub identity: String,
}

impl Session {
    /// In what this session of a file with that first line differs from the one that is to resume it, and its machine from
    /// this one. Empty where nothing differs.
    pub fn differences(&self, now: &Session, kept: &Value, machine: &Value) -> Vec<String> {
        let mut differ = Vec::new();
        if self.version != now.version {
            differ.push(format!("version was {} and is {}", self.version, now.version));
        }
        if self.command != now.command {
            let words = |session: &Session| shlex::try_join(session.command.iter().map(String::as_str));
            let [was, is] = [self, now].map(|session| words(session).unwrap_or_default());
            differ.push(format!("the command was `{was}` and is `{is}`"));
        }
        differ.extend(other_processor(kept, machine));
        if differ.is_empty() && self.identity != now.identity {
            let what = "a file that the command names has changed, or a compiler, or the folder";
            differ.push(what.to_string());
        }
        differ
    }
}
