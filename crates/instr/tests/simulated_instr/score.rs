//! Scores results against simulated costs.

use crate::simulated_costs::{cycle, instance, origin};
use cyclescope_code::asm::forms::{InstructionForm, OperandVariant};
use cyclescope_instr::bodies::x87;
use cyclescope_instr::experiments::experiment::ExperimentMeaning;
use cyclescope_instr::experiments::form_plan::FormPlan;
use cyclescope_instr::forms::form_anatomy::{OperandPlace, RegisterBank};
use cyclescope_instr::rows::instr_row::{InstrRow, LatencyBound, OperandLatency};
use cyclescope_sim::CoreModel;
use iced_x86::{CpuidFeature, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register, UsedRegister};

/// Tolerance of a latency, in core cycles.
const OFF: f64 = 0.05;
/// Tolerance of the difference of two figures rounded to hundredths.
const ROUNDED: f64 = 0.011;
/// Tolerance of a throughput: the loop's own instructions take resources too.
const RATE_OFF: f64 = 0.02;
const RATE_SHARE: f64 = 0.03;
/// Lower limit of registers that results rotate through: with eight registers of a kind or with two
/// results, and otherwise.
const FEW: f64 = 6.0;
const MANY: f64 = 10.0;
/// Number of registers with a high byte.
const HIGH_BYTES: f64 = 4.0;
/// Upper limit of core cycles that an instruction which breaks a dependency takes from the others.
const BREAKER: f64 = 1.0;
/// A false dependency shows if one destination costs at least this multiple of several.
const FALSE_SHARE: f64 = 1.2;
/// Least share of forms that must match.
const SHARE: f64 = 0.99;

/// Results over many forms.
#[derive(Debug, Default)]
pub struct Score {
    pub skipped: usize,
    pub failed: Vec<String>,
    measured: usize,
    approximate: usize,
    right: usize,
    exact: usize,
    sums: usize,
    upper: usize,
    tags: usize,
    wrong_exact: Vec<String>,
    wrong: Vec<String>,
}

/// Why the model can't predict a form's cost.
fn approximate(sample: &Instruction) -> Option<&'static str> {
    if sample.is_vsib() {
        Some("masks limit gathers and scatters, and they have four elements")
    } else if x87::uses_stack(sample) {
        Some("all instances use the top of the x87 stack")
    } else if sample.is_string_instruction() || sample.is_stack_instruction() {
        Some("implied addresses advance by themselves")
    } else if implied_vectors(sample) {
        Some("all its implied registers carry a value to the next instance")
    } else if sample.cpuid_features().iter().any(is_padlock) {
        Some("repeats with an unknown count")
    } else if sample.mnemonic() == Mnemonic::Cpuid {
        Some("waits for all older instructions, including its links")
    } else {
        None
    }
}

fn is_padlock(feature: &CpuidFeature) -> bool {
    format!("{feature:?}").starts_with("PADLOCK")
}

fn implied_vectors(sample: &Instruction) -> bool {
    let mut factory = InstructionInfoFactory::new();
    let named = |register: Register| {
        (0..sample.op_count()).any(|operand| sample.op_register(operand).full_register() == register.full_register())
    };
    let used = factory.info(sample).used_registers();
    let written = |used: &&UsedRegister| !matches!(used.access(), OpAccess::Read | OpAccess::CondRead);
    let implied = used.iter().filter(written).map(UsedRegister::register);
    implied.filter(|register| register.is_vector_register() && !named(*register)).count() > 1
}

impl Score {
    pub fn add(&mut self, row: &InstrRow, plan: &FormPlan, model: &CoreModel) {
        self.measured += 1;
        if approximate(&plan.anatomy.sample).is_some() {
            self.approximate += 1;
            return;
        }
        let before = self.wrong.len() + self.wrong_exact.len();
        self.throughput(row, plan, model);
        for latency in &row.latency {
            if let Some(regimes) = &latency.regimes {
                self.wrong.push(format!("{}: {} to {}: {regimes:?}", name(row), latency.from, latency.to));
            }
            match latency.variant.as_deref() {
                Some("false dependency" | "partial write") => {}
                // A form without other inputs that keeps a part of its output.
                None if row.tags.iter().any(|tag| tag == "partial_write") && row.latency.len() == 1 => {}
                // The model's latencies apply to memory that is not renamed.
                Some("renamed") if model.renamed_latency.is_some() => {}
                _ => self.latency(row, latency, plan, model),
            }
        }
        self.tagged(row, plan, model);
        self.right += usize::from(self.wrong.len() + self.wrong_exact.len() == before);
    }

