//! Whether a result file may be resumed on this machine.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What the parts of one result file have in common, as its first line has it.
pub trait ResumableSession: Serialize + DeserializeOwned {
    /// The field of the first line that has it.
    const FIELD: &'static str;

    /// The fields that differ from those of another one, in words, but those that [`ResumableSession::describe_other_subjects`] compares.
    fn describe_changes(&self, now: &Self) -> Vec<String> {
        list_differing_fields(self, now, &[])
    }

    /// How what is measured differs, where nothing else does.
    fn describe_other_subjects(&self, _now: &Self) -> Option<String> {
        None
    }

    /// In what this session of a file with that first line differs from the one that is to resume it, and its machine
    /// from this one. Empty where nothing differs.
    fn describe_differences(&self, now: &Self, kept: &Value, machine: &Value) -> Vec<String> {
        let mut differ = self.describe_changes(now);
        differ.extend(describe_processor_changes(kept, machine));
        if differ.is_empty() {
            differ.extend(self.describe_other_subjects(now));
        }
        differ
    }
}

/// What the parts of one result file of a study without options of its own have in common, as its first line has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenericSession {
    /// The version of the program.
    pub version: String,
    /// The seed of everything that is random.
    pub seed: u64,
    /// Whether --quick was given.
    pub quick: bool,
    /// The timing method.
    pub clock: String,
    /// Where the code runs.
    pub executor: String,
    /// The CPU to measure on.
    pub cpu: u32,
    /// What is measured.
    pub subjects: Vec<String>,
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

/// The fields of a session that differ from those of another one, in words, but those of these names.
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

/// In what the processor of a file's first line differs from that of a machine.
fn describe_processor_changes(kept: &Value, machine: &Value) -> Vec<String> {
    let names = ["brand", "family", "model", "stepping", "microcode"];
    let differ = names.into_iter().filter_map(|name| {
        let (old, new) = (unwrap_fact(&kept["cpu"][name]), unwrap_fact(&machine["cpu"][name]));
        (old != new).then(|| format!("the processor's {name} was {old} and is {new}"))
    });
    differ.collect()
}

/// The value of a fact that may be wrapped with its reason.
fn unwrap_fact(fact: &Value) -> &Value {
    fact.get("value").unwrap_or(fact)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_session_differs_in_its_fields_and_its_processor() {
        let session = GenericSession {
            version: "1".to_string(),
            seed: 5,
            quick: true,
            clock: "rdtscp".to_string(),
            executor: "user".to_string(),
            cpu: 1,
            subjects: vec!["rob".to_string()],
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
