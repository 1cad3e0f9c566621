//! The table of points with several variants: a row for each variant of a point.

use super::point_cells::{counter_cells, footnote_marks, format_cost, point_name};
use crate::output::footnotes::Footnotes;
use crate::output::page::new_table;
use crate::output::report_words::format_quantity;
use crate::output::wrap_text;
use crate::studies::run::ranking::{format_rank, format_ratio, rank_order, verdict_word};
use comfy_table::{CellAlignment, Table};
use cyclescope::study::points::{PointRow, counter_names};

/// Width of a variant's name or snippet, and of the notes.
const VARIANT_WIDTH: usize = 24;
const NOTES_WIDTH: usize = 8;

/// Tabulates the variants of all points, of each point the best rank first.
pub fn tabulate_variants(naming: &str, rows: &[&PointRow], notes: &mut Footnotes) -> Table {
    let names = counter_names(rows.iter().copied());
    let heading = [&[naming, "rank", "core cycles", "ratio", "verdict", "variant"][..], &names, &["notes"]].concat();
    let mut table = new_table(&heading);
    for column in [4, 5, heading.len() - 1] {
        table.column_mut(column).expect("it has a heading").set_cell_alignment(CellAlignment::Left);
    }
    for row in rows {
        let mut name = point_name(row);
        let mut marks = wrap_text(&footnote_marks(row, notes), NOTES_WIDTH).join("\n");
        if row.variants.is_empty() {
            let cells = [name, "-".to_string(), format_cost(row), "-".to_string(), "-".to_string(), String::new()];
            table.add_row([cells.to_vec(), counter_cells(&row.counters, &names), vec![marks]].concat());
            continue;
        }
        for index in rank_order(row.variants.iter().map(|variant| (variant.rank, variant.cost))) {
            let variant = &row.variants[index];
            let cells = [
                std::mem::take(&mut name),
                format_rank(variant.rank),
                if variant.cost.value.is_some() { format_quantity(&variant.cost) } else { "no number".to_string() },
                format_ratio(index, variant.ratio),
                verdict_word(variant.verdict).to_string(),
                wrap_text(variant.label(), VARIANT_WIDTH).join("\n"),
            ];
            let marks = std::mem::take(&mut marks);
            table.add_row([cells.to_vec(), counter_cells(&variant.counters, &names), vec![marks]].concat());
        }
    }
    table
}
