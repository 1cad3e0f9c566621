//! Exports rows as tables: one with every figure, for spreadsheets and as a reference, and a short
//! summary.

use super::compare::headline_latencies;
use crate::experiments::port_usage::PortUsage;
use crate::rows::dispatch_slots::DispatchSlots;
use crate::rows::instr_row::{InstrRow, LatencyBound, OperandLatency, RowStatus, ThroughputVariant};
use cyclescope_measure::result::counter_record::CounterRecord;
use cyclescope_measure::study::text_table::{TextTable, format_quantity, json_word};

const EXPORT_COLUMNS: [&str; 33] = [
    "code",
    "mnemonic",
    "operands",
    "encoding",
    "isa",
    "status",
    "reason",
    "from",
    "to",
    "variant",
    "immediate",
    "latency_cycles",
    "latency_low",
    "latency_high",
    "bound",
    "rthroughput_cycles",
    "rthroughput_low",
    "rthroughput_high",
    "tags",
    "caveats",
    "fresh_cycles",
    "fresh_low",
    "fresh_high",
    "saturated_cycles",
    "saturated_low",
    "saturated_high",
    "knee_instructions",
    "knee_low",
    "knee_high",
    "slots",
    "slots_low",
    "slots_high",
    "slots_verdict",
];

/// One line per latency, with the reciprocal throughput repeated. A row without headline latencies
/// has one line without a latency. Other constants have lines of their own, with the reciprocal
/// throughput if it differs. Figures are core cycles and slots. `compare` accepts the CSV file as a
/// reference. Counted events have columns of their own behind the others.
pub fn build_latency_table<'a>(rows: impl IntoIterator<Item = &'a InstrRow>) -> TextTable {
    let rows: Vec<&InstrRow> = rows.into_iter().collect();
    let (counters, ports) = (list_counters(&rows), rows.iter().any(|row| row.ports.is_some()));
    let counted = counters.iter().flat_map(|name| ["", "_low", "_high"].map(|end| format!("count_{name}{end}")));
    let counted: Vec<String> = counted.chain(ports.then(|| "ports".to_string())).collect();
    let mut table = TextTable::new(EXPORT_COLUMNS.into_iter().chain(counted.iter().map(String::as_str)));
    for row in rows {
        let mut counts: Vec<String> = counters
            .iter()
            .flat_map(|name| format_quantity(find_counter(row, name).map(|one| &one.quantity)))
            .collect();
        counts.extend(ports.then(|| row.ports.as_ref().map_or(String::new(), PortUsage::summarize)));
        let mut add =
            |record: [String; EXPORT_COLUMNS.len()]| table.rows.push([record.as_slice(), counts.as_slice()].concat());
        if row.latency.iter().all(|latency| latency.variant.is_some()) {
            add(build_record(row, None, None));
        }
        let variants: Vec<&ThroughputVariant> = row.throughput.iter().flat_map(|found| &found.variants).collect();
        let same =
            |latency: &OperandLatency, variant: &ThroughputVariant| latency.variant.as_ref() == Some(&variant.variant);
        for latency in &row.latency {
            let rate = variants.iter().find(|variant| same(latency, variant)).copied();
            add(build_record(row, Some(latency), rate));
        }
        for variant in variants.iter().filter(|variant| row.tried.contains(&variant.variant)) {
            if !row.latency.iter().any(|latency| same(latency, variant)) {
                add(build_record(row, None, Some(variant)));
            }
        }
    }
    table
}

/// The names of all counters, in their order.
fn list_counters<'a>(rows: &[&'a InstrRow]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for counter in rows.iter().flat_map(|row| &row.counters) {
        if !names.contains(&counter.name.as_str()) {
            names.push(&counter.name);
        }
    }
    names
}

/// The count of a row with this name.
fn find_counter<'a>(row: &'a InstrRow, name: &str) -> Option<&'a CounterRecord> {
    row.counters.iter().find(|counter| counter.name == name)
}

