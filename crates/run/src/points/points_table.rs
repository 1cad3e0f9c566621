//! Points as a table with one row per point.

use super::point::{PointLabel, PointRow};
use cyclescope_measure::study::text_table::{TextTable, format_figure, format_quantity, json_word};

/// Columns of every table after the one that names the point, in core cycles and nanoseconds per
/// copy.
const COST_COLUMNS: [&str; 9] = ["cycles", "low", "high", "status", "ns", "ns_low", "ns_high", "caveats", "why_not"];
/// Columns of a table of two variants.
const VARIANT_COLUMNS: [&str; 7] =
    ["versus_cycles", "versus_low", "versus_high", "ratio", "ratio_low", "ratio_high", "verdict"];
/// Columns of a table of functions.
const CALL_COLUMNS: [&str; 6] =
    ["throughput", "throughput_low", "throughput_high", "latency", "latency_low", "latency_high"];

/// Makes a row for each point: its value, in a column named after the variable, or its name; then
/// its cost. For lists, the last column contains the snippet.
pub fn tabulate_points<'a>(rows: impl Iterator<Item = &'a PointRow> + Clone) -> TextTable {
    let compared = rows.clone().any(|row| row.versus.is_some());
    let first = rows.clone().next().map(|row| row.point.label.clone());
    let (naming, listed) = match &first {
        Some(PointLabel::Value { variable, .. }) => (variable.as_str(), false),
        _ => ("name", true),
    };
    let called = rows.clone().any(|row| row.throughput.is_some() || row.latency.is_some());
    let calls = if called { &CALL_COLUMNS[..] } else { &[] };
    let versus = if compared { &VARIANT_COLUMNS[..] } else { &[] };
    let snippet = if listed { &["snippet"][..] } else { &[] };
    let mut table = TextTable::new([&[naming], &COST_COLUMNS[..], calls, versus, snippet].concat());
    for row in rows {
        let mut record = row_fields(row);
        if called {
            record.extend([&row.throughput, &row.latency].into_iter().flat_map(|cost| format_quantity(cost.as_ref())));
        }
        if compared {
            record.extend(variant_fields(row));
        }
        record.extend(listed.then(|| row.snippet.clone().unwrap_or_default()));
        table.rows.push(record);
    }
    table
}

fn row_fields(row: &PointRow) -> Vec<String> {
    let mut fields = vec![match &row.point.label {
        PointLabel::Value { value, .. } => value.to_string(),
        PointLabel::Name { name } => name.clone(),
    }];
    fields.extend(format_quantity(row.cost.as_ref()));
    fields.push(row.status().to_string());
    fields.extend(format_quantity(row.time.as_ref()));
    let caveats: Vec<String> = row.caveats.iter().map(|caveat| json_word(caveat.code)).collect();
    fields.push(caveats.join(" "));
    fields.push(row.text.clone().unwrap_or_default());
    fields
}

fn variant_fields(row: &PointRow) -> Vec<String> {
    let versus = row.versus.as_ref();
    let mut fields = format_quantity(versus.map(|versus| &versus.cost)).to_vec();
    let ratio = versus.map(|versus| [versus.ratio.value, versus.ratio.low, versus.ratio.high]);
    fields.extend(ratio.unwrap_or_default().map(format_figure));
    fields.push(versus.map(|versus| json_word(versus.verdict)).unwrap_or_default());
    fields
}
