//! How well what was found agrees with what was planted.

use crate::planted::{cycle, instance, origin};
use cyclescope_code::asm::forms::{InstructionForm, OperandVariant};
use cyclescope_instr::bodies::x87;
use cyclescope_instr::experiments::experiment::ExperimentMeaning;
use cyclescope_instr::experiments::form_plan::FormPlan;
use cyclescope_instr::forms::form_anatomy::{OperandPlace, RegisterBank};
use cyclescope_instr::rows::instr_row::{InstrRow, LatencyBound, OperandLatency};
use cyclescope_sim::CoreModel;
use iced_x86::{CpuidFeature, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register, UsedRegister};

/// Core cycles that a latency may be off.
const OFF: f64 = 0.05;
/// Two numbers of an account are rounded to hundredths.
const ROUNDED: f64 = 0.011;
/// What a throughput may be off: the loop's own instructions take room too.
const RATE_OFF: f64 = 0.02;
const RATE_SHARE: f64 = 0.03;
/// Registers that results rotate through, at least: where there are eight of a kind, or two results, and elsewhere.
const FEW: f64 = 6.0;
const MANY: f64 = 10.0;
/// Registers that have a high byte.
const HIGH_BYTES: f64 = 4.0;
/// Core cycles that an instruction which breaks a dependency may take from the others at most.
const BREAKER: f64 = 1.0;
/// One destination must cost more than several by this factor for a false dependency to show.
const FALSE_SHARE: f64 = 1.2;
/// Forms that must be found as planted.
const SHARE: f64 = 0.99;

/// What was found in many forms.
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

