//! Points as a table with one row per point.

use super::point::{PointLabel, PointRow, PointVariant};
use cyclescope_measure::result::counter_record::CounterRecord;
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

/// Columns of a table of ranked variants, which has a row for each of them.
const RANKING_COLUMNS: [&str; 6] = ["variant", "rank", "ratio", "ratio_low", "ratio_high", "verdict"];

/// Makes a row for each point: its value, in a column named after the variable, or its name; then
/// its cost. For lists, the last column contains the snippet. Ranked variants have a row each.
pub fn tabulate_points<'a>(rows: impl Iterator<Item = &'a PointRow> + Clone) -> TextTable {
    let ranked = rows.clone().any(|row| !row.variants.is_empty());
    let compared = !ranked && rows.clone().any(|row| row.versus.is_some());
    let first = rows.clone().next().map(|row| row.point.label.clone());
    let naming = first.as_ref().and_then(PointLabel::variable);
    let listed = naming.is_none();
    let called = !ranked && rows.clone().any(|row| row.throughput.is_some() || row.latency.is_some());
    let calls = if called { &CALL_COLUMNS[..] } else { &[] };
    let versus = if compared { &VARIANT_COLUMNS[..] } else { &[] };
    let ranking = if ranked { &RANKING_COLUMNS[..] } else { &[] };
    let names = counter_names(rows.clone());
    let of_counters = |prefix: &str| counter_columns(prefix, &names);
    let counters = [of_counters(""), if compared { of_counters("versus_") } else { Vec::new() }].concat();
    let counters: Vec<&str> = counters.iter().map(String::as_str).collect();
    let snippet = if listed { &["snippet"][..] } else { &[] };
    let columns = [&[naming.unwrap_or("name")], &COST_COLUMNS[..], calls, versus, ranking, &counters[..], snippet];
    let mut table = TextTable::new(columns.concat());
    for row in rows {
        if ranked {
            table.rows.extend(ranking_rows(row, &names));
            continue;
        }
        let mut record = row_fields(row);
        if called {
            record.extend([&row.throughput, &row.latency].into_iter().flat_map(|cost| format_quantity(cost.as_ref())));
        }
        if compared {
            record.extend(variant_fields(row));
        }
        record.extend(counter_fields(&row.counters, &names));
        if compared {
            record.extend(counter_fields(row.versus.as_ref().map_or(&[][..], |versus| &versus.counters[..]), &names));
        }
        record.extend(listed.then(|| row.snippet.clone().unwrap_or_default()));
        table.rows.push(record);
    }
    table
}

/// The names of the events and ratios that any point has.
pub fn counter_names<'a>(mut rows: impl Iterator<Item = &'a PointRow>) -> Vec<&'a str> {
    let counters = rows.find_map(|row| (!row.counters.is_empty()).then_some(&row.counters));
    counters.into_iter().flatten().map(|counter| counter.name.as_str()).collect()
}

/// Columns of events: the count and the ends of its interval.
fn counter_columns(prefix: &str, names: &[&str]) -> Vec<String> {
    names.iter().flat_map(|name| ["", "_low", "_high"].map(|end| format!("{prefix}{name}{end}"))).collect()
}

/// The fields of events; empty for a point without counts.
fn counter_fields(counters: &[CounterRecord], names: &[&str]) -> Vec<String> {
    let find = |name: &&str| counters.iter().find(|counter| counter.name == *name);
    names.iter().flat_map(|name| format_quantity(find(name).map(|counter| &counter.quantity))).collect()
}

/// A row for each ranked variant of a point; one row if it failed.
fn ranking_rows(row: &PointRow, names: &[&str]) -> Vec<Vec<String>> {
    let empty = || [const { String::new() }; RANKING_COLUMNS.len()].to_vec();
    if row.variants.is_empty() {
        return vec![[row_fields(row), empty(), counter_fields(&row.counters, names)].concat()];
    }
    let variant_row = |(number, variant): (usize, &PointVariant)| {
        // Only the first variant has a time and caveats.
        let first = PointRow { cost: Some(variant.cost), ..row.clone() };
        let other = PointRow { time: None, caveats: Vec::new(), ..first.clone() };
        let mut fields = row_fields(if number == 0 { &first } else { &other });
        fields.push(variant.label().to_string());
        fields.push(variant.rank.map_or(String::new(), |rank| rank.to_string()));
        let ratio = variant.ratio.map(|ratio| [ratio.value, ratio.low, ratio.high]);
        fields.extend(ratio.unwrap_or_default().map(format_figure));
        fields.push(variant.verdict.map(json_word).unwrap_or_default());
        fields.extend(counter_fields(&variant.counters, names));
        fields
    };
    row.variants.iter().enumerate().map(variant_row).collect()
}

fn row_fields(row: &PointRow) -> Vec<String> {
    let mut fields = vec![match &row.point.label {
        PointLabel::Value { value, .. } => value.to_string(),
        PointLabel::Word { word, .. } => word.clone(),
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
