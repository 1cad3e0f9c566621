//! Each script's question is answered by numbers: on simulated cores, the records that a script asks
//! for hold the simulated numbers.

use super::simulated_structures::SimulatedStructures;
use crate::agner_scripts::AGNER;
use crate::cpu_resources::CpuResources;
use crate::overlap_test::StructureEnds;
use crate::record::UarchRecord;
use crate::spec::{Experiment, TestSpec};
use crate::test_list::{TESTS, find_test};
use crate::test_runner::run_test;
use crate::verdict::VerdictKind;
use cyclescope_core::random::Random;
use std::collections::{BTreeMap, BTreeSet};

/// Questions of the scripts and the records that answer them. Each record has a number on some
/// simulated core.
const NUMBERS: &[(&str, &[&str])] = &[
    (
        "decoder_throughput",
        &["decode_rate.1_byte", "fetch_rate.4_bytes", "fetch_rate.15_bytes", "fetch_rate.full_length"],
    ),
    (
        "decode_nops",
        &[
            "fetch_rate.2_bytes",
            "fetch_rate.3_bytes",
            "fetch_rate.4_bytes",
            "fetch_rate.5_bytes",
            "fetch_rate.6_bytes",
            "fetch_rate.7_bytes",
            "fetch_rate.8_bytes",
            "fetch_rate.9_bytes",
            "fetch_rate.10_bytes",
            "fetch_rate.11_bytes",
            "fetch_rate.12_bytes",
            "fetch_rate.13_bytes",
            "fetch_rate.14_bytes",
            "fetch_rate.15_bytes",
        ],
    ),
    ("instruct_boundaries", &["boundary_marks"]),
    (
        "partial_register_stall",
        &[
            "merge_slots.high_8_bits_and_whole",
            "merge_slots.16_bits_and_whole",
            "merge_slots.carry_and_zero",
            "partial_registers.high_8_bits",
        ],
    ),
    (
        "memcpy",
        &[
            "copy_methods.rep_movsb.1_byte",
            "copy_methods.rep_movsb.8_MiB",
            "copy_methods.by_32_bytes.8_MiB",
            "library_copies.1_byte",
            "library_copies.64_MiB",
        ],
    ),
    (
        "testmemcpyalign",
        &[
            "copy_offsets.rep_movsb.source",
            "copy_offsets.by_32_bytes.target",
            "library_copy_offsets.source",
            "library_copy_offsets.target",
        ],
    ),
    ("branch", &["counted_loops", "direction_predictor.1.size"]),
    ("xor", &["dependency_breaking.cmp_64", "dependency_breaking.xor_64"]),
    ("fused_branch", &["macro_fusion.dec_equal", "macro_fusion.dec_carry"]),
    (
        "cache_throughput",
        &["cache_width.read_16_bytes.128_KiB", "cache_width.read_64_bytes.128_KiB", "cache_width.write_64_bytes.4_MiB"],
    ),
    ("unaligned_mem", &["split_access.load_64_lines", "split_access.store_64_pages"]),
    ("AVX_states", &["upper_halves.zmm_overwritten", "upper_halves.high_zmm_chain"]),
    ("taylor", &["taylor.table_one_sum", "taylor.table_and_powers"]),
];

/// Questions that tests beside their experiments answer by numbers: `rooms`, `fade` and `sharing`.
const TESTED_APART: [&str; 3] = ["ucache_double_entries", "warmup_fp", "resource_sharing"];

/// Number of simulated cores. Events are missing from some.
const CORES: u64 = 12;

/// The simulated number of a record, if it is one.
fn simulated_number(core: &SimulatedStructures, test: &TestSpec, what: &str) -> Option<f64> {
    match &test.experiment {
        Experiment::Levels(_) => core.levels[test.name].sizes.first().copied(),
        Experiment::CostMap(_) => core.places[what].iter().copied().min_by(f64::total_cmp),
        Experiment::Rates(_) => core.rates.get(what).copied(),
        Experiment::Contrast(_) => core.events.get(what).copied(),
        _ => None,
    }
}

fn holds(record: &UarchRecord, simulated: f64) -> bool {
    let [low, high] = [record.value.low, record.value.high].map(|edge| edge.unwrap_or(f64::NAN));
    let slack = 0.12 * simulated;
    record.verdict == VerdictKind::Found && low - slack <= simulated && simulated <= high + slack
}

#[test]
fn each_question_is_answered_by_simulated_numbers() {
    let asked: BTreeSet<&str> = NUMBERS.iter().flat_map(|(_, keys)| *keys).copied().collect();
    let tests: Vec<&'static TestSpec> =
        TESTS.iter().copied().filter(|test| asked.iter().any(|key| key.split('.').next() == Some(test.name))).collect();
    let mut answered: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 0..CORES {
        let mut core = SimulatedStructures::new(seed);
        let cpu = CpuResources { has: &|_| true, memory: u64::MAX, shared: None };
        for test in &tests {
            core.test = test;
            let records = run_test(&mut core, &mut StructureEnds::new(), test, &cpu, &mut Random::new(seed));
            for record in records.expect("all is simulated") {
                let simulated = simulated_number(&core, test, &record.what);
                if simulated.is_some_and(|simulated| simulated > 0.0 && holds(&record, simulated)) {
                    *answered.entry(record.what.clone()).or_default() += 1;
                }
            }
        }
    }
    // Simulated rates are random by row; a test of `rates` plants a length.
    let missing: Vec<&&str> =
        asked.iter().filter(|key| !answered.contains_key(**key) && **key != "fetch_rate.full_length").collect();
    assert!(missing.is_empty(), "no simulated number is found: {missing:?}");
}

#[test]
fn answers_are_records_of_tests_that_the_list_names() {
    let answers = |script: &str| {
        let entry = AGNER.entries.iter().find(|entry| entry.name == script);
        entry.expect("it is a script").answers
    };
    for (script, keys) in NUMBERS {
        for key in *keys {
            let test = key.split('.').next().expect("a key has a test's name");
            assert!(answers(script).contains(&test), "{script}: {key}");
            assert!(!find_test(test).name.is_empty());
        }
    }
    for (script, test) in TESTED_APART.iter().zip(["constant_room", "wake_up_time", "resource_sharing"]) {
        assert!(answers(script).contains(&test), "{script}: {test}");
    }
}