    fn throughput(&mut self, row: &InstrRow, plan: &FormPlan, model: &CoreModel) {
        let sample = &plan.anatomy.sample;
        let simulated = model.throughput(sample);
        let found = row.throughput.as_ref().and_then(|throughput| throughput.cost.value).unwrap_or(f64::NAN);
        // An operand that is read and written waits for the instance that wrote its register.
        let ports = model.latencies(sample).into_iter().filter(|(from, to, _)| from == to);
        let slowest = ports.map(|(.., cycles)| f64::from(cycles)).fold(0.0, f64::max) / rotation(plan);
        let most = f64::max(slowest, simulated + BREAKER * breakers(plan));
        let off = RATE_OFF + RATE_SHARE * simulated;
        if !(simulated - off..=most + off).contains(&found) {
            self.wrong.push(format!("{}: throughput {found:.3}, simulated {simulated:.3}", name(row)));
        }
    }

    fn latency(&mut self, row: &InstrRow, latency: &OperandLatency, plan: &FormPlan, model: &CoreModel) {
        let value = latency.cost.value.unwrap_or(f64::NAN);
        let Some(experiment) = origin(plan, latency) else {
            // If memory is renamed in every chain, the latency from the address serves as a bound.
            assert!(
                latency.from == "mem_data" && latency.bound == LatencyBound::Upper,
                "{latency:?} has no experiment"
            );
            return;
        };
        let simulated = cycle(model, &experiment, &plan.anatomy.sample);
        let describe = |what: &str| {
            let (from, to, variant) = (&latency.from, &latency.to, latency.variant.as_deref().unwrap_or_default());
            format!(
                "{}: {what} {from} to {to} {variant} {value:.3}, simulated {simulated:?}: {}",
                name(row),
                latency.chain
            )
        };
        let right = match (latency.bound, simulated) {
            (LatencyBound::Exact, Some((own, _))) => (value - f64::from(own)).abs() <= OFF,
            (LatencyBound::Sum, Some((own, links))) => {
                // A form's own store and the link's may compete for the only store port.
                let meet = plan.anatomy.writes_place(OperandPlace::Memory) && experiment_stores(&experiment.meaning)
                    || experiment.meaning.is_alternating();
                let over = whole(latency) - f64::from(own + links);
                let rest = (whole(latency) - subtracted(latency)).max(0.0);
                (-OFF..=OFF + f64::from(u8::from(meet))).contains(&over) && (value - rest).abs() <= ROUNDED
            }
            (LatencyBound::Upper, Some((own, links))) => whole(latency) >= f64::from(own + links) - OFF || value < 1.0,
            // An independent instance per cycle: its time does not distinguish it.
            (LatencyBound::Upper, None) => true,
            (_, None) => latency.variant.as_deref() == Some("same register") && value <= 1.0 + OFF,
        };
        match latency.bound {
            LatencyBound::Exact => self.exact += 1,
            LatencyBound::Sum => self.sums += 1,
            LatencyBound::Upper => self.upper += 1,
        }
        match (right, latency.bound) {
            (true, _) => {}
            (false, LatencyBound::Exact) => self.wrong_exact.push(describe("exact")),
            (false, bound) => self.wrong.push(describe(&format!("{bound:?}"))),
        }
    }

