//! Decides whether a result file may be resumed on this machine.

use cyclescope_events::CounterRequest;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Common settings of all parts of a result file, as written in its first line.
pub trait ResumableSession: Serialize + DeserializeOwned {
    /// The field of the first line that contains the session.
    const FIELD: &'static str;

    /// Describes the fields that differ from `now`, except those that
    /// [`ResumableSession::describe_other_subjects`] compares.
    fn describe_changes(&self, now: &Self) -> Vec<String> {
        list_differing_fields(self, now, &[])
    }

    /// Describes how the measured subjects differ, if nothing else does.
    fn describe_other_subjects(&self, _now: &Self) -> Option<String> {
        None
    }

    /// Describes differences that prevent resuming this file: those between its session and `now`,
    /// and those between its machine (`kept`) and this one. Empty if the file can be resumed.
    fn describe_differences(&self, now: &Self, kept: &Value, machine: &Value) -> Vec<String> {
        let mut differ = self.describe_changes(now);
        differ.extend(describe_processor_changes(kept, machine));
        if differ.is_empty() {
            differ.extend(self.describe_other_subjects(now));
        }
        differ
    }
}

/// Common settings of all parts of a result file, for a study without its own options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenericSession {
    /// The version of the program.
    pub version: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// Whether --quick was given.
    pub quick: bool,
    /// The timing method.
    pub clock: String,
    /// The executor that runs the code.
    pub executor: String,
    /// The CPU to measure on.
    pub cpu: u32,
    /// The measured subjects.
    pub subjects: Vec<String>,
    /// Events that are counted beside their numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<CounterRequest>,
}

/// The first line of such a file, kind `machine`.
#[derive(Debug, Serialize)]
pub struct GenericHead<'a> {
    /// Facts of the machine.
    #[serde(flatten)]
    pub machine: &'a Value,
    /// What is measured, and how.
    pub session: &'a GenericSession,
}

impl ResumableSession for GenericSession {
    const FIELD: &'static str = "session";
}

/// Describes the fields of a session that differ from those of another one, except the fields in
/// `but`.
pub fn list_differing_fields<T: Serialize>(old: &T, new: &T, but: &[&str]) -> Vec<String> {
    let (old, new) = (to_fields(old), to_fields(new));
    let differ = old.iter().filter(|(name, _)| !but.contains(&name.as_str())).filter_map(|(name, old)| {
        let new = new.get(name).unwrap_or(&Value::Null);
        (old != new).then(|| format!("{name} was {old} and is {new}"))
    });
    differ.collect()
}

fn to_fields<T: Serialize>(session: &T) -> Map<String, Value> {
    match serde_json::to_value(session) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// Describes how the processor of a file's first line differs from that of a machine.
pub fn describe_processor_changes(kept: &Value, machine: &Value) -> Vec<String> {
    let names = ["brand", "family", "model", "stepping", "microcode"];
    let differ = names.into_iter().filter_map(|name| {
        let (old, new) = (unwrap_fact(&kept["cpu"][name]), unwrap_fact(&machine["cpu"][name]));
        (old != new).then(|| format!("the processor's {name} was {old} and is {new}"))
    });
    differ.collect()
}

/// Unwraps a fact that may carry its reason.
fn unwrap_fact(fact: &Value) -> &Value {
    fact.get("value").unwrap_or(fact)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn differences_in_fields_and_processor_are_described() {
        let session = GenericSession {
            version: "1".to_string(),
            seed: 5,
            quick: true,
            clock: "rdtscp".to_string(),
            executor: "user".to_string(),
            cpu: 1,
            subjects: vec!["rob".to_string()],
            counters: None,
        };
        let machine = json!({ "cpu": { "brand": "a", "family": { "value": 6 } } });
        assert_eq!(session.describe_differences(&session, &machine, &machine), [""; 0]);
        let other = GenericSession { seed: 6, subjects: vec!["masks".to_string()], ..session.clone() };
        let newer = json!({ "cpu": { "brand": "a", "family": 7 } });
        let differ = session.describe_differences(&other, &machine, &newer);
        let all = [
            "seed was 5 and is 6",
            "subjects was [\"rob\"] and is [\"masks\"]",
            "the processor's family was 6 and is 7",
        ];
        assert_eq!(differ, all);
    }
}
