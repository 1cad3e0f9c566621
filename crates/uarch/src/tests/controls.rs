//! How each program differs from its control, which is subtracted.

use crate::spec::{Experiment, MapRow, ProgramFamily, StepLoop, TestRow, TestSpec};
use crate::test_list::TESTS;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};
use std::collections::BTreeMap;

/// The least difference between a program and its control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ControlDifference {
    /// No difference.
    Nothing,
    /// Memory: the places of its lines, or its pages.
    Memory,
    /// The setup: numbers, and the state of the core.
    Before,
    /// The order of the instructions.
    Order,
    /// Operands: registers, addresses, widths, constants.
    Operands,
    /// Operands and order.
    OperandsAndOrder,
    /// Instructions, the same number of them.
    Instructions,
    /// The number of instructions.
    Number,
    /// Instructions, and also memory or setup.
    More,
}

fn find_difference(program: &StepLoop, control: &StepLoop) -> ControlDifference {
    let decoded = |steps: &StepLoop| -> Vec<Instruction> {
        let all = Decoder::new(64, &steps.body, DecoderOptions::NONE);
        // Code that never runs does not count.
        all.into_iter().filter(|instruction| instruction.mnemonic() != Mnemonic::Int3).collect()
    };
    let [own, other] = [program, control].map(decoded);
    let sorted = |all: &[Instruction]| {
        let mut all: Vec<String> = all.iter().map(Instruction::to_string).collect();
        all.sort();
        all
    };
    let mnemonics =
        |all: &[Instruction]| all.iter().map(|instruction| instruction.mnemonic()).collect::<Vec<Mnemonic>>();
    let ordered = |mut all: Vec<Mnemonic>| {
        all.sort();
        all
    };
    let same = [program.body == control.body, program.init == control.init, program.memory == control.memory];
    match same {
        [true, true, true] => ControlDifference::Nothing,
        // A ring is warmed up in the setup.
        [true, _, false] => ControlDifference::Memory,
        [true, false, true] => ControlDifference::Before,
        [false, false, _] | [false, _, false] => ControlDifference::More,
        _ if sorted(&own) == sorted(&other) => ControlDifference::Order,
        _ if mnemonics(&own) == mnemonics(&other) => ControlDifference::Operands,
        _ if ordered(mnemonics(&own)) == ordered(mnemonics(&other)) => ControlDifference::OperandsAndOrder,
        _ if own.len() == other.len() => ControlDifference::Instructions,
        _ => ControlDifference::Number,
    }
}

/// Number of events in a batch.
const BATCH: usize = 5;

/// The programs of a test, by the keys of their rows, each with a count.
fn families(test: &'static TestSpec) -> Vec<(String, &'static ProgramFamily, usize)> {
    let named = |family| (test.name.to_string(), family);
    match &test.experiment {
        Experiment::Levels(levels) => {
            let count = levels.count_range[0].max(20).min(levels.count_range[1]);
            let all = levels.programs.iter().chain(levels.fallback_programs);
            all.map(named).map(|(key, family)| (key, family, count)).collect()
        }
        Experiment::RandomVisits(visits) => {
            visits.programs.iter().map(named).map(|(key, family)| (key, family, visits.count_range[0])).collect()
        }
        Experiment::CostMap(map) => {
            let of_row = |row: &'static MapRow| row.programs.iter().map(|family| (row.name.to_string(), family, 0));
            map.rows.iter().flat_map(of_row).collect()
        }
        Experiment::Batches(batches) => {
            let all = batches.programs.iter().chain([&batches.witness.family]);
            let all = all.map(named).map(|(key, family)| (key, family, BATCH));
            all.chain([(test.name.to_string(), batches.single_event, 1)]).collect()
        }
        _ => {
            let of_row = |row: &'static TestRow| {
                row.variants.iter().map(|variant| (row.record_key(test.name), &variant.family, row.n))
            };
            test.rows().iter().flat_map(of_row).collect()
        }
    }
}

/// How the programs of a test differ from their controls, with the number of programs per kind of
/// difference.
pub(super) fn control_differences(test: &'static TestSpec) -> BTreeMap<ControlDifference, usize> {
    let mut counts = BTreeMap::new();
    for (_, family, n) in families(test) {
        if let Some(control) = family.control(n) {
            *counts.entry(find_difference(&family.program(n), &control)).or_default() += 1;
        }
    }
    counts
}

#[test]
fn a_program_restores_the_state_that_it_changes() {
    let has = |code: &[u8], mnemonic| {
        Decoder::new(64, code, DecoderOptions::NONE).iter().any(|instruction| instruction.mnemonic() == mnemonic)
    };
    let mut modes = 0;
    for (key, family, n) in TESTS.iter().flat_map(|test| families(test)) {
        let own = family.program(n);
        let control = family.control(n);
        for steps in std::iter::once(&own).chain(&control) {
            let mode = has(&steps.init, Mnemonic::Ldmxcsr);
            assert_eq!(mode, has(&steps.following, Mnemonic::Ldmxcsr), "{key}, {}", family.name);
            modes += usize::from(mode);
        }
        let same = control.is_none_or(|control| control.following == own.following);
        assert!(same, "{key}, {}", family.name);
    }
    assert!(modes > 0);
}
