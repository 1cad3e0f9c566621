//! The part of a report that is about a mix.

use super::cost_text::format_cycles;
use crate::output::terminal::escape_controls;
use crate::output::{Failure, Output, WIDTH, wrap_text};
use cyclescope::record::{MixBoundRecord, MixPartPorts, MixPortsRecord, MixRecord, Quantity, SLOTS_RESOURCE};

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

/// A cost is that of the best assignment if it is at most this much higher, as a share.
const EQUAL_SHARE: f64 = 0.02;

/// What the cost is, and what may limit it.
pub fn describe_mix(mix: &MixRecord, cost: &Quantity) -> Vec<String> {
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
    lines.extend(mix.ports.iter().flat_map(|ports| describe_assignment(ports, cost)));
    if let Some(fastest) = mix.fastest_order() {
        lines.push(format!("the code repeats the mix {} times, with other registers", fastest.repeats));
    }
    lines.extend(mix.chains.iter().map(|chain| format!("{chain}, which may limit the mix")));
    lines
}

/// The best assignment of the µops to ports, beside the measured cost.
fn describe_assignment(ports: &MixPortsRecord, cost: &Quantity) -> Vec<String> {
    let Some(best) = ports.cycles else {
        let missing = ports.parts.iter().filter_map(|part| Some((part.form.as_str(), part.why.as_ref()?)));
        let missing: Vec<String> =
            missing.map(|(form, why)| escape_controls(&format!("the ports of {form} are not known: {why}"))).collect();
        return match missing.is_empty() {
            true => vec!["the best assignment is not known: the file has too many sets of ports".to_string()],
            false => missing,
        };
    };
    let list = |names: &[String]| escape_controls(&names.join(" and "));
    let verb = if ports.binds.len() == 1 && ports.binds[0] != SLOTS_RESOURCE { "binds" } else { "bind" };
    let mut lines = vec![format!("the best assignment takes {best:.3} core cycles: {} {verb}", list(&ports.binds))];
    lines.extend(cost.value.map(|value| describe_excess(value, cost, best)));
    let part = |part: &MixPartPorts| {
        let several = if part.solutions > 1 { ", the simplest of several answers" } else { "" };
        format!("{}: {}{several}", part.form, part.ports.as_deref().unwrap_or("-"))
    };
    lines.push(format!("µops of a copy, {}", list(&ports.parts.iter().map(part).collect::<Vec<_>>())));
    let loads: Vec<String> = ports.loads.iter().map(|load| format!("{} {:.2}", load.port, load.uops)).collect();
    lines.push(escape_controls(&format!("µops on each port: {}", loads.join(", "))));
    lines
}

/// How far the measured cost is from that of the best assignment.
fn describe_excess(value: f64, cost: &Quantity, best: f64) -> String {
    let share = value / best - 1.0;
    let [low, high] = [cost.low.unwrap_or(value), cost.high.unwrap_or(value)];
    match () {
        () if low > best * (1.0 + EQUAL_SHARE) => format!(
            "measured, it takes {value:.3}, {:.0} % more: the core assigns it worse, or something else limits it",
            100.0 * share
        ),
        () if high < best * (1.0 - EQUAL_SHARE) => {
            format!("measured, it takes {value:.3}, {:.0} % less: the ports in the file are wrong", -100.0 * share)
        }
        () => format!("measured, it takes {value:.3}: as fast as the best assignment"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope::record::PortLoadRecord;
    use cyclescope::statistics::Interval;
    use cyclescope::unit::Unit;

    fn describe(cycles: Option<f64>, cost: f64) -> String {
        let part = |form: &str, why: Option<&str>| MixPartPorts {
            form: form.to_string(),
            ports: why.is_none().then(|| "1*A01".to_string()),
            solutions: 2,
            why: why.map(str::to_string),
        };
        let parts = vec![part("a", None), part("b", cycles.is_none().then_some("the file lacks it"))];
        let loads = vec![PortLoadRecord { port: "A0".to_string(), uops: 1.5 }];
        let ports = MixPortsRecord { cycles, binds: vec!["A01".to_string()], loads, parts };
        let cost = Quantity::new(Interval::with_margin(cost, 0.01), Unit::CoreCycles);
        describe_assignment(&ports, &cost).join("; ")
    }

    #[test]
    fn the_measured_cost_stands_beside_the_best_assignment() {
        let slower = describe(Some(1.5), 3.0);
        assert!(slower.contains("takes 1.500 core cycles: A01 binds") && slower.contains("100 % more"), "{slower}");
        assert!(slower.contains("µops on each port: A0 1.50") && slower.contains("simplest of several"), "{slower}");
        assert!(describe(Some(1.5), 1.51).contains("as fast as the best assignment"));
        assert!(describe(Some(1.5), 1.2).contains("20 % less: the ports in the file are wrong"));
        assert_eq!(describe(None, 1.2), "the ports of b are not known: the file lacks it");
    }
}
