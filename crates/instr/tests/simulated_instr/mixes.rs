//! Times mixes on simulated cores with known ports.

use super::timing_of;
use crate::everything::everything;
use cyclescope_code::asm::CodeMode;
use cyclescope_code::program::Program;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::Machine;
use cyclescope_core::random::Random;
use cyclescope_exec::{Batch, Capabilities, Executor, PlacedArea, PrivilegeRing, Sample};
use cyclescope_instr::forms::target_form::TargetForm;
use cyclescope_instr::mixes::mix::Mix;
use cyclescope_instr::mixes::mix_form::MixForm;
use cyclescope_instr::mixes::mix_order::MixOrder;
use cyclescope_instr::mixes::mix_timer::{MixEffort, MixOutcome, MixTime, MixTimer};
use cyclescope_instr::selection::list_forms;
use cyclescope_sim::{
    CoreModel, PortAssignment, PortMask, Scenario, SimulatedCore, SimulatedLayoutEffects, SimulatedMode,
    SimulatedNoise, SimulatedPortMap,
};
use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use std::time::Duration;

/// Forms whose copies are independent, with registers of their own.
const FORMS: [&str; 10] = [
    "vpshufb xmm, xmm, xmm",
    "vmulps ymm, ymm, ymm",
    "vpmulld xmm, xmm, m128",
    "vpaddd zmm, zmm, zmm",
    "pdep r64, r64, r64",
    "shlx r64, r64, r64",
    "popcnt r64, r64",
    "mov r64, m64",
    "vmovd r32, xmm",
    "lea r64, [b+d8]",
];

/// The forms that the core gives no dependency on their old result.
fn list_mix_forms(model: &CoreModel) -> Vec<(TargetForm, MixForm)> {
    let all = list_forms(CodeMode::Bits64);
    let named = FORMS.iter().map(|name| {
        let is_named = |target: &&TargetForm| format!("{} {}", target.mnemonic(), target.operands()) == **name;
        all.iter().find(is_named).expect("a form has this name").clone()
    });
    let independent =
        named.filter(|target| !model.has_false_dependency(&target.anatomy().expect("an instance").sample));
    let features = everything();
    let with_form = |target: TargetForm| {
        let form = MixForm::new(&target, &features, PrivilegeRing::Three).expect("it can be in a mix");
        (target, form)
    };
    independent.map(with_form).collect()
}

/// Core cycles of a mix by the best assignment.
fn best_cycles(model: &CoreModel, forms: &[(TargetForm, MixForm)], mix: &Mix) -> f64 {
    let map = model.port_map.as_ref().expect("the model has a map");
    let (mut slots, mut work) = (0.0, Vec::new());
    for part in &mix.parts {
        let sample = forms[part.form].0.anatomy().expect("an instance").sample;
        slots += f64::from(model.slots(&sample).expect("no microcode")) * part.count as f64;
        let set = |ports: Vec<u32>| ports.into_iter().fold(0, |set: PortMask, port| set | 1 << port);
        work.extend(model.port_uses(&sample).into_iter().map(|ports| (set(ports), part.count as f64)));
    }
    map.best_cycles(slots, &work)
}

fn time_random_mixes(model: &CoreModel, scenario: Scenario, seed: u64, number: usize) -> Vec<(MixOutcome, f64)> {
    let forms = list_mix_forms(model);
    let mut random = Random::new(seed);
    let mut mixes = Vec::new();
    while mixes.len() < number {
        let mut order: Vec<usize> = (0..forms.len()).collect();
        random.shuffle(&mut order);
        mixes.push(Mix::new(order[..2 + random.below(3)].iter().map(|form| (*form, 1 + random.below(5)))));
    }
    let timing = timing_of(model, scenario.step as f64);
    let own: Vec<MixForm> = forms.iter().map(|(_, form)| form.clone()).collect();
    let effort = MixEffort { orders: 4, ..MixEffort::FULL };
    let timer = MixTimer::new(timing, &own, effort, 0.95);
    let mut core = SimulatedCore::with_scenario(model.clone(), scenario, seed);
    let outcomes = timer.time_mixes(&mut core, &mixes, &mut random).expect("nothing fails");
    outcomes.into_iter().zip(mixes.iter().map(|mix| best_cycles(model, &forms, mix))).collect()
}

/// A core that hangs in programs with a mnemonic.
struct HangingCore {
    core: SimulatedCore,
    mnemonic: Mnemonic,
}

impl Executor for HangingCore {
    fn capabilities(&self) -> &Capabilities {
        self.core.capabilities()
    }

    fn machine(&self) -> &Machine {
        self.core.machine()
    }

