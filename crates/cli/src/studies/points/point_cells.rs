//! Cells of a point's row that every table of points has.

use crate::args::format_size;
use crate::output::footnotes::Footnotes;
use crate::output::report_words::format_quantity;
use crate::output::wrap_text;
use cyclescope::caveat::Caveat;
use cyclescope::result::counter_record::CounterRecord;
use cyclescope::study::points::{PointLabel, PointRow};

/// Width of a name.
const NAME_WIDTH: usize = 36;

/// The name of a point in a table.
pub fn point_name(row: &PointRow) -> String {
    match &row.point.label {
        PointLabel::Value { value, .. } => format_size(*value),
        // An empty word, as in `F=|-O3`.
        PointLabel::Word { word, .. } if word.is_empty() => "''".to_string(),
        PointLabel::Word { word: name, .. } | PointLabel::Name { name } => wrap_text(name, NAME_WIDTH).join("\n"),
    }
}

/// The cost of a point, or why it has none.
pub fn format_cost(row: &PointRow) -> String {
    match (row.measured_cost(), &row.text) {
        (Some(cost), _) => format_quantity(cost),
        (None, None) => "no number".to_string(),
        (None, Some(_)) => "failed".to_string(),
    }
}

/// The counts with these names.
pub fn counter_cells(counters: &[CounterRecord], names: &[&str]) -> Vec<String> {
    let find = |name: &&str| counters.iter().find(|counter| counter.name == *name);
    names.iter().map(|name| find(name).map_or("-".to_string(), |counter| format_quantity(&counter.quantity))).collect()
}

/// The footnote marks of a row: why it has no result, or its caveats, each with advice.
pub fn footnote_marks(row: &PointRow, notes: &mut Footnotes) -> String {
    let advice = |caveat: &Caveat| {
        let code = serde_json::to_value(caveat.code).expect("codes are strings");
        let code = code.as_str().unwrap_or_default().to_string();
        match caveat.code.advice() {
            Some(advice) => format!("{code}; try: {advice}"),
            None => format!("{code}: {}", caveat.text),
        }
    };
    let mut texts: Vec<String> = row.caveats.iter().map(advice).collect();
    texts.extend(row.text.as_ref().map(|text| match &row.remedy {
        Some(remedy) => format!("{text}; help: {remedy}"),
        None => text.clone(),
    }));
    notes.add_marks(texts.iter().map(String::as_str))
}
