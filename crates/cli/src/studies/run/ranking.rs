//! Prints the ranking of several variants.

use super::cost_text::{format_interval, shorten_snippet};
use crate::output::page::{TextPage, new_table, print_note, print_table};
use crate::output::terminal::escape_controls;
use crate::output::{Failure, Output, wrap_text};
use comfy_table::CellAlignment;
use cyclescope::record::Quantity;
use cyclescope::result::variant_comparison::{CostRatio, RankedVariant, VariantVerdict};

/// Width of a variant's name or snippet.
const VARIANT_WIDTH: usize = 34;
/// What a rank says.
pub const RANK_MEANING: &str = "a rank is one more than the number of variants that are found to be faster; variants \
    of one rank are not told apart; the level of 99 % holds for all pairs of variants together (Holm)";

/// Prints a row for each variant, the best rank first.
pub fn print_ranking(variants: &[RankedVariant], output: &mut Output) -> Result<(), Failure> {
    output.write_line("")?;
    let mut table = new_table(&["rank", "core cycles", "ratio", "verdict", "variant"]);
    for column in [3, 4] {
        table.column_mut(column).expect("it has a heading").set_cell_alignment(CellAlignment::Left);
    }
    for index in rank_order(variants.iter().map(|variant| (variant.rank, variant.cost))) {
        let variant = &variants[index];
        let name = variant.name.as_ref().unwrap_or(&variant.snippet);
        let name = wrap_text(&shorten_snippet(&escape_controls(name)), VARIANT_WIDTH).join("\n");
        table.add_row([
            format_rank(variant.rank),
            format_interval(&variant.cost).unwrap_or("no number".to_string()),
            format_ratio(index, variant.ratio),
            verdict_word(variant.verdict).to_string(),
            name,
        ]);
    }
    let mut page = TextPage::new(output);
    print_table(&mut page, &table)?;
    print_note(&mut page, &format!("all measured in the same rounds, and compared with the first; {RANK_MEANING}"))
}

/// The indices of variants with these ranks and costs, the best rank and the lowest cost first.
pub fn rank_order(variants: impl Iterator<Item = (Option<usize>, Quantity)>) -> Vec<usize> {
    let variants: Vec<(Option<usize>, Quantity)> = variants.collect();
    let mut order: Vec<usize> = (0..variants.len()).collect();
    let key = |index: usize| {
        let (rank, cost) = variants[index];
        (rank.unwrap_or(usize::MAX), cost.value.unwrap_or(f64::INFINITY))
    };
    order.sort_by(|one, other| key(*one).0.cmp(&key(*other).0).then(key(*one).1.total_cmp(&key(*other).1)));
    order
}

/// Formats a rank.
pub fn format_rank(rank: Option<usize>) -> String {
    rank.map_or("-".to_string(), |rank| rank.to_string())
}

/// Formats the ratio to the first variant; `index` is the variant's.
pub fn format_ratio(index: usize, ratio: Option<CostRatio>) -> String {
    let value = if index == 0 { Some(1.0) } else { ratio.and_then(|ratio| ratio.value) };
    value.map_or("-".to_string(), |ratio| format!("{ratio:.4}"))
}

/// The word of a verdict; `None` for the first variant.
pub fn verdict_word(verdict: Option<VariantVerdict>) -> &'static str {
    match verdict {
        None => "first",
        Some(VariantVerdict::Slower) => "slower",
        Some(VariantVerdict::Faster) => "faster",
        Some(VariantVerdict::Same) => "same",
        Some(VariantVerdict::Unclear) => "unclear",
    }
}
