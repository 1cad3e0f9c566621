//! What the parts of one result file have in common, as its first line has it.

use cyclescope_measure::study::ResumableSession;
use serde::{Deserialize, Serialize};

/// The part of the first line that is about the points.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointsSession {
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

impl ResumableSession for PointsSession {
    const FIELD: &'static str = "points";

    /// The command has the seed.
    fn describe_changes(&self, now: &PointsSession) -> Vec<String> {
        let mut differ = Vec::new();
        if self.version != now.version {
            differ.push(format!("version was {} and is {}", self.version, now.version));
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