    fn tagged(&mut self, row: &InstrRow, plan: &FormPlan, model: &CoreModel) {
        let sample = &plan.anatomy.sample;
        let same = plan.experiments.iter().find(|experiment| {
            matches!(
                &experiment.meaning,
                ExperimentMeaning::Latency { variant: Some(variant), .. } if variant == "same register"
            )
        });
        let same = same.and_then(|experiment| instance(experiment, sample));
        let own = model.latency(sample, "op1", "op1");
        let shows = own.is_some_and(|own| f64::from(own) >= FALSE_SHARE * model.throughput(sample));
        let simulated = [
            ("eliminated", model.is_eliminated(sample)),
            ("zero_idiom", same.is_some_and(|same| model.is_zero_idiom(&same))),
            ("false_dependency", model.has_false_dependency(sample) && shows),
        ];
        for (tag, simulated) in simulated {
            let is_it = |found: &String| found == tag || tag == "false_dependency" && found == "partial_write";
            let found = row.tags.iter().any(is_it);
            self.tags += usize::from(found);
            if simulated && !found || found && !simulated && !(tag == "false_dependency" && own.is_some()) {
                self.wrong.push(format!("{}: {tag} found {found}, simulated {simulated}", name(row)));
            }
        }
    }

    /// The score in one line.
    pub fn text(&self) -> String {
        let judged = self.measured - self.approximate;
        format!(
            "{} of {judged} forms as simulated ({} approximate, {} skipped, {} failed); {} exact, {} wrong; {} sums, {} bounds, \
             {} tags",
            self.right,
            self.approximate,
            self.skipped,
            self.failed.len(),
            self.exact,
            self.wrong_exact.len(),
            self.sums,
            self.upper,
            self.tags
        )
    }

    /// Everything that did not match.
    pub fn complaints(&self) -> Vec<String> {
        self.failed.iter().chain(&self.wrong_exact).chain(&self.wrong).cloned().collect()
    }

    pub fn check(&self, forms: &[InstructionForm]) {
        let judged = self.measured - self.approximate;
        assert_eq!(self.measured + self.skipped + self.failed.len(), forms.len());
        assert!(judged as f64 > 0.9 * forms.len() as f64, "{judged} of {} forms were judged", forms.len());
        assert!(self.exact > judged && self.sums > judged, "{} and {} latencies", self.exact, self.sums);
        assert!(self.wrong_exact.is_empty(), "{} exact latencies are wrong", self.wrong_exact.len());
        let share = self.right as f64 / judged as f64;
        assert!(share >= SHARE, "{share:.4} of the forms are as simulated");
    }
}

/// The cost of the whole chain including links, from its text, plus the part that memory renaming
/// may hide.
fn whole(latency: &OperandLatency) -> f64 {
    let number = |text: &str| text.parse::<f64>().expect("a number of cycles");
    let account = latency.chain.split_once(" less ").and_then(|(begin, _)| begin.rsplit(" [").next());
    let hidden = latency.chain.split_once(" [and ").and_then(|(_, end)| end.split(' ').next());
    account.map(number).or(latency.cost.value).expect("it was measured") + hidden.map_or(0.0, number)
}

/// The subtracted cost of links.
fn subtracted(latency: &OperandLatency) -> f64 {
    let account = latency.chain.split_once(" less ").and_then(|(_, end)| end.split(' ').next());
    account.map_or(0.0, |text| text.parse().expect("a number of cycles"))
}

fn experiment_stores(meaning: &ExperimentMeaning) -> bool {
    matches!(
        meaning,
        ExperimentMeaning::Latency { links, .. } if links.iter().any(|link| link.to == RegisterBank::Memory)
    )
}

fn name(row: &InstrRow) -> String {
    format!("{} {}", row.code, row.operands)
}

fn rotation(plan: &FormPlan) -> f64 {
    if plan.anatomy.form.variants.contains(&OperandVariant::HighByte) {
        return HIGH_BYTES;
    }
    let sample = &plan.anatomy.sample;
    let written =
        plan.anatomy.slots().into_iter().filter(|slot| plan.anatomy.writes_place(OperandPlace::Slot(*slot))).count();
    let eight = (0..sample.op_count()).any(|operand| {
        let register = sample.op_register(operand);
        register.is_mm() || register.is_k()
    });
    if eight || written > 1 { FEW } else { MANY }
}

/// Instructions per instance that break dependencies in the fastest program.
fn breakers(plan: &FormPlan) -> f64 {
    use cyclescope_instr::bodies::dependency_hazards::DependencyHazards;
    let hazards = DependencyHazards::from_anatomy(&plan.anatomy);
    (hazards.registers.len() + usize::from(hazards.flags)) as f64
}
