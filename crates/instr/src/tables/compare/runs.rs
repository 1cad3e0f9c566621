//! Reads the records of `run` as rows of a table. The snippet acts as the instruction, and the cost
//! of a copy as its rate.

use crate::rows::instr_row::{InstrRow, ReciprocalThroughput, RowStatus};
use crate::rows::instr_table::{BadList, describe_damage, refuse_line};
use cyclescope_code::asm::CodeMode;
use cyclescope_core::unit::Unit;
use cyclescope_measure::result::caveat::Caveat;
use cyclescope_measure::result::record::Quantity;
use cyclescope_run::points::RunPoint;
use serde::Deserialize;
use std::collections::HashMap;

/// The kind of a line.
#[derive(Deserialize)]
struct LineKind {
    kind: String,
}

/// The compared fields of a `run` record.
#[derive(Deserialize)]
struct RunLine {
    cost: Quantity,
    snippet: String,
    bytes: String,
    #[serde(default)]
    init: String,
    /// Only in a sweep or a list.
    #[serde(default)]
    point: Option<RunPoint>,
    executor: String,
    /// Only for a function.
    #[serde(default)]
    empty_call: Option<Quantity>,
    /// The code before each copy of a snippet, or the function before each call.
    #[serde(default)]
    setup: Option<String>,
    #[serde(default)]
    caveats: Vec<Caveat>,
    #[serde(default)]
    repro: String,
}

impl RunLine {
    /// The machine code and its init code. The init code of a function contains an address, which
    /// differs between runs. A function is therefore identified by its name, its file's name and
    /// the calling code.
    fn build_key(&self) -> String {
        let at = self.sweep_value().map_or(String::new(), |value| format!(" {value}"));
        if self.empty_call.is_none() {
            let setup = self.setup.as_ref().map_or(String::new(), |setup| format!(" after {setup}"));
            return format!("{} {}{setup}{at}", self.bytes, self.init);
        }
        let (name, file) = self.snippet.split_once(" of ").unwrap_or((&self.snippet, ""));
        let file = file.rsplit('/').next().unwrap_or_default();
        format!("{} {name} of {file}{at}", self.bytes)
    }

    /// The variable of a sweep and its value. Points are in random order.
    fn sweep_value(&self) -> Option<String> {
        let label = &self.point.as_ref()?.label;
        label.variable().is_some().then(|| label.to_text())
    }
}