/// Why the model does not tell what a form costs.
fn approximate(sample: &Instruction) -> Option<&'static str> {
    if sample.is_vsib() {
        Some("masks end gathers and scatters, and their elements are four")
    } else if x87::uses_stack(sample) {
        Some("the top of the x87 stack is in all instances")
    } else if sample.is_string_instruction() || sample.is_stack_instruction() {
        Some("implied addresses move by themselves")
    } else if implied_vectors(sample) {
        Some("all its implied registers carry a value to the next instance")
    } else if sample.cpuid_features().iter().any(is_padlock) {
        Some("repeats without a count that is set up")
    } else if sample.mnemonic() == Mnemonic::Cpuid {
        Some("waits for all before it, its own links too")
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
                // Where memory is renamed, the model tells what is not.
                Some("renamed") if model.renamed_latency.is_some() => {}
                _ => self.latency(row, latency, plan, model),
            }
        }
        self.tagged(row, plan, model);
        self.right += usize::from(self.wrong.len() + self.wrong_exact.len() == before);
    }

    fn throughput(&mut self, row: &InstrRow, plan: &FormPlan, model: &CoreModel) {
        let sample = &plan.anatomy.sample;
        let planted = model.throughput(sample);
        let found = row.throughput.as_ref().and_then(|throughput| throughput.cost.value).unwrap_or(f64::NAN);
        // An operand that is read and written waits for the instance that wrote its register.
        let ports = model.latencies(sample).into_iter().filter(|(from, to, _)| from == to);
        let slowest = ports.map(|(.., cycles)| f64::from(cycles)).fold(0.0, f64::max) / rotation(plan);
        let most = f64::max(slowest, planted + BREAKER * breakers(plan));
        let off = RATE_OFF + RATE_SHARE * planted;
        if !(planted - off..=most + off).contains(&found) {
            self.wrong.push(format!("{}: throughput {found:.3}, planted {planted:.3}", name(row)));
        }
    }

    fn latency(&mut self, row: &InstrRow, latency: &OperandLatency, plan: &FormPlan, model: &CoreModel) {
        let value = latency.cost.value.unwrap_or(f64::NAN);
        let Some(experiment) = origin(plan, latency) else {
            // Where memory is renamed in every chain, what the address costs stands for what the data do.
            assert!(
                latency.from == "mem_data" && latency.bound == LatencyBound::Upper,
                "{latency:?} is from no experiment"
            );
            return;
        };
        let planted = cycle(model, &experiment, &plan.anatomy.sample);
        let told = |what: &str| {
            let (from, to, variant) = (&latency.from, &latency.to, latency.variant.as_deref().unwrap_or_default());
            format!("{}: {what} {from} to {to} {variant} {value:.3}, planted {planted:?}: {}", name(row), latency.chain)
        };
        let right = match (latency.bound, planted) {
            (LatencyBound::Exact, Some((own, _))) => (value - f64::from(own)).abs() <= OFF,
            (LatencyBound::Sum, Some((own, links))) => {
                // A form's own store and the link's may meet at the one port for stores.
                let meet = plan.anatomy.writes_place(OperandPlace::Memory) && experiment_stores(&experiment.meaning)
                    || experiment.meaning.is_alternating();
                let over = whole(latency) - f64::from(own + links);
                let rest = (whole(latency) - subtracted(latency)).max(0.0);
                (-OFF..=OFF + f64::from(u8::from(meet))).contains(&over) && (value - rest).abs() <= ROUNDED
            }
            (LatencyBound::Upper, Some((own, links))) => whole(latency) >= f64::from(own + links) - OFF || value < 1.0,
            // One that depends on nothing, once a cycle: its time cannot tell.
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
            (false, LatencyBound::Exact) => self.wrong_exact.push(told("exact")),
            (false, bound) => self.wrong.push(told(&format!("{bound:?}"))),
        }
    }

    fn tagged(&mut self, row: &InstrRow, plan: &FormPlan, model: &CoreModel) {
        let sample = &plan.anatomy.sample;
        let same = plan.experiments.iter().find(|experiment| {
            matches!(&experiment.meaning, ExperimentMeaning::Latency { variant: Some(variant), .. } if variant == "same register")
        });
        let same = same.and_then(|experiment| instance(experiment, sample));
        let own = model.latency(sample, "op1", "op1");
        let shows = own.is_some_and(|own| f64::from(own) >= FALSE_SHARE * model.throughput(sample));
        let planted = [
            ("eliminated", model.is_eliminated(sample)),
            ("zero_idiom", same.is_some_and(|same| model.is_zero_idiom(&same))),
            ("false_dependency", model.has_false_dependency(sample) && shows),
        ];
        for (tag, planted) in planted {
            let is_it = |found: &String| found == tag || tag == "false_dependency" && found == "partial_write";
            let found = row.tags.iter().any(is_it);
            self.tags += usize::from(found);
            if planted && !found || found && !planted && !(tag == "false_dependency" && own.is_some()) {
                self.wrong.push(format!("{}: {tag} found {found}, planted {planted}", name(row)));
            }
        }
    }

    /// In a line.
    pub fn text(&self) -> String {
        let judged = self.measured - self.approximate;
        format!(
            "{} of {judged} forms as planted ({} approximate, {} skipped, {} failed); {} exact, {} wrong; {} sums, {} bounds, \
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

    /// What was wrong.
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
        assert!(share >= SHARE, "{share:.4} of the forms are as planted");
    }
}

/// What a chain took, links and all, which its text begins its account with, and what renaming may have hidden.
fn whole(latency: &OperandLatency) -> f64 {
    let number = |text: &str| text.parse::<f64>().expect("a number of cycles");
    let account = latency.chain.split_once(" less ").and_then(|(begin, _)| begin.rsplit(" [").next());
    let hidden = latency.chain.split_once(" [and ").and_then(|(_, end)| end.split(' ').next());
    account.map(number).or(latency.cost.value).expect("it was measured") + hidden.map_or(0.0, number)
}

/// What was subtracted from that.
fn subtracted(latency: &OperandLatency) -> f64 {
    let account = latency.chain.split_once(" less ").and_then(|(_, end)| end.split(' ').next());
    account.map_or(0.0, |text| text.parse().expect("a number of cycles"))
}

fn experiment_stores(meaning: &ExperimentMeaning) -> bool {
    matches!(meaning, ExperimentMeaning::Latency { links, .. } if links.iter().any(|link| link.to == RegisterBank::Memory))
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

/// Instructions that break dependencies and take room in the fastest program, for each instance.
fn breakers(plan: &FormPlan) -> f64 {
    use cyclescope_instr::bodies::throughput_body::DependencyHazards;
    let hazards = DependencyHazards::from_anatomy(&plan.anatomy);
    (hazards.registers.len() + usize::from(hazards.flags)) as f64
}
