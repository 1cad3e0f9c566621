//! The part of a report that is about a mix.

use super::cost_text::format_cycles;
use crate::output::{Failure, Output, WIDTH, wrap_text};
use cyclescope::record::{MixBoundRecord, MixRecord, Quantity};

/// Prints the cost of each order, the fastest first.
pub fn print_orders(mix: &MixRecord, output: &mut Output) -> Result<(), Failure> {
    output.write_line("")?;
    let cost = |cost: Option<Quantity>| cost.and_then(|cost| cost.value).unwrap_or(f64::INFINITY);
    let mut orders: Vec<_> = mix.orders.iter().collect();
    orders.sort_by(|one, other| cost(one.cost).total_cmp(&cost(other.cost)));
    for order in orders {
        let shown = order.cost.filter(|cost| cost.value.is_some());
        let shown = shown.map_or("no number".to_string(), |cost| format_cycles(&cost));
        let line = format!("{shown}, {}", order.order);
        for line in wrap_text(&line, WIDTH - 2) {
            output.write_line(format!("  {line}"))?;
        }
    }
    Ok(())
}

/// What the cost is, and what may limit it.
pub fn describe_mix(mix: &MixRecord) -> Vec<String> {
    let costs: Vec<f64> = mix.orders.iter().filter_map(|order| order.cost?.value).collect();
    let range = costs.iter().copied().fold(f64::INFINITY, f64::min)..costs.iter().copied().fold(0.0, f64::max);
    let mut lines = vec![match &mix.fastest {
        None => format!("none of {} programs of the mix has a number, so none is the fastest", mix.orders.len()),
        Some(order) if mix.orders.len() == 1 => format!("core cycles of one mix: {order}"),
        Some(order) => format!(
            "core cycles of one mix in the fastest of {} programs: {order}; another pass over all, {:.3} to {:.3}, \
             chose it",
            costs.len(),
            range.start,
            range.end
        ),
    }];
    let missing = mix.orders.len() - costs.len();
    if mix.fastest.is_some() && mix.orders.len() > 1 && missing > 0 {
        lines.push(format!("{missing} other programs have no number, of which one may be faster"));
    }
    lines.extend(mix.bounds.iter().enumerate().map(|(at, bound)| {
        let MixBoundRecord { resource, needed, per_cycle, cycles } = bound;
        let least = if at == 0 { "at least" } else { "and" };
        format!("{least} {cycles:.3} core cycles by {resource}: {needed} at {per_cycle:.2} per cycle")
    }));
    if let Some(fastest) = mix.fastest_order() {
        lines.push(format!("the code repeats the mix {} times, with other registers", fastest.repeats));
    }
    lines.extend(mix.chains.iter().map(|chain| format!("{chain}, which may limit the mix")));
    lines
}
