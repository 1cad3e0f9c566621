//! Named scenarios. Each is the clean machine with one disturbance, stronger than on most real
//! machines. A measurement of some thousand calls, about ten million ticks, meets each disturbance
//! several times.

use super::scenario::*;

impl Scenario {
    /// The named scenarios.
    pub fn presets() -> Vec<(&'static str, Scenario)> {
        let clean = Scenario::default;
        let with = |change: fn(&mut Scenario)| {
            let mut scenario = clean();
            change(&mut scenario);
            scenario
        };
        vec![
            ("clean", clean()),
            ("coarse_step_26", with(|s| s.step = 26)),
            ("coarse_step_38", with(|s| s.step = 38)),
            ("coarse_step_100", with(|s| s.step = 100)),
            ("half_rate", with(|s| s.ratio = 0.503_717)),
            ("double_rate", with(|s| s.ratio = 1.987_131)),
            ("layout_spread", with(add_layout_spread)),
            ("interrupts", with(|s| s.interrupts = SimulatedGaps { rate: 1e-6, ticks: 8000.0 })),
            ("steal", with(|s| s.steal = SimulatedGaps { rate: 2.5e-7, ticks: 5e6 })),
            ("drift", with(|s| s.frequency.drift = 0.003)),
            ("jumps", with(|s| s.frequency.jump_rate = 3e-7)),
            ("sibling_spells", with(add_sibling_spells)),
            ("ruler_hits", with(|s| s.ruler_hits = SimulatedHits { probability: 0.02, ticks: 300.0 })),
            ("buffers", with(add_buffer)),
            ("slack", with(add_slack)),
            ("training", with(|s| s.training = SimulatedTraining { calls: 6, extra: 900.0 })),
            ("heavy_tail", with(add_heavy_tail)),
            ("replayed", with(|s| s.noise = SimulatedNoise::Replayed(recorded_residuals()))),
        ]
    }

    /// Cores and clocks that differ from the clean machine without a disturbance. Every study must
    /// find the truth on each. Figures of imul and additions: Agner Fog's instruction tables.
    pub fn machine_variants() -> Vec<(&'static str, Scenario)> {
        let with = |change: fn(&mut Scenario)| {
            let mut scenario = Scenario::default();
            change(&mut scenario);
            scenario
        };
        vec![
            ("step_1", with(|s| s.step = 1)),
            ("step_26", with(|s| s.step = 26)),
            ("step_38", with(|s| s.step = 38)),
            ("step_42", with(|s| s.step = 42)),
            ("slow_core", with(|s| s.ratio = 0.503_717)),
            // An MFENCE of forty cycles overlaps with up to eleven of the body before it (Zen 5).
            ("fences_overlap", with(|s| (s.slack, s.step) = (11.0, 26))),
            ("goldmont", with(|s| (s.imul_latency, s.adds_per_cycle) = (5, 3.0))),
            ("piledriver", with(|s| (s.imul_latency, s.adds_per_cycle) = (6, 2.0))),
            ("zen_5", with(|s| (s.adds_per_cycle, s.step, s.ratio) = (6.0, 26, 1.6))),
        ]
    }

    /// The scenario of [`Scenario::presets`] with this name.
    pub fn find_preset(name: &str) -> Option<Scenario> {
        Scenario::presets().into_iter().find(|(known, _)| *known == name).map(|(_, scenario)| scenario)
    }
}

fn add_layout_spread(scenario: &mut Scenario) {
    scenario.layout = SimulatedLayoutEffects { relative: 0.01, absolute: 0.01, mode: None };
    scenario.boundary_spread = 1.5;
}

fn add_sibling_spells(scenario: &mut Scenario) {
    scenario.sibling = Some(SimulatedSibling { busy: 1e6, idle: 2e6, snippet: 0.3 });
}

/// `movnti` as measured on Zen 4: 1.87 cycles for the first 40, then 41.8.
fn add_buffer(scenario: &mut Scenario) {
    scenario.cost = 41.8;
    scenario.buffer = Some(SimulatedBuffer { copies: 40.0, cost: 1.87 });
}

fn add_slack(scenario: &mut Scenario) {
    scenario.slack = 30.0;
    scenario.loop_floor = 7.0;
}

fn add_heavy_tail(scenario: &mut Scenario) {
    scenario.noise = SimulatedNoise::LogNormal { probability: 0.1, median: 120.0, sigma: 1.5 };
}

/// 4096 consecutive samples of a chain of 240 `imul` between `lfence; rdtscp; lfence` and `rdtscp;
/// lfence`, less their median, in ticks. Recorded on a busy Xeon virtual machine (TSC in steps of
/// 38 with offsets of 2), including two interrupts.
pub(crate) fn recorded_residuals() -> Vec<f64> {
    let text = include_str!("residuals.txt");
    text.split_ascii_whitespace().map(|number| number.parse().expect("residuals are numbers")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_found() {
        let presets = Scenario::presets();
        for (index, (name, scenario)) in presets.iter().enumerate() {
            assert!(presets[..index].iter().all(|(other, _)| other != name));
            assert_eq!(Scenario::find_preset(name).as_ref(), Some(scenario));
            assert!(index == 0 || *scenario != Scenario::default(), "{name} is the clean machine");
        }
        assert_eq!(presets.len(), 18);
        assert_eq!(Scenario::find_preset("no such machine"), None);
    }

    #[test]
    fn recorded_residuals_are_centred_and_keep_their_outliers() {
        let mut residuals = recorded_residuals();
        assert_eq!(residuals.len(), 4096);
        residuals.sort_by(f64::total_cmp);
        assert!(residuals[2048].abs() <= 2.0);
        assert!(residuals[4095] > 1000.0);
    }
}
