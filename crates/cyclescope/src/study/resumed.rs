//! Whether a result file may be resumed on this machine.

use serde_json::Value;

/// In what the processor of a file's first line differs from that of a machine.
pub(super) fn other_processor(kept: &Value, machine: &Value) -> Vec<String> {
    let names = ["brand", "family", "model", "stepping", "microcode"];
    let differ = names.into_iter().filter_map(|name| {
        let (old, new) = (known(&kept["cpu"][name]), known(&machine["cpu"][name]));
        (old != new).then(|| format!("the processor's {name} was {old} and is {new}"))
    });
    differ.collect()
}

/// The value of a fact that may be wrapped with its reason.
fn known(fact: &Value) -> &Value {
    fact.get("value").unwrap_or(fact)
}
