//! Two latencies of one chain on simulated cores: found where they are simulated, and nowhere else.

use crate::simulated_costs::{cycle, origin};
use crate::{sample, survey};
use cyclescope_code::asm::CodeMode;
use cyclescope_code::asm::Listing;
use cyclescope_code::asm::forms::{self, InstructionForm};
use cyclescope_instr::experiments::experiment::ExperimentMeaning;
use cyclescope_instr::experiments::form_plan::FormPlan;
use cyclescope_instr::rows::instr_row::{LatencyBound, LatencyRegimes, OperandLatency};
use cyclescope_sim::{CoreModel, RegimeClass, SimulatedRegime};
use iced_x86::{Code, Instruction, Mnemonic, Register};

/// Tolerance of a latency, in core cycles.
const OFF: f64 = 0.05;
/// Upper limit of the share of a chain's instructions that have started while others enter the
/// scheduler.
const MOVING: f64 = 0.6;
/// Larger knees, in instructions, need not be found.
const LONG: f64 = 90.0;
/// One of this many forms is measured.
const SAMPLE: usize = 150;

/// Findings of a survey.
#[derive(Debug, Default)]
struct Found {
    /// Chains of the simulated class with two latencies.
    two: usize,
    /// Chains without instructions of the class.
    one: usize,
    wrong: Vec<String>,
}

impl Found {
    fn judge(
        &mut self,
        model: &CoreModel,
        regime: &SimulatedRegime,
        plan: &FormPlan,
        latency: &OperandLatency,
        name: &str,
    ) {
        let Some(experiment) = origin(plan, latency) else { return };
        let ExperimentMeaning::Latency { links, turn, ports, .. } = &experiment.meaning else { return };
        let turn = Listing::from_bytes(turn);
        let turn = turn.instructions();
        let of_class = turn.iter().filter(|one| model.is_in_regime(one)).count();
        let own = cycle(model, &experiment, &plan.anatomy.sample).map(|(own, _)| f64::from(own));
        let right = match (&latency.regimes, own) {
            (found, _) if of_class == 0 => {
                self.one += 1;
                found.is_none()
            }
            // With other instructions in a turn, only the whole is known, and a longer turn has the
            // curve of its links.
            _ if !links.is_empty() || ports.is_none() || turn.len() > 1 => return,
            _ if latency.bound != LatencyBound::Exact || through_memory(latency) => return,
            (Some(found), Some(own)) => {
                self.two += 1;
                matches_simulated(found, regime, own, model.throughput(&plan.anatomy.sample))
            }
            // Too few instructions wait in the measured chains.
            (None, Some(own)) if most(regime, own, model.throughput(&plan.anatomy.sample)) > LONG => return,
            (None, Some(_)) => false,
            (_, None) => return,
        };
        if !right {
            let found = &latency.regimes;
            let text = format!("{name} {} to {}: {own:?} {regime:?}, {found:?}", latency.from, latency.to);
            self.wrong.push(text);
        }
    }
}

fn through_memory(latency: &OperandLatency) -> bool {
    latency.from == "mem_data" || latency.to == "mem_data"
}

/// Whether the figures match a chain that takes `own` in an empty scheduler. Its instructions enter
/// the scheduler at most once per `rate` cycles.
fn matches_simulated(found: &LatencyRegimes, regime: &SimulatedRegime, own: f64, rate: f64) -> bool {
    let saturated = own + f64::from(regime.half_cycles) / 2.0;
    let near = |found: Option<f64>, simulated: f64| found.is_some_and(|found| (found - simulated).abs() <= OFF);
    let range = f64::from(regime.knee) - 3.0..=most(regime, own, rate);
    let at_knee = found.knee.value.is_some_and(|found| range.contains(&found));
    near(found.fresh.value, own) && near(found.saturated.value, saturated) && at_knee
}

/// The largest possible knee of a chain, in instructions. Some have started when others enter, so
/// not all of them wait.
fn most(regime: &SimulatedRegime, own: f64, rate: f64) -> f64 {
    f64::from(regime.knee) / (1.0 - (rate / own).min(MOVING)) + 4.0
}