    fn stream(&mut self, batch: &Batch, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError> {
        let hangs = |program: &Program| {
            let code = Decoder::new(64, program.snippet(), DecoderOptions::NONE);
            code.into_iter().any(|one| one.mnemonic() == self.mnemonic)
        };
        match batch.programs.iter().any(hangs) {
            true => Err(RunError::Hung { deadline_ms: 1 }),
            false => self.core.stream(batch, take),
        }
    }

    fn placed_areas(&self) -> Vec<PlacedArea> {
        self.core.placed_areas()
    }

    fn now(&self) -> Duration {
        self.core.now()
    }

    fn pause(&mut self, time: Duration) {
        self.core.pause(time);
    }
}

#[test]
fn a_mix_that_can_not_run_leaves_the_others_their_times() {
    let model = CoreModel::with_port_map(5, SimulatedPortMap::zen_4(PortAssignment::Best));
    let forms: Vec<MixForm> = list_mix_forms(&model).into_iter().map(|(_, form)| form).collect();
    let place = |mnemonic: Mnemonic| forms.iter().position(|form| form.code().mnemonic() == mnemonic);
    let (Some(hanging), Some(load)) = (place(Mnemonic::Popcnt), place(Mnemonic::Mov)) else {
        panic!("the seed has these forms");
    };
    let others = (0..forms.len()).filter(|form| *form != load);
    let mixes: Vec<Mix> = others.map(|form| Mix::new([(load, 2), (form, 3)])).collect();
    let timing = timing_of(&model, 2.0);
    let timer = MixTimer::new(timing, &forms, MixEffort::QUICK, 0.95);
    let mut core = HangingCore { core: SimulatedCore::new(model, 5), mnemonic: Mnemonic::Popcnt };
    let outcomes = timer.time_mixes(&mut core, &mixes, &mut Random::new(5)).expect("only one mix fails");
    for (mix, outcome) in mixes.iter().zip(outcomes) {
        let has_hanging = mix.parts.iter().any(|part| part.form == hanging);
        assert_eq!(matches!(outcome, MixOutcome::Refused(_)), has_hanging, "{outcome:?}");
    }
}

fn expect_time(outcome: &MixOutcome) -> MixTime {
    match outcome {
        MixOutcome::Timed(time) => *time,
        MixOutcome::Refused(why) => panic!("{why}"),
    }
}

#[test]
fn mixes_have_the_time_of_their_ports() {
    for assignment in PortAssignment::ALL {
        for (seed, (name, map)) in (0..).zip(SimulatedPortMap::presets(assignment)) {
            let model = CoreModel { microcode_above: None, ..CoreModel::with_port_map(seed, map) };
            for (outcome, best) in time_random_mixes(&model, Scenario { step: 2, ..Scenario::default() }, seed, 8) {
                let time = expect_time(&outcome);
                // A rate may be as low as the longest call alone allows, 6 000 cycles that begin slowly.
                assert!(time.cycles > 0.97 * best, "{name} {assignment:?}: {time:?} for {best}");
                assert!(time.worst >= time.cycles && time.low <= time.cycles && time.cycles <= time.high);
                if assignment == PortAssignment::Best {
                    assert!(time.cycles < 1.02 * best, "{name}: {time:?} for {best}");
                }
            }
        }
    }
}

#[test]
fn a_noisy_core_with_a_busy_sibling_has_the_same_times() {
    let sibling = Scenario::find_preset("sibling_spells").expect("a preset").sibling;
    for (seed, relative) in [(3, 0.003), (4, 0.015)] {
        let model = CoreModel::with_port_map(seed, SimulatedPortMap::zen_5(PortAssignment::Best));
        let noise = SimulatedNoise::LogNormal { probability: 0.1, median: 20.0, sigma: 0.7 };
        let layout = SimulatedLayoutEffects { relative, ..SimulatedLayoutEffects::default() };
        let scenario = Scenario { step: 26, noise, layout, sibling, ..Scenario::default() };
        for (outcome, best) in time_random_mixes(&model, scenario, seed, 12) {
            let time = expect_time(&outcome);
            assert!((0.97 * best..1.04 * best).contains(&time.cycles), "{time:?} for {best}");
        }
    }
}

#[test]
fn layouts_in_a_slow_mode_do_not_count_if_others_are_fast() {
    let model = CoreModel::with_port_map(6, SimulatedPortMap::golden_cove(PortAssignment::Best));
    let mode = Some(SimulatedMode { probability: 0.3, factor: 1.2, by_program: true });
    let layout = SimulatedLayoutEffects { mode, ..SimulatedLayoutEffects::default() };
    let found = time_random_mixes(&model, Scenario { step: 2, layout, ..Scenario::default() }, 6, 12);
    let ratios: Vec<f64> = found.iter().map(|(outcome, best)| expect_time(outcome).cycles / best).collect();
    // Of four layouts, fewer than two are fast in one of twelve mixes.
    let fast = ratios.iter().filter(|ratio| **ratio < 1.02).count();
    assert!(fast >= 9 && ratios.iter().all(|ratio| (0.97..1.25).contains(ratio)), "{ratios:?}");
}

#[test]
fn the_same_seed_gives_the_same_times() {
    let model = CoreModel::with_port_map(7, SimulatedPortMap::skylake(PortAssignment::LeastLoaded));
    let times = || time_random_mixes(&model, Scenario::default(), 7, 6);
    assert_eq!(times(), times());
    let orders: Vec<MixOrder> = times().iter().map(|(outcome, _)| expect_time(outcome).order).collect();
    assert!(orders.iter().any(|order| *order != orders[0]), "{orders:?}");
}
