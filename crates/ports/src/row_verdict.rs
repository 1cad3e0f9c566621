//! Builds the row of a form: its verdict, the reason, and its ports.

use crate::class_findings::ClassMix;
use crate::class_set::ClassSet;
use crate::fitted_mix::read_port_cycles;
use crate::forms_survey::{SurveyedForm, SurveyedPorts};
use crate::port_labels::PortBits;
use crate::ports_row::{PortResource, PortsRow, PortsVerdict, RowStart};
use crate::union_bounds::UnionStanding;
use crate::uop_fit::UopFit;
use cyclescope_core::unit::Unit;
use cyclescope_instr::experiments::slot_judgement::SlotVerdict;
use cyclescope_instr::mixes::mix_timer::MixTime;
use cyclescope_measure::result::caveat::{Caveat, CaveatKind};
use cyclescope_measure::result::record::Quantity;

/// Solutions that a row counts.
const SOLUTIONS_MOST: usize = 3;
/// Mixes that the reason of a row names.
const NAMED_MIXES: usize = 3;

impl SurveyedPorts {
    /// The row of a form. `names` has the names of all forms of the source.
    pub(crate) fn build_row(
        &self,
        form: usize,
        surveyed: &SurveyedForm,
        names: &[String],
        start: RowStart,
    ) -> PortsRow {
        let time = self.alone[form].as_ref();
        let cycles = time.map(MixTime::to_quantity);
        let start = RowStart { cycles, ..start };
        let without = |start, verdict, why: &str| PortsRow::without_ports(start, verdict, why.to_string());
        let slots = surveyed.slots.as_ref();
        let slots_reason =
            slots.and_then(|slots| slots.why.clone()).unwrap_or("its slots were not counted".to_string());
        match (&surveyed.place, time, slots.map(|slots| slots.verdict)) {
            (Err(why), ..) => return without(start, PortsVerdict::Untold, why),
            (_, None, _) => {
                let row = without(start, PortsVerdict::Untold, "alone, it has no time");
                let text = "no round of its copies alone was undisturbed".to_string();
                return PortsRow { caveats: vec![Caveat { code: CaveatKind::Noisy, text }], ..row };
            }
            (.., Some(SlotVerdict::Microcoded)) => return without(start, PortsVerdict::Microcoded, &slots_reason),
            (.., Some(SlotVerdict::Exact)) => {}
            _ => return without(start, PortsVerdict::Untold, &format!("its slots are not certain: {slots_reason}")),
        }
        if !surveyed.chains.is_empty() {
            let why = format!("its copies depend on each other through {}", surveyed.chains.join(" and "));
            return without(start, PortsVerdict::Untold, &why);
        }
        match (self.classes[form], &self.fits[form]) {
            (Some(class), _) => self.build_class_row(class, names, start),
            (None, Some(fit)) => self.build_fit_row(form, fit, surveyed, start),
            (None, None) => without(start, PortsVerdict::Untold, "it takes too many slots or core cycles"),
        }
    }

    fn build_class_row(&self, class: usize, names: &[String], start: RowStart) -> PortsRow {
        let component = self.findings.find_component(class).expect("each class has one");
        let own = self.labels.list_ports(class);
        let sets = component.list_own_sets(class).len();
        let (verdict, reason) = match () {
            () if component.odd.contains(class) => (PortsVerdict::Odd, "no ports explain all mixes; "),
            () if sets == 0 => (PortsVerdict::Several, "there are too many maps to find all; "),
            () if component.is_certain(class) && self.findings.is_contradicted(class) => {
                (PortsVerdict::Shared, "no port explains all of its slow mixes; ")
            }
            () if component.is_certain(class) && self.findings.has_standing(class, UnionStanding::NoPort) => {
                (PortsVerdict::Shared, "beside some forms that share no port with it, it is slow; ")
            }
            () if component.is_certain(class) && self.findings.has_standing(class, UnionStanding::Unclear) => {
                (PortsVerdict::Several, "beside some forms it is slow, as are others that share no port; ")
            }
            () if component.is_certain(class) => (PortsVerdict::Exact, ""),
            () if !component.steered => {
                (PortsVerdict::Several, "the core spreads its µops evenly, so time shows only what it touches; ")
            }
            () => (PortsVerdict::Several, "several maps explain all mixes; "),
        };
        let cycles = start.cycles.unwrap_or(Quantity::refused(Unit::CoreCycles));
        let count = self.findings.classes[class].ports;
        let scale = |value: Option<f64>| value.map(|value| value * f64::from(count));
        let port_cycles =
            Quantity { value: scale(cycles.value), low: scale(cycles.low), high: scale(cycles.high), ..cycles };
        let mut row = PortsRow::without_ports(start, verdict, format!("{reason}{}", self.describe_class(class, names)));
        row.class = names.get(self.findings.classes[class].members[0]).cloned();
        row.solutions = sets.min(SOLUTIONS_MOST);
        if own != 0 {
            row.resources = vec![PortResource::new(self.labels.describe(own), count, port_cycles)];
            row.ports = Some(self.labels.describe_uops(&[own]));
        }
        row
    }

