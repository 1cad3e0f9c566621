//! Points as a table, a row each.

use super::point::{Label, Row};
use cyclescope_measure::study::exported::{TextTable, figure, figures, word};

/// Columns of every table behind the one that names the point. Numbers are core cycles and nanoseconds a copy.
const COLUMNS: [&str; 9] =
    ["cycles", "low", "high", "status", "ns", "ns_low", "ns_high", "caveats", "why_not"];
/// Columns of a table of two variants.
const VERSUS: [&str; 7] =
    ["versus_cycles", "versus_low", "versus_high", "ratio", "ratio_low", "ratio_high", "verdict"];
/// Columns of a table of functions.
const CALLS: [&str; 6] =
    ["throughput", "throughput_low", "throughput_high", "latency", "latency_low", "latency_high"];

/// A row for each point: its value, in a column of the variable's name, or its name, and what it costs. Lists have a last
/// column with the snippet.
pub fn table<'a>(rows: impl Iterator<Item = &'a Row> + Clone) -> TextTable {
    let compared = rows.clone().any(|row| row.versus.is_some());
    let first = rows.clone().next().map(|row| row.point.label.clone());
    let (naming, listed) = match &first {
        Some(Label::Value { variable, .. }) => (variable.as_str(), false),
        _ => ("name", true),
    };
    let called = rows.clone().any(|row| row.throughput.is_some() || row.latency.is_some());
    let calls = if called { &CALLS[..] } else { &[] };
    let versus = if compared { &VERSUS[..] } else { &[] };
    let snippet = if listed { &["snippet"][..] } else { &[] };
    let mut table = TextTable::new([&[naming], &COLUMNS[..], calls, versus, snippet].concat());
    for row in rows {
        let mut record = fields(row);
        if called {
            record
                .extend([&row.throughput, &row.latency].into_iter().flat_map(|cost| figures(cost.as_ref())));
        }
        if compared {
            record.extend(versus_fields(row));
        }
        record.extend(listed.then(|| row.snippet.clone().unwrap_or_default()));
        table.rows.push(record);
    }
    table
}

fn fields(row: &Row) -> Vec<String> {
    let mut fields = vec![match &row.point.label {
        Label::Value { value, .. } => value.to_string(),
        Label::Name { name } => name.clone(),
    }];
    fields.extend(figures(row.cost.as_ref()));
    fields.push(row.status().to_string());
    fields.extend(figures(row.time.as_ref()));
    let caveats: Vec<String> = row.caveats.iter().map(|caveat| word(caveat.code)).collect();
    fields.push(caveats.join(" "));
    fields.push(row.text.clone().unwrap_or_default());
    fields
}

fn versus_fields(row: &Row) -> Vec<String> {
    let versus = row.versus.as_ref();
    let mut fields = figures(versus.map(|versus| &versus.cost)).to_vec();
    let ratio = versus.map(|versus| [versus.ratio.value, versus.ratio.low, versus.ratio.high]);
    fields.extend(ratio.unwrap_or_default().map(figure));
    fields.push(versus.map(|versus| word(versus.verdict)).unwrap_or_default());
    fields
}
