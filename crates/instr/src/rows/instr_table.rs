//! Reads a result file of `cyclescope instr`.
//!
//! The file has one JSON object per line: the machine, then a row for each form. A killed program
//! leaves an incomplete last line. The reader drops it and reports this. Damage anywhere else is an
//! error, because the missing data are unknown. If a form occurs twice, the later row counts.

use super::instr_row::InstrRow;
use cyclescope_measure::result::record::SCHEMA;
pub use cyclescope_measure::study::csv_list::BadList;
use serde::Deserialize;
use serde_json::Value;
use serde_json::error::Category;
use std::collections::HashMap;

/// The content of a result file.
#[derive(Debug, Clone, PartialEq)]
pub struct InstrTable {
    /// The line of kind `machine`.
    pub machine: Option<Value>,
    /// The rows, in the order of the file.
    pub rows: Vec<InstrRow>,
    /// The number of an incomplete last line, which was dropped.
    pub cut: Option<u64>,
}

/// The fields common to all lines.
#[derive(Deserialize)]
struct LineHead {
    schema: String,
    kind: String,
}

impl InstrTable {
    /// Parses the content of a file.
    pub fn read(content: &[u8]) -> Result<InstrTable, BadList> {
        let mut table = InstrTable { machine: None, rows: Vec::new(), cut: None };
        let mut places: HashMap<(String, String, String), usize> = HashMap::new();
        let lines: Vec<(u64, &[u8])> =
            (1..).zip(content.split(|byte| *byte == b'\n')).filter(|(_, line)| !is_blank(line)).collect();
        for (index, (number, line)) in lines.iter().enumerate() {
            let head: LineHead = match serde_json::from_slice(line) {
                Ok(head) => head,
                Err(error) if error.classify() != Category::Data && index + 1 == lines.len() && index > 0 => {
                    table.cut = Some(*number);
                    break;
                }
                Err(error) => return Err(describe_damage(*number, &error)),
            };
            if head.schema != SCHEMA {
                return Err(BadList {
                    line: Some(*number),
                    message: format!("its schema is `{}`, not `{SCHEMA}`", head.schema),
                    remedy: "read it with the version of cyclescope that wrote it".to_string(),
                });
            }
            match head.kind.as_str() {
                "machine" => {
                    let machine = serde_json::from_slice(line).map_err(|error| describe_damage(*number, &error))?;
                    table.machine = Some(machine);
                }
                "instr" => {
                    let row: InstrRow =
                        serde_json::from_slice(line).map_err(|error| describe_damage(*number, &error))?;
                    let elsewhere = table.rows.first().is_some_and(|first| first.executor != row.executor);
                    let elsewhere = elsewhere.then_some("its code ran elsewhere than that of the other rows");
                    if let Some(contradiction) = row.find_contradiction().or(elsewhere) {
                        return Err(refuse_line(*number, contradiction));
                    }
                    table.put_row(row, &mut places);
                }
                _ => {}
            }
        }
        Ok(table)
    }

    fn put_row(&mut self, row: InstrRow, places: &mut HashMap<(String, String, String), usize>) {
        let key = (row.code.clone(), row.operands.clone(), row.encoding.clone());
        let place = *places.entry(key).or_insert(self.rows.len());
        match self.rows.get_mut(place) {
            Some(earlier) => *earlier = row,
            None => self.rows.push(row),
        }
    }