fn build_record(
    row: &InstrRow,
    latency: Option<&OperandLatency>,
    rate: Option<&ThroughputVariant>,
) -> [String; EXPORT_COLUMNS.len()] {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let variant = latency.and_then(|latency| latency.variant.clone()).or(rate.map(|rate| rate.variant.clone()));
    let other = latency.and_then(|latency| latency.immediate.clone()).or(rate.and_then(|rate| rate.immediate.clone()));
    let [value, low, high] = format_quantity(latency.map(|latency| &latency.cost));
    let usual = row.throughput.as_ref().map(|throughput| &throughput.cost);
    let [rate, rate_low, rate_high] = format_quantity(rate.map(|rate| &rate.cost).or(usual));
    let regimes = latency.and_then(|latency| latency.regimes.as_ref());
    let [fresh, fresh_low, fresh_high] = format_quantity(regimes.map(|regimes| &regimes.fresh));
    let [saturated, saturated_low, saturated_high] = format_quantity(regimes.map(|regimes| &regimes.saturated));
    let [knee, knee_low, knee_high] = format_quantity(regimes.map(|regimes| &regimes.knee));
    let slots = row.slots.as_ref();
    let [_, slots_low, slots_high] = format_quantity(slots.map(|slots| &slots.count));
    let caveats: Vec<String> = row.caveats.iter().map(|caveat| json_word(caveat.code)).collect();
    let status = match row.status {
        RowStatus::Measured => "measured",
        RowStatus::Skipped => "skipped",
        RowStatus::Failed => "failed",
    };
    [
        row.code.clone(),
        row.mnemonic.clone(),
        row.operands.clone(),
        row.encoding.clone(),
        row.isa.clone(),
        status.to_string(),
        text(&row.reason),
        latency.map(|latency| latency.from.clone()).unwrap_or_default(),
        latency.map(|latency| latency.to.clone()).unwrap_or_default(),
        text(&variant),
        text(&other.or(row.immediate.clone())),
        value,
        low,
        high,
        latency.map(|latency| json_word(latency.bound)).unwrap_or_default(),
        rate,
        rate_low,
        rate_high,
        row.tags.join(" "),
        caveats.join(" "),
        fresh,
        fresh_low,
        fresh_high,
        saturated,
        saturated_low,
        saturated_high,
        knee,
        knee_low,
        knee_high,
        slots.map(format_slots).unwrap_or_default(),
        slots_low,
        slots_high,
        slots.map(|slots| json_word(slots.verdict)).unwrap_or_default(),
    ]
}

/// The whole number of slots, as a published table writes it. Empty without one.
fn format_slots(slots: &DispatchSlots) -> String {
    let sign = if slots.exact_number().is_some() { "" } else { "<=" };
    slots.whole.map_or(String::new(), |whole| format!("{sign}{whole}"))
}

/// One line per measured row, in few columns. Figures are core cycles and slots.
pub fn build_summary_table<'a>(rows: impl IntoIterator<Item = &'a InstrRow>) -> TextTable {
    let mut table = TextTable::new(["instruction", "isa", "latency", "rthroughput", "slots", "tags"]);
    table.columns[3].is_number = true;
    for row in rows.into_iter().filter(|row| row.status == RowStatus::Measured) {
        let instruction = format!("{} {}", row.mnemonic, row.operands);
        let throughput = row.throughput.as_ref().and_then(|throughput| throughput.cost.value);
        table.rows.push(vec![
            instruction.trim().to_string(),
            row.isa.clone(),
            summarize_latencies(row),
            throughput.map_or("-".to_string(), format_cycles),
            row.slots.as_ref().map_or("-".to_string(), DispatchSlots::summarize),
            row.tags.join(", "),
        ]);
    }
    table
}

/// The headline latencies of a row: `3` if all are equal, else `op1→op1 1, mem_addr→op1 ≤6`. With
/// two latencies, the one of short chains comes first: `1…2`. A dash without any.
fn summarize_latencies(row: &InstrRow) -> String {
    let text = |latency: &OperandLatency| {
        let sign = if latency.bound == LatencyBound::Upper { "≤" } else { "" };
        let fresh = latency.regimes.as_ref().and_then(|regimes| regimes.fresh.value);
        let fresh = fresh.map_or(String::new(), |fresh| format!("{}…", format_cycles(fresh)));
        let value = format_cycles(latency.cost.value?);
        Some((format!("{}→{}", latency.from, latency.to), format!("{sign}{fresh}{value}")))
    };
    let shown: Vec<(String, String)> = headline_latencies(row).filter_map(text).collect();
    match shown.first() {
        None => "-".to_string(),
        Some((_, first)) if shown.iter().all(|(_, value)| value == first) => first.clone(),
        Some(_) => shown.iter().map(|(pair, value)| format!("{pair} {value}")).collect::<Vec<_>>().join(", "),
    }
}

/// Core cycles with at most two decimals, without trailing zeros.
fn format_cycles(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    // Noise can turn zero into a tiny negative number.
    if text == "-0" { "0".to_string() } else { text.to_string() }
}

#[cfg(test)]
mod tests {
    use super::super::compare::{Tolerance, compare_with_reference};
    use super::super::reference::ReferenceTable;
    use super::*;
    use crate::rows::instr_row::LatencyRegimes;
    use crate::rows::instr_table::tests::{add, cost, counted_slots, latency, row};
    use cyclescope_core::unit::Unit;
    use cyclescope_measure::result::record::Quantity;