/// Reads the records of `run` among JSON lines. Each becomes a row whose rate is the cost of a
/// copy. Repeated snippets are numbered from the second on. Lines of other kinds are ignored.
///
/// # Errors
///
/// If a line of this kind is no record of `run`.
pub fn read_runs(content: &[u8]) -> Result<Vec<InstrRow>, BadList> {
    let mut times: HashMap<String, usize> = HashMap::new();
    let lines = (1..).zip(content.split(|byte| *byte == b'\n'));
    let is_run = |line: &[u8]| serde_json::from_slice::<LineKind>(line).is_ok_and(|line| line.kind == "run");
    let read = |(number, line): (u64, &[u8])| match serde_json::from_slice::<RunLine>(line) {
        Ok(line) if line.cost.unit == Unit::CoreCycles => Ok(line),
        Ok(_) => Err(refuse_line(number, "its cost is in another unit")),
        Err(error) => Err(describe_damage(number, &error)),
    };
    let records = lines.filter(|(_, line)| is_run(line)).map(read).collect::<Result<Vec<_>, _>>()?;
    let row = |line: RunLine| {
        let key = line.build_key();
        let time = times.entry(key.clone()).or_insert(0);
        *time += 1;
        let mut operands = line.sweep_value().unwrap_or_default();
        if *time > 1 {
            operands = format!("{operands} ({time})").trim_start().to_string();
        }
        InstrRow {
            bits: CodeMode::default(),
            code: key,
            mnemonic: line.snippet,
            operands,
            encoding: "run".to_string(),
            executor: line.executor,
            isa: String::new(),
            implicit: Vec::new(),
            bytes: line.bytes,
            immediate: None,
            tried: Vec::new(),
            status: RowStatus::Measured,
            reason: None,
            latency: Vec::new(),
            throughput: Some(ReciprocalThroughput::new(line.cost, &line.repro)),
            slots: None,
            counters: Vec::new(),
            counter_passes: None,
            ports: None,
            tags: Vec::new(),
            caveats: line.caveats,
            repro: line.repro,
        }
    };
    Ok(records.into_iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::super::{Tolerance, compare_results};
    use super::*;

    fn line(bytes: &str, value: f64) -> String {
        format!(
            r#"{{"schema":"cyclescope/1","kind":"run","cost":{{"value":{value},"low":{},"high":{},"unit":"core_cycles"}},"snippet":"x","bytes":"{bytes}","init":"","executor":"user","caveats":[],"repro":"cyclescope run x"}}"#,
            value - 0.01,
            value + 0.01
        )
    }

    #[test]
    fn points_of_a_sweep_are_matched_by_their_values() {
        let point = |value: u64, cost: f64| {
            let point = format!(r#""point":{{"number":0,"variable":"N","value":{value}}},"bytes":"90""#);
            line("90", cost).replace(r#""bytes":"90""#, &point)
        };
        let a = read_runs(format!("{}\n{}\n", point(1, 1.0), point(2, 2.0)).as_bytes()).unwrap();
        // Another seed gives another order.
        let b = read_runs(format!("{}\n{}\n", point(2, 2.0), point(1, 1.5)).as_bytes()).unwrap();
        let found = compare_results(&a, &b, Tolerance::RESULTS);
        assert_eq!((found.forms.both, found.differences.len()), (2, 1));
        assert_eq!(found.differences[0].operands, "N = 1");
    }

    #[test]
    fn functions_are_matched_by_name_file_and_calling_code() {
        let call = |bytes: &str, text: &str, address: &str| {
            let empty = r#""empty_call":{"value":7.0,"low":6.9,"high":7.1,"unit":"core_cycles"},"init":""#;
            let line = line(bytes, 50.0).replace(r#""init":""#, &format!("{empty}{address}"));
            line.replace(r#""snippet":"x""#, &format!(r#""snippet":"{text}""#))
        };
        let one = call("41 ff d4", "f of /old/libx.so", "49 bc 11");
        let others = [
            ("41 ff d4", "f of /new/libx.so", 1),
            ("41 ff d4", "g of /old/libx.so", 0),
            ("41 ff d4", "f of /old/liby.so", 0),
            // After a fence.
            ("0f ae e8 41 ff d4", "f of /old/libx.so", 0),
        ];
        for (bytes, text, both) in others {
            let other = call(bytes, text, "49 bc 22");
            let [one, other] = [&one, &other].map(|line| read_runs(line.as_bytes()).unwrap());
            let found = compare_results(&one, &other, Tolerance::RESULTS);
            assert_eq!(found.forms.both, both, "{text}");
        }
    }

    #[test]
    fn runs_are_matched_by_their_code() {
        let a =
            read_runs(format!("{}\n{}\n{}\n", line("90", 1.0), line("90", 1.01), line("91", 3.0)).as_bytes()).unwrap();
        let b = read_runs(
            format!("{}\n{{\"kind\":\"other\"}}\n{}\n{}\n", line("91", 4.0), line("90", 1.0), line("90", 1.01))
                .as_bytes(),
        )
        .unwrap();
        let found = compare_results(&a, &b, Tolerance::RESULTS);
        assert_eq!((found.forms.both, found.differences.len()), (3, 1));
        assert_eq!(found.differences[0].code, "91 ");
    }

    #[test]
    fn a_run_with_a_field_of_another_type_is_an_error() {
        let good = line("90", 1.0);
        for (from, to) in [
            (r#""value":1,"#, r#""value":"1","#),
            (r#""bytes":"90""#, r#""bytes":90"#),
            (r#""unit":"core_cycles""#, r#""unit":"ns""#),
            (r#""low":0.99"#, r#""low":1.99"#),
        ] {
            let changed = good.replacen(from, to, 1);
            assert_ne!(changed, good, "{from}");
            let error = read_runs(format!("{good}\n{changed}\n").as_bytes()).unwrap_err();
            assert_eq!(error.line, Some(2), "{to}");
        }
    }
}
