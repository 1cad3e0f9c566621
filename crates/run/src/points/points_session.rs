//! Common settings of all parts of a result file, as written in its first line.

use cyclescope_measure::study::ResumableSession;
use serde::{Deserialize, Serialize};

/// The part of the first line that describes the points.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointsSession {
    /// The version of the program.
    pub version: String,
    /// The words of the command that measures all points, with its seed and its CPU.
    pub command: Vec<String>,
    /// Seed of all random choices.
    pub seed: u64,
    /// Number of points.
    pub points: usize,
    /// A digest that identifies the points.
    pub identity: String,
    /// The number of the method that measures a point. Files of earlier versions have none.
    #[serde(default)]
    pub method: u32,
}

impl PointsSession {
    /// The method of this version. A greater number means that a point may have another cost than
    /// before: 1 measures snippets in a loop by default, 0 as copies that run once.
    pub const METHOD: u32 = 1;
}

impl ResumableSession for PointsSession {
    const FIELD: &'static str = "points";

    /// The command includes the seed.
    fn describe_changes(&self, now: &PointsSession) -> Vec<String> {
        let mut differ = Vec::new();
        if self.version != now.version {
            differ.push(format!("version was {} and is {}", self.version, now.version));
        }
        if self.method != now.method {
            let text = "its points were measured by the method of another version, and their costs don't compare";
            differ.push(text.to_string());
        }
        if self.command != now.command {
            let words = |session: &PointsSession| shlex::try_join(session.command.iter().map(String::as_str));
            let [was, is] = [self, now].map(|session| words(session).unwrap_or_default());
            differ.push(format!("the command was `{was}` and is `{is}`"));
        }
        differ
    }

    fn describe_other_subjects(&self, now: &PointsSession) -> Option<String> {
        let text = "a file that the command names has changed, or a compiler, or the folder";
        (self.identity != now.identity).then(|| text.to_string())
    }
}
