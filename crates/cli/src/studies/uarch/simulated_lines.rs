//! Simulated result lines for tests: every verdict, both kinds of curves, every part of the core.

use serde_json::{Value, json};

/// Builds a line from its names, verdict and number.
pub fn simulated_line(test: &str, what: &str, verdict: &str, number: Option<[f64; 3]>, unit: &str) -> Value {
    let part = |place: usize| number.map(|number| number[place]);
    let value = json!({ "value": part(0), "low": part(1), "high": part(2), "unit": unit });
    json!({
        "schema": "cyclescope/1", "kind": "uarch", "test": test, "what": what, "verdict": verdict, "value": value,
        "definition": "", "limited_by": null, "why": "", "cpuid": null, "fillers": [], "witnesses": [], "caveats": [],
    })
}

/// The same line with one more field.
fn with_field(mut line: Value, field: &str, value: Value) -> Value {
    line[field] = value;
    line
}

/// A filler whose overlap ends after a number of instructions.
fn simulated_filler(name: &str, end: u32) -> Value {
    let point = |n: u32| json!({ "n": n, "overlap": if n <= end { 0.97 } else { 0.03 }, "fast": 1.0 });
    let curve: Vec<Value> = (1..=40).map(|step| point(10 * step)).chain([point(end), point(end + 1)]).collect();
    json!({ "name": name, "knee": { "low": end, "high": end }, "no_knee": null, "curve": curve })
}

/// A walk through two caches and memory.
fn simulated_walk() -> Value {
    let (l1, l2) = (49152, 1_310_720);
    let cost = |n: u64| {
        if n <= l1 {
            5.0
        } else if n <= l2 {
            14.0
        } else {
            200.0
        }
    };
    let step = |n: u64| json!({ "n": n, "cost": cost(n), "low": 0.99 * cost(n), "high": 1.01 * cost(n) });
    let curve: Vec<Value> =
        (0..33).map(|half| step((4096.0 * 2f64.powf(f64::from(half) / 2.0)).round() as u64)).collect();
    let edge = |value: u64| json!({ "low": value, "value": value, "high": 2 * value, "sharp": false });
    let level = |upto: Value, cost: f64| json!({ "upto": upto, "cost": cost, "low": cost, "high": cost });
    let levels = [level(edge(l1), 5.0), level(edge(l2), 14.0), level(Value::Null, 200.0)];
    json!({ "name": "loads that wait for each other", "levels": levels, "curve": curve })
}

/// The simulated lines.
pub fn simulated_lines() -> Vec<Value> {
    let rob = simulated_line("rob", "rob", "found", Some([394.0, 394.0, 396.0]), "count");
    let fillers = json!([simulated_filler("nop", 392), simulated_filler("long nop", 391)]);
    let registers = simulated_line("int_registers", "int_registers", "limited", None, "count");
    let masks = simulated_line("mask_registers", "mask_registers", "unclear", None, "count");
    let caches = |number: &str, value: [f64; 3], unit: &str| {
        let line = simulated_line("data_caches", &format!("data_caches.1.{number}"), "found", Some(value), unit);
        with_field(with_field(line, "part", "memory".into()), "walks", json!([simulated_walk()]))
    };
    let returns = simulated_line("return_stack", "return_stack", "none", None, "count");
    vec![
        json!({ "schema": "cyclescope/1", "kind": "machine" }),
        with_field(rob, "fillers", fillers),
        with_field(with_field(registers, "limited_by", "rob".into()), "why", "lea stops where rob ends".into()),
        with_field(masks, "why", "no two fillers agree: kaddd 125, korb 130".into()),
        with_field(caches("size", [49152.0, 48640.0, 49664.0], "bytes"), "cpuid", 49152.into()),
        caches("cost", [4.98, 4.95, 5.02], "core_cycles"),
        with_field(with_field(returns, "part", "front_end".into()), "why", "no end up to 64".into()),
    ]
}