    /// Rows of every kind.
    fn rows() -> Vec<InstrRow> {
        let mut variant = latency("op1", "op1", 0.0, LatencyBound::Upper);
        variant.variant = Some("same register".to_string());
        let latencies = vec![
            latency("op1", "op1", 1.0, LatencyBound::Exact),
            latency("mem_addr", "op1", 6.25, LatencyBound::Upper),
            latency("op1", "flags", 2.0, LatencyBound::Sum),
            variant,
        ];
        let mut skipped = row("hlt", "", Vec::new(), 1.0);
        skipped.throughput = None;
        skipped.status = RowStatus::Skipped;
        skipped.reason = Some("privileged, \"of course\"".to_string());
        let mut masked = row("vaddps", "zmm{k}{z}, zmm, m32{1to16}", Vec::new(), 0.5);
        masked.tags = vec!["false_dependency".to_string(), "eliminated".to_string()];
        masked.slots = counted_slots("≤2");
        vec![
            InstrRow { slots: counted_slots("1"), ..add() },
            row("sub", "r64, m64", latencies, 0.3333),
            skipped,
            masked,
        ]
    }

    fn exported() -> String {
        let found = build_latency_table(&rows());
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(found.columns.iter().map(|column| &column.name)).unwrap();
        found.rows.iter().for_each(|row| writer.write_record(row).unwrap());
        String::from_utf8(writer.into_inner().unwrap()).unwrap()
    }

    #[test]
    fn each_latency_has_a_line() {
        let text = exported();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1 + 2 + 4 + 1 + 1);
        assert_eq!(
            lines[4],
            "sub_code,sub,\"r64, m64\",legacy,x64,measured,,mem_addr,op1,,,6.2500,6.2400,6.2600,upper,\
             0.3333,0.3233,0.3433,,,,,,,,,,,,,,,"
        );
        assert_eq!(
            lines[7],
            "hlt_code,hlt,,legacy,x64,skipped,\"privileged, \"\"of course\"\"\",,,,,,,,,,,,,,,,,,,,,,,,,,"
        );
    }

    #[test]
    fn an_export_agrees_with_its_rows() {
        let reference = ReferenceTable::read(exported().as_bytes()).unwrap();
        assert_eq!(reference.warnings, Vec::<String>::new());
        let none = Tolerance { cycles: 1e-4, cycles_below_one: 1e-4, share: 0.0 };
        let found = compare_with_reference(&rows(), &reference, none);
        let counts: Vec<[u64; 4]> = found.quantities.iter().map(|t| [t.agree, t.differ, t.only_a, t.only_b]).collect();
        assert_eq!(counts, [[3, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0], [3, 0, 0, 0], [2, 0, 0, 0]]);
        assert_eq!([found.forms.both, found.forms.only_a, found.forms.only_b], [4, 0, 0]);
    }

    #[test]
    fn a_summary_lists_measured_rows() {
        let expected = [
            ["add r64, r64", "x64", "1", "0.25", "1", ""],
            ["sub r64, m64", "x64", "op1→op1 1, mem_addr→op1 ≤6.25, op1→flags 2", "0.33", "-", ""],
            ["vaddps zmm{k}{z}, zmm, m32{1to16}", "x64", "-", "0.5", "≤2", "false_dependency, eliminated"],
        ];
        assert_eq!(build_summary_table(&rows()).rows, expected);
    }

    #[test]
    fn a_summary_shows_both_latencies_of_a_chain_and_no_refused_figure() {
        let regimes = LatencyRegimes { fresh: cost(1.0), saturated: cost(2.0), knee: cost(48.0) };
        let two = OperandLatency { regimes: Some(regimes), ..latency("op1", "op1", 2.0, LatencyBound::Exact) };
        let refused = Quantity::refused(Unit::CoreCycles);
        let none = OperandLatency { cost: refused, ..latency("op2", "op1", 0.0, LatencyBound::Exact) };
        let mut silent = row("sub", "r64", vec![none.clone()], 0.0);
        silent.throughput.as_mut().unwrap().cost = refused;
        let found = build_summary_table(&[row("vpaddd", "xmm, xmm", vec![two, none], 0.5), silent]);
        assert_eq!(
            found.rows,
            [["vpaddd xmm, xmm", "x64", "1…2", "0.5", "-", ""], ["sub r64", "x64", "-", "-", "-", ""]]
        );
    }

    #[test]
    fn figures_have_no_trailing_zeros() {
        assert_eq!([-0.001, 100.0, 0.25, 3.999].map(format_cycles), ["0", "100", "0.25", "4"]);
    }
}