    /// The mixes that say most about a class.
    fn describe_class(&self, class: usize, names: &[String]) -> String {
        let own = self.findings.bounds.iter().filter(|bounds| {
            bounds.classes.contains(class) && bounds.classes.count_classes() == 2 && bounds.is_shared()
        });
        let sentence = |classes: ClassSet, text: String| {
            Some(format!("{} {text}", describe_mix(self.find_slowest_mix(classes)?, names)))
        };
        let shared = own.filter_map(|bounds| {
            let (low, high) = (bounds.lower, bounds.upper);
            let ports = if low == high { format!("{low}") } else { format!("{low} to {high}") };
            sentence(bounds.classes, format!("({ports} ports together)"))
        });
        let shared: Vec<String> = shared.take(NAMED_MIXES).collect();
        match shared.is_empty() {
            true => {
                format!("{} ports by its rate; it shares none with another class", self.findings.classes[class].ports)
            }
            false => shared.join("; "),
        }
    }

    /// What a form does, but none of these µops can. A slot may hold two µops, and mixes show only those
    /// that slow a class down.
    fn find_missing_work(&self, uops: &[PortBits], surveyed: &SurveyedForm) -> Option<&'static str> {
        let has = |units: &[char]| uops.iter().any(|ports| self.labels.has_unit(*ports, units));
        match () {
            () if surveyed.reads_memory && !has(&['L', 'P']) => Some("loads"),
            () if surveyed.is_compound && !has(&['A', 'V', 'K', 'P']) => Some("computes"),
            () => None,
        }
    }

    fn build_fit_row(&self, form: usize, fit: &UopFit, surveyed: &SurveyedForm, start: RowStart) -> PortsRow {
        let solutions = fit.solutions.len();
        let missing = fit.solutions.first().and_then(|uops| self.find_missing_work(uops, surveyed));
        let (verdict, why) = match (solutions, &fit.nearest) {
            (1, _) if missing.is_some() => {
                let missing = missing.unwrap_or_default();
                (PortsVerdict::Several, format!("these µops explain its mixes, and none of them {missing}"))
            }
            (1, _) if fit.missing > 0 => {
                let text = format!("these µops explain its mixes, and {} with classes have no time", fit.missing);
                (PortsVerdict::Several, text)
            }
            (1, _) if fit.is_slow_beside_odd => {
                let text = "these µops explain its mixes, and it is slow beside forms whose ports are unknown";
                (PortsVerdict::Several, text.to_string())
            }
            (1, _) if fit.twins > 0 => {
                let slow = if fit.twins == 1 { "mix that is slow is" } else { "mixes that are slow are" };
                let text = format!(
                    "one list of µops explains it: {} {slow} as slow with single instructions instead of it",
                    fit.twins
                );
                (PortsVerdict::Exact, text)
            }
            (1, _) => (PortsVerdict::Exact, "one list of µops explains its mixes with all classes".to_string()),
            (0, Some((nearest, excess))) => {
                let text = format!(
                    "no list of µops explains its mixes: the nearest, {}, leaves {:.0} % of a time unexplained",
                    if nearest.is_empty() { "none".to_string() } else { self.labels.describe_uops(nearest) },
                    100.0 * excess
                );
                (PortsVerdict::Odd, text)
            }
            (0, None) => (PortsVerdict::Odd, "its mixes are faster than any list of µops allows".to_string()),
            (count, _) => (PortsVerdict::Several, format!("{count} lists of µops explain its mixes with all classes")),
        };
        let uops = fit.solutions.first();
        let mut row = PortsRow::without_ports(start, verdict, why);
        row.solutions = solutions.min(SOLUTIONS_MOST);
        let Some(uops) = uops else { return row };
        if uops.is_empty() {
            let slots = surveyed.count_slots().unwrap_or_default();
            row.why = format!("it slows no class down: it takes {slots} slots and no port that a class uses");
            row.verdict = PortsVerdict::Untold;
            return row;
        }
        let mut sets: Vec<PortBits> = uops.clone();
        sets.sort_unstable();
        sets.dedup();
        let resource = |set: &PortBits| {
            let cycles = read_port_cycles(&self.fitted_mixes[form], uops, *set);
            PortResource::new(self.labels.describe(*set), set.count_ones(), cycles)
        };
        row.resources = sets.iter().map(resource).collect();
        row.ports = Some(self.labels.describe_uops(uops));
        row
    }
}

/// A mix in words.
fn describe_mix(mix: &ClassMix, names: &[String]) -> String {
    let part = |part: &cyclescope_instr::mixes::mix::MixPart| {
        format!("{} × `{}`", part.count, names.get(part.form).map_or("?", String::as_str))
    };
    let parts: Vec<String> = mix.mix.parts.iter().map(part).collect();
    format!("{} in {:.2}", parts.join(" and "), mix.time.cycles)
}
