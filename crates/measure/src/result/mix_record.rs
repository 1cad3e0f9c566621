//! A mix in a result: its forms, and the cost of each order of their copies.

use crate::result::quantity::Quantity;
use serde::{Deserialize, Serialize};

/// A mix: copies of several forms, independent of each other as far as registers allow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MixRecord {
    /// The forms.
    pub parts: Vec<MixPartRecord>,
    /// Dependencies that no choice of registers can break: they may limit the cost.
    pub chains: Vec<String>,
    /// Lower limits of the cost by resources that are known, the largest first: it binds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<MixBoundRecord>,
    /// The best assignment of its µops to ports, by a result file of `ports`; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<MixPortsRecord>,
    /// The orders of the copies. All are measured in one pass, which chooses the fastest.
    pub orders: Vec<MixOrderRecord>,
    /// The name of the fastest order, whose cost is that of another pass; `None` if none of several
    /// orders has a cost, so that the mix has none.
    pub fastest: Option<String>,
}

/// Copies of one form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MixPartRecord {
    /// The form's code in the instruction database.
    pub code: String,
    /// The mnemonic and the operands, as in instruction tables.
    pub form: String,
    /// Copies in one mix.
    pub count: usize,
}

/// The best assignment of a mix's µops to ports.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MixPortsRecord {
    /// Core cycles of one mix that the best assignment needs, slots included: no order is faster. `None` if
    /// the ports of a form are not known.
    pub cycles: Option<f64>,
    /// The resources that need as long: `slots`, or sets of ports.
    pub binds: Vec<String>,
    /// The ports that the mix may use, and what they do in the most even one of the best assignments.
    pub loads: Vec<PortLoadRecord>,
    /// The ports of each form.
    pub parts: Vec<MixPartPorts>,
}

/// What a port does for a mix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PortLoadRecord {
    /// The port's name in the result file.
    pub port: String,
    /// µops of one mix, on average.
    pub uops: f64,
}

/// The ports of a form in a mix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MixPartPorts {
    /// The mnemonic and the operands.
    pub form: String,
    /// The µops of a copy, such as `1*A0123+1*L01`; `None` if they are not known.
    pub ports: Option<String>,
    /// Number of answers that explain its times: with several, `ports` is the simplest.
    pub solutions: usize,
    /// Why its ports are not known; `None` if they are.
    pub why: Option<String>,
}

/// The name of dispatch slots as a resource.
pub const SLOTS_RESOURCE: &str = "slots";

/// A lower limit of a mix's cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MixBoundRecord {
    /// The resource: `slots`, or a set of ports.
    pub resource: String,
    /// How much of it one mix needs.
    pub needed: f64,
    /// How much of it there is in a core cycle.
    pub per_cycle: f64,
    /// Core cycles of one mix: the one divided by the other.
    pub cycles: f64,
}

impl MixBoundRecord {
    /// The limit by a resource of which there is this much in a core cycle.
    pub fn new(resource: &str, needed: f64, per_cycle: f64) -> MixBoundRecord {
        MixBoundRecord { resource: resource.to_string(), needed, per_cycle, cycles: needed / per_cycle }
    }
}

/// An order of the copies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MixOrderRecord {
    /// Its name.
    pub order: String,
    /// How often its code repeats the mix, with other registers.
    pub repeats: usize,
    /// Registers that the results of each form rotate through. Copies of a form that also reads its
    /// destination form a chain in each register.
    pub registers: Vec<usize>,
    /// Core cycles of one mix in the first pass; `None` before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Quantity>,
}

impl MixRecord {
    /// Whether a manifest may contain it, for this number of snippets.
    pub fn is_sound(&self, snippets: usize) -> bool {
        let counts = self.parts.iter().all(|part| part.count > 0);
        let is_bound = |bound: &MixBoundRecord| bound.cycles.is_finite() && bound.cycles >= 0.0;
        let bounds = self.bounds.iter().all(is_bound);
        let repeats = self.orders.iter().all(|order| order.repeats > 0);
        let is_finite = |ports: &MixPortsRecord| {
            let loads = ports.loads.iter().map(|load| load.uops);
            loads.chain(ports.cycles).all(|figure| figure.is_finite() && figure >= 0.0)
        };
        let bounds = bounds && self.ports.iter().all(is_finite);
        repeats && !self.parts.is_empty() && counts && bounds && self.orders.len() == snippets
    }

    /// Whether a file of ports was given, and lacks the ports of a form.
    pub fn lacks_ports(&self) -> bool {
        self.ports.as_ref().is_some_and(|ports| ports.cycles.is_none())
    }

    /// The fastest order, once it is known.
    pub fn fastest_order(&self) -> Option<&MixOrderRecord> {
        self.orders.iter().find(|order| Some(&order.order) == self.fastest.as_ref())
    }

    /// Enters the costs of the first pass. Returns the index of the fastest order: the only one, or
    /// `None` if none of several has a cost.
    pub fn choose_order(&mut self, costs: Vec<Quantity>) -> Option<usize> {
        let known = costs.iter().enumerate().filter_map(|(at, cost)| Some((at, cost.value?)));
        let least = known.min_by(|one, other| one.1.total_cmp(&other.1)).map(|(at, _)| at);
        let fastest = least.or((costs.len() == 1).then_some(0));
        self.fastest = fastest.map(|at| self.orders[at].order.clone());
        self.orders.iter_mut().zip(costs).for_each(|(order, cost)| order.cost = Some(cost));
        fastest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_core::statistics::Interval;
    use cyclescope_core::unit::Unit;

    #[test]
    fn the_fastest_order_with_a_number_is_chosen() {
        let order =
            |name: &str| MixOrderRecord { order: name.to_string(), repeats: 2, registers: Vec::new(), cost: None };
        let orders = ["blocks", "interleaved", "random 1"].map(order).to_vec();
        let mut mix =
            MixRecord { parts: Vec::new(), chains: Vec::new(), bounds: Vec::new(), ports: None, orders, fastest: None };
        let cost = |value| Quantity::new(Interval::with_margin(value, 0.1), Unit::CoreCycles);
        let costs = vec![cost(3.5), Quantity::refused(Unit::CoreCycles), cost(3.0)];
        assert_eq!((mix.choose_order(costs.clone()), mix.fastest.as_deref()), (Some(2), Some("random 1")));
        assert_eq!(mix.orders[0].cost, Some(costs[0]));
        assert!(!mix.is_sound(3), "it has no form");
        assert_eq!((mix.choose_order(vec![costs[1]; 3]), mix.fastest.as_deref()), (None, None));
        mix.orders.truncate(1);
        assert_eq!((mix.choose_order(vec![costs[1]]), mix.fastest.as_deref()), (Some(0), Some("blocks")));
    }
}