    /// The brand string of the processor that the file was measured on.
    pub fn processor(&self) -> Option<&str> {
        self.machine.as_ref()?["cpu"]["brand"]["value"].as_str()
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

pub(crate) fn describe_damage(line: u64, error: &serde_json::Error) -> BadList {
    // The parser was given one line, so its own line number is meaningless.
    let text = error.to_string();
    refuse_line(line, text.split(" at line ").next().unwrap_or_default())
}

/// The error for a line that no survey writes.
pub(crate) fn refuse_line(line: u64, why: &str) -> BadList {
    BadList {
        line: Some(line),
        message: format!("this is not a line of a result file: {why}"),
        remedy: "remove the line, or measure again".to_string(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::experiments::slot_judgement::SlotVerdict;
    use crate::rows::dispatch_slots::DispatchSlots;
    use crate::rows::instr_row::{LatencyBound, OperandLatency, RateMode, ReciprocalThroughput, RowStatus};
    use cyclescope_code::asm::CodeMode;
    use cyclescope_core::statistics::Interval;
    use cyclescope_core::unit::Unit;
    use cyclescope_measure::result::record::Quantity;
    use cyclescope_measure::result::record::SchemaLine;

    /// A cost with an interval of ±0.01.
    pub(crate) fn cost(value: f64) -> cyclescope_measure::result::record::Quantity {
        let interval = cyclescope_core::statistics::Interval::with_margin(value, 0.01);
        cyclescope_measure::result::record::Quantity::new(interval, Unit::CoreCycles)
    }

    /// A headline latency.
    pub(crate) fn latency(from: &str, to: &str, value: f64, bound: LatencyBound) -> OperandLatency {
        OperandLatency {
            from: from.to_string(),
            to: to.to_string(),
            cost: cost(value),
            bound,
            variant: None,
            immediate: None,
            chain: format!("{from} to {to}"),
            regimes: None,
        }
    }

    /// Slots in the words of a table: `2`, `≤2`, `microcoded`, or nothing.
    pub(crate) fn counted_slots(text: &str) -> Option<DispatchSlots> {
        let (verdict, number) = match text.strip_prefix('≤') {
            _ if text.is_empty() => return None,
            _ if text == "microcoded" => (SlotVerdict::Microcoded, "30"),
            Some(number) => (SlotVerdict::Upper, number),
            None => (SlotVerdict::Exact, text),
        };
        let number: usize = number.parse().unwrap();
        Some(DispatchSlots {
            count: Quantity::new(Interval::with_margin(number as f64, 0.1), Unit::Slots),
            verdict,
            whole: (verdict != SlotVerdict::Microcoded).then_some(number),
            fillers: Vec::new(),
            why: (verdict != SlotVerdict::Exact).then(|| "a reason".to_string()),
        })
    }

    /// A row with these latencies and this reciprocal throughput.
    pub(crate) fn row(name: &str, operands: &str, latency: Vec<OperandLatency>, throughput: f64) -> InstrRow {
        InstrRow {
            bits: CodeMode::default(),
            code: format!("{name}_code"),
            mnemonic: name.to_string(),
            operands: operands.to_string(),
            encoding: "legacy".to_string(),
            executor: "user".to_string(),
            isa: "x64".to_string(),
            implicit: Vec::new(),
            bytes: "90".to_string(),
            immediate: None,
            tried: Vec::new(),
            status: RowStatus::Measured,
            reason: None,
            latency,
            throughput: Some(ReciprocalThroughput::new(cost(throughput), "8 independent copies")),
            slots: None,
            counters: Vec::new(),
            counter_passes: None,
            ports: None,
            tags: Vec::new(),
            caveats: Vec::new(),
            repro: format!("cyclescope instr {name}"),
        }
    }

    /// `add r64, r64` with a latency of one cycle and four instructions per cycle.
    pub(crate) fn add() -> InstrRow {
        let latencies =
            vec![latency("op1", "op1", 1.0, LatencyBound::Exact), latency("op2", "op1", 1.0, LatencyBound::Exact)];
        row("add", "r64, r64", latencies, 0.25)
    }

    /// A result file with these rows.
    pub(crate) fn file(rows: &[InstrRow]) -> String {
        let machine = r#"{"schema":"cyclescope/1","kind":"machine","cpu":{"brand":{"value":"A CPU"}}}"#;
        let lines = rows.iter().map(|row| serde_json::to_string(&SchemaLine::new("instr", row)).unwrap() + "\n");
        format!("{machine}\n{}", lines.collect::<String>())
    }

    #[test]
    fn rows_survive_writing_and_reading() {
        let rows = [add(), row("nop", "", Vec::new(), 0.2)];
        let table = InstrTable::read(file(&rows).as_bytes()).unwrap();
        assert_eq!((&table.rows[..], table.processor(), table.cut), (&rows[..], Some("A CPU"), None));
    }

    #[test]
    fn a_later_row_replaces_an_earlier_one_and_other_kinds_are_ignored() {
        let mut again = add();
        again.latency.clear();
        let text = file(&[add(), row("nop", "", Vec::new(), 0.2), again.clone()]);
        let text = text + "{\"schema\":\"cyclescope/1\",\"kind\":\"run\"}\n\n";
        let table = InstrTable::read(text.as_bytes()).unwrap();
        assert_eq!((table.rows.len(), &table.rows[0]), (2, &again));
    }

    #[test]
    fn only_the_last_line_may_be_incomplete() {
        let whole = file(&[add(), row("nop", "", Vec::new(), 0.2)]);
        for short in [2, 20, 200] {
            let table = InstrTable::read(&whole.as_bytes()[..whole.len() - short]).unwrap();
            assert_eq!((table.rows.len(), table.cut), (1, Some(3)), "{short}");
        }
        let lines: Vec<&str> = whole.lines().collect();
        let cut = format!("{}\n{}\n{}\n", lines[0], &lines[1][..100], lines[2]);
        let error = InstrTable::read(cut.as_bytes()).unwrap_err();
        assert_eq!(error.line, Some(2));
        assert!(!error.message.contains(" at line"), "{error}");
    }

    #[test]
    fn a_row_that_contradicts_itself_is_an_error() {
        let contradictions: [fn(&mut InstrRow); 10] = [
            |row| row.status = RowStatus::Failed,
            |row| row.status = RowStatus::Skipped,
            |row| row.reason = Some("it faulted".to_string()),
            |row| row.latency[0].cost.unit = Unit::Nanos,
            |row| row.latency[0].cost = cost(-3.0),
            |row| row.throughput.as_mut().unwrap().cost = cost(-0.25),
            |row| row.throughput.as_mut().unwrap().cost.unit = Unit::TscTicks,
            |row| row.throughput.as_mut().unwrap().fraction = Some("1/3".to_string()),
            |row| row.throughput.as_mut().unwrap().modes = vec![-1.0],
            |row| row.throughput.as_mut().unwrap().typical_modes = vec![RateMode { cycles: 1.0, share: 2.0 }],
        ];
        let mut good = add();
        good.throughput.as_mut().unwrap().fraction = Some("1/4".to_string());
        assert!(InstrTable::read(file(&[good.clone()]).as_bytes()).is_ok());
        for (number, contradict) in contradictions.iter().enumerate() {
            let mut row = good.clone();
            contradict(&mut row);
            let error = InstrTable::read(file(&[good.clone(), row]).as_bytes()).unwrap_err();
            assert_eq!(error.line, Some(3), "{number}");
        }
    }

    #[test]
    fn a_complete_but_invalid_last_line_is_an_error() {
        let lines = [
            r#"{"schema":"cyclescope/1","kind":"instr","code":"Nopd"}"#,
            r#"{"schema":"cyclescope/2","kind":"instr"}"#,
            r#"{"code":"Nopd"}"#,
            "7",
        ];
        for line in lines {
            let error = InstrTable::read((file(&[add()]) + line).as_bytes()).unwrap_err();
            assert_eq!(error.line, Some(3), "{line}");
        }
        assert_eq!(InstrTable::read(b"mnemonic,operands").unwrap_err().line, Some(1));
    }
}