fn search(model: &CoreModel, seed: u64, forms: &[InstructionForm]) -> Found {
    let regime = model.regime.expect("the model has one");
    let rows = survey(model, seed, forms);
    let mut found = Found::default();
    for (row, plan) in &rows {
        let Some(plan) = plan else { continue };
        for latency in row.latency.iter().filter(|latency| latency.variant.is_none()) {
            found.judge(model, &regime, plan, latency, &format!("{} {}", row.code, row.operands));
        }
    }
    found
}

#[test]
fn two_latencies_are_found_only_where_simulated() {
    let vector = RegimeClass::Vector;
    let one = RegimeClass::Mnemonic(Mnemonic::Vpaddd);
    let cases = [(vector, 50, 2), (vector, 20, 2), (vector, 50, 1), (vector, 20, 1), (one, 50, 2), (one, 20, 1)];
    for (seed, (class, knee, half_cycles)) in (11..).zip(cases) {
        let regime = SimulatedRegime { class, knee, half_cycles };
        let model = CoreModel { regime: Some(regime), ..CoreModel::from_seed(seed) };
        let mut forms = sample(CodeMode::default(), seed, SAMPLE);
        let added = |form: &InstructionForm| form.mnemonic() == "vpaddd" && !forms.contains(form);
        let more: Vec<InstructionForm> = forms::all_forms().filter(added).step_by(3).collect();
        forms.extend(more);
        let found = search(&model, seed, &forms);
        println!("{regime:?}: {} with two latencies, {} with one", found.two, found.one);
        found.wrong.iter().for_each(|line| println!("  {line}"));
        assert!(found.wrong.is_empty() && found.two > 0 && found.one > 10, "{} are wrong", found.wrong.len());
    }
}

/// A core whose vector instructions are late if they wait for two results.
fn late_core(half_cycles: u32) -> CoreModel {
    let zeroing = Instruction::with3(Code::VEX_Vpxor_xmm_xmm_xmmm128, Register::XMM1, Register::XMM1, Register::XMM1);
    let zeroing = zeroing.expect("three registers");
    let models = (1..).map(CoreModel::from_seed);
    let mut models = models.filter(|model| model.is_zero_idiom(&zeroing));
    CoreModel { second_wait_half_cycles: half_cycles, ..models.next().expect("most cores know this idiom") }
}

#[test]
fn a_latency_does_not_contain_the_wait_for_another_operand() {
    let (mut checked, mut wrong) = (0, Vec::new());
    for half_cycles in [1, 2] {
        let model = late_core(half_cycles);
        let three = |form: &InstructionForm| {
            let operands = form.describe_operands();
            ["vpternlogd", "vpaddb", "vpermt2d"].contains(&form.mnemonic().as_str()) && !operands.contains('m')
                || operands == "xmm{k}, xmm, xmm"
        };
        let forms: Vec<InstructionForm> = forms::all_forms().filter(three).step_by(5).collect();
        for (row, plan) in survey(&model, model.seed, &forms) {
            let Some(plan) = plan else { continue };
            for from in ["op2", "op3"] {
                let name = format!("{} {} {from}, {half_cycles} half cycles", row.code, row.operands);
                let sample = &plan.anatomy.sample;
                let own = |from: &str| model.latency(sample, from, "op1");
                let (Some(own), Some(other)) = (own(from), own("op1")) else { continue };
                // A chain is suspect if it is slower than another one, which such an instruction hides.
                if own < other {
                    continue;
                }
                let latency = |variant: Option<&str>| {
                    let fits = |one: &&OperandLatency| {
                        one.from == from && one.to == "op1" && one.variant.as_deref() == variant
                    };
                    row.latency.iter().find(fits)
                };
                let is = |latency: Option<&OperandLatency>, cycles: f64, bound: LatencyBound| {
                    latency.is_some_and(|one| {
                        (one.cost.value.unwrap_or(f64::NAN) - cycles).abs() <= OFF && one.bound == bound
                    })
                };
                let late = f64::from(own) + f64::from(half_cycles) / 2.0;
                let bound = if half_cycles == 2 { LatencyBound::Exact } else { LatencyBound::Upper };
                checked += 1;
                let right = is(latency(None), own.into(), LatencyBound::Exact)
                    && is(latency(Some("two operands awaited")), late, bound);
                if !right {
                    wrong.push(format!("{name}: {own}, {:?}", row.latency));
                }
            }
        }
    }
    wrong.iter().for_each(|line| println!("{line}"));
    assert!(wrong.is_empty() && checked > 10, "{} of {checked} are wrong", wrong.len());
}
