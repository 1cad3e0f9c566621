use super::*;
use cyclescope_core::random::Random;

/// Instructions of one or more µops that only write their first operand. The seed draws their classes.
const WRITERS: [&str; 14] = [
    "vaddps xmm0, xmm14, xmm15",
    "vpshufb xmm1, xmm14, xmm15",
    "vpmulld xmm2, xmm14, xmm15",
    "vpermilps xmm3, xmm14, 3",
    "vpsadbw xmm4, xmm14, xmm15",
    "vpmaddwd xmm5, xmm14, xmm15",
    "vpackuswb xmm6, xmm14, xmm15",
    "andn rax, r12, r13",
    "pdep rbx, r12, r13",
    "pext rcx, r12, r13",
    "bzhi rdx, r12, r13",
    "rorx rbp, r12, 5",
    "lea r8, [r12+r13*4+8]",
    "mov r9, [r14]",
];

/// Copies of a few instructions, evenly spread.
fn draw_mix(random: &mut Random, model: &CoreModel) -> Vec<&'static str> {
    let mut parts: Vec<(usize, &'static str)> = Vec::new();
    while parts.len() < 3 {
        let text = WRITERS[random.below(WRITERS.len())];
        if !model.has_false_dependency(&one(text)) && parts.iter().all(|(_, known)| *known != text) {
            parts.push((1 + random.below(6), text));
        }
    }
    let places = parts
        .iter()
        .flat_map(|(count, text)| (0..*count).map(move |copy| ((copy as f64 + 0.5) / *count as f64, *text)));
    let mut places: Vec<(f64, &'static str)> = places.collect();
    places.sort_by(|one, other| one.0.total_cmp(&other.0));
    places.into_iter().map(|(_, text)| text).collect()
}

/// Core cycles of a mix by the best assignment.
fn best_cycles(model: &CoreModel, mix: &[&str]) -> f64 {
    let map = model.port_map.as_ref().expect("the model has a map");
    let instructions: Vec<Instruction> = mix.iter().map(|text| one(text)).collect();
    let sets = instructions.iter().flat_map(|instruction| model.port_uses(instruction));
    let work: Vec<(PortMask, f64)> =
        sets.map(|ports| (ports.iter().fold(0, |set, port| set | 1 << port), 1.0)).collect();
    let slots: u32 = instructions.iter().filter_map(|instruction| model.slots(instruction)).sum();
    map.best_cycles(slots.into(), &work)
}

/// The simulated times of random mixes relative to the best assignment: from the start on, and later.
fn compare_mixes(map: &SimulatedPortMap, seed: u64) -> Vec<[f64; 2]> {
    let model = CoreModel::with_port_map(seed, map.clone());
    let mut random = Random::new(seed);
    let ratios = |_| {
        let mix = draw_mix(&mut random, &model);
        let (text, best) = (mix.join("; "), best_cycles(&model, &mix));
        // So few iterations are simulated one by one.
        let first = SimulatedCore::new(model.clone(), 1).body_cycles(&program("", &text, 24), 30) / 30.0 / 24.0;
        [first / best, cost(&model, &text) / best]
    };
    (0..4).map(ratios).collect()
}

#[test]
fn mixes_take_the_time_of_the_best_assignment_and_never_less() {
    for assignment in PortAssignment::ALL {
        let mut maps: Vec<(String, SimulatedPortMap)> =
            SimulatedPortMap::presets(assignment).into_iter().map(|(name, map)| (name.to_string(), map)).collect();
        maps.extend((0..40).map(|seed| (format!("seed {seed}"), SimulatedPortMap::from_seed(seed, assignment))));
        let mut missed = 0;
        for (seed, (name, map)) in maps.iter().enumerate() {
            for [from_start, ratio] in compare_mixes(map, seed as u64) {
                assert!(from_start > 1.0 - 1e-9, "{name} {assignment:?}: {from_start}");
                // The loop's end is one of some hundred instructions.
                missed += usize::from(ratio > 1.03);
                assert!(assignment != PortAssignment::Best || ratio < 1.03, "{name}: {ratio}");
            }
        }
        // A queue in front of each port tells where work is missing, so that the least loaded port is good.
        let misses = matches!(assignment, PortAssignment::Uniform | PortAssignment::BySlot);
        assert_eq!(missed > 10, misses, "{assignment:?} misses the best in {missed}");
    }
}

#[test]
fn a_resource_that_is_no_port_limits_forms_without_common_ports() {
    let mut map = SimulatedPortMap::skylake(PortAssignment::Best);
    map.classes = vec![SimulatedPortClass::with_ports(false, 1), SimulatedPortClass::with_ports(true, 2)];
    let mix = ["pdep rax, r12, r13", "vpshufb xmm0, xmm14, xmm15"];
    let apart = cost(&CoreModel::with_port_map(1, map.clone()), &mix.join("; "));
    let resource = 1 << map.ports;
    map.ports += 1;
    map.classes.iter_mut().for_each(|class| class.uops.push((resource, 1)));
    let together = cost(&CoreModel::with_port_map(1, map), &mix.join("; "));
    assert!(apart < 1.1 && together > 1.9, "{apart} {together}");
}

/// On Zen 5, PEXT (three cycles) and RORX (one) have the same three ports. Blocks of 12, 24 and 48 of each
/// take 10, 18 and 34 cycles where the ports allow 8, 16 and 32.
#[test]
fn result_buses_cost_two_cycles_between_latencies_of_three_and_one() {
    let mut map = SimulatedPortMap::skylake(PortAssignment::Uniform);
    let three = 0b10_0011;
    (map.adders, map.classes[0]) = (three, SimulatedPortClass::with_ports(false, three));
    map.classes.retain(|class| class.is_vector || class.uops == [(three, 1)]);
    let long = |seed: u64| {
        let model = CoreModel::with_port_map(seed, map.clone());
        let is_long = |text: &&str| model.latency(&one(text), "op2", "op1") == Some(3);
        WRITERS[7..11].iter().find(|text| is_long(text)).map(|text| (seed, *text))
    };
    let (seed, long) = (0..200).find_map(long).expect("a form takes three cycles");
    let time = |has_result_buses: bool, block: usize| {
        let model = CoreModel::with_port_map(seed, SimulatedPortMap { has_result_buses, ..map.clone() });
        cost(&model, &[vec![long; block], vec!["lea r10, [r12]"; block]].concat().join("; "))
    };
    for block in [12, 24, 48] {
        let [without, with] = [false, true].map(|has_result_buses| time(has_result_buses, block));
        let least = 2.0 * block as f64 / 3.0;
        assert!((without - least).abs() < 0.1 && (with - least - 2.0).abs() < 0.1, "{block}: {without} {with}");
    }
}
